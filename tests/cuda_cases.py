"""Kernels that show what the CUDA target must get right, with the results they have to have."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.targets.cuda.target import CudaTarget
from gpusort.targets.simulator.target import Simulator
from gpusort.types.intrinsics import dynamic_range, select
from gpusort.types.invocation import Invocation
from gpusort.types.keys import UnsignedKey
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.params import BitonicPolicy
from gpusort.types.scalars import F32, F64, U32, U64, Bool
from tests.stepped import run_step, step_of
from tests.test_cpu_random import random_program

Array = npt.NDArray[np.generic]
Words = npt.NDArray[np.uint32]
WORDS = UnsignedKey(U32, U32, 32)
SMALL = BitonicPolicy(tile=32, group_size=16, fused_passes=2)
TABLE = 4096  # elements in the buffers that random programs only read
N = 48  # invocations in the kernels below: the second subgroup of a workgroup lacks half its lanes


def schedule_of(*launches: Launch) -> Schedule:
    """A schedule of these launches, with the buffers that they name."""
    arguments = [argument for launch in launches for argument in launch.arguments]
    buffers = {a.name: cast("Buffer[object]", a) for a in arguments if isinstance(a, Buffer)}
    return Schedule(tuple(buffers.values()), launches)


# -- kernels ----------------------------------------------------------------------------------------------


@kernel
def lanes_meet(cx: Invocation, data: Storage[U32], out: Storage[U64], wide: Storage[F64]) -> None:
    """What the subgroup operations give, in a workgroup whose last subgroup lacks lanes."""
    mine = data[cx.local_id]
    at = cx.local_id * 10
    out[at] = cx.ballot(mine > 5)
    out[at + 1] = cx.match(mine & 7)
    out[at + 2] = cx.match(mine)
    out[at + 3] = U64(cx.subgroup_add(mine))
    out[at + 4] = U64(cx.exclusive_add(mine))
    out[at + 5] = U64(cx.shuffle(mine, U32(0)))
    out[at + 6] = U64(cx.shuffle_up(mine, U32(2)))
    out[at + 7] = U64(cx.shuffle_down(mine, U32(2)))
    out[at + 8] = U64(cx.shuffle_down(mine, U32(33)))
    out[at + 9] = U64(cx.subgroup_size) * 1000 + U64(cx.subgroup_id) * 100 + U64(cx.lane)
    wide[cx.local_id] = cx.shuffle_xor(F64(F32(0.5)) + wide[cx.local_id], U32(1))


def lanes_meeting(data: Words, group_size: int) -> npt.NDArray[np.uint64]:
    rows: list[list[int]] = []
    for i in range(group_size):
        first = i // 32 * 32
        lanes = [int(x) for x in data[first : min(first + 32, group_size)]]
        me, count = i - first, len(lanes)

        def bits(votes: list[bool]) -> int:
            return sum(1 << lane for lane, vote in enumerate(votes) if vote)

        rows.append([
            bits([x > 5 for x in lanes]),
            bits([x & 7 == lanes[me] & 7 for x in lanes]),
            bits([x == lanes[me] for x in lanes]),
            sum(lanes) % 2**32,
            sum(lanes[:me]) % 2**32,
            lanes[0],
            lanes[me - 2] if me >= 2 else lanes[me],
            lanes[me + 2] if me + 2 < count else lanes[me],
            lanes[me],
            32000 + i // 32 * 100 + me,
        ])  # fmt: skip
    return np.array(rows, np.uint64).reshape(-1)


def lanes_case(group_size: int) -> tuple[Schedule, dict[str, Array], npt.NDArray[np.uint64]]:
    data = np.random.default_rng(group_size).integers(0, 12, group_size).astype(np.uint32)
    buffers = (
        Buffer("data", U32, group_size, Role.INPUT),
        Buffer("out", U64, 10 * group_size, Role.OUTPUT),
        Buffer("wide", F64, group_size, Role.INOUT),
    )
    schedule = schedule_of(lanes_meet.launch(Grid(1, group_size), *buffers))
    arrays: dict[str, Array] = {
        "data": data,
        "out": np.zeros(10 * group_size, np.uint64),
        "wide": np.arange(group_size, dtype=np.float64),
    }
    return schedule, arrays, lanes_meeting(data, group_size)


@kernel
def through_memories(
    cx: Invocation, data: Storage[U32], out: Storage[U32], flags: Storage[Bool], tile: Workgroup[U64],
    more: Workgroup[Bool], limit: U32, step: U32,
) -> None:  # fmt: skip
    """Bools in memory, two workgroup memories, registers, a loop with a run-time stride, lengths."""
    mine: Registers[U32] = Registers(U32, 4)
    for k in range(4):
        mine[k] = U32(k) * limit
    total = U32(0)
    for i in dynamic_range(cx.local_id, data.length, step):
        total = total + data[i] * mine[i & 3]
    tile[cx.local_id] = U64(total)
    more[cx.local_id] = flags[cx.local_id]
    cx.barrier()
    other = cx.group_size - 1 - cx.local_id
    out[cx.local_id] = select(more[other], U32(tile[other]), limit)


def memories_case(tile: int) -> tuple[Schedule, dict[str, Array], Words]:
    count, step, limit = 100, N, 7
    rng = np.random.default_rng(5)
    data, flags = rng.integers(0, 1 << 32, count, np.uint32), rng.integers(0, 2, N).astype(np.bool_)
    buffers = (
        Buffer("data", U32, count, Role.INPUT),
        Buffer("out", U32, N, Role.OUTPUT),
        Buffer("flags", Bool, N, Role.INPUT),
    )
    launch = through_memories.launch(
        Grid(1, N), *buffers, Workgroup(U64, tile), Workgroup(Bool, N), U32(limit), U32(step)
    )
    totals = np.zeros(N, np.uint32)
    for i in range(N):
        for k in range(i, count, step):
            totals[i] = (int(totals[i]) + int(data[k]) * (k & 3) * limit) % 2**32
    expected = np.where(flags[::-1], totals[::-1], np.uint32(limit))
    arrays: dict[str, Array] = {"data": data, "out": np.zeros(N, np.uint32), "flags": flags}
    return schedule_of(launch), arrays, expected


@kernel
def count_values(cx: Invocation, data: Storage[U32], counts: Storage[U32], seen: Workgroup[U32]) -> None:
    """Atomics of both memories."""
    if cx.local_id == 0:
        seen.atomic_store(U32(0), U32(0))
    cx.barrier()
    seen.atomic_max(U32(0), data[cx.global_id])
    counts.atomic_add(data[cx.global_id], U32(1))
    cx.barrier()
    if cx.local_id == 0:
        counts.atomic_max(U32(9), seen.atomic_load(U32(0)) + 100)


@kernel
def take_bytes(cx: Invocation, data: Storage[U64], out: Storage[U32], first: U32) -> None:
    """By amounts beyond the width, which shifts take modulo it."""
    i, word = cx.global_id, U32(data[0])
    out[i] = (word >> 8 * (first + i)) & 255
    out[i + N] = U32((data[0] >> 8 * (first + i)) & 255)
    out[i + 2 * N] = (word >> 8 * (i & 3)) & 255
    if i == 0:
        out[3 * N] = (word >> 40) & 255
        out[3 * N + 1] = U32((data[0] >> 88) & 255)


@kernel
def wait_for_flag(cx: Invocation, flags: Storage[U32], out: Storage[U32]) -> None:
    """Spins on another workgroup's word."""
    if cx.group_id == 0:
        flags.atomic_store(U32(1), U32(7))
    word = flags.atomic_load(cx.group_id)
    while word == 0:
        word = flags.atomic_load(cx.group_id)
    out[cx.group_id] = word


