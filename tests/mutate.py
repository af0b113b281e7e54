"""`make mutate`: whether the tests see it where one operator or constant of kernels or of the compiler is another one.

Each mutant is a copy of the tree with one change in src/algos or src/kernel, tested until the first failure, by the
tests that reach the function that it is in: see tests/reached.py. Golden files and the archive of PTX are left out:
they see any change, without knowing whether it is wrong. A mutant that survives is shown, and is a gap in the tests, or
means the same (a bound that is only a hint, a length of 3 for 4).
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from tests.reached import CHOOSES, MEASURES, OVER, Reach, functions_in, known, name_of

ROOT = Path(__file__).parent.parent
REACHED = ROOT / "build" / "reached.json"
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
MEASURED = ("table.py", "tuned.py")  # numbers for speed, where the next one is as right
CHOOSING = ("choice.py",)  # whose own constants are such numbers too
# On wgsl, where tests wait for the driver, mostly the same kernels run once more.
NOT_MEASURED = "not wgsl"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "tests.reached", "-p", "no:cacheprovider", "--benchmark-disable"]
SECONDS = 7200.0  # by the clock, on which a mutant may wait for ever


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
    for node in _all_but_defaults(_without_tuning(path, ast.parse(text))):
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


def _without_tuning(path: Path, tree: ast.Module) -> ast.Module:
    """A file without the constants of the module, if these are numbers for speed."""
    if path.name in CHOOSING:
        tree.body = [node for node in tree.body if not isinstance(node, ast.Assign)]
    return tree


def _all_but_defaults(node: ast.AST) -> Iterator[ast.AST]:
    """All below, but for annotations and aliases of types, and the defaults of fields, which are numbers for speed."""
    yield node
    left_out = [getattr(node, name, None) for name in ("annotation", "returns")]
    if isinstance(node, ast.ClassDef):
        left_out += [field.value for field in node.body if isinstance(field, ast.AnnAssign)]
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Call(func=ast.Attribute(value=ast.Name("attrs"), attr="field")):
                pass
            case ast.AnnAssign(annotation=ast.Name("TypeAlias")):
                pass
            case ast.AnnAssign(value=value) if value is not None and value in left_out:
                pass
            case _ if child not in left_out:
                yield from _all_but_defaults(child)
            case _:
                pass


def functions_of(mutant: Mutant) -> frozenset[str]:
    """The function that a mutant is in; of a constant of a module or a class, those of the file that name it, or else
    all of the file."""
    tree = ast.parse((ROOT / mutant.path).read_text())
    functions = list(functions_in(tree))
    within = [(name, node) for name, node in functions if node.lineno <= mutant.line <= (node.end_lineno or 0)]
    if within:
        found = [within[-1][0]]
    else:
        at = [node for node in ast.walk(tree) if getattr(node, "lineno", None) == mutant.line]
        names = {node.id for node in at if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        found = [name for name, node in functions if names & {*_names(node)}]
    return frozenset(name_of(mutant.path, name) for name in found or [name for name, _ in functions])


def _names(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        match one:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case _:
                pass


def tests_for(mutant: Mutant, reach: Mapping[str, Reach]) -> list[str]:
    """The tests that reach a mutant, in the order to run them: those of the compiler alone, or of algorithms where no
    kernel runs, before all, then files that are named as its own, one case of each test first, the quickest first."""
    functions, folder = functions_of(mutant), mutant.path.parts[1]
    found = sorted((test for test, one in reach.items() if one.functions & functions), key=lambda t: reach[t].seconds)
    cases: Counter[str] = Counter()
    order: dict[str, tuple[bool, bool, bool, float]] = {}
    for test in found:
        name = test.partition("[")[0]
        is_elsewhere = any(not one.startswith(f"{folder}/") for one in reach[test].functions)
        order[test] = (
            is_elsewhere, mutant.path.stem not in test.partition("::")[0], cases[name] > 0, reach[test].seconds
        )  # fmt: skip
        cases[name] += 1
    return sorted(found, key=lambda test: order[test])


def measured() -> Mapping[str, Reach]:
    """What each test reaches. Files of tests are measured where they are newer: all of them take as long as `make test`
    in one process."""
    since = REACHED.stat().st_mtime if REACHED.exists() else 0.0
    tests = [path for path in sorted(ROOT.glob("tests/test_*.py")) if not any(word in path.name for word in LEFT_OUT)]
    newer = [str(path.relative_to(ROOT)) for path in tests if path.stat().st_mtime > since]
    if newer:
        print(f"what {len(newer)} files of tests reach is measured, into {REACHED.relative_to(ROOT)}", flush=True)
        command = [*PYTEST, "-k", NOT_MEASURED, *newer]
        subprocess.run(command, cwd=ROOT, env={**os.environ, MEASURES: str(REACHED)}, capture_output=True, check=False)
    return known(REACHED)


def fate(mutant: Mutant, tree: Path, tests: list[str], seconds: float) -> tuple[str, str]:
    """What becomes of it, and which test saw it."""
    if not tests:
        return "NO TEST", ""
    chosen = tree.parent / "chosen.json"
    chosen.write_text(json.dumps((seconds, tests)))
    searched = [str(tree / "typings" / "on-path"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(searched), "XDG_CACHE_HOME": str(tree.parent / "cache"),
        CHOOSES: str(chosen),
    }  # fmt: skip
    target = tree / mutant.path
    target.write_text(mutant.source())
    try:
        found = subprocess.run(
            [*PYTEST, "-x", "--tb=no", *sorted({test.partition("::")[0] for test in tests})], cwd=tree, env=environment,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "TOO LONG", ""
    finally:
        shutil.copyfile(ROOT / mutant.path, target)
    last = found.stdout.splitlines()[-1:] or [""]
    if found.returncode == -signal.SIGPROF:
        return "caught", "a test did not end"
    if found.returncode == 0 or f"Interrupted: {OVER}" in found.stdout:
        return "SURVIVES", last[0]
    seen = [line for line in found.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "caught", (seen or last)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="these of the chosen, by their numbers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trees", type=int, default=1, help="mutants at once, each in a tree of its own")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the processor, for the tests of one mutant")
    given = parser.parse_args()
    paths = [path.relative_to(ROOT) for folder in MUTATED for path in sorted((ROOT / folder).rglob("*.py"))]
    paths = [path for path in paths if path.name not in MEASURED]
    chosen = random.Random(given.seed).sample([one for path in paths for one in mutants(path)], given.count)
    numbers = given.only or range(given.count)
    reach = measured()
    waiting = iter(numbers)
    caught: list[Mutant] = []

    def test_some(folder: Path) -> None:
        ignored = shutil.ignore_patterns(".git", ".venv", ".gpu", ".*_cache", "__pycache__", "build", "node_modules")
        shutil.copytree(ROOT, folder / "tree", symlinks=True, ignore=ignored)
        for number in iter(lambda: next(waiting, None), None):
            mutant = chosen[number]
            found, by = fate(mutant, folder / "tree", tests_for(mutant, reach), given.seconds)
            if found == "caught":
                caught.append(mutant)
            print(f"{number:3} {found:8} {mutant}  {by}", flush=True)

    with tempfile.TemporaryDirectory(prefix="gpusort-mutate-") as folder, ThreadPoolExecutor(given.trees) as threads:
        for _ in threads.map(test_some, [Path(folder) / str(number) for number in range(given.trees)]):
            pass
    print(f"{len(caught)} of {len(numbers)} caught")


if __name__ == "__main__":
    main()
