"""What may import what: each layer knows those below it, and nothing outside targets/ knows a target by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.new_process import printed

_SRC = Path(__file__).parent.parent / "src"
_CONCRETE = {f"targets.{name}" for name in ("cpu", "wgsl", "cuda", "simulator", "python")}

_HOST = "targets.cpu.host."

# Packages, and what they may know besides themselves. `targets` stands for targets/base.py and its registry alone.
_BELOW: dict[str, frozenset[str]] = {
    "types": frozenset(),
    "kernel": frozenset({"types", "forks"}),
    "disk_cache": frozenset({"types"}),
    "machine": frozenset({"types"}),
    "algos": frozenset({"types", "kernel", "machine", "disk_cache"}),
    "external": frozenset({"types", "kernel", "machine", "algos"}),
    "operations": frozenset({"types", "kernel", "machine", "algos"}),
    "arrays": frozenset({"types", "kernel", "machine", "algos", "targets", "forks"}),
    "api": frozenset({"types", "kernel", "machine", "algos", "external", "operations", "arrays", "targets", "forks"}),
    "multi": frozenset({"types", "kernel", "machine", "algos", "external", "operations", "arrays", "api", "targets"}),
    "dask": frozenset({"types", "kernel", "machine", "algos", "external", "operations", "arrays", "api", "targets"}),
    "export": frozenset({"types", "kernel", "machine", "algos", "operations", "targets"}),
}


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """The modules of the package that a file imports, wherever in it, with their lines."""
    parts = file.relative_to(_SRC).with_suffix("").parts
    package = parts[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = (*base, *(node.module.split(".") if node.module else ()))
            for name in [".".join((*module, alias.name)) for alias in node.names]:
                yield name, node.lineno


def files(package: str) -> list[Path]:
    folder = _SRC / package
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


@pytest.mark.parametrize("package", _BELOW)
def test_a_layer_knows_those_below_it(package: str) -> None:
    allowed = {package, *_BELOW[package]}
    wrong = [
        f"{file.relative_to(_SRC)}:{line}: {name}"
        for file in files(package)
        for name, line in imports(file)
        if name.split(".")[0] not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_outside_targets_knows_a_target_by_name() -> None:
    wrong = [
        f"{file.relative_to(_SRC)}:{line}: {name}"
        for file in sorted(_SRC.rglob("*.py"))
        if file.relative_to(_SRC).parts[0] not in ("targets", "export")  # an export is written for a target
        for name, line in imports(file)
        if any(name == target or name.startswith(f"{target}.") for target in _CONCRETE)
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_cpu_target_asks_the_host_library() -> None:
    """The host library may use the back end's threads and compiler; the back end does without the host library."""
    back_end = (_SRC / "targets" / "cpu").glob("*.py")
    asking = {(file.name, name) for file in back_end for name, _ in imports(file) if name.startswith(_HOST)}
    assert {name for name, _ in asking} == {"target.py"}
    used = {name for file in (_SRC / "targets" / "cpu" / "host").glob("*.py") for name, _ in imports(file)}
    assert "targets.cpu.pool.Pool" in used
    assert not [name for name in used if name.startswith("targets.cpu.target")]


_ON_THE_HOST = """
import sys, numpy as np, gpusort
x = np.arange(9.0)
gpusort.sort(x), gpusort.merge(x, x), gpusort.top_k(x, 2), gpusort.sum(x), gpusort.cumsum(x)
print(sorted(name for name in sys.modules if name.startswith("gpusort.kernel")))
"""


def test_what_runs_on_the_host_imports_no_kernel() -> None:
    """Operations import theirs in `works`: at the top of a file, every program's first call would wait for them."""
    assert printed(_ON_THE_HOST, fresh=True) == "[]"


def test_nothing_imports_numba() -> None:
    """It is a second opinion of the tests alone; arrays of its are seen to by what their caller has imported."""
    named = {
        name.partition(".")[0]
        for file in _SRC.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in _imported(node)
    }
    assert {"llvmlite", "wgpu", "cupy"} <= named
    assert "numba" not in named


def _imported(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str() as name, level=0):
            yield name
        case ast.Call(
            func=ast.Name("import_module") | ast.Attribute(attr="import_module"), args=[ast.Constant(str() as name), *_]
        ):
            yield name
        case _:
            pass


def test_the_modules_of_the_old_front_are_gone() -> None:
    gone = ("quick", "quick_card", "quick_reduce", "quick_scan", "placing", "reducing", "sorting")
    assert [name for name in gone if (_SRC / f"{name}.py").exists()] == []


def test_these_tests_can_fail() -> None:
    seen = dict(imports(_SRC / "targets" / "cpu" / "target.py"))
    assert "operations.base.Operation" in seen
    assert any(name.startswith("targets.cpu.") for name in seen)
