"""A kernel that never ends can be stopped, and one that would take minutes to compile is refused."""

from __future__ import annotations

import itertools
import math
import operator
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import Any

import pytest

from gpusort.kernel.builder import MOST_STATEMENTS
from gpusort.kernel.compile_time import evaluated
from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role
from gpusort.kernel.span import KernelError, Span
from gpusort.kernel.specialise import specialise
from gpusort.targets.cpu.job import Flag, run_stoppable
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32
from tests.striking import Trace, traced

ROOT = Path(__file__).parents[1]
PATIENCE = 60  # seconds: many times what it takes, on a machine that does other things too


@pytest.mark.parametrize("name", ["spinning", "counting", "meeting"])
@pytest.mark.parametrize("target", ["cpu", "python", "simulator"])
def test_an_endless_kernel_is_interrupted(target: str, name: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.endless_cases", target, name], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        told, _ = child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
    assert told == "interrupted\n"


# -- the caller's side of a run that can be stopped -------------------------------------------------------------


def test_work_is_called_with_an_address_and_its_failure_is_raised() -> None:
    seen: list[int] = []
    run_stoppable(lambda stop: seen.append(stop.address))
    assert seen[0] > 0

    def fails(stop: Flag) -> None:
        raise LookupError("as told")

    with pytest.raises(LookupError, match="as told"):
        run_stoppable(fails)


@pytest.mark.parametrize("line", range(1, 40))
def test_an_interrupt_at_any_line_leaves_nothing_running(line: int) -> None:
    """Raised at one line after another of the caller's part, wherever the other thread is then."""
    import ctypes

    running: list[bool] = []

    def works(stop: Flag) -> None:
        running.append(True)
        word, end = ctypes.c_int64.from_address(stop.address), time.monotonic() + 0.05
        while not word.value and time.monotonic() < end:
            time.sleep(0.001)
        running.pop()

    seen = 0

    def trace(frame: FrameType, event: str, argument: object) -> Trace | None:
        nonlocal seen
        if not frame.f_code.co_filename.endswith("types/calls.py"):
            return None
        if event == "line":
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    with suppress(KeyboardInterrupt):
        traced(lambda: run_stoppable(works), trace)
    assert not running


def test_within_such_work_it_is_done_by_the_same_thread() -> None:
    seen: list[int] = []

    def works(stop: Flag) -> None:
        run_stoppable(lambda inner: seen.append(get_ident()))
        seen.append(get_ident())

    run_stoppable(works)
    assert seen[0] == seen[1] != get_ident()


@pytest.mark.usefixtures("no_threads")
def test_without_threads_the_caller_works() -> None:
    seen: list[int] = []

    def works(stop: Flag) -> None:
        seen.append(get_ident())
        if len(seen) < 20:  # more than there are threads asleep
            run_stoppable(works)

    run_stoppable(works)
    assert seen[-1] == seen[-2]


# -- what is refused before it is compiled ------------------------------------------------------------------------

COUNT = itertools.count()


def twice(x: U32, depth: int) -> U32:
    return twice(x, depth - 1) + twice(x, depth - 1) if depth > 0 else x


@kernel
def many_rounds(cx: Invocation, data: Storage[U32]) -> None:
    x = U32(1)
    for i in range(100_000_000):
        x = x * 3 + i
    data[0] = x


@kernel
def rounds_in_rounds(cx: Invocation, data: Storage[U32]) -> None:
    x = U32(1)
    for i in range(2):
        for _ in range(200):
            for _ in range(100):
                x = x * 3 + i
    data[0] = x


@kernel
def rounds_of_nothing(cx: Invocation, data: Storage[U32]) -> None:
    x = U32(1)
    for i in range(1000):
        for j in range(999):
            if i == 7 and j == 9:
                x = x * 3
    data[0] = x


@kernel
def rounds_without_end(cx: Invocation, data: Storage[U32]) -> None:
    for _ in COUNT:
        data[0] = U32(1)


@kernel
def calls_of_calls(cx: Invocation, data: Storage[U32]) -> None:
    data[0] = twice(data[0], 40)


@pytest.mark.parametrize(
    ("large", "line", "message"),
    [
        (many_rounds, "for i in range(100_000_000):", "this one has 100000000 rounds"),
        (rounds_in_rounds, "for _ in range(200):", "this one has 200 rounds"),
        (rounds_of_nothing, "for i in range(1000):", "this one has 1000 rounds"),
        (rounds_without_end, "for _ in COUNT:", "rounds, e.g. `for i in dynamic_range"),
        (calls_of_calls, "return twice", f"expected a kernel of at most {MOST_STATEMENTS} statements"),
    ],
)
def test_a_kernel_too_large_to_compile_is_refused(large: Kernel[[Storage[U32]]], line: str, message: str) -> None:
    with pytest.raises(KernelError, match=message) as refused:
        specialise(large.launch(Grid(1, 1), Buffer("data", U32, 4, Role.INOUT)))
    assert line in refused.value.span.text


_operator: Any = operator  # of which typeshed leaves some unknown
LIMITED: list[tuple[Callable[..., object], tuple[object, ...], tuple[object, ...]]] = [
    (math.factorial, (256,), (257,)), (math.comb, (256, 128), (257, 1)), (pow, (2, 2048), (2, 2049)),
    (_operator.lshift, (1, 4095), (1, 4096)), (_operator.lshift, (0, 4096), (0, 4097)),
    (_operator.mul, ("ab", 5000), ("ab", 5001)),
    (_operator.mul, (1 << 2000, 1 << 2095), (1 << 2000, 1 << 2096)), (max, (range(10_000),), (range(10_001),)),
    (len, (range(10**6),), (10**6,)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "fits", "is_too_large"), LIMITED)
def test_what_python_computes_for_a_kernel_is_limited(
    function: Callable[..., object], fits: tuple[object, ...], is_too_large: tuple[object, ...]
) -> None:
    """Before it is computed, where that would take long."""
    span = Span("here.py", 1)
    assert evaluated(span, function, *fits) == function(*fits)
    with pytest.raises(KernelError):
        evaluated(span, function, *is_too_large)
