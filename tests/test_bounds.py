"""What lies outside an array is not touched, on any target, and the process lives."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gpusort
from gpusort.algos.batch import Batch
from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.layout import Layout
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.reduce_axis import reduce_axis, reduce_rows
from gpusort.algos.scan import scan_axis, scan_rows
from gpusort.kernel import ir
from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule, Step
from gpusort.kernel.passes.bounds import Ranges
from gpusort.kernel.passes.safe import Safety
from gpusort.kernel.passes.walk import statements_in
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.targets.cpu.limits import subgroup_size
from gpusort.targets.cuda.compile import compile_ptx
from gpusort.targets.cuda.text import kernel_text
from gpusort.targets.wgsl.kernel import lower_to_wgsl
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.indices import ScanKind, SortOrder
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.monoids import Sum
from gpusort.types.params import BitonicPolicy, RadixPolicy, ReducePolicy, ScanPolicy, Totals
from gpusort.types.scalars import U8, U32, U64
from tests import bounds_cases

ROOT = Path(__file__).parents[1]


def test_kernels_that_stray(target: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bounds_cases", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert bounds_cases.ALL_RIGHT in done.stdout


# -- what is proven -------------------------------------------------------------------------------------------


def searched(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    """A binary search: as far as `count`, which the launch says is the length."""
    low, high, wanted = U32(0), count, cx.global_id
    while low < high:
        middle = (low + high) // 2
        if data[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    found[cx.global_id] = low


def strided(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    total = U32(0)
    for i in dynamic_range(cx.global_id, data.length, cx.num_groups * cx.group_size):
        total = total + data[i]
    found[cx.global_id] = total


def masked(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    where = data[cx.global_id % count]
    found[where & 31] = data[where % data.length]


def kept(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    mine: Registers[U32] = Registers(U32, 8)
    for i in dynamic_range(U32(0), U32(8)):
        mine[7 - i] = data[i * 4 + cx.lane // 2]
    found[cx.subgroup_id * cx.subgroup_size + cx.lane] = mine[cx.local_id >> 2]


def reversed_to(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    if cx.global_id < count:
        found[cx.global_id] = data[count - 1 - cx.global_id]


def at_literals(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    found[31] = data[63]


def in_uneven_groups(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    found[cx.local_id] = data[cx.group_size - 1 - cx.local_id]


def from_a_start(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    total = U32(0)
    for i in dynamic_range(count, U32(64), cx.local_id + 1):
        total = total + data[i - 32]
    found[cx.local_id] = total


def in_one_branch(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    if count <= 64:
        found[cx.local_id] = data[cx.local_id]
    else:
        found[cx.local_id + 32] = data[cx.local_id + 64]


def until_told(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    while data[cx.local_id] == count:
        found[cx.local_id] = data[1]


def once_if_told(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    while data[cx.local_id] == count:
        found[cx.local_id] = data[1]
        break


def rising(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    at = U32(3)
    while at < count:
        found[cx.local_id] = at
        at = at + 1


def rising_from_nothing(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    at = U32(0)
    while at < count:
        found[cx.local_id] = at
        at = at + 1


def rising_beside_another(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    at, other = U32(0), U32(5)
    while at < count:
        found[other] = at
        at = at + 1
        other = cx.local_id % 7


def never_rising(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    at = count
    while at < 3:
        found[cx.local_id] = at
        at = at + 1


def as_it_was(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    """What a loop changes, and then changes back, neither rises nor falls."""
    at = U32(3)
    while at < count:
        at = at + 1
        found[cx.local_id] = at
        at = at - 1


def from_beyond_the_stop(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    for i in dynamic_range(count, U32(9)):
        found[cx.local_id] = i


def where_no_launch_comes(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    if count < 64:
        for i in dynamic_range(count, U32(99)):
            found[cx.local_id] = i


def falling(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    at = count
    while at > 3:
        found[cx.local_id] = at
        at = at - 1


def by_steps_of_data(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    for i in dynamic_range(count, U32(64), data[0]):
        found[cx.local_id] = i


def shifted_in_two_widths(cx: Invocation, data: Storage[U32], found: Storage[U32], count: U32) -> None:
    """A shift counts modulo the width: one by 40 is one by 8 in 32 bits."""
    start = cx.global_id * 256
    high = U32(U64(start) >> 40)
    found[start >> 40] = data[high]


def findings(step: Step, lanes: int | None = None) -> Ranges:
    """What is found out of a launch, with subgroups as the CPU has them or of so many lanes."""
    program = step.program
    given: dict[object, int] = {memory: buffer.count for memory, buffer in step.buffers.items()}
    given |= {parameter: int(value) for parameter, value in step.values.items()}
    return Ranges(program, step.groups, lanes or subgroup_size(program.group_size), given)


def needed(step: Step, lanes: int | None = None) -> int:
    """How many accesses are to be tested."""
    return len(findings(step, lanes).unproven)


def bounds_needed(
    function: Callable[..., None], lengths: tuple[int, int], group_size: int, count: int, lanes: int | None = None
) -> int:
    """How many accesses are to be tested, of one group."""
    data: Buffer[U32] = Buffer("data", U32, lengths[0], Role.INPUT)
    found: Buffer[U32] = Buffer("found", U32, lengths[1], Role.OUTPUT)
    return needed(specialise(kernel(function).launch(Grid(1, group_size), data, found, U32(count))), lanes)


def test_a_branch_that_no_launch_takes_is_not_tested() -> None:
    assert bounds_needed(in_one_branch, (64, 32), 32, 63) == 0
    assert bounds_needed(in_one_branch, (64, 32), 32, 64) == 0
    assert bounds_needed(in_one_branch, (64, 32), 32, 65) == 2


@pytest.mark.parametrize(
    ("function", "most"),
    [
        (strided, 2), (until_told, None), (by_steps_of_data, None), (once_if_told, 1), (rising, 61), (falling, 61),
        (rising_from_nothing, 64), (rising_beside_another, 64),
        (never_rising, 1), (as_it_was, None), (from_beyond_the_stop, 0),
        (where_no_launch_comes, 0),
    ],
)  # fmt: skip
def test_how_often_loops_run(function: Callable[..., None], most: int | None) -> None:
    """One that may never end runs more often than can be counted, and asks whether it is interrupted."""
    data: Buffer[U32] = Buffer("data", U32, 64, Role.INPUT)
    found: Buffer[U32] = Buffer("found", U32, 32, Role.OUTPUT)
    step = specialise(kernel(function).launch(Grid(1, 32), data, found, U32(64)))
    (loop,) = (one for one in statements_in(step.program.body) if isinstance(one, ir.For | ir.Loop))
    rounds = findings(step).trip_counts[id(loop)]
    assert rounds == most if most is not None else rounds > 1 << 64


def test_a_literal_index_at_the_very_end_is_tested() -> None:
    assert bounds_needed(at_literals, (64, 32), 32, 0) == 0
    assert bounds_needed(at_literals, (63, 32), 32, 0) == 1
    assert bounds_needed(at_literals, (63, 31), 32, 0) == 2


def test_equal_numbers_of_two_widths_are_shifted_apart() -> None:
    assert bounds_needed(shifted_in_two_widths, (1, 32), 32, 0) == 0
    assert bounds_needed(shifted_in_two_widths, (1, 31), 32, 0) == 1


def test_groups_that_no_subgroup_divides() -> None:
    """The last subgroup has fewer lanes than the others."""
    for size in (1, 5, 48, 80):
        assert bounds_needed(in_uneven_groups, (size, size), size, 0, lanes=32) == 0
        assert bounds_needed(in_uneven_groups, (size - 1, size), size, 0, lanes=32) == 1
        assert bounds_needed(in_uneven_groups, (size, size - 1), size, 0, lanes=32) == 1


def test_a_loop_is_within_its_start_and_its_stop() -> None:
    assert bounds_needed(from_a_start, (32, 32), 32, 32) == 0
    assert bounds_needed(from_a_start, (31, 32), 32, 32) == 1  # beyond the end
    assert bounds_needed(from_a_start, (32, 32), 32, 31) == 1  # before the start


@pytest.mark.parametrize("function", [searched, strided, masked, kept, reversed_to])
def test_what_a_launch_rules_out_is_not_tested(
    function: Callable[[Invocation, Storage[U32], Storage[U32], U32], None],
) -> None:
    data: Buffer[U32] = Buffer("data", U32, 64, Role.INPUT)
    found: Buffer[U32] = Buffer("found", U32, 32, Role.OUTPUT)
    launch = kernel(function).launch(Grid(1, 32), data, found, U32(64))
    assert needed(specialise(launch)) == 0
    shorter: Buffer[U32] = Buffer("found", U32, 31, Role.OUTPUT)
    assert needed(specialise(kernel(function).launch(Grid(1, 32), data, shorter, U32(64)))) == 1


LENGTHS = (1, 2, 100, 2048, 5000, 70_001)
_UP, _U4 = SortOrder.ASCENDING, key_for("u4")
SCHEDULES: dict[str, Callable[[int], Schedule]] = {
    "bitonic": lambda n: bitonic_sort(_U4, 1, n, _UP, BitonicPolicy()),
    "radix": lambda n: radix_sort(Batch(_U4, 1, n, _UP), RadixPolicy(strand=8), 32),
    "reduce": lambda n: reduce_rows(Sum(number_for("f4")), 1, n, ReducePolicy()),
    "reduce blocks": lambda n: reduce_rows(Sum(number_for("f4")), 1, n, ReducePolicy(totals=Totals.ONE)),
    "reduce columns": lambda n: reduce_axis(Sum(number_for("f4")), Layout(2, n, 3, 3 * n, 3, 1), ReducePolicy()),
    "scan columns": lambda n: scan_axis(
        Sum(number_for("f4")), Layout(2, n, 3, 3 * n, 3, 1), ScanKind.INCLUSIVE, ScanPolicy()
    ),
    "scan": lambda n: scan_rows(Sum(number_for("f4")), 1, n, ScanKind.INCLUSIVE, ScanPolicy()),
}
# Where the lesser element of a pair lies, where sorted elements go, where a plane's share of a column is left, and that
# the one rank of a short column has none before it, is more than intervals can tell.
TESTED = {"bitonic_step": 2, "radix_scatter": 2, "reduce_columns": 1, "scan_shares": 1}


@pytest.mark.parametrize("name", SCHEDULES)
def test_own_schedules_are_proven(name: str) -> None:
    for length in LENGTHS:
        for launch in SCHEDULES[name](length).launches:
            step = specialise(launch)
            assert needed(step) <= TESTED.get(step.program.name, 0), f"{step.program.name} of {length}"


@pytest.mark.parametrize("name", SCHEDULES)
def test_on_cuda_own_kernels_are_as_they_stand(name: str) -> None:
    safety = Safety(lambda size: 32, trusts_own=True)
    for launch in SCHEDULES[name](5000).launches:
        step = specialise(launch)
        assert safety.safe(step) is step


# -- the text ---------------------------------------------------------------------------------------------------


def stray_step() -> Step:
    data, found = Buffer("data", U32, 4, Role.INOUT), Buffer("found", U32, 4, Role.INOUT)
    small, pairs = Buffer("small", U8, 4, Role.INOUT), Buffer("pairs", bounds_cases.Pair, 4, Role.INOUT)
    orders = Buffer("orders", U32, 4, Role.INOUT)
    return specialise(bounds_cases.stray.launch(Grid(1, 32), data, small, pairs, Workgroup(U32, 6), orders, found))


def test_cuda_tests_what_users_write_and_takes_their_lengths() -> None:
    step = Safety(lambda size: 32, trusts_own=True).safe(stray_step())
    assert {memory.name for memory in kernel_text(step.program).lengths} == {"data", "small", "pairs"}
    assert ".entry gpusort_stray(" in compile_ptx(step.program)


# -- literal indices ----------------------------------------------------------------------------------------------


@kernel
def beyond_registers(cx: Invocation, shared: Workgroup[U32], data: Storage[U32]) -> None:
    mine: Registers[U32] = Registers(U32, 4)
    mine[4] = U32(1)


@kernel
def beyond_workgroup(cx: Invocation, shared: Workgroup[U32], data: Storage[U32]) -> None:
    data[0] = shared[9]


@kernel
def beyond_atomic(cx: Invocation, shared: Workgroup[U32], data: Storage[U32]) -> None:
    shared.atomic_add(9, U32(1))


@kernel
def beyond_unrolled(cx: Invocation, shared: Workgroup[U32], data: Storage[U32]) -> None:
    for i in range(10):
        shared[i] = U32(i)


@pytest.mark.parametrize(
    ("beyond", "length"),
    [(beyond_registers, 4), (beyond_workgroup, 9), (beyond_atomic, 9), (beyond_unrolled, 9)],
)
def test_a_literal_index_outside_is_refused(beyond: Kernel[[Workgroup[U32], Storage[U32]]], length: int) -> None:
    data: Buffer[U32] = Buffer("data", U32, 4, Role.INOUT)
    told = f"expected an index below {length}, the array's length, found {length}, e.g. `{length - 1}`"
    with pytest.raises(KernelError, match=re.escape(told)):
        specialise(beyond.launch(Grid(1, 1), Workgroup(U32, 9), data))


def loop_beyond(cx: Invocation, data: Storage[U32]) -> None:
    mine: Registers[U32] = Registers(U32, 4)
    for i in dynamic_range(U32(0), U32(8)):
        if i < 4:
            mine[i] = data[i]
    for i in dynamic_range(U32(0), U32(4)):
        data[i + 4] = mine[i]


def test_wgsl_names_no_element_that_registers_lack() -> None:
    """It is refused where the index is known, even if it is never used."""
    data: Buffer[U32] = Buffer("data", U32, 8, Role.INOUT)
    program = specialise(kernel(loop_beyond).launch(Grid(1, 1), data)).program
    text = lower_to_wgsl(program, in_registers=True)[1].text
    assert set(re.findall(r"registers_\d\[(\w+)\]", text)) == {"0u", "1u", "2u", "3u"}


def test_a_loop_beyond_registers(target: str) -> None:
    data: Buffer[U32] = Buffer("data", U32, 8, Role.INOUT)
    array = np.arange(8, dtype=np.uint32)
    gpusort.target(target).run(Schedule((data,), (kernel(loop_beyond).launch(Grid(1, 1), data),)), {"data": array})
    assert array.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
