"""Compiled loops come into use while NumPy serves: nobody waits, no bit differs, a process ends when it wants to."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.compile_log import log_slow
from gpusort.operations.reduce import Reducer
from gpusort.targets.cpu import background
from gpusort.targets.cpu.background import Background, Job
from gpusort.targets.cpu.compiler import loading
from gpusort.targets.cpu.host import partition_sort, radix_sort
from gpusort.targets.cpu.host.argsort import can_argsort
from gpusort.targets.cpu.host.radix_sort import can_sort_by_radix
from gpusort.targets.cpu.host.reduce_loops import can_fold
from gpusort.targets.cpu.host.sort import can_sort
from gpusort.types.indices import SortOrder
from tests.covering import few_cases
from tests.new_process import printed, run_new
from tests.reference import Array

# -- a process from its first call on ----------------------------------------------------------------------

_SORTS = """
import sys
import threading
import time
import numpy as np
import gpusort
from gpusort.forks import compiling
from gpusort.targets.cpu import background
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host import radix_sort
radix_sort.numpy_sorts_slowly = lambda itemsize: False  # where it does, kernels sort, and they take no Numba
x = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
def sort():
    assert (gpusort.sort(x) == np.sort(x)).all()
    # LLVM is behind Numba and behind our own compiler: where NumPy sorts slowly, it is the latter that is loaded.
    return "llvmlite" in sys.modules, threading.active_count()
"""


def test_neither_the_first_long_array_nor_the_second_waits_for_a_compiler() -> None:
    code = """
sort()  # which may wake the pool
before = len(sys._current_frames())
print(sort.__name__, "llvmlite" in sys.modules, background.wait(0))
with compiling():  # so that the loading thread cannot begin
    gpusort.sort(x)
    while len(sys._current_frames()) == before:
        time.sleep(0.01)
    print("llvmlite" in sys.modules, background.wait(0))
print(background.wait(200), sort()[0], background.failures)
"""
    found = printed(_SORTS + code, GPUSORT_THREADS="2").splitlines()
    assert found == ["sort False True", "False False", "True True []"]


def test_with_one_thread_the_caller_loads() -> None:
    code = "print(sort()); gpusort.argsort(x); print(sort())"
    assert printed(_SORTS + code, GPUSORT_THREADS="1").splitlines() == ["(False, 1)", "(True, 1)"]


_EVERYTHING = """
import itertools
import numpy as np
import gpusort
from gpusort.forks import compiling
from gpusort.targets.cpu import background
from gpusort.targets.cpu.background import background
rng = np.random.default_rng(3)
floats = rng.standard_normal((300, 301)).astype(np.float32)
floats[3, 5], floats[4], floats[5, ::2] = np.nan, 0.0, -0.0
integers = rng.integers(-9, 9, (300, 301)).astype(np.int16)
times = integers.astype("m8[s]")
long = rng.integers(-9, 9, 1 << 20).astype(np.int32)
odd = integers.byteswap().view(integers.dtype.newbyteorder())
def everything():
    for x, axis in itertools.product((floats, floats[6:]), (0, 1)):
        yield gpusort.min(x, axis=axis)
    for x, axis in itertools.product((integers, odd), (0, 1)):
        yield from (gpusort.argmax(x, axis=axis), gpusort.sum(x, axis=axis, keepdims=True))
    yield from (gpusort.any(floats, axis=1), gpusort.max(times, axis=1), gpusort.sum(long), gpusort.cumsum(long))
    yield from (gpusort.sort(long), gpusort.argsort(long), gpusort.sort(long, descending=True))
def seen():
    return [(np.asarray(found).dtype.str, np.shape(found), np.asarray(found).tobytes()) for found in everything()]
with compiling():  # so that nothing is loaded but by this thread, which may
    first, second = seen(), seen()
    still = not background.wait(0)
