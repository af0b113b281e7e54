"""The target that runs a kernel's own Python."""

from __future__ import annotations

import inspect
import re
import threading
import traceback
from types import FrameType
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.kernel.span import KernelError
from gpusort.targets.python.target import PlainPython
from gpusort.targets.python.threads import may_wait
from gpusort.types.errors import (
    BarrierDivergenceError,
    CapabilityError,
    InvalidArgumentError,
    OutOfBoundsError,
    UninitializedReadError,
)
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import F32, U32, U64
from tests.striking import soon, threads

Words = npt.NDArray[np.uint32]
N, GROUP = 24, 8
GRID = Grid(N // GROUP, GROUP)


@attrs.frozen
class ThreadId:
    value: U32

    @classmethod
    def of(cls, cx: Invocation) -> ThreadId:
        return cls(cx.global_id)


@attrs.frozen
class Pair:
    key: F32
    index: U32


def group_total(cx: Invocation, value: U32) -> U32:
    """The sum over the subgroup, which is the whole workgroup here."""
    return cx.subgroup_add(value)


threads_seen: set[str] = set()
order_seen: list[tuple[int, int, int]] = []


@kernel
def double(cx: Invocation, data: Storage[U32]) -> None:
    me = ThreadId.of(cx)
    threads_seen.add(threading.current_thread().name)
    data[me.value] = data[me.value] * 2


@kernel
def share(cx: Invocation, data: Storage[U32], tile: Workgroup[U32]) -> None:
    tile[cx.local_id] = data[cx.global_id]
    order_seen.append((int(cx.group_id), int(cx.local_id), 0))
    cx.barrier()
    order_seen.append((int(cx.group_id), int(cx.local_id), 1))
    data[cx.global_id] = tile[7 - cx.local_id] + group_total(cx, U32(1))


@kernel
def meet_myself(cx: Invocation, data: Storage[U32]) -> None:
    mine = data[cx.global_id]
    cx.barrier()
    data[cx.global_id] = cx.subgroup_add(mine) + cx.shuffle(mine, U32(8)) * 2 + U32(cx.ballot(mine == mine))


@kernel
def pass_pairs_down(cx: Invocation, pairs: Storage[Pair]) -> None:
    mine = pairs[cx.global_id]
    pairs[cx.global_id] = cx.shuffle_down(mine, U32(1))


@kernel
def ask_all(cx: Invocation, out: Storage[U64]) -> None:
    me = cx.lane
    out[cx.global_id * 4] = cx.ballot(me % 3 == 0)
    out[cx.global_id * 4 + 1] = cx.match(me % 3)
    out[cx.global_id * 4 + 2] = U64(cx.shuffle(me, me + 9)) + (U64(cx.shuffle_xor(me, U32(1))) << 8)
    out[cx.global_id * 4 + 3] = U64(cx.shuffle_up(me, U32(2))) + (U64(cx.exclusive_add(me)) << 8)


@kernel
def barrier_for_some(cx: Invocation, tile: Workgroup[U32]) -> None:
    if cx.local_id < 3:
        cx.barrier()
    tile[cx.local_id] = U32(1)


@kernel
def two_barriers(cx: Invocation, tile: Workgroup[U32]) -> None:
    if cx.local_id < 3:
        cx.barrier()
    else:
        cx.barrier()  # another one
    tile[cx.local_id] = U32(1)


@kernel
def fail_in_the_middle(cx: Invocation, data: Storage[U32]) -> None:
    cx.barrier()
    order_seen.append((int(cx.group_id), int(cx.local_id), 1))
    data[cx.global_id + 20] = U32(1)
    cx.barrier()


@kernel
def read_unwritten(cx: Invocation, out: Storage[U32]) -> None:
    out[cx.global_id] = out[cx.global_id] + 1


@kernel
def ask_the_last(cx: Invocation, out: Storage[U32]) -> None:
    out[cx.global_id] = cx.shuffle(cx.lane, cx.subgroup_size - 1)


def plan(*launches: Launch) -> Schedule:
    """A schedule of these launches, with the buffers that they name."""
    arguments = [argument for launch in launches for argument in launch.arguments]
    named = {argument.name: cast("Buffer[object]", argument) for argument in arguments if isinstance(argument, Buffer)}
    return Schedule(tuple(named.values()), launches)


def run(launch: Launch, buffer: Buffer[U32], array: Words, subgroup_size: int = 8) -> Words:
    PlainPython(subgroup_size).run(plan(launch), {buffer.name: array})
    return array


def words(role: Role = Role.INOUT) -> tuple[Buffer[U32], Words]:
    return Buffer("data", U32, N, role), np.arange(N, dtype=np.uint32)


def line_of(of: Kernel[...], text: str) -> int:
    lines, first = inspect.getsourcelines(of.function)
    (found,) = [number for number, line in enumerate(lines, first) if text in line]
    return found


def test_a_kernel_that_never_waits_runs_in_the_calling_thread() -> None:
    buffer, array = words()
    threads_seen.clear()
    assert not may_wait(double.function)
    np.testing.assert_array_equal(run(double.launch(GRID, buffer), buffer, array), np.arange(N) * 2)
    assert threads_seen == {threading.current_thread().name}


@pytest.mark.parametrize("waiting", [share, pass_pairs_down, ask_all, barrier_for_some], ids=lambda k: k.name)
def test_a_kernel_that_waits_is_known_by_its_source(waiting: Kernel[...]) -> None:
    assert may_wait(waiting.function)


def test_invocations_take_turns_in_a_fixed_order() -> None:
    buffer, array = words()
    order_seen.clear()
    run(share.launch(GRID, buffer, Workgroup(U32, GROUP)), buffer, array)
    np.testing.assert_array_equal(array, np.arange(N).reshape(-1, 8)[:, ::-1].ravel() + 8)
    assert order_seen == [(group, local, step) for group in range(3) for step in range(2) for local in range(8)]


def test_a_workgroup_of_one_waits_for_nobody() -> None:
    buffer, array = words()
    order_seen.clear()
    schedule = plan(meet_myself.launch(Grid(N, 1), buffer))
    before = threads()
    PlainPython().run(schedule, {"data": array})
    assert soon(lambda: threads() == before)
    np.testing.assert_array_equal(array, np.arange(N) * 3 + 1)


def test_structs_are_shuffled_whole() -> None:
    pairs = Buffer("pairs", Pair, 8, Role.INOUT)
    array = np.zeros(8, [("key", np.float32), ("index", np.uint32)])
    array["key"], array["index"] = np.arange(8) / 2, np.arange(8)
    PlainPython().run(plan(pass_pairs_down.launch(Grid(1, 8), pairs)), {"pairs": array})
    np.testing.assert_array_equal(array["index"], [1, 2, 3, 4, 5, 6, 7, 7])
    np.testing.assert_array_equal(array["key"], np.array([1, 2, 3, 4, 5, 6, 7, 7]) / 2)


def test_subgroup_operations() -> None:
    out = Buffer("out", U64, 32, Role.OUTPUT)
    array = np.zeros(32, np.uint64)
    PlainPython(4).run(plan(ask_all.launch(Grid(1, 8), out)), {"out": array})
    lanes = [0b1001, 0b1001, 1 + (1 << 8), 0], [0b1001, 0b0010, 2, 1], [0b1001, 0b0100, 3 + (3 << 8), 1 << 8]
    expected = [*lanes, [0b1001, 0b1001, 2 << 8, 1 + (3 << 8)]]
    np.testing.assert_array_equal(array.reshape(2, 4, 4), [expected, expected])


def test_a_lane_that_is_not_there_is_not_read() -> None:
    out = Buffer("out", U32, 6, Role.OUTPUT)
    with pytest.raises(OutOfBoundsError, match="shuffle reads lane 3 of a subgroup of 2"):
        run(ask_the_last.launch(Grid(1, 6), out), out, np.zeros(6, np.uint32), subgroup_size=4)


def test_a_barrier_that_some_never_reach() -> None:
    before = threads()
    expected = (
        rf":{line_of(barrier_for_some, 'cx.barrier')}: the barrier is reached by some .* of group 0 only: "
        r"local 0-2 arrive, local 3-7 do not\n +cx.barrier\(\)"
    )
    with pytest.raises(BarrierDivergenceError, match=expected):
        PlainPython().run(plan(barrier_for_some.launch(GRID, Workgroup(U32, GROUP))), {})
    assert soon(lambda: threads() == before)


def test_two_barriers_are_not_one() -> None:
    expected = f"local 0-2 arrive, local 3-7 do not; local 3 waits at .*:{line_of(two_barriers, '# another')}\n"
    with pytest.raises(BarrierDivergenceError, match=expected):
        PlainPython().run(plan(two_barriers.launch(GRID, Workgroup(U32, GROUP))), {})


def test_a_debugger_of_threads_sees_every_invocation() -> None:
    seen = list[str]()

    def trace(frame: FrameType, _: str, __: object) -> None:
        seen.append(frame.f_code.co_name)

    buffer, array = words()
    before = threading.gettrace()
    threading.settrace(trace)
    try:
        run(share.launch(GRID, buffer, Workgroup(U32, GROUP)), buffer, array)
    finally:
        threading.settrace(before)
    assert seen.count("share") == N


def test_an_error_reaches_the_caller_with_its_traceback_and_all_threads_end() -> None:
    before = threads()
    buffer, array = words()
    order_seen.clear()
    with pytest.raises(OutOfBoundsError, match="index 24 is outside an array of 24") as caught:
        run(fail_in_the_middle.launch(GRID, buffer), buffer, array)
    lines = [frame.lineno for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert line_of(fail_in_the_middle, "+ 20") in lines
    assert caught.value.__notes__ == ["in invocation (group 0, local 4) of kernel 'fail_in_the_middle'"]
    assert order_seen == [(0, local, 1) for local in range(5)]  # and nothing runs after it
    assert soon(lambda: threads() == before)


@kernel
def halve(cx: Invocation, data: Storage[U32]) -> None:
    word: Any = data[cx.local_id]
    data[cx.local_id] = word / U32(2)


@kernel
def add_to_all(cx: Invocation, data: Storage[U32]) -> None:
    whole: Any = data
    data[cx.local_id] = whole + 2


@pytest.mark.parametrize(("of", "text"), [(halve, "word / "), (add_to_all, "whole + ")])
def test_an_operator_that_scalars_and_arrays_lack_is_an_error_of_the_kernel(of: Any, text: str) -> None:
    buffer, array = words()
    with pytest.raises(KernelError, match=rf":{line_of(of, text)}: unsupported operand type") as caught:
        run(of.launch(GRID, buffer), buffer, array)
    assert text in str(caught.value)


def test_an_output_starts_unwritten() -> None:
    buffer, array = words(Role.OUTPUT)
    with pytest.raises(UninitializedReadError, match="element 0 is read before"):
        run(read_unwritten.launch(GRID, buffer), buffer, array)


def test_an_input_is_not_written() -> None:
    buffer, array = words(Role.INPUT)
    with pytest.raises(InvalidArgumentError, match=r"writes to .*INPUT buffer 'data'"):
        run(double.launch(GRID, buffer), buffer, array)
    assert array.flags.writeable


def test_limits_are_kept() -> None:
    buffer, array = words()
    with pytest.raises(CapabilityError, match=r"'double' asks for 2048 invocations in a workgroup, .* has 1024"):
        run(double.launch(Grid(1, 2048), buffer), buffer, array)


@pytest.mark.parametrize("index", [slice(1), (0, 1), 1.0, None, F32(1.0), True])
def test_what_is_no_index_is_told_with_what_it_is(index: object) -> None:
    data = Storage(U32, np.arange(4, dtype=np.uint32))
    for access in (lambda: data[cast(int, index)], lambda: data.__setitem__(cast(int, index), U32(1))):
        with pytest.raises(TypeError, match=rf"expected (one|a) U32 index, found {re.escape(repr(index))}, e.g. `"):
            access()
