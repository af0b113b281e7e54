"""`make mutate`: whether the tests see it where something in kernels or in the compiler is another one: an operator, a
constant, a condition, a statement that is gone (tests/mutants.py has the kinds).

Each mutant is a copy of the tree with one change in src/algos or src/kernel, tested until the first failure, by the
tests that reach the function that it is in (`--measure` finds them: tests/reached.py), or else by those that are
nearest to its module by what they import (tests/nearest.py). Golden files and the archive of PTX are left out:
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

from tests.mutants import ROOT, Kind, Mutant, mutants
from tests.nearest import nearest
from tests.reached import CHOOSES, MEASURES, OVER, Reach, functions_in, known, name_of

REACHED = ROOT / "build" / "reached.json"
MUTATED = ("src/algos", "src/kernel")
# These see any change, or run for minutes.
LEFT_OUT = (
    "benchmarks", "chromium", "covering", "docs", "examples", "export_node", "golden", "installs", "packaging", "ptx",
    "pyodide", "shipped", "site", "type_errors", "vulkan", "web_",
)  # fmt: skip
MEASURED = ("table.py", "table_axes.py", "tuned.py")  # numbers for speed, where the next one is as right
# On wgsl, where tests wait for the driver, mostly the same kernels run once more.
MEASURED_TESTS = "not wgsl or test_wgsl"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "tests.reached", "-p", "no:cacheprovider", "--benchmark-disable"]
FIRST = 4  # files of tests, before the others
_SHARES = 3  # runs of a process while tests are measured, so that all end at about the same time
SECONDS = 7200.0  # by the clock, on which a mutant may wait for ever


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
    kernel runs, before all, then files that are named as its own, one case of each test first, the quickest first.
    Where nothing is measured, files of tests."""
    if not reach:
        return [str(path) for path in nearest(mutant.path, files_of_tests())]
    functions, folder = functions_of(mutant), mutant.path.parts[1]
    found = sorted((test for test, one in reach.items() if one.functions & functions), key=lambda t: reach[t].seconds)
    cases: Counter[str] = Counter()
    order: dict[str, tuple[bool, bool, bool, float]] = {}
    for test in found:
        name = test.partition("[")[0]
        others = tuple(f"{name}/" for name in ("algos", "kernel") if name != folder)
        is_elsewhere = any(one.startswith(others) for one in reach[test].functions)
        order[test] = (
            is_elsewhere, mutant.path.stem not in test.partition("::")[0], cases[name] > 0, reach[test].seconds
        )  # fmt: skip
        cases[name] += 1
    return sorted(found, key=lambda test: order[test])


def files_of_tests() -> list[Path]:
    tests = sorted((ROOT / "tests").glob("test_*.py"))
    return [path.relative_to(ROOT) for path in tests if not any(word in path.name for word in LEFT_OUT)]


def measure(at_once: int) -> None:
    """What each test reaches. Files of tests are measured where they are newer: all of them take as long as `make test`
    with so many processes."""
    since = REACHED.stat().st_mtime if REACHED.exists() else 0.0
    newer = [str(path) for path in files_of_tests() if (ROOT / path).stat().st_mtime > since]
    if newer:
        print(f"what {len(newer)} files of tests reach is measured, into {REACHED.relative_to(ROOT)}", flush=True)
        shares = [newer[n :: _SHARES * at_once] for n in range(_SHARES * at_once)]
        with ThreadPoolExecutor(at_once) as threads:
            for _ in threads.map(_measure_files, filter(None, shares)):
                pass


def _measure_files(files: list[str]) -> None:
    command = [*PYTEST, "-k", MEASURED_TESTS, *files]
    environment = {**os.environ, MEASURES: str(REACHED)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # where a test fails, what it reached is known all the same
        raise SystemExit(f"{len(files)} files of tests were not measured:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def in_turns(tests: list[str]) -> Iterator[list[str]]:
    """A few files of tests first, which mostly see a mutant: to collect all takes longer than to run these."""
    files = [*dict.fromkeys(test.partition("::")[0] for test in tests)]
    for some in (files[:FIRST], files[FIRST:]):
        if some:
            yield [test for test in tests if test.partition("::")[0] in some]


def fate(mutant: Mutant, tree: Path, tests: list[str], seconds: float) -> tuple[str, str]:
    """What becomes of it, and which test saw it."""
    found = "NO TEST", ""
    for some in in_turns(tests):
        found = fate_in(mutant, tree, some, seconds)
        if found[0] != "SURVIVES":
            break
    return found


def fate_in(mutant: Mutant, tree: Path, tests: list[str], seconds: float) -> tuple[str, str]:
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
    parser.add_argument("--count", type=int, default=50, help="at most")
    parser.add_argument("--kinds", type=Kind, nargs="+", choices=[*Kind], default=[*Kind])
    parser.add_argument("--paths", type=Path, nargs="+", default=[*map(Path, MUTATED)], help="files, folders")
    parser.add_argument("--measure", action="store_true", help="first what tests reach, where this is not known")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="these of the chosen, by their numbers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trees", type=int, default=1, help="so many at once, each in a tree of its own")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the processor, for a turn of tests")
    given = parser.parse_args()
    found = [path for given_path in given.paths for path in (given_path, *sorted((ROOT / given_path).rglob("*.py")))]
    paths = [path.resolve().relative_to(ROOT) for path in found if path.suffix == ".py" and path.name not in MEASURED]
    everything = [one for path in paths for one in mutants(path, given.kinds)]
    chosen = random.Random(given.seed).sample(everything, min(given.count, len(everything)))
    numbers = given.only or range(len(chosen))
    if given.measure:
        measure(given.trees)
    reach = known(REACHED)
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
            print(f"{number:3} {found:8} {mutant.kind:10} {mutant}  {by}", flush=True)

    with tempfile.TemporaryDirectory(prefix="gpusort-mutate-") as folder, ThreadPoolExecutor(given.trees) as threads:
        for _ in threads.map(test_some, [Path(folder) / str(number) for number in range(given.trees)]):
            pass
    print(f"{len(caught)} of {len(numbers)} caught")


if __name__ == "__main__":
    main()