assert still and background.wait(280) and not background.failures
third = seen()
print(first == second == third, len(first))
"""


def test_results_are_the_same_before_and_after() -> None:
    assert printed(_EVERYTHING, sorts=True, GPUSORT_THREADS="2", timeout=400) == "True 19"


@pytest.mark.parametrize("after", [0.0, 0.15, 0.4, 1.0])
def test_a_process_may_end_while_something_is_loaded(after: float, tmp_path: Path) -> None:
    code = f"import time; sort(); sort(); gpusort.argsort(x); time.sleep({after}); print(time.time())"
    where = str(tmp_path)
    done = run_new(_SORTS + code, GPUSORT_THREADS="2", NUMBA_CACHE_DIR=where, GPUSORT_CACHE_DIR=where, timeout=100)
    took = time.time() - float(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert took < 30  # one pass of the compiler on a busy machine: not all that was asked for


_LOADED_AT_THE_END = """
import atexit
import sys

def load():
    from gpusort.targets.cpu.compiler.machine import machine
    print("llvmlite" in sys.modules, machine().is_opaque in (True, False))
    sys.modules = {"kept": machine(), **sys.modules}  # which are there until the end, as where a thread holds them

print("llvmlite" in sys.modules)
atexit.register(load)
"""


def test_a_compiler_that_is_loaded_while_a_process_ends_is_let_go_in_silence() -> None:
    assert printed("import gpusort" + _LOADED_AT_THE_END).splitlines() == ["False", "True True"]


# -- the loading thread -------------------------------------------------------------------------------------


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Background:
    monkeypatch.setenv("GPUSORT_THREADS", "2")
    return Background()


def test_a_job_is_loaded_once(loads: Background) -> None:
    import_module("llvmlite.binding")  # so that the first call is one of many
    steps: list[int] = []

    def load() -> Iterator[object]:
        for step in range(3):
            steps.append(step)
            yield step

    asked = [loads.has((load,), 8) for _ in range(5)]
    assert not asked[0]
    assert loads.wait(60)
    assert loads.has((load,), 8)
    assert steps == [0, 1, 2]


def test_calls_on_little_load_nothing_until_there_are_many(loads: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    import_module("llvmlite.binding")
    monkeypatch.setattr(background, "_MANY", 10)
    steps: list[int] = []

    def load(step: int) -> Iterator[object]:
        steps.append(step)
        yield step

    assert not any(loads.has((load, 1), 8, is_little=True) for _ in range(10))
    assert loads.wait(0)  # for nothing is asked for
    assert not loads.has((load, 2), 8, is_little=True)
    assert not loads.has((load, 1), 8, is_little=True)
    assert loads.wait(60)
    assert loads.has((load, 1), 8, is_little=True)
    assert steps == [1]


def test_a_job_that_ends_as_it_is_asked_for_is_not_loaded_again(
    loads: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_module("llvmlite.binding")
    steps: list[int] = []

    class EndsAsItIsAskedFor(dict[Job, bool]):
        def get(self, job: Job, default: Any = None) -> Any:
            self[job] = True
            return default

    monkeypatch.setattr(loads, "_done", EndsAsItIsAskedFor())
    assert not loads.has((map, steps.append, (0, 1, 2)), 8)
    assert loads.wait(60)
    assert not steps


def test_a_failure_is_told_and_numpy_goes_on(loads: Background, caplog: pytest.LogCaptureFixture) -> None:
    def load(number: int) -> Iterator[object]:
        yield number
        raise OSError("no compiler today")

    for number in (0, 0, 1):
        assert not loads.has((load, number), 8)
        assert loads.wait(60)
    assert [str(failure) for failure in loads.failures] == ["no compiler today"] * 2
    (record,) = caplog.records
    assert record.name == "gpusort"
    assert record.levelno == logging.WARNING


@pytest.mark.parametrize(("threads", "nbytes"), [("1", 8), ("2", 1 << 28)])
def test_a_caller_who_cannot_load_a_compiler_takes_numpys_way(
    threads: str, nbytes: int, loads: Background, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(name: str) -> None:
        raise OSError(f"no room for {name}")

    monkeypatch.setenv("GPUSORT_THREADS", threads)
    monkeypatch.setattr(background, "import_uninterrupted", refuse)
    assert not any(loads.has((iter, ()), nbytes) for _ in range(3))
    assert [str(failure) for failure in loads.failures] == ["no room for llvmlite.binding"]
    assert len(caplog.records) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_what_is_being_loaded_and_the_child_loads_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", "2")
    shared, begun, ended = background.background, threading.Event(), list[int]()
    goes_on = [True]

    def slowly() -> Iterator[object]:
        while goes_on:
            begun.set()
            time.sleep(0.2)
            ended.append(0)
            yield None
            begun.clear()
            time.sleep(0.01)

    def quickly() -> Iterator[object]:
        yield None

    shared.foresee((slowly,))
    try:
        assert begun.wait(60)
        child = os.fork()
        if child == 0:
            status = 1
            if ended and shared.wait(0):  # for nothing of the parent's
                shared.foresee((quickly,))
                status = 0 if shared.wait(30) and shared.has((quickly,), 8) else 2
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        goes_on.clear()
    assert shared.wait(60)


def test_an_array_so_large_that_loading_is_worth_it_waits(loads: Background) -> None:
    assert loads.has((iter, ()), 1 << 28)


def test_a_stopped_thread_loads_nothing_more(loads: Background) -> None:
    steps: list[int] = []
    stopped = threading.Event()

    def load() -> Iterator[object]:
        steps.append(0)
        yield 0
        stopped.wait(60)
        yield 1
        steps.append(1)

    import_module("llvmlite.binding")
    assert not loads.has((load,), 8)
    stopping = threading.Thread(target=loads.stop)
    stopping.start()
    while not loads.is_stopping:
        time.sleep(0.001)
    stopped.set()
    stopping.join()
    assert steps in ([], [0])
    assert not loads.has((iter, ()), 8)


# -- which loops a dtype needs ------------------------------------------------------------------------------


def _compiled() -> set[str]:
    """All kernels that this process has, loops among them."""
    return set(loading.loaded)


@few_cases(pairs=False)
@pytest.mark.parametrize("code", ["f4", "i2", "u1", "f2", "i8"])
@pytest.mark.parametrize("is_slow", [False, True], ids=["NumPy sorts fast", "slowly"])
def test_what_is_loaded_at_first_is_all_there_is_to_compile(
    code: str, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", "2")
    for module, name in ((radix_sort, "numpy_sorts_slowly"), (partition_sort, "radix_sorts_sooner")):
        monkeypatch.setattr(module, name, _always if is_slow else _never)
    dtype = np.dtype(code)
    monkeypatch.setattr(Background, "has", _load_all)
    for can in (can_sort, can_argsort):
        assert can(dtype, 1)
    for sorted_ in (dtype, np.dtype(np.uint64)) if dtype.itemsize >= 4 else ():  # words of an argsort
        assert can_sort_by_radix(sorted_, SortOrder.ASCENDING, 1)
    if dtype.kind == "i":
        assert can_fold(Reducer.SUM, dtype, 1)
    monkeypatch.setattr(Background, "has", _always)
    rehearsed = _compiled()
    rng = np.random.default_rng(4)
    # No way begins beyond two million bytes, but for rows of 32 million.
    x = rng.integers(-30000, 30000, 1 << (21 if dtype.itemsize == 1 else 20)).astype(dtype)
    read_only = x.copy()
    read_only.flags.writeable = False
    ordered = np.sort(x)
    rows = [x, read_only, ordered, ordered[::-1].copy(), x[rng.integers(0, 9, x.size)], x[rng.integers(0, 99, x.size)]]
    if dtype.kind == "f":
        rows.append(np.where(rng.random(x.size) < 0.5, np.nan, x).astype(dtype))
        rows.append(np.where(rng.random(x.size) < 0.9, 0, x).astype(dtype))
    for row in rows:
        wanted = np.sort(row.astype(np.float64)).astype(dtype) if code == "f2" else np.sort(row)
        assert gpusort.sort(row).tobytes() == wanted.tobytes()  # NumPy's sort of float16 loses some
        _require_stable(row, wanted, gpusort.argsort(row))
        if dtype.kind == "i":
            assert gpusort.sum(row) == np.sum(row)
    assert _compiled() == rehearsed


def _require_stable(row: Array, ordered: Array, places: npt.NDArray[np.intp]) -> None:
    """The order is the one of `np.argsort(row, kind="stable")`, which would take most of the time of all this."""
    np.testing.assert_array_equal(row[places], ordered)
    are_equal = (ordered[1:] == ordered[:-1]) | (ordered[:-1] != ordered[:-1])
    assert (places[1:] > places[:-1])[are_equal].all()


def _load_all(_: Background, job: Job, nbytes: int, *, is_little: bool = False) -> bool:
    load, *given = job
    for _step in cast("Iterator[object]", load(*given)):
        pass
    return True


# -- the log ------------------------------------------------------------------------------------------------


def test_a_long_compilation_is_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    with caplog.at_level(logging.INFO, "gpusort"), monkeypatch.context() as patched:
        for seconds in 0.99, 1.26:
            patched.setattr(time, "perf_counter", iter([0.0, seconds]).__next__)
            with log_slow("wgsl", "radix_scatter"):
                pass
    assert [record.getMessage() for record in caplog.records] == [
        "target 'wgsl': compiling radix_scatter took 1.3 s"
    ]  # fmt: skip


# -- NumPy's way ---------------------------------------------------------------------------------------------


def _never(*_: object, **named: object) -> bool:
    return False


def _always(*_: object, **named: object) -> bool:
    return True


@pytest.mark.parametrize("code", ["?", "i1", ">u2", "i4", "u8", "f2", "f4", ">f8", "M8[s]", "m8[s]"])
def test_what_numpy_serves_meanwhile_is_numpys(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Background, "has", _never)
    dtype = np.dtype(code)
    x = (np.random.default_rng(2).integers(0, 250, (5, 6, 7)) + 1).astype(dtype.newbyteorder("=")).astype(dtype)
    kinds = {"sum": "biu", "prod": "biu", "any": "biuf", "all": "biuf"}
    for name in ("sum", "prod", "any", "all", "min", "max", "argmin", "argmax"):
        if dtype.kind not in kinds.get(name, "biufmM"):
            continue
        ours, numpys = getattr(gpusort, name), getattr(np, name)
        for axis in (0, -1, None) if name.startswith("arg") else (0, -1, None, (2, 0), ()):
            for keepdims in (False, True):
                for values in (x, x[::2, ::-1].swapaxes(0, 2)):
                    found = ours(values, axis=axis, keepdims=keepdims)
                    wanted = numpys(values, axis=axis, keepdims=keepdims)
                    assert type(found) is type(wanted)
                    assert found.dtype == wanted.dtype
                    assert found.dtype.isnative
                    np.testing.assert_array_equal(found, wanted)
    if dtype.kind in "biu":
        long = np.resize(x.ravel(), (3, 1 << 21))
        np.testing.assert_array_equal(gpusort.cumsum(long, axis=1), np.cumsum(long, axis=1))


@few_cases(pairs=False)
@pytest.mark.parametrize("call", ["any(x, axis=1)", "sum(x, axis=1)", "argmax(x, axis=1)"])
@pytest.mark.parametrize("dtype", ["?", "i2"])
def test_what_is_loaded_aside_is_what_runs(call: str, dtype: str) -> None:
    """Nothing is left to be compiled by the caller once it is loaded."""
    code = f"""
import numpy as np
import gpusort
from gpusort.targets.cpu import kernels
from gpusort.targets.cpu import background
from gpusort.targets.cpu.background import background
x = np.random.default_rng(1).integers(0, 2, (300, 301)).astype("{dtype}")
for _ in range(3):
    gpusort.{call}
assert background.wait(280) and not background.failures
loaded = []
load = kernels.load_kernel
kernels.load_kernel = lambda name, *more, **how: loaded.append(name) or load(name, *more, **how)
gpusort.{call}
print(loaded)
"""
    assert printed(code, sorts=True, GPUSORT_THREADS="2") == "[]"


def test_a_process_that_ends_waits_for_what_is_being_loaded() -> None:
    """LLVM must not run while its library is unloaded."""
    own, started, ended = Background(), threading.Event(), list[bool]()

    def load() -> None:
        started.set()
        time.sleep(0.2)
        ended.append(own.is_stopping)

    own._ask((load,))
    assert started.wait(60)
    own.stop()
    assert ended == [True]
    assert not own._is_loading
