"""`make mutate`: whether the tests see it where one operator or constant of kernels or of the compiler is another one.

Each mutant is a copy of the tree with one change in src/algos or src/kernel, tested until the first failure. Golden
files and the archive of PTX are left out: they see any change, without knowing whether it is wrong. A mutant that
survives is shown, and is a gap in the tests, or means the same (a bound that is only a hint, a length of 3 for 4).
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import attrs
import pytest

ROOT = Path(__file__).parent.parent
TIMES = ROOT / "build" / "tests.xml"
MUTATED = ("src/algos", "src/kernel")
SWAPPED: dict[type[ast.operator | ast.cmpop], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
}  # fmt: skip
# These have no part in what kernels compute, or run for minutes.
LEFT_OUT = (
    "background", "benchmarks", "covering", "dask", "docs", "examples", "export", "files", "forks", "golden",
    "interrupt", "kept", "packaging", "ptx", "shipped", "site", "type_errors", "vulkan", "web",
)  # fmt: skip
# What sorts, selects, reduces and scans on every target, and says what the compiler reads: run for every mutant.
EVERYDAY = (
    "test_api", "test_argsort", "test_expressions", "test_merge", "test_pairs", "test_reader", "test_reduce_api",
    "test_scan_api", "test_select", "test_simulator", "test_verify",
)  # fmt: skip
MEASURED = ("table.py", "tuned.py")  # numbers for speed, where the next one is as right
SECONDS = 1800.0  # a mutant that takes longer does not end, or the machine is busy: it counts as not caught


@attrs.frozen
class Mutant:
    """One place in a file, and what stands there instead."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def source(self) -> str:
        lines = (ROOT / self.path).read_text().splitlines(keepends=True)
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.start] + self.text + line[self.end :]
        return "".join(lines)

    def __str__(self) -> str:
        was = (ROOT / self.path).read_text().splitlines()[self.line - 1]
        return f"{self.path}:{self.line}: {was.strip()}  ->  {self.source().splitlines()[self.line - 1].strip()}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All of a file, but for what annotations and messages say."""
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    for node in _all_but_defaults(ast.parse(text)):
        match node:
            case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
                if type(op) in SWAPPED and left.end_lineno == right.lineno:
                    assert left.end_lineno is not None
                    assert left.end_col_offset is not None
                    was, becomes = SWAPPED[type(op)]
                    at = lines[right.lineno - 1].find(was, left.end_col_offset, right.col_offset)
                    if at >= 0:
                        yield Mutant(path, right.lineno, at, at + len(was), becomes)
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                assert node.end_col_offset is not None
                yield Mutant(path, node.lineno, node.col_offset, node.end_col_offset, str(value + 1))
            case _:
                pass


def _all_but_defaults(node: ast.AST) -> Iterator[ast.AST]:
    """All below, but for annotations, and the default values of fields, which are numbers for speed."""
    yield node
    annotations = [getattr(node, name, None) for name in ("annotation", "returns")]
    for child in ast.iter_child_nodes(node):
        if child in annotations:
            continue
        match child:
            case ast.Call(func=ast.Attribute(value=ast.Name("attrs"), attr="field")):
                pass
            case _:
                yield from _all_but_defaults(child)


def near(path: Path, tests: list[Path]) -> list[Path]:
    """The tests named after a file, and those that name something that it defines, or that an importer of it defines:
    schedules, mostly, of which kernels are a part. Those that take least time come first."""
    words, paths = path.stem.split("_"), [path, *_importers(path)]
    defined = {name for one in paths for name in _defined(one)}
    named = re.compile(rf"\b({'|'.join(map(re.escape, sorted(defined)))})\b") if defined else None
    found = [
        test
        for test in tests
        if any(word in test.name for word in words)
        or test.stem in EVERYDAY
        or (named and named.search(test.read_text()))
    ]
    return sorted(found, key=lambda test: _seconds().get(test.stem, 0.0))


