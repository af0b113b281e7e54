"""What the simulator finds, with the line and the invocations it names."""

from __future__ import annotations

import inspect
import re
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Grid, Launch, Role
from gpusort.targets.simulator import lockstep
from gpusort.targets.simulator.target import Simulator
from gpusort.types.errors import (
    BarrierDivergenceError,
    CapabilityError,
    DataRaceError,
    InvalidArgumentError,
    IterationLimitError,
    OutOfBoundsError,
    UninitializedReadError,
    UnsupportedTypeError,
)
from gpusort.types.intrinsics import add_nowrap, dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import U32
from tests.small_schedules import GRID, GROUP, N, plan, words

Words = npt.NDArray[np.uint32]


def simulate(launch: Launch, **arrays: Words) -> None:
    Simulator().run(plan(launch), arrays)


def place(of: Kernel[...], line: str) -> str:
    """Where the kernel's line that contains this text stands, as reports write it."""
    lines, first = inspect.getsourcelines(of.function)
    (found,) = [number for number, text in enumerate(lines, first) if line in text]
    return re.escape(f"{inspect.getsourcefile(of.function)}:{found}")


def tile() -> Workgroup[U32]:
    return Workgroup(U32, GROUP)


# -- races --------------------------------------------------------------------------------------------------


@kernel
def forgotten_barrier(cx: Invocation, data: Storage[U32], out: Storage[U32], tile: Workgroup[U32]) -> None:
    tile[cx.local_id] = data[cx.global_id]
    out[cx.global_id] = tile[cx.local_id ^ 1]


@kernel
def late_overwrite(cx: Invocation, data: Storage[U32], out: Storage[U32], tile: Workgroup[U32]) -> None:
    tile[cx.local_id] = data[cx.global_id]
    cx.barrier()
    out[cx.global_id] = tile[7 - cx.local_id]
    tile[cx.local_id] = U32(0)


@kernel
def everyone_says_one(cx: Invocation, flag: Storage[U32]) -> None:
    if cx.local_id > 2:
        flag[0] = U32(1)


