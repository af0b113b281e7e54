"""The package as laid out and shipped: what is listed, what is in the wheel, and what an import costs."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import TypedDict, cast

import pytest

ROOT = Path(__file__).resolve().parent.parent


class Setuptools(TypedDict):
    packages: list[str]


class Tool(TypedDict):
    setuptools: Setuptools


class Pyproject(TypedDict):
    tool: Tool


def run_python(code: str, where: Path = ROOT) -> str:
    """What ``code`` prints in a fresh interpreter.

    Coverage's measuring of child processes is left out: it would be timed, and it imports modules of its own.
    """
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COV_CORE")}
    quiet.pop("COVERAGE_PROCESS_START", None)
    quiet.pop("COVERAGE_PROCESS_CONFIG", None)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=where, env=quiet, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def listed_packages() -> list[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return cast(Pyproject, tomllib.load(file))["tool"]["setuptools"]["packages"]


def packages_in_the_tree() -> list[str]:
    source = ROOT / "src"
    folders = {file.parent.relative_to(source) for file in source.rglob("*.py")}
    return sorted(".".join(("gpusort", *folder.parts)) for folder in folders)


def test_the_listed_packages_are_those_of_the_tree() -> None:
    assert sorted(listed_packages()) == packages_in_the_tree()


@pytest.mark.parametrize("package", packages_in_the_tree())
def test_every_package_has_an_init_file(package: str) -> None:
    assert (ROOT / "src" / Path(*package.split(".")[1:]) / "__init__.py").is_file()


@pytest.mark.parametrize(
    "folder",
    [
        "src/algos",
        "src/kernel",
        "src/targets",
        "src/types",
        "typings/cupy",
        "typings/numba",
        "typings/wgpu",
        "tests",
        "benchmarks",
        "examples",
        "docs",
    ],
)
def test_the_house_has_its_rooms(folder: str) -> None:
    assert (ROOT / folder).is_dir()


def test_the_checkers_reach_the_source_by_its_import_name() -> None:
    link = ROOT / "typings" / "gpusort"
    assert link.is_symlink()
    assert os.readlink(link) == os.path.join("..", "src")


def test_no_kernel_is_written_in_another_language() -> None:
    foreign = {".cl", ".cu", ".cuh", ".ptx", ".wgsl"}
    ours = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ours.returncode != 0:
        pytest.skip("not a git checkout: there is no telling which files are ours")
    golden = Path("tests", "golden")
    written = [Path(name) for name in ours.stdout.splitlines()]
    assert [file for file in written if file.suffix in foreign and golden not in file.parents] == []


@pytest.mark.parametrize("elsewhere", ["/", "src"])
def test_the_package_is_found_from_any_folder(elsewhere: str) -> None:
    """From src/ too, where the folder types/ lies: only the installed name may lead there."""
    where = ROOT / elsewhere
    found = run_python("import sys; sys.path.remove(''); import gpusort; print(gpusort.__file__)", where)
    assert Path(found).resolve() == ROOT / "src" / "__init__.py"


def test_the_standard_types_module_is_not_hidden() -> None:
    found = run_python("import gpusort, types; print(types.SimpleNamespace.__name__, types.__file__)")
    assert found.startswith("SimpleNamespace")
    assert not Path(found.split()[1]).is_relative_to(ROOT / "src")


@pytest.mark.parametrize("heavy", ["numba", "llvmlite", "wgpu", "cupy", "cuda"])
def test_importing_gpusort_leaves_the_back_ends_alone(heavy: str) -> None:
    loaded = run_python("import sys, gpusort; print(*{name.partition('.')[0] for name in sys.modules})")
    assert "gpusort" in loaded.split()
    assert heavy not in loaded.split()


def seconds_to_import(module: str) -> float:
    return float(run_python(f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"))


def test_importing_gpusort_costs_under_one_and_a_half_times_numpy() -> None:
    """The quickest of several runs, taken in turns: noise only ever adds, and it may come and go."""
    numpy = gpusort = float("inf")
    for _ in range(20):
        numpy = min(numpy, seconds_to_import("numpy"))
        gpusort = min(gpusort, seconds_to_import("gpusort"))
        if gpusort < 1.4 * numpy:
            break
    assert gpusort < 1.5 * numpy


def test_the_wheel_holds_the_package_and_its_type_marker(tmp_path: Path) -> None:
    """Built from a copy: a build leaves folders behind, and what lies in them gets into the next wheel."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."],
        cwd=copy,
        check=True,
    )
    (wheel,) = copy.glob("gpusort-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    sources = [file.relative_to(copy / "src").as_posix() for file in (copy / "src").rglob("*.py")]
    shipped = [name for name in names if not name.startswith("gpusort-")]
    assert sorted(shipped) == sorted(f"gpusort/{name}" for name in (*sources, "py.typed"))
