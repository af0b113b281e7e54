"""Targets under exceptions that strike the caller anywhere: what they share with devices and threads stays right."""

from __future__ import annotations

import gc
import itertools
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.algos.bitonic import bitonic_sort
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.targets import registry
from gpusort.targets.cuda import pinned_copies, transfers
from gpusort.targets.cuda import plan as cuda_plan
from gpusort.targets.cuda.plan import Plan, PreparedLaunch
from gpusort.targets.cuda.target import CudaTarget
from gpusort.targets.cuda.transfers import Transfers
from gpusort.targets.python.target import PlainPython
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.params import BitonicPolicy
from gpusort.types.scalars import U32
from tests import fake_cupy
from tests.cuda_cases import SMALL
from tests.opened import or_skip
from tests.striking import events, places, soon, strike, threads

CUDA = "targets/cuda"
PLAN = "targets/cuda/plan.py"
LENGTH = 33

# -- a card, on stand-ins ---------------------------------------------------------------------------------


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaTarget]:
    fake_cupy.put_in_place(monkeypatch)
    fake_cupy.log.clear()
    yield CudaTarget()
    assert not fake_cupy.recording, "no stream goes on recording"


def falling(policy: BitonicPolicy = SMALL) -> Schedule:
    """A sort in place of several launches, between which floats are other words."""
    return bitonic_sort(key_for(np.dtype(np.float32)), 1, LENGTH, SortOrder.DESCENDING, policy)


def some_floats() -> npt.NDArray[np.float32]:
    return np.random.default_rng(3).standard_normal(LENGTH).astype(np.float32)


class _Inverts(fake_cupy.Function):
    """A kernel after which an array holds other words, until it runs again."""

    def __init__(self, x: npt.NDArray[np.uint32]) -> None:
        super().__init__()
        self.x = x

    def bound(self, groups: int, group_size: int, pointers: int, shared_bytes: int) -> Callable[[], None]:
        return lambda: cast(None, np.invert(self.x, out=self.x))


@pytest.mark.usefixtures("card")
def test_an_array_on_a_card_keeps_its_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launched one by one, recorded, and as a graph."""
    monkeypatch.setattr(cuda_plan, "RECORDING", 0)
    given = np.arange(4, dtype=np.uint32)
    buffer: Buffer[object] = Buffer("data", U32, given.size, Role.INOUT)

    def plan_for(x: npt.NDArray[np.uint32]) -> Plan:
        return Plan((buffer,), (PreparedLaunch(cast(Any, _Inverts(x)), 1, 1, (0,), (), 0),) * 4)

    def run(x: npt.NDArray[np.uint32], plan: Plan) -> None:
        for _ in range(3):
            plan.run([x.ctypes.data])

    count = events(lambda: run(given, plan_for(given)), PLAN)
    for place in places(count, count):
        x = given.copy()
        plan = plan_for(x)
        strike(partial(run, x, plan), place, PLAN)
        assert x.tobytes() == given.tobytes(), f"struck at {place}"
        assert not fake_cupy.recording
        fake_cupy.log.clear()
        run(x, plan)
        assert x.tobytes() == given.tobytes()
        assert sum(line.startswith("graph") for line in fake_cupy.log) >= 2


def test_no_copy_is_under_way_once_a_call_is_over(card: CudaTarget) -> None:
    schedule, given = falling(), some_floats().view(np.uint32)
    card.run(schedule, {"data": given.copy()})
    begun = 0
    for place in places(events(lambda: card.run(schedule, {"data": given.copy()}), CUDA), 40):
        fake_cupy.log.clear()
        strike(partial(card.run, schedule, {"data": given.copy()}), place, CUDA)
        told = [line.split()[0] for line in fake_cupy.log if line.startswith(("copy", "synchronize"))]
        assert not told or told[-1] == "synchronize", f"struck at {place}"
        begun += bool(told)
    assert begun


class _Copies(fake_cupy.Driver):
    """A card that copies late: only when it is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way: set[int] = set()  # the host's ends
        self.recorded: dict[int, set[int]] = {}  # by event
        self.mistakes: list[str] = []  # C hears of no exception

    def up(self, card: int, host: int, size: int, stream: int) -> int:
        return self.down(host, card, size, stream)

    def down(self, host: int, card: int, size: int, stream: int) -> int:
        self._is_free(host)
        self.under_way.add(host)
        return 0

    def record(self, event: int, stream: int) -> int:
        self.recorded[event] = set(self.under_way)
        return 0

    def wait(self, event: int) -> int:
        self.under_way -= self.recorded.pop(event, set())
        return 0

    def copy(self, target: int, source: int, size: int) -> int:
        if size:  # what is empty may end where another piece begins
            self._is_free(target)
            self._is_free(source)
        return 0

    def _is_free(self, place: int) -> None:
        if place in self.under_way:
            self.mistakes.append(f"{place:#x} is being copied")

    def event(self, *, disable_timing: bool) -> SimpleNamespace:
        """One of cupy's."""
        number = next(self._numbers)
        return SimpleNamespace(ptr=number, synchronize=lambda: self.wait(number))

    _numbers = itertools.count(1)