@kernel
def products(cx: Invocation, singles: Storage[F32], doubles: Storage[F64]) -> None:
    """Sums of products: what a fused multiply-add would round once, not twice."""
    i = cx.global_id
    singles[i] = singles[i] * singles[i + 1] + singles[i + 2]
    doubles[i] = doubles[i] * doubles[i + 1] - doubles[i + 2]


def keys(length: int) -> Words:
    return np.random.default_rng(length).integers(0, 1 << 32, length, np.uint32)


# -- checks -----------------------------------------------------------------------------------------------


def check_lanes(target: CudaTarget, group_size: int) -> None:
    schedule, arrays, expected = lanes_case(group_size)
    before = arrays["wide"].astype(np.float64)
    target.run(schedule, arrays)
    np.testing.assert_array_equal(arrays["out"].reshape(-1, 10), expected.reshape(-1, 10))
    paired = np.arange(group_size) ^ 1
    there = paired < group_size
    np.testing.assert_array_equal(arrays["wide"][there], before[paired[there]] + 0.5)


def check_memories(target: CudaTarget, tile: int) -> None:
    schedule, arrays, expected = memories_case(tile)
    target.run(schedule, arrays)
    np.testing.assert_array_equal(arrays["out"], expected)


def check_atomics(target: CudaTarget) -> None:
    values = np.random.default_rng(1).integers(0, 8, 96).astype(np.uint32)
    data, out = Buffer("data", U32, 96, Role.INPUT), Buffer("counts", U32, 10, Role.INOUT)
    launch = count_values.launch(Grid(3, 32), data, out, Workgroup(U32, 1))
    counts = np.zeros(10, np.uint32)
    target.run(schedule_of(launch), {"data": values, "counts": counts})
    np.testing.assert_array_equal(counts[:8], np.bincount(values, minlength=8))
    assert counts[9] == 100 + values.max()


def check_bytes(target: CudaTarget) -> None:
    word, first = 0x8091A2B3C4D5E6F7, 5
    data, out = Buffer("data", U64, 1, Role.INPUT), Buffer("out", U32, 3 * N + 2, Role.OUTPUT)
    found = np.zeros(3 * N + 2, np.uint32)
    target.run(schedule_of(take_bytes.launch(Grid(1, N), data, out, U32(first))), {
        "data": np.array([word], np.uint64), "out": found,
    })  # fmt: skip
    bytes_ = [word >> 8 * k & 255 for k in range(8)]
    expected = [bytes_[(first + i) % 4] for i in range(N)] + [bytes_[(first + i) % 8] for i in range(N)]
    assert found.tolist() == [*expected, *(bytes_[i % 4] for i in range(N)), bytes_[1], bytes_[3]]


def check_random_program(target: CudaTarget, seed: int, group_size: int) -> None:
    program, count = random_program(seed, group_size), group_size * 3
    sizes = {memory.name: count if memory.name == "data" else TABLE for memory in program.storage}
    buffers = [cast("Buffer[object]", Buffer(name, U32, size, Role.INOUT)) for name, size in sizes.items()]
    step = step_of(program, buffers, (seed * 7 % 13,), 3)
    rng = np.random.default_rng(seed)
    mine = {name: rng.integers(0, 1 << 32, size, np.uint32) for name, size in sizes.items()}
    theirs = {name: array.copy() for name, array in mine.items()}
    run_step(target, step, mine)
    run_step(Simulator(subgroup_size=32), step, theirs)
    np.testing.assert_array_equal(mine["data"], theirs["data"])