@kernel
def across_workgroups(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = U32(0)
    cx.barrier()
    seen = data[(cx.global_id + 8) % 32]
    data[cx.global_id] = seen


@kernel
def half_atomic(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    data.atomic_add(0, U32(1))
    out[cx.global_id] = data[0]


def test_a_forgotten_barrier_is_a_race() -> None:
    data, out = words("data", Role.INPUT), words("out", Role.OUTPUT)
    read, write = (
        place(forgotten_barrier, "tile[cx.local_id ^ 1]"),
        place(forgotten_barrier, "= data[cx.global_id]"),
    )
    expected = (
        rf"^{read}: data race on element 1 of workgroup memory 'tile': "
        rf"read here by invocation \(group 0, local 0\), written by invocation \(group 0, local 1\) "
        rf"at {write} \(one workgroup, with no barrier between\)\n"
        rf" +{read}: out\[cx.global_id\] = tile\[cx.local_id \^ 1\]\n +{write}: tile\[cx.local_id\] = "
    )
    with pytest.raises(DataRaceError, match=expected):
        simulate(
            forgotten_barrier.launch(GRID, data, out, tile()), data=np.zeros(N, np.uint32),
            out=np.zeros(N, np.uint32),
        )  # fmt: skip


def test_a_write_after_a_read_is_a_race() -> None:
    data, out = words("data", Role.INPUT), words("out", Role.OUTPUT)
    write, read = place(late_overwrite, "U32(0)"), place(late_overwrite, "tile[7 - cx.local_id]")
    expected = (
        rf"^{write}: .* element 0 .* written here by invocation \(group 0, local 0\), "
        rf"read by invocation \(group 0, local 7\) at {read} "
    )
    with pytest.raises(DataRaceError, match=expected):
        simulate(
            late_overwrite.launch(GRID, data, out, tile()), data=np.zeros(N, np.uint32),
            out=np.zeros(N, np.uint32),
        )  # fmt: skip


def test_writing_the_same_value_twice_is_still_a_race() -> None:
    flag = words("flag", Role.INOUT, 1)
    line = place(everyone_says_one, "flag[0]")
    expected = (
        rf"^{line}: data race on element 0 of storage memory 'flag': "
        rf"written here by invocation \(group 0, local 3\), written by invocation \(group 0, local 7\) "
        rf"at {line} \(one workgroup, with no barrier between\)\n +flag\[0\] = U32\(1\)$"
    )
    with pytest.raises(DataRaceError, match=expected):
        simulate(everyone_says_one.launch(Grid(1, 8), flag), flag=np.zeros(1, np.uint32))


def test_a_barrier_does_not_order_workgroups() -> None:
    data = words("data", Role.INOUT)
    read, write = place(across_workgroups, "seen = data"), place(across_workgroups, "= U32(0)")
    expected = (
        rf"^{read}: .* element 8 .* read here by invocation \(group 0, local 0\), "
        rf"written by invocation \(group 1, local 0\) at {write} \(two workgroups\)"
    )
    with pytest.raises(DataRaceError, match=expected):
        simulate(across_workgroups.launch(GRID, data), data=np.zeros(N, np.uint32))


def test_workgroups_that_run_one_after_another_race_too() -> None:
    count = 1 << 18  # more than run together
    data = words("data", Role.INOUT, count)

    with pytest.raises(DataRaceError, match="two workgroups"):
        simulate(wrap_around.launch(Grid(count // 256, 256), data), data=np.zeros(count, np.uint32))


@kernel
def wrap_around(cx: Invocation, data: Storage[U32]) -> None:
    data[(cx.global_id * 2) % data.length] = U32(0)


def test_atomics_race_with_plain_accesses_only() -> None:
    data, out = words("data", Role.INOUT, 1), words("out", Role.OUTPUT)
    line, atomic = place(half_atomic, "= data[0]"), place(half_atomic, "atomic_add")
    with pytest.raises(DataRaceError, match=rf"^{line}: .* updated atomically by invocation .* at {atomic}"):
        simulate(half_atomic.launch(GRID, data, out), data=np.zeros(1, np.uint32), out=np.zeros(N, np.uint32))


# -- divergence ---------------------------------------------------------------------------------------------


@kernel
def barrier_for_some(cx: Invocation, tile: Workgroup[U32]) -> None:
    if cx.group_id * 8 + cx.local_id > 12:
        cx.barrier()
    tile[cx.local_id] = U32(0)


@kernel
def barrier_in_a_ragged_loop(cx: Invocation, tile: Workgroup[U32]) -> None:
    for i in dynamic_range(U32(0), cx.local_id // 2 + 3):
        tile[cx.local_id] = i
        cx.barrier()


@kernel
def vote_of_some(cx: Invocation, out: Storage[U32]) -> None:
    if cx.local_id < 12:
        out[cx.global_id] = cx.subgroup_add(U32(1))


def test_a_barrier_that_some_never_reach() -> None:
    barrier, branch = place(barrier_for_some, "cx.barrier()"), place(barrier_for_some, "if cx")
    expected = (
        rf"^{barrier}: the barrier is reached by some invocations of group 1 only: "
        rf"local 5-7 arrive, local 0-4 do not; they went another way in the if at {branch}\n"
        rf" +{barrier}: cx.barrier\(\)\n +{branch}: if cx.group_id"
    )
    with pytest.raises(BarrierDivergenceError, match=expected):
        simulate(barrier_for_some.launch(GRID, tile()))


def test_a_barrier_in_a_loop_that_some_have_left() -> None:
    barrier, loop = (
        place(barrier_in_a_ragged_loop, "cx.barrier()"),
        place(barrier_in_a_ragged_loop, "for i in"),
    )
    expected = rf"^{barrier}: .* group 0 only: local 2-7 arrive, local 0-1 do not; .* in the loop at {loop}"
    with pytest.raises(BarrierDivergenceError, match=expected):
        simulate(barrier_in_a_ragged_loop.launch(GRID, tile()))


def test_a_subgroup_operation_concerns_its_subgroup_alone() -> None:
    out = words("out", Role.OUTPUT, 16)
    line = place(vote_of_some, "subgroup_add")
    expected = rf"^{line}: the subgroup operation 'add' is reached by .* local 8-11 arrive, local 12-15 do not;"
    with pytest.raises(BarrierDivergenceError, match=expected):
        simulate(vote_of_some.launch(Grid(1, 16), out), out=np.zeros(16, np.uint32))
    Simulator(subgroup_size=4).run(plan(vote_of_some.launch(Grid(1, 16), out)), {"out": np.zeros(16, np.uint32)})


# -- bounds and values that are not there -------------------------------------------------------------------


@kernel
def one_too_far(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = data[cx.global_id + 3]


@kernel
def unwritten_tile(cx: Invocation, out: Storage[U32], tile: Workgroup[U32]) -> None:
    if cx.local_id != 5:
        tile[cx.local_id] = U32(1)
    cx.barrier()
    out[cx.global_id] = tile[7 - cx.local_id]


@kernel
def unwritten_registers(cx: Invocation, out: Storage[U32]) -> None:
    mine: Registers[U32] = Registers(U32, 4)
    mine[cx.local_id % 4] = U32(1)
    out[cx.global_id] = mine[1]


@kernel
def copy(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = data[cx.global_id]


@kernel
def wait_for_ever(cx: Invocation, data: Storage[U32]) -> None:
    while data.atomic_load(0) == 0:
        pass


@kernel
def divide(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = cx.global_id // data[cx.global_id]


@kernel
def reach(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = data[add_nowrap(cx.global_id, 0 - data[cx.global_id])]


def run_two(subject: Kernel[[Storage[U32], Storage[U32]]], role: Role = Role.INPUT) -> None:
    data, out = words("data", role), words("out", Role.OUTPUT)
    arrays = {"data": np.arange(N, dtype=np.uint32), "out": np.zeros(N, np.uint32)}
    Simulator().run(plan(subject.launch(GRID, data, out)), arrays)


def test_out_of_bounds() -> None:
    expected = (
        rf"^{place(one_too_far, 'out[')}: index 32 is outside storage memory 'data' of 32 elements, "
        r"in invocation \(group 3, local 5\) and 2 more\n +out\[cx.global_id\] = data\[cx.global_id \+ 3\]$"
    )
    with pytest.raises(OutOfBoundsError, match=expected):
        run_two(one_too_far)


def test_workgroup_memory_starts_unwritten() -> None:
    out = words("out", Role.OUTPUT)
    expected = (
        rf"^{place(unwritten_tile, 'tile[7')}: element 5 of workgroup memory 'tile' is read "
        r"before anything is written to it, in invocation \(group 0, local 2\) and 3 more"
    )
    with pytest.raises(UninitializedReadError, match=expected):
        simulate(unwritten_tile.launch(GRID, out, tile()), out=np.zeros(N, np.uint32))


def test_registers_start_unwritten() -> None:
    out = words("out", Role.OUTPUT)
    expected = rf"^{place(unwritten_registers, '= mine[1]')}: element 1 of registers is .*local 0\) and 23 more"
    with pytest.raises(UninitializedReadError, match=expected):
        simulate(unwritten_registers.launch(GRID, out), out=np.zeros(N, np.uint32))


@pytest.mark.parametrize("role", [Role.OUTPUT, Role.SCRATCH])
def test_storage_that_is_not_input_starts_unwritten(role: Role) -> None:
    expected = rf"^{place(copy, 'out[')}: element 0 of storage memory 'data' is read before"
    with pytest.raises(UninitializedReadError, match=expected):
        run_two(copy, role)


def test_what_one_launch_writes_the_next_may_read() -> None:
    data, between, out = words("data", Role.INPUT), words("between", Role.SCRATCH), words("out", Role.OUTPUT)
    launches = (copy.launch(GRID, data, between), copy.launch(GRID, between, out))
    arrays = {"data": np.arange(N, dtype=np.uint32), "out": np.zeros(N, np.uint32)}
    Simulator().run(plan(*launches), arrays)
    np.testing.assert_array_equal(arrays["out"], arrays["data"])


def test_input_is_not_written() -> None:
    data = words("data", Role.INPUT)
    with pytest.raises(
        InvalidArgumentError, match=rf"^{place(wrap_around, 'data[')}: .* the INPUT buffer 'data' is bound"
    ):
        simulate(wrap_around.launch(GRID, data), data=np.zeros(N, np.uint32))


def test_a_loop_that_waits_for_others_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "MOST_ROUNDS", 50)
    data = words("data", Role.INOUT)
    schedule = plan(wait_for_ever.launch(GRID, data))
    expected = rf"^{place(wait_for_ever, 'while')}: this loop still runs after 50 rounds in .* and 31 more"
    with pytest.raises(IterationLimitError, match=expected):
        Simulator().run(schedule, {"data": np.zeros(N, np.uint32)})


def test_division_by_zero() -> None:
    expected = rf"^{place(divide, 'out[')}: division by zero in invocation \(group 0, local 0\)\n"
    with pytest.raises(ZeroDivisionError, match=expected):
        run_two(divide)


def test_an_add_nowrap_that_does_not_fit() -> None:
    expected = rf"^{place(reach, 'out[')}: an add_nowrap does not fit 32 bits in invocation \(group 0, local 1\) and"
    with pytest.raises(OverflowError, match=expected):
        run_two(reach)


def test_limits_are_kept() -> None:
    data, out = words("data", Role.INPUT), words("out", Role.OUTPUT)
    with pytest.raises(CapabilityError, match=r"'copy' asks for 2048 invocations in a workgroup, .* has 1024"):
        simulate(copy.launch(Grid(1, 2048), data, out), data=np.zeros(N, np.uint32), out=np.zeros(N, np.uint32))


def test_an_array_of_the_wrong_length_is_named() -> None:
    data, out = words("data", Role.INPUT), words("out", Role.OUTPUT)
    with pytest.raises(
        InvalidArgumentError, match=r"arrays\['data'\]: expected a contiguous array of 32 x uint32, found 3 x uint32"
    ):
        simulate(copy.launch(GRID, data, out), data=np.zeros(3, np.uint32), out=np.zeros(N, np.uint32))


def test_subgroups_have_a_power_of_two_of_lanes() -> None:
    with pytest.raises(InvalidArgumentError, match="subgroup_size: expected a power of two from 1 to 64, found 12"):
        Simulator(subgroup_size=12)
    for wrong in (True, 8.0):
        with pytest.raises(UnsupportedTypeError, match=f"subgroup_size: expected an int, found {wrong}"):
            Simulator(subgroup_size=cast("Any", wrong))
