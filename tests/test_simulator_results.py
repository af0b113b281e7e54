"""What kernels compute: the simulator and plain Python agree, and both are right."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.listing import listing
from gpusort.kernel.specialise import specialise
from gpusort.targets.python.target import PlainPython
from gpusort.targets.simulator.target import Simulator
from gpusort.types.elements import dtype_of
from gpusort.types.errors import (
    OutOfBoundsError,
)
from gpusort.types.intrinsics import dynamic_range, select
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import F32, U8, U32, U64, Bool
from tests.small_schedules import GRID, GROUP, N, plan, words
from tests.stepped import run_step

Words = npt.NDArray[np.uint32]


def tile() -> Workgroup[U32]:
    return Workgroup(U32, GROUP)


# -- kernels that are right ---------------------------------------------------------------------------------


@kernel
def reverse_groups(cx: Invocation, data: Storage[U32], out: Storage[U32], tile: Workgroup[U32]) -> None:
    tile[cx.local_id] = data[cx.global_id]
    cx.barrier()
    out[cx.global_id] = tile[cx.group_size - cx.local_id - 1]


@kernel
def sum_groups(cx: Invocation, data: Storage[U32], out: Storage[U32], tile: Workgroup[U32]) -> None:
    me = cx.local_id
    tile[me] = data[cx.global_id]
    cx.barrier()
    half = cx.group_size // 2
    while half > 0:
        if me < half:
            tile[me] = tile[me] + tile[me + half]
        cx.barrier()
        half = half >> 1
    if me == 0:
        out[cx.group_id] = tile[me]


@kernel
def histogram(cx: Invocation, data: Storage[U32], out: Storage[U32], bins: U32) -> None:
    out.atomic_add(data[cx.global_id] % bins, U32(1))


@kernel
def take_tickets(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = data.atomic_add(0, cx.global_id)


@kernel
def rank_in_subgroup(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    word = data[cx.global_id]
    before = cx.exclusive_add(word & 1)
    total = cx.subgroup_add(word & 1)
    odd = cx.ballot((word & 1) != 0)
    below = cx.shuffle_up(word, U32(1))
    alike = cx.match(word & 3)
    out[cx.global_id] = before + (total << 4) + (below << 8) + U32((odd ^ alike) & 0xFF)


@kernel
def count_divisors(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    number = data[cx.global_id]
    found = U32(0)
    for candidate in dynamic_range(U32(1), number + 1):
        if candidate > 20:
            break
        if number % candidate == 0:
            found = found + 1
    out[cx.global_id] = found


@kernel
def sort_four(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    mine: Registers[U32] = Registers(U32, 4)
    for i in range(4):
        mine[i] = data[cx.global_id * 4 + i]
    for end in range(3, 0, -1):
        for i in range(end):
            low, high = mine[i], mine[i + 1]
            if high < low:
                mine[i] = high
                mine[i + 1] = low
    for i in range(4):
        out[cx.global_id * 4 + i] = mine[i]


@kernel
def overwrite_what_was_read(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    """What one value for all, or one array, could stand for is changed in some invocations only."""
    word, rounds = data[cx.global_id], data[0] % 5
    before, first, is_odd = word, rounds, (word & 1) != 0
    if is_odd:
        is_odd = word > 50
        word = rounds
    else:
        is_odd = word > 60
        rounds = U32(2)
    if cx.group_id == 1:
        for _ in dynamic_range(U32(0), first):
            word = word + rounds
            if word > 60:
                break
    out[cx.global_id] = before + (first << 8) + (word << 16) + select(is_odd, U32(1) << 31, rounds << 24)


RIGHT: list[tuple[Kernel[...], Grid, Sequence[object]]] = [
    (reverse_groups, GRID, [tile()]),
    (sum_groups, GRID, [tile()]),
    (take_tickets, GRID, []),
    (rank_in_subgroup, GRID, []),
    (count_divisors, GRID, []),
    (overwrite_what_was_read, GRID, []),
    (sort_four, Grid(N // 4 // 8, 8), []),
]


@pytest.mark.parametrize(("subject", "grid", "more"), RIGHT, ids=lambda it: it.name if isinstance(it, Kernel) else "")
def test_simulator_agrees_with_plain_python(subject: Kernel[...], grid: Grid, more: Sequence[object]) -> None:
    data, out = words("data", Role.INOUT), words("out", Role.OUTPUT)
    schedule = plan(subject.launch(grid, data, out, *more))
    results: list[tuple[Words, Words]] = []
    for target in (Simulator(), PlainPython()):
        arrays = np.random.default_rng(3).integers(0, 99, N, np.uint32), np.zeros(N, np.uint32)
        target.run(schedule, {"data": arrays[0], "out": arrays[1]})
        results.append(arrays)
    np.testing.assert_array_equal(results[0], results[1])


def test_many_chunks_of_workgroups_count_as_one_launch() -> None:
    keys = np.random.default_rng(1).integers(0, 1 << 32, 1 << 18, np.uint32)
    data, out = words("data", Role.INPUT, len(keys)), words("out", Role.INOUT, 16)
    counts = np.zeros(16, np.uint32)
    schedule = plan(histogram.launch(Grid(1 << 10, 1 << 8), data, out, U32(16)))
    Simulator().run(schedule, {"data": keys, "out": counts})
    np.testing.assert_array_equal(counts, np.bincount(keys % 16, minlength=16))


def test_atomics_return_what_was_there_before_in_the_order_of_the_invocations() -> None:
    data, out = words("data", Role.INOUT, 1), words("out", Role.OUTPUT)
    total, tickets = np.array([5], np.uint32), np.zeros(N, np.uint32)
    Simulator().run(plan(take_tickets.launch(GRID, data, out)), {"data": total, "out": tickets})
    assert total[0] == 5 + sum(range(N))
    np.testing.assert_array_equal(tickets, 5 + np.cumsum(np.arange(N)) - np.arange(N))


# -- every atomic, every subgroup operation, odd elements ---------------------------------------------------


@kernel
def all_atomics(cx: Invocation, data: Storage[U32], out: Storage[U32], bins: Storage[U32]) -> None:
    word = data[cx.global_id]
    at = word % 2
    out[cx.global_id * 8] = bins.atomic_add(at, word)
    out[cx.global_id * 8 + 1] = bins.atomic_min(at + 2, word)
    out[cx.global_id * 8 + 2] = bins.atomic_max(at + 4, word)
    out[cx.global_id * 8 + 3] = bins.atomic_and(at + 6, word)
    out[cx.global_id * 8 + 4] = bins.atomic_or(at + 8, word)
    out[cx.global_id * 8 + 5] = bins.atomic_xor(at + 10, word)
    out[cx.global_id * 8 + 6] = bins.atomic_exchange(at + 12, word)
    bins.atomic_store(at + 14, word)
    out[cx.global_id * 8 + 7] = bins.atomic_load(U32(16))


def test_atomics_agree_with_plain_python() -> None:
    data, out = words("data", Role.INPUT), words("out", Role.OUTPUT, 8 * N)
    bins = words("bins", Role.INOUT, 17)
    schedule = plan(all_atomics.launch(GRID, data, out, bins))
    results: list[Words] = []
    for target in (Simulator(), PlainPython()):
        rng = np.random.default_rng(5)
        keys, totals = rng.integers(0, 1 << 32, N, np.uint32), rng.integers(0, 1 << 32, 17, np.uint32)
        found = np.zeros(8 * N, np.uint32)
        target.run(schedule, {"data": keys, "out": found, "bins": totals})
        results.append(np.concatenate([found, totals]))
    np.testing.assert_array_equal(results[0], results[1])


@attrs.frozen
class Record:
    key: F32
    flag: Bool
    stamp: U64


@kernel
def exchange_records(cx: Invocation, records: Storage[Record], narrow: Storage[U8], tile: Workgroup[Record]) -> None:
    mine = records[cx.global_id]
    other = cx.shuffle(mine, cx.lane + 5)
    up = cx.shuffle_up(mine.key, U32(1))
    down = cx.shuffle_down(mine.stamp, U32(2))
    tile[cx.local_id] = Record(up + other.key, ~mine.flag, down ^ other.stamp ^ cx.ballot(mine.flag))
    cx.barrier()
    records[cx.global_id] = tile[cx.group_size - 1 - cx.local_id]
    narrow[cx.global_id] = U8(U32(narrow[cx.global_id]) * 7)


def records_in(count: int) -> dict[str, npt.NDArray[np.generic]]:
    rng = np.random.default_rng(8)
    keys, flags = rng.standard_normal(count), rng.integers(0, 2, count)
    fields = zip(keys, flags, rng.integers(0, 1 << 64, count, np.uint64), strict=True)
    records = np.array(list(fields), dtype_of(Record))
    return {"records": records, "narrow": rng.integers(0, 256, count, np.uint8)}


def exchange() -> Schedule:
    records, narrow = Buffer("records", Record, 24, Role.INOUT), Buffer("narrow", U8, 24, Role.INOUT)
    return plan(exchange_records.launch(Grid(2, 12), records, narrow, Workgroup(Record, 12)))


@pytest.mark.parametrize("subgroup_size", [1, 4])
def test_records_of_several_types_agree_with_plain_python(subgroup_size: int) -> None:
    simulated, plain = records_in(24), records_in(24)
    Simulator(subgroup_size).run(exchange(), simulated)
    PlainPython(subgroup_size).run(exchange(), plain)
    for name, values in simulated.items():
        np.testing.assert_array_equal(values, plain[name])


@pytest.mark.parametrize(
    ("subgroup_size", "what"), [(8, "lane 5 of a subgroup of 4"), (32, "lane 12 of a subgroup of 12")]
)
def test_a_lane_that_is_not_there_has_no_value(subgroup_size: int, what: str) -> None:
    for target in (Simulator(subgroup_size), PlainPython(subgroup_size)):
        with pytest.raises(OutOfBoundsError, match=f"shuffle'? reads {what}"):
            target.run(exchange(), records_in(24))


def test_a_program_runs_as_a_pass_has_left_it() -> None:
    data, out = words("data", Role.INPUT), words("out", Role.OUTPUT)
    step = specialise(reverse_groups.launch(GRID, data, out, tile()))
    arrays = {"data": np.arange(N, dtype=np.uint32), "out": np.zeros(N, np.uint32)}
    run_step(Simulator(), step, arrays)
    np.testing.assert_array_equal(arrays["out"], arrays["data"].reshape(-1, GROUP)[:, ::-1].ravel())


def test_a_program_is_listed() -> None:
    data, out = words("data", Role.INPUT), words("out", Role.OUTPUT)
    step = specialise(sum_groups.launch(GRID, data, out, tile()))
    lines = [line[7:] for line in listing(step.program).splitlines()]
    assert "storage data: U32[]" in lines
    assert "workgroup tile: U32[8]" in lines
    shown = lines[lines.index("loop:") :]
    test = ["    if invert((half > 0)):", "        break"]
    assert shown[:4] == ["loop:", *test, "    condition = (local_id < half)"]
    assert shown[-1] == "    out[group_id] = tile_at_3"