def _importers(path: Path) -> list[Path]:
    """The modules of ours that import one of ours."""
    imported = re.compile(rf"^from \.[\w.]*\b{path.stem} import", re.MULTILINE)
    return [
        one.relative_to(ROOT)
        for folder in (*MUTATED, "src/operations")
        for one in sorted((ROOT / folder).rglob("*.py"))
        if imported.search(one.read_text())
    ]


def _defined(path: Path) -> list[str]:
    body = ast.parse((ROOT / path).read_text()).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"]


@cache
def _seconds() -> Mapping[str, float]:
    """What each file of tests took in the last `make test`, if there was one."""
    found: defaultdict[str, float] = defaultdict(float)
    if TIMES.exists():
        for case in ElementTree.parse(TIMES).iter("testcase"):
            found[case.get("classname", "").split(".")[1]] += float(case.get("time", 0))
    return found


def fate(mutant: Mutant, tree: Path, jobs: int, near_only: bool) -> tuple[str, str]:
    """What becomes of it, and which test saw it. The tests named after its file are run first."""
    target = tree / mutant.path
    target.write_text(mutant.source())
    tests = [path for path in sorted(tree.glob("tests/test_*.py")) if not any(word in path.name for word in LEFT_OUT)]
    first = near(mutant.path, tests)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no"]
    command += ["-n", str(jobs)] if jobs > 1 else []
    searched = [str(tree / "typings" / "on-path"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(searched), "XDG_CACHE_HOME": str(tree.parent / "cache")}
    try:
        others = [] if near_only else [path for path in tests if path not in first]
        # On wgsl, where tests are slowest, mostly the same kernels run once more.
        rounds = ((first, "not wgsl"), (first, "wgsl"), (others, ""))
        for some, chosen in filter(lambda one: one[0], rounds):
            found = subprocess.run(
                [*command, "-k", chosen, *map(str, some)], cwd=tree, env=environment, capture_output=True, text=True,
                timeout=SECONDS, check=False,
            )  # fmt: skip
            if found.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                seen = [line for line in found.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return "caught", (seen or found.stdout.splitlines()[-1:] or [""])[0]
    except subprocess.TimeoutExpired:
        return "TOO LONG", ""
    finally:
        shutil.copyfile(ROOT / mutant.path, target)
    return "SURVIVES", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="these of the chosen, by their numbers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes a mutant")
    parser.add_argument("--trees", type=int, default=1, help="mutants at once, each in a tree of its own")
    parser.add_argument("--near", action="store_true", help="only tests that name what it or its importers define")
    given = parser.parse_args()
    paths = [path.relative_to(ROOT) for folder in MUTATED for path in sorted((ROOT / folder).rglob("*.py"))]
    paths = [path for path in paths if path.name not in MEASURED]
    chosen = random.Random(given.seed).sample([one for path in paths for one in mutants(path)], given.count)
    numbers = given.only or range(given.count)
    waiting = iter(numbers)
    caught: list[Mutant] = []

    def test_some(folder: Path) -> None:
        ignored = shutil.ignore_patterns(".git", ".venv", ".gpu", ".*_cache", "__pycache__", "build", "node_modules")
        shutil.copytree(ROOT, folder / "tree", symlinks=True, ignore=ignored)
        for number in iter(lambda: next(waiting, None), None):
            mutant = chosen[number]
            found, by = fate(mutant, folder / "tree", given.jobs, given.near)
            if found == "caught":
                caught.append(mutant)
            print(f"{number:3} {found:8} {mutant}  {by}", flush=True)

    with tempfile.TemporaryDirectory(prefix="gpusort-mutate-") as folder, ThreadPoolExecutor(given.trees) as threads:
        for _ in threads.map(test_some, [Path(folder) / str(number) for number in range(given.trees)]):
            pass
    print(f"{len(caught)} of {len(numbers)} caught")


if __name__ == "__main__":
    main()