@pytest.mark.parametrize("way", ["upload", "download"])
def test_pinned_memory_is_not_used_anew_while_it_is_copied(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    fake_cupy.pinned.clear()  # of another test, whose memory this may be
    cupy, copies = fake_cupy.module(), _Copies()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(cast(Any, cupy).cuda, "Event", copies.event)
    monkeypatch.setattr(pinned_copies, "driver_functions", lambda: copies.functions)
    for name, value in (("PIECE_BYTES", 1000), ("LEAST_BYTES", 100)):
        monkeypatch.setattr(transfers, name, value)
    array, stream = np.zeros(5500, np.uint8), cast(Any, fake_cupy.current_stream)

    def move(ways: Transfers) -> None:
        if way == "upload":
            ways.upload([(1 << 40, array)], stream)
        else:
            ways.download([(1 << 40, array)], stream)

    struck = 0
    for place in places(events(lambda: move(Transfers()), CUDA), 80):
        ways = Transfers()
        struck += strike(partial(move, ways), place, CUDA)
        move(ways)  # by the same pinned memory
    assert struck
    assert not copies.mistakes


# -- the plain Python of kernels --------------------------------------------------------------------------


@kernel
def meet(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.local_id] = data[cx.local_id] + 1
    cx.barrier()
    data[cx.local_id] = data[cx.local_id] + 1


@kernel
def never_end(cx: Invocation, data: Storage[U32]) -> None:
    cx.barrier()
    while data[U32(0)] < 2:
        data[U32(1)] = data[U32(1)] + 1


def one_group(launched: Any) -> tuple[Schedule, npt.NDArray[np.uint32]]:
    buffer = Buffer("data", U32, 8, Role.INOUT)
    return Schedule((buffer,), (launched.launch(Grid(1, 8), buffer),)), np.zeros(8, np.uint32)


def test_invocations_in_threads_end_with_their_call() -> None:
    before, python = threads(), PlainPython()
    schedule, array = one_group(meet)
    for place in places(events(lambda: python.run(schedule, {"data": array}), "targets/python"), 150):
        strike(partial(python.run, schedule, {"data": array}), place, "targets/python")
        then = array.tobytes()
        assert soon(lambda: threads() == before), f"a thread stays, struck at {place}"
        assert array.tobytes() == then, f"an invocation went on, struck at {place}"
    array[:] = 0
    python.run(schedule, {"data": array})
    assert array.tolist() == [2] * 8


class Rung(BaseException):
    """What the handler raises."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
@pytest.mark.parametrize("taken_by", ["any thread", "another thread"])
def test_an_invocation_without_end_is_ended_by_a_signal(taken_by: str) -> None:
    """Also by one that the system gives to a thread which waits for nothing."""
    assert threading.current_thread() is threading.main_thread(), "where handlers run"
    schedule, array = one_group(never_end)
    before = threads()

    def ring(*_: object) -> None:
        raise Rung

    earlier = signal.signal(signal.SIGALRM, ring)
    try:
        if taken_by == "any thread":
            signal.setitimer(signal.ITIMER_REAL, 0.3)
        else:
            threading.Timer(0.3, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGALRM)).start()
        with pytest.raises(Rung):
            PlainPython().run(schedule, {"data": array})
    finally:
        signal.signal(signal.SIGALRM, earlier)
    assert array[1] > 0
    assert soon(lambda: threads() == before)


# -- a device of WebGPU's ---------------------------------------------------------------------------------


def require_wgsl() -> None:
    or_skip(registry.target, "wgsl")


def test_no_handler_runs_where_a_device_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback of wgpu's would swallow what it raises, and then miss a device."""
    require_wgsl()
    from gpusort.targets.wgsl import device, target

    opened: list[threading.Thread] = []

    def open_device() -> device.Device:
        opened.append(threading.current_thread())
        return device.open_device()

    monkeypatch.setattr(target, "open_device", open_device)
    target.WgslTarget()
    assert threading.current_thread() is threading.main_thread() not in opened
    assert len(opened) == 1


@pytest.mark.parametrize("name", ["addHandler", "removeHandler"])
def test_a_call_takes_no_lock_of_loggings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt would leak it, and all other threads that log would hang."""
    require_wgsl()
    x = some_floats()
    gpusort.sort(x, target="wgsl")
    called: list[logging.Handler] = []

    def call(_: logging.Logger, handler: logging.Handler) -> None:
        called.append(handler)

    monkeypatch.setattr(logging.Logger, name, call)
    gpusort.sort(x, target="wgsl")
    assert called == []


def test_a_device_that_was_interrupted_is_opened_anew() -> None:
    require_wgsl()
    x = some_floats()
    count = events(lambda: gpusort.sort(x, target="wgsl"), "targets/wgsl")
    for place in [*places(count, 2), count - 20]:
        strike(lambda: gpusort.sort(x, target="wgsl"), place, "targets/wgsl")
        assert gpusort.sort(x, target="wgsl").tobytes() == np.sort(x).tobytes(), f"struck at {place}"


def test_of_the_devices_that_were_interrupted_none_lives_on() -> None:
    """Also where plans were prepared on them that nobody calls again."""
    require_wgsl()
    from gpusort.targets.wgsl.target import WgslTarget

    target, x = WgslTarget(), some_floats()

    def interrupted(session: object) -> None:
        raise KeyboardInterrupt

    def called(times: int) -> npt.NDArray[Any]:
        return gpusort.sort(np.tile(x, (times, 1)), target=target)

    called(1)
    gc.collect()
    before = pollers()
    assert before
    for times in range(2, 5):
        with pytest.raises(KeyboardInterrupt):
            target.in_session("nothing", interrupted)
        assert called(times).tobytes() == np.tile(np.sort(x), times).tobytes()
    gc.collect()
    assert pollers() == before


def pollers() -> int:
    """Threads that wgpu has for devices."""
    return sum(type(thread).__name__ == "PollThread" for thread in threading.enumerate())
