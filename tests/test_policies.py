"""Policies that fit no target, or make no sense: NumPy's result, or an error before anything is written."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
import pytest

import gpusort
from gpusort import Capability, CapabilityError, InvalidArgumentError, Limits, UnsupportedTypeError
from gpusort.algos.batch import Batch
from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.bitonic_rows import bitonic_rows_sort
from gpusort.algos.fit import fitted_radix
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.algos.partition import partition
from gpusort.algos.radix_rows import radix_rows_sort
from gpusort.algos.radix_serial import SerialRadixPolicy, serial_radix_sort
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.reduce_axis import reduce_rows
from gpusort.algos.scan import scan_rows
from gpusort.algos.sorts import BitonicRows, Radix, RadixRows, fitted
from gpusort.algos.table import PAIRS, SORTS
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.machine import TargetInfo
from gpusort.targets.registry import target as target_of
from gpusort.targets.simulator.target import Simulator
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.indices import Placement, ScanKind, SortOrder
from gpusort.types.invocation import Invocation
from gpusort.types.keys import SortableKey
from gpusort.types.memory import Storage
from gpusort.types.monoids import Sum
from gpusort.types.needs import Needs, Policy
from gpusort.types.params import BitonicPolicy, RadixPolicy, ReducePolicy, RowsPolicy, ScanPolicy, Totals
from gpusort.types.scalars import U32
from tests.covering import InTurn
from tests.reference import Array, assert_same_bits, sample, sorted_by_numpy

REFUSED = (CapabilityError, InvalidArgumentError, UnsupportedTypeError)
UP = SortOrder.ASCENDING
Made = Callable[..., Any]


# -- what makes no sense anywhere -------------------------------------------------------------------------

POLICIES: tuple[Any, ...] = (
    BitonicPolicy,
    RadixPolicy,
    ReducePolicy,
    ScanPolicy,
    HostSortPolicy,
    BitonicRows,
    RadixRows,
)


def fields_of(made: Any, kind: str) -> list[str]:
    return [field.name for field in attrs.fields(made) if field.type == kind]


@pytest.mark.parametrize("made", POLICIES)
def test_numbers_that_make_no_sense_are_named(made: Any) -> None:
    wrong: dict[object, type[Exception]] = {
        -1: InvalidArgumentError, 1 << 80: InvalidArgumentError, "8": UnsupportedTypeError, 2.5: UnsupportedTypeError,
        None: UnsupportedTypeError, True: UnsupportedTypeError,
    }  # fmt: skip
    if made is not HostSortPolicy:  # whose thresholds may be none at all
        wrong[0] = InvalidArgumentError
    for name in fields_of(made, "int"):
        for value, error in wrong.items():
            options: Any = {name: value}
            with pytest.raises(error, match=f"{made.__name__}: {name}: expected .* int.*found|power of two.*found"):
                made(**options)


@pytest.mark.parametrize("made", [RadixPolicy, ReducePolicy, ScanPolicy, RadixRows])
def test_only_true_and_false_are_truths(made: Any) -> None:
    for name in fields_of(made, "bool"):
        for value in (0, 1, None, "no", np.True_):
            options: Any = {name: value}
            with pytest.raises(UnsupportedTypeError, match=f"{made.__name__}: {name}: expected True or False"):
                made(**options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BitonicPolicy(tile=100), "tile: expected a power of two from 2 to .*, found 100"),
        (lambda: BitonicPolicy(group_size=96), "group_size: expected a power of two"),
        (lambda: RowsPolicy(3, 4), "lanes: expected a power of two"),
        (lambda: RowsPolicy(8, 4, 4), "group_size: expected at least the 8 lanes of a row, found 4"),
        (lambda: BitonicRows(items=64), "items: expected at most most_items=32, found 64"),
        (lambda: BitonicRows(group_size=16), "group_size: expected at least lanes=32, found 16"),
        (lambda: RadixRows(most_group=128), "least_group: expected at most most_group=128, found 256"),
        (lambda: RadixRows(most_group=300), "most_group: expected a power of two"),
        (lambda: RadixRows(least_group=64), "group_size: expected at least 256, an invocation for each of the 2"),
        (lambda: RadixPolicy(group_size=128), "group_size: expected at least 256, an invocation for each of the 2"),
        (lambda: RadixPolicy(subgroups=False, strand=64), "strand: expected at most 32, the bits of a mask"),
        (lambda: RadixPolicy(subgroups=False, strand=24), "strand: .* a divisor of group_size=256, found 24"),
        (lambda: RadixRows(subgroups=False, strand=24), "strand: expected a power of two without subgroups"),
        (lambda: RadixPolicy(digit_bits=1, sweeps=True), "digit_bits: expected at least 2 in a sweep"),
        (lambda: RadixPolicy(digit_bits=13), "digit_bits: expected an int from 1 to 12, found 13"),
        (lambda: HostSortPolicy(block=0), "HostSortPolicy: block: expected an int from 1"),
        (lambda: HostSortPolicy(most_share=1.5), "HostSortPolicy: most_share: expected a number from 0 to 1"),
    ],
)
def test_numbers_that_do_not_go_together_are_named(make: Made, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_numpys_integers_become_pythons_own() -> None:
    policy = RadixPolicy(np.int64(4), np.uint16(64), items=np.int8(2))
    assert policy == RadixPolicy(4, 64, items=2)
    assert {type(policy.digit_bits), type(policy.group_size), type(policy.items)} == {int}


def test_what_is_no_policy_is_refused() -> None:
    x = np.arange(9, dtype=np.uint32)
    wrong: Any = 256
    with pytest.raises(UnsupportedTypeError, match="Radix: policy: expected a RadixPolicy, found 256"):
        Radix(wrong)
    with pytest.raises(UnsupportedTypeError, match="policy: expected a ReducePolicy or None, found 256"):
        gpusort.reduce(x, Sum(number_for("u4")), policy=wrong)
    with pytest.raises(UnsupportedTypeError, match="policy: expected a ScanPolicy or None, found 256"):
        gpusort.scan(x, Sum(number_for("u4")), policy=wrong)


# -- what does not fit a target ---------------------------------------------------------------------------

# Strands, lanes and workgroups as a card has them, and kernels that compile fast.
CARDS: dict[str, gpusort.SortAlgorithm] = {
    "radix": Radix(RadixPolicy(4, 64, 2)),
    "radix, wider than any": Radix(RadixPolicy(4, 64, 2, 64)),
    "sweep": Radix(RadixPolicy(4, 64, 2, count_group=64, count_items=2, sweeps=True)),
    "portable": Radix(RadixPolicy(4, 48, 2, 3, subgroups=False)),
    "rows": RadixRows(2, 64, 256, digit_bits=4),
    "network": BitonicRows(group_size=64),
}
TINY: dict[str, gpusort.SortAlgorithm] = {
    "radix": Radix(RadixPolicy(2, 16, 1)), "rows": RadixRows(2, 16, 32, digit_bits=2),
    "network": BitonicRows(32, 2, 4, 32),
}  # fmt: skip


@pytest.mark.parametrize("name", CARDS)
def test_a_sort_made_for_a_card_sorts_on_every_target(target: str, name: str, in_turn: InTurn) -> None:
    algorithm = (TINY if target == "python" else CARDS).get(name)
    if algorithm is None:
        pytest.skip("plain Python takes minutes for these")
    if target == "cpu" and name not in ("radix", "rows", "network"):
        pytest.skip("each kernel compiles for seconds there")
    lengths = (3, 9) if target == "python" else (100,) if target == "cpu" else (3, 100)
    for length, descending in in_turn(lengths, (False,) if target == "cpu" else (False, True)):
        x = sample("i4", length, seed=length)
        if descending:
            assert_same_bits(gpusort.sort(x, descending=True, algorithm=algorithm, target=target), np.sort(x)[::-1])
        else:
            gpusort.sort_inplace(found := x.copy(), algorithm=algorithm, target=target)
            assert_same_bits(found, np.sort(x))


def schedule_for(name: str, lanes: int) -> Schedule:
    """Made by hand, for subgroups of so many lanes, or for workgroups that are not made of such."""
    radix, number = RadixPolicy(4, 64, 2, lanes), number_for("u4")
    match name:
        case "radix":
            return radix_sort(Batch(key_for("u4"), 1, 99, UP), radix, 32)
        case "radix rows":
            return radix_rows_sort(Batch(key_for("u4"), 3, 30, UP), radix, 32)
        case "bitonic rows":
            return bitonic_rows_sort(Batch(key_for("u4"), 3, 2 * lanes - 1, UP), RowsPolicy(lanes, 2, 64))
        case "reduce":
            return reduce_rows(Sum(number), 1, 99, ReducePolicy(lanes + 3, 2, subgroups=True))
        case _:
            return scan_rows(Sum(number), 1, 99, ScanKind.INCLUSIVE, ScanPolicy(lanes + 3, 3, subgroups=True))


def arrays_of(schedule: Schedule) -> dict[str, Array]:
    return {b.name: np.full(b.count, 7, b.dtype) for b in schedule.buffers if b.role is not Role.SCRATCH}


@pytest.mark.parametrize("name", ["radix", "radix rows", "bitonic rows", "reduce", "scan"])
def test_a_schedule_made_for_other_subgroups_is_refused_before_it_writes(target: str, name: str) -> None:
    info = target_of(target).info
    schedule = schedule_for(name, 2 * info.limits.subgroup_size)
    arrays = arrays_of(schedule)
    with pytest.raises(CapabilityError, match=r"kernel '\w+' (needs subgroup|is made for subgroups|takes workgroups)"):
        target_of(target).run(schedule, arrays)
    assert all((array == 7).all() for array in arrays.values())


def test_a_sweep_is_refused_where_nothing_promises_progress(target: str) -> None:
    info = target_of(target).info
    if target == "simulator" or Capability.FORWARD_PROGRESS in info.capabilities:
        pytest.skip(f"target {target!r} runs sweeps")
    policy = RadixPolicy(4, 64, 2, 8, subgroups=False, sweeps=True)
    arrays = {"data": np.arange(99, dtype=np.uint32), "results": np.full(99, 7, np.uint32)}
    with pytest.raises(CapabilityError, match="needs forward progress between workgroups"):
        target_of(target).run(radix_sort(Batch(key_for("u4"), 1, 99, UP), policy, 32), arrays)
    assert (arrays["results"] == 7).all()


@attrs.frozen
class Pairs(Policy):
    """A user's own, whose kernel swaps neighbours over lanes."""

    lanes: int

    @property
    def needs(self) -> Needs:
        return Needs(self.lanes)


