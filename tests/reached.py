"""Which functions of ours each test reaches, for `make mutate` to choose tests by.

A plugin of pytest: `-p tests.reached`, with the variables below. Where it measures, each of our functions says that it
is called, and a program says of which functions it was read, in every test that runs it. What a test reaches in
processes that it starts is not seen. Where it chooses, it runs the tests of a list in their order, for so many seconds.
"""

from __future__ import annotations

import ast
import builtins
import fcntl
import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import attrs
import pytest

MEASURES = "GPUSORT_REACHED"  # the file to write to
CHOOSES = "GPUSORT_CHOSEN"  # a file of tests to run, by their ids, and how long
OVER = "time is over"
_LONGEST = 60.0  # seconds of the processor that one test of a mutant may take: those that are chosen take one or two
_OURS = "gpusort."


@attrs.frozen
class Reach:
    """What a test takes of the processor, and what it reaches."""

    seconds: float
    functions: frozenset[str]


def name_of(path: Path | str, qualified: str) -> str:
    """What a function is called here: by its file's path in the package, or the whole path of one that is not ours."""
    parts = Path(path).parts
    package = max((at for at, part in enumerate(parts) if part in ("src", "gpusort")), default=-1)
    return f"{'/'.join(parts[package + 1 :])}:{qualified}"


def functions_in(node: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """All functions and methods, with the names that they have as `__qualname__`."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name):
                yield within + name, child
                yield from functions_in(child, f"{within}{name}.<locals>.")
            case ast.ClassDef(name=name):
                yield from functions_in(child, f"{within}{name}.")
            case _:
                yield from functions_in(child, within)


def known(file: Path) -> Mapping[str, Reach]:
    """What was measured last, by the ids of tests."""
    if not file.exists():
        return {}
    names, tests = json.loads(file.read_text())
    return {test: Reach(seconds, frozenset(names[n] for n in numbers)) for test, (seconds, numbers) in tests.items()}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds our modules where others would."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_OURS):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None and spec.submodule_search_locations is None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Has each function of a module say that it is called; what reads kernels reads the file, and sees none of it."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path))
        for qualified, function in list(functions_in(tree)):
            told = ast.parse(f"__reached__.add({name_of(path, qualified)!r})").body[0]
            for node in ast.walk(told):
                ast.copy_location(node, function.body[0])
            function.body.insert(1 if ast.get_docstring(function) is not None else 0, told)
        return compile(tree, path, "exec", dont_inherit=True)


class Measuring:
    """Of a whole run: the functions that each test reaches."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.current: set[str] = set()
        self.tests: dict[str, tuple[float, set[str]]] = {}
        self.read: defaultdict[int, set[str]] = defaultdict(set)  # by a program's identity
        self.programs: list[object] = []  # so that no other gets the identity of one that is gone
        setattr(builtins, "__reached__", self.current)  # noqa: B010 -- no stub has it
        sys.meta_path.insert(0, _Finder())

    def pytest_configure(self) -> None:
        from gpusort.algos import on_arrays
        from gpusort.kernel import launch, reader, source, specialise
        from gpusort.targets import binding

        of_one: set[str] = set()
        original = specialise.specialise

        def telling(function: FunctionType) -> source.Source:
            of_one.add(name_of(function.__code__.co_filename, function.__qualname__))
            return source.source_of(function)

        def specialised(one: launch.Launch) -> launch.Step:
            of_one.clear()
            step = original(one)
            if id(step.program) not in self.read:
                self.programs.append(step.program)
            self.read[id(step.program)] |= of_one
            self.current |= self.read[id(step.program)]
            return step

        for module in (reader, specialise):
            vars(module)["source_of"] = telling
        for module in (specialise, binding, on_arrays):
            vars(module)["specialise"] = specialised

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        from gpusort.api.call import forget_plans

        forget_plans()  # which would hide what making them reaches, as what algorithms keep would
        for forget in _caches():
            forget()
        self.current.clear()
        before = _processor()
        try:
            return (yield)
        finally:
            self.tests[item.nodeid] = _processor() - before, {*self.current}

    def pytest_sessionfinish(self) -> None:
        self.file.parent.mkdir(exist_ok=True)
        with self.file.with_suffix(".lock").open("w") as lock:  # others measure other files at the same time
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._write()

    def _write(self) -> None:
        anew = {test.partition("::")[0] for test in self.tests}
        found = {test: one for test, one in known(self.file).items() if test.partition("::")[0] not in anew}
        found |= {
            test: Reach(round(seconds, 3), frozenset(functions)) for test, (seconds, functions) in self.tests.items()
        }
        names = sorted({name for one in found.values() for name in one.functions})
        numbers = {name: number for number, name in enumerate(names)}
        told = {test: (one.seconds, sorted(numbers[name] for name in one.functions)) for test, one in found.items()}
        self.file.write_text(json.dumps((names, told)))


class Choosing:
    """Of a run: these tests, or files of tests, alone, in this order, and none once the time is over."""

    def __init__(self, file: Path) -> None:
        seconds, self.tests = json.loads(file.read_text())
        self.until = _processor() + float(seconds)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            for name in (item.nodeid, item.nodeid.partition("::")[0]):
                found[name].append(item)
        items[:] = [item for test in self.tests for item in found[test]]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        # A test that does not end is ended with its process, whatever it is in: SIGPROF has no handler.
        signal.setitimer(signal.ITIMER_PROF, _LONGEST)
        result = yield
        if _processor() > self.until:
            item.session.shouldstop = OVER
        return result


def _caches() -> Iterator[Callable[[], object]]:
    """What empties the caches of functions and methods of algorithms."""
    for name, module in [*sys.modules.items()]:
        if name.startswith(f"{_OURS}algos."):
            for owner in (module, *(one for one in vars(module).values() if isinstance(one, type))):
                for found in vars(owner).values():
                    clear = getattr(getattr(found, "__func__", found), "cache_clear", None)
                    if clear is not None:
                        yield clear


def _processor() -> float:
    """Seconds of the processor, and of those that were waited for: other processes may be busy at the same time."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    if MEASURES in os.environ:
        pluginmanager.register(Measuring(Path(os.environ[MEASURES])))
    if CHOOSES in os.environ:
        pluginmanager.register(Choosing(Path(os.environ[CHOOSES])))
