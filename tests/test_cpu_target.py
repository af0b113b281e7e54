"""The CPU target: workgroups mean what the simulator says, arrays are checked, and it says what it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Grid, Launch, Role, Schedule
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.machine import Capability
from gpusort.targets.cpu.limits import subgroup_size
from gpusort.targets.cpu.target import CpuTarget, processor_of
from gpusort.targets.registry import FORMS
from gpusort.targets.simulator.target import Simulator
from gpusort.types.errors import CapabilityError
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import U8, U32, U64
from tests.new_process import printed
from tests.small_schedules import buffer, plan
from tests.stepped import run_step

Array = npt.NDArray[np.generic]
TARGET = CpuTarget()


def run(*launches: Launch, **arrays: Array) -> None:
    TARGET.run(plan(*launches), arrays)


# -- workgroups -------------------------------------------------------------------------------------------


@kernel
def subgroups(cx: Invocation, data: Storage[U32], found: Storage[U64]) -> None:
    i = cx.global_id
    x = data[i]
    found[i * 8] = cx.ballot(x % 3 == 0)
    found[i * 8 + 1] = cx.match(x & 3)
    found[i * 8 + 2] = U64(cx.subgroup_add(x))
    found[i * 8 + 3] = U64(cx.exclusive_add(x))
    found[i * 8 + 4] = U64(cx.shuffle_up(x, U32(1)))
    found[i * 8 + 5] = U64(cx.shuffle_down(x, cx.lane & 3))
    found[i * 8 + 6] = U64(cx.subgroup_id)
    found[i * 8 + 7] = U64(cx.subgroup_size)


@kernel
def shuffles(cx: Invocation, data: Storage[U32], found: Storage[U64]) -> None:
    i = cx.global_id
    x = data[i]
    found[i * 2] = cx.shuffle(U64(x) << 9, cx.lane + 3)
    found[i * 2 + 1] = U64(cx.shuffle_xor(x, cx.subgroup_size - 1))


@pytest.mark.parametrize("group_size", [1, 2, 3, 4, 6, 8, 12, 24])
def test_subgroup_operations(group_size: int) -> None:
    _same_as_simulated(subgroups.launch, group_size, 8)


@pytest.mark.parametrize("group_size", [1, 2, 4, 8, 24])
def test_shuffles(group_size: int) -> None:
    _same_as_simulated(shuffles.launch, group_size, 2)


def _same_as_simulated(launch: Callable[..., Launch], group_size: int, width: int) -> None:
    count = 48
    data, found = buffer("data", U32, count, Role.INPUT), buffer("found", U64, count * width)
    made = launch(Grid(count // group_size, group_size), data, found)
    values = np.random.default_rng(3).integers(0, 1 << 32, count, dtype=np.uint32)
    mine, theirs = np.zeros(count * width, np.uint64), np.zeros(count * width, np.uint64)
    run(made, data=values, found=mine)
    run_step(Simulator(subgroup_size=subgroup_size(group_size)), specialise(made), {"data": values, "found": theirs})
    np.testing.assert_array_equal(mine, theirs)


@kernel
def passes(cx: Invocation, data: Storage[U32], tile: Workgroup[U32], rounds: U32) -> None:
    """Uniform control around barriers; a variable kept across them; registers kept and private."""
    me = cx.local_id
    kept: Registers[U32] = Registers(U32, 2)
    value = data[cx.global_id]
    kept[0] = value
    kept[1] = U32(0)
    tile[me] = value
    done = U32(0)
    for at in dynamic_range(U32(0), rounds):
        cx.barrier()
        neighbour = tile[(me + at + 1) % cx.group_size]
        cx.barrier()
        scratch: Registers[U32] = Registers(U32, 2)
        scratch[me & 1] = neighbour
        value = value * 3 + scratch[me & 1]
        kept[1] = kept[1] + neighbour
        if at == 5:
            break
        tile[me] = value
        done = done + 1
    while done > 2:
        cx.barrier()
        done = done - 1
    if rounds > 4:
        cx.barrier()
    data[cx.global_id] = value + kept[0] * 5 + kept[1] * 7 + done


@pytest.mark.parametrize("rounds", [0, 1, 4, 9])
@pytest.mark.parametrize("group_size", [1, 5, 64])
def test_control_flow_around_barriers(group_size: int, rounds: int) -> None:
    count = group_size * 3
    data = buffer("data", U32, count)
    launch = passes.launch(Grid(3, group_size), data, Workgroup(U32, group_size), U32(rounds))
    mine = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    theirs = mine.copy()
    run(launch, data=mine)
    run_step(Simulator(), specialise(launch), {"data": theirs})
    np.testing.assert_array_equal(mine, theirs)


@kernel
def sum_rows(cx: Invocation, data: Storage[U32], sums: Storage[U32], n: U32) -> None:
    """Grid-stride: neighbouring lanes read neighbouring elements."""
    total = U32(0)
    for i in dynamic_range(cx.global_id, n, cx.num_groups * cx.group_size):
        total = total + data[i]
    sums[cx.global_id] = total


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 63, 64, 65, 1000])
def test_a_grid_stride_loop(count: int) -> None:
    data, sums = buffer("data", U32, count, Role.INPUT), buffer("sums", U32, 32, Role.OUTPUT)
    launch = sum_rows.launch(Grid(2, 16), data, sums, U32(count))
    values = np.random.default_rng(count).integers(0, 1 << 32, count, dtype=np.uint32)
    found = np.zeros(32, np.uint32)
    run(launch, data=values, sums=found)
    padded = np.concatenate([values, np.zeros(-count % 32, np.uint32)]).reshape(-1, 32)
    np.testing.assert_array_equal(found, padded.sum(axis=0, dtype=np.uint32))


@kernel
def divergent(cx: Invocation, data: Storage[U32]) -> None:
    if data[cx.local_id] > 3:
        cx.barrier()


def test_a_barrier_that_some_lanes_miss_is_refused_before_anything_runs() -> None:
    with pytest.raises(KernelError, match=r"expected a barrier that all invocations"):
        run(divergent.launch(Grid(1, 8), buffer("data", U32, 8)), data=np.zeros(8, np.uint32))


# -- arrays -----------------------------------------------------------------------------------------------


@kernel
def widen(cx: Invocation, narrow: Storage[U8], wide: Storage[U32], scratch: Storage[U32], by: U32) -> None:
    scratch[cx.global_id] = U32(narrow[cx.global_id]) + by
    wide[cx.global_id] = scratch[cx.global_id] * 2


def _widening(count: int = 4) -> Schedule:
    buffers = (
        buffer("narrow", U8, count, Role.INPUT),
        buffer("wide", U32, count, Role.OUTPUT),
        buffer("scratch", U32, count, Role.SCRATCH),
    )
    return Schedule(buffers, (widen.launch(Grid(count, 1), *buffers, U32(7)),))


def _widen(narrow: object, wide: object, count: int = 4) -> None:
    TARGET.run(_widening(count), {"narrow": narrow, "wide": wide})


def test_what_is_prepared_takes_packed_arrays_of_any_shape_dtype_and_greater_length() -> None:
    prepared, schedule = TARGET.prepare(_widening()), _widening()
    again = TARGET.prepare(schedule)
    for one in (prepared, again, prepared):
        narrow, wide = np.arange(4, dtype=np.int8).reshape(2, 2), np.zeros((2, 3), np.float32)
        narrow.flags.writeable = False
        one.run([narrow, wide])
        assert wide.reshape(-1).view(np.uint32).tolist() == [14, 16, 18, 20, 0, 0]


def test_read_only_input_and_scratch() -> None:
    narrow, wide = np.arange(4, dtype=np.uint8), np.zeros(4, np.uint32)
    narrow.flags.writeable = False
    _widen(narrow, wide)
    assert wide.tolist() == [14, 16, 18, 20]


def test_unaligned_arrays_are_served() -> None:
    raw = np.zeros(17, np.uint8)
    wide = raw[1:].view(np.uint32)
    assert not wide.flags.aligned
    _widen(np.arange(4, dtype=np.uint8), wide)
    assert wide.tolist() == [14, 16, 18, 20]


def test_no_workgroups_and_no_elements() -> None:
    _widen(np.zeros(0, np.uint8), np.zeros(0, np.uint32), count=0)


def test_a_group_beyond_the_limit_is_refused() -> None:
    launch = passes.launch(Grid(1, 2048), buffer("data", U32, 2048), Workgroup(U32, 2048), U32(1))
    with pytest.raises(
        CapabilityError, match=r"'passes' asks for 2048 invocations in a workgroup, target 'cpu' has 1024"
    ):
        run(launch, data=np.zeros(2048, np.uint32))


@kernel
def holding(cx: Invocation, data: Storage[U32], tile: Workgroup[U32], size: int) -> None:
    held: Registers[U32] = Registers(U32, size)
    for i in dynamic_range(U32(0), U32(size)):
        held[i] = data[cx.global_id] + i
    tile[cx.local_id] = held[data[cx.global_id] % size]
    cx.barrier()
    data[cx.global_id] = tile[cx.group_size - 1 - cx.local_id]


def test_registers_beyond_what_a_stack_holds_are_refused() -> None:
    """Of all invocations of a workgroup together; workgroup memory is none of them."""
    x = np.arange(1024, dtype=np.uint32)
    tile = Workgroup(U32, 1 << 16)
    with pytest.raises(
        CapabilityError, match=r"'holding' asks for 4198400 bytes of registers in a workgroup, target 'cpu' has 4194304"
    ):
        run(holding.launch(Grid(1, 1024), buffer("data", U32, 1024), tile, 1025), data=x)
    assert (x == np.arange(1024)).all()
    run(holding.launch(Grid(1, 1024), buffer("data", U32, 1024), tile, 4), data=x)
    assert (x == (np.arange(1024) + np.arange(1024) % 4)[::-1]).all()


def test_info_says_who_runs_the_kernels() -> None:
    info = TARGET.info
    assert info.name == "cpu"
    assert info.adapter
    assert info.driver.startswith("llvmlite 0.")
    assert info.capabilities == {Capability.FLOAT64, Capability.SUBGROUPS, Capability.HOST_SORT}
    assert "def kernel(" in FORMS["cpu"](
        specialise(
            widen.launch(
                Grid(1, 1),
                buffer("narrow", U8, 1, Role.INPUT),
                buffer("wide", U32, 1),
                buffer("scratch", U32, 1),
                U32(0),
            )
        )
    )


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("processor\t: 0\nmodel name\t: A CPU: 2 GHz\n\nprocessor\t: 1\nmodel name\t: Another\n", "A CPU: 2 GHz"),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n" * 4, "ARM 0x41/0xd0c"),
        (
            "CPU implementer : 0x61\nCPU part : 0x22\n\nCPU implementer : 0x61\nCPU part : 0x23\n",
            "ARM 0x61/0x22, 0x61/0x23",
        ),
        ("processor\t: 0\nhart\t: 1\n", ""),
        ("", ""),
    ],
)
def test_processors_have_names(said: str, name: str) -> None:
    assert processor_of(said) == name


def test_no_compiler_is_loaded_by_the_target_itself() -> None:
    code = "import sys, gpusort.targets.cpu.target as c; c.CpuTarget().info; print('llvmlite.binding' in sys.modules)"
    assert printed(code).strip() == "False"