@kernel
def swap_pairs(cx: Invocation, data: Storage[U32], policy: Pairs) -> None:
    data[cx.local_id] = cx.shuffle_xor(data[cx.local_id], U32(policy.lanes // 2))


def test_a_kernel_of_ones_own_says_what_it_needs() -> None:
    data = np.arange(16, dtype=np.uint32)
    buffer = Buffer("data", U32, 16, Role.INOUT)
    for lanes in (2, 16):
        schedule = Schedule((buffer,), (swap_pairs.launch(Grid(1, 16), buffer, Pairs(lanes)),))
        if lanes <= 8:
            Simulator().run(schedule, {"data": data})
        else:
            with pytest.raises(CapabilityError, match="'swap_pairs' is made for subgroups of at least 16 lanes"):
                Simulator().run(schedule, {"data": data})
    assert data.tolist() == [number ^ 1 for number in range(16)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: radix_sort(Batch(key_for("u4"), 1, 9, UP), RadixPolicy(), 0), "key_bits: expected 1 to the 32 bits"),
        (lambda: radix_sort(Batch(key_for("u4"), 1, 9, UP), RadixPolicy(), 33), "key_bits: expected 1 to the 32 bits"),
        (
            lambda: radix_sort(Batch(key_for("u4"), 1, 1 << 32, UP), RadixPolicy(), 32),
            "no more than 4294967295 elements",
        ),
        (lambda: radix_rows_sort(Batch(key_for("u4"), 1, 4097, UP), RadixPolicy(), 32), "at most the 4096 elements"),
        (lambda: bitonic_rows_sort(Batch(key_for("u4"), 1, 65, UP), RowsPolicy(8, 8)), "8 lanes with 8 elements each"),
        (lambda: reduce_rows(Sum(number_for("u4")), -1, 9, ReducePolicy()), "outer: expected .*found -1"),
        # The rows of whole workgroups are counted too.
        (lambda: bitonic_rows_sort(Batch(key_for("u4"), (1 << 32) - 1, 1, UP), RowsPolicy(8, 8)), "no more than 42949"),
        (lambda: bitonic_sort(key_for("u4"), 2, 1 << 31, UP, BitonicPolicy()), "no more than 4294967295 elements"),
        (
            lambda: serial_radix_sort(Batch(key_for("u4"), 2, 1 << 31, UP), SerialRadixPolicy(), range(32)),
            "no more than 4294967295 elements",
        ),
        (lambda: partition(key_for("u4"), 9, 1 << 32, UP, ScanPolicy()), "no more than 4294967295 elements"),
        (lambda: partition(key_for("u4"), 1 << 32, 9, UP, ScanPolicy()), "no more than 4294967295 elements"),
    ],
)
def test_a_schedule_that_no_kernel_could_count_is_refused(make: Made, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


# -- any algorithm, any policy, any target ----------------------------------------------------------------


class Played(Simulator):
    """Machines that there may be."""

    def __init__(self, lanes: int, limits: Mapping[str, int], capabilities: frozenset[Capability]) -> None:
        super().__init__(lanes)
        own = attrs.evolve(self.info.limits, **limits)
        self.info = attrs.evolve(self.info, limits=own, capabilities=capabilities)


WILD = (0, -1, 1, 3, 7, 31, 33, 100, 257, 1000, 1 << 20, 1 << 40, True, None, "8", 2.5, np.int64(16))


class Drawn:
    """All that one case is made of."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *numbers: int) -> Any:
        return self.random.choice(WILD if self.random.random() < 0.04 else numbers)

    def flag(self) -> bool:
        return self.random.random() < 0.5

    def machine(self) -> Played:
        progress = frozenset({Capability.FORWARD_PROGRESS}) if self.flag() else frozenset[Capability]()
        subgroups = frozenset({Capability.SUBGROUPS}) if self.random.random() < 0.7 else frozenset[Capability]()
        small = {
            "group_size": self.random.choice((1, 2, 8, 48, 64, 256, 1024)),
            "groups": self.random.choice((1, 4, 1 << 20)),
            "workgroup_bytes": self.random.choice((16, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10)),
        }  # fmt: skip
        lanes = self.random.choice((1, 2, 4, 8, 16, 32, 64))
        return Played(lanes, small if self.flag() else {}, progress | subgroups | {Capability.FLOAT64})

    def radix(self) -> RadixPolicy:
        return RadixPolicy(
            self.one(1, 2, 3, 4, 5, 6), self.one(64, 64, 96, 100, 128), self.one(1, 2, 3, 5),
            self.one(1, 2, 4, 8, 16, 32), self.flag(), self.one(1, 2, 4), self.one(1, 16, 100, 256),
            self.one(1, 2, 5), self.one(1, 2, 3, 8), self.one(1, 2, 100), self.flag(),
        )  # fmt: skip

    def sort(self) -> gpusort.SortAlgorithm:
        match self.random.randrange(4):
            case 0:
                tile, size = self.one(2, 4, 64, 512), self.one(1, 2, 32, 128)
                return gpusort.Bitonic(BitonicPolicy(tile, size, self.one(1, 2, 3)))
            case 1:
                return BitonicRows(self.one(1, 2, 8, 32, 64), self.one(1, 2, 4), self.one(4, 8, 32), self.one(64, 128))
            case 2:
                least, strand = self.one(16, 32, 48, 100), self.one(1, 4, 32, 64)
                return RadixRows(self.one(1, 3, 8), least, self.one(128, 256), strand, self.one(1, 2, 4), self.flag())
            case _:
                return Radix(self.radix())


@pytest.mark.parametrize("seed", range(50))
def test_any_sort_on_any_machine(seed: int) -> None:
    drawn = Drawn(seed)
    machine, descending = drawn.machine(), drawn.flag()
    dtype = drawn.random.choice(("?", "u1", "i2", "u4", "f4", "i8", "f8", "M8[s]"))
    x = sample(dtype, (drawn.random.choice((1, 1, 3)), drawn.random.choice((2, 3, 33, 100, 255))), seed)
    found, expected, said = x.copy(), sorted_by_numpy(x, descending=descending), ""
    try:
        algorithm = drawn.sort()
        gpusort.sort_inplace(found, descending=descending, stable=True, algorithm=algorithm, target=machine)
    except REFUSED as refusal:
        expected, said = x, str(refusal)
    assert_same_bits(found, expected)
    assert "kernel" not in said, "a policy is fitted before a target has to refuse it"


@pytest.mark.parametrize("seed", range(20))
def test_any_reduction_and_scan_on_any_machine(seed: int) -> None:
    drawn = Drawn(1000 + seed)
    machine, total, said = drawn.machine(), Sum(number_for("u8")), ""
    shape, axis = (drawn.random.choice((1, 3)), drawn.random.choice((1, 2, 33, 600))), drawn.random.choice((0, 1))
    x = sample("u8", shape[:: 1 if axis else -1], seed)
    if drawn.flag():  # as many columns as rows have elements
        x = np.asfortranarray(x)
    try:
        numbers: Any = (
            drawn.one(1, 3, 64, 64, 100), drawn.one(1, 3, 8), drawn.one(1, 5, 999), drawn.flag(), drawn.one(1, 64)
        )  # fmt: skip
        both: Any = {"strand": drawn.one(1, 2, 8, 64), "side_by_side": drawn.flag(), "alone": drawn.flag()}
        own: Any = {**both, "totals": drawn.random.choice(list(Totals)), "short": drawn.one(1, 100)}
        reduction, scan = ReducePolicy(*numbers, **own), ScanPolicy(*numbers, **both)
        sums = gpusort.reduce(x, total, axis=axis, target=machine, policy=reduction)
        running = gpusort.scan(x, total, axis=axis, target=machine, policy=scan)
    except REFUSED as refusal:
        said = str(refusal)
    else:
        np.testing.assert_array_equal(np.asarray(sums).view("u8"), x.sum(axis=axis))
        np.testing.assert_array_equal(np.asarray(running), x.cumsum(axis=axis))
    assert "kernel" not in said, "a policy is fitted before a target has to refuse it"


@pytest.mark.parametrize("seed", range(20))
def test_any_schedule_made_by_hand_on_any_machine(seed: int) -> None:
    drawn = Drawn(2000 + seed)
    machine, key = drawn.machine(), key_for("u4")
    x = sample("u4", drawn.random.choice((1, 33, 200)), seed)
    results = np.full(len(x), 7, np.uint32)
    try:
        policy = drawn.radix()
        if drawn.flag():
            schedule = radix_sort(Batch(key, 1, len(x), UP), policy, 32)
        else:
            schedule = radix_rows_sort(Batch(key, 1, len(x), UP), policy, 32)
        machine.run(schedule, {"data": x, "results": results})
    except REFUSED:
        assert (results == 7).all()
    else:
        assert_same_bits(results, np.sort(x))


# -- what was measured stays what it is -------------------------------------------------------------------

_ALL = frozenset(Capability)
MEASURED = {
    "cpu": TargetInfo("cpu", "a processor", "none", Limits(1024, 1 << 20, 1 << 31, 1 << 36, 64, 8, 8), _ALL),
    "cuda": TargetInfo("cuda", "a card", "none", Limits(1024, 227 << 10, (1 << 31) - 1, 1 << 36, 256, 32, 32), _ALL),
    "wgsl": TargetInfo("wgsl", "a card", "none", Limits(1024, 48 << 10, 1 << 31, 1 << 31, 8, 32, 32), _ALL),
}
UNSIGNED = {8: "u1", 16: "u2", 32: "u4", 64: "u8"}


def test_the_lines_of_the_table_fit_the_cards_they_were_measured_on() -> None:
    for line in SORTS:
        for bits in line.bits:
            key, length = key_for(UNSIGNED[bits]), min(line.lengths.stop - 1, 1 << 24)
            assert is_as_measured(fitted(line.algorithm, key, length, MEASURED[line.target]), line.algorithm), line
    for pair_line in PAIRS:
        for bits, dtype in UNSIGNED.items():
            if bits + 32 in pair_line.bits:
                length = min(pair_line.lengths.stop - 1, 1 << 24)
                found = pair_line.algorithm.fitted(key_for(dtype), length, MEASURED[pair_line.target], 4)
                assert is_as_measured(found, pair_line.algorithm), pair_line


def is_as_measured(found: object, chosen: object) -> bool:
    """The longest rows that workgroup memory holds leave little of it for counters."""
    if isinstance(found, RadixRows) and isinstance(chosen, RadixRows):
        return found.digit_bits >= 6 and attrs.evolve(found, digit_bits=chosen.digit_bits) == chosen
    return found == chosen


def test_a_smaller_card_gets_fewer_copies_and_a_target_without_subgroups_masks() -> None:
    policy, key = RadixPolicy(8, 384, 16, 32, True, 4, 1024, 8, 32, 132, sweeps=True), key_for("u4")
    small = attrs.evolve(MEASURED["cuda"], limits=attrs.evolve(MEASURED["cuda"].limits, workgroup_bytes=99 << 10))
    assert fitted_radix(policy, key, 32, small) == attrs.evolve(policy, copies=24)
    none = attrs.evolve(small, capabilities=frozenset({Capability.FLOAT64}))
    found = fitted_radix(policy, key, 32, none)
    assert (found.subgroups, found.sweeps, found.strand, found.group_size) == (False, False, 32, 384)


@pytest.mark.parametrize(("largest", "bits"), [(2, 1), (3, 1), (4, 2), (15, 3), (16, 4), (1024, 4)])
def test_digits_have_no_more_values_than_a_workgroup_has_invocations(largest: int, bits: int) -> None:
    limits = attrs.evolve(MEASURED["cuda"].limits, group_size=largest)
    policy = fitted_radix(RadixPolicy(4, 64, 2), key_for("u4"), 32, attrs.evolve(MEASURED["cuda"], limits=limits))
    assert policy.digit_bits == bits
    assert 1 << bits <= policy.group_size <= largest


@pytest.mark.parametrize(
    ("nbytes", "length", "items"),
    [(1024, 60, 1), (1024, 100, None), (2048, 100, 2), (8192, 1000, None), (16384, 1000, 16)],
)
def test_a_tile_is_no_larger_than_the_row_where_memory_is_scarce(nbytes: int, length: int, items: int | None) -> None:
    info = attrs.evolve(MEASURED["cuda"], limits=attrs.evolve(MEASURED["cuda"].limits, workgroup_bytes=nbytes))
    rows = RadixRows(items=16, least_group=64, digit_bits=4)
    if items is None:
        with pytest.raises(CapabilityError):
            rows.fitted(key_for("u8"), length, info)
    else:
        assert rows.fitted(key_for("u8"), length, info).policy_for(length).items == items


def test_an_algorithm_that_does_not_fit_itself_is_refused_by_the_target() -> None:
    @attrs.frozen
    class Own:
        """Sorts by radix, for 32 lanes."""

        def placements(self, key: SortableKey[Any, Any], /) -> tuple[Placement, ...]:
            return (Placement.IN_PLACE,)

        def most_rows(self, length: int, groups: int, /) -> int:
            return 1

        def schedule(
            self, key: SortableKey[Any, Any], rows: int, length: int, order: SortOrder, placement: Placement, /
        ) -> Schedule:
            return radix_sort(Batch(key, 1, length, order, in_place=True), RadixPolicy(4, 64, 2, 32), 32)

    x = sample("u4", 200)
    found = x.copy()
    with pytest.raises(CapabilityError, match="is made for subgroups of at least 32 lanes"):
        gpusort.sort_inplace(found, algorithm=Own(), target="simulator")
    assert_same_bits(found, x)
    gpusort.sort_inplace(found, algorithm=Own(), target=Simulator(32))
    assert_same_bits(found, np.sort(x))

    class Elsewhere(Own):
        def placements(self, key: SortableKey[Any, Any], /) -> tuple[Placement, ...]:
            return (Placement.ELSEWHERE,)

    message = r"^parts: expected one for each buffer of the schedule, data; found data, results$"
    with pytest.raises(InvalidArgumentError, match=message):
        gpusort.sort(x, algorithm=Elsewhere(), target=Simulator(32))
