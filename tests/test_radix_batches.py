"""Many rows in one radix sort, and one row in portions, compared with NumPy exactly, in both forms."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gpusort.algos.batch import Batch
from gpusort.algos.choice import balanced, choose_pairs, choose_sort
from gpusort.algos.radix_layout import Layout
from gpusort.algos.radix_sorts import most_radix_rows, radix_sort, shared_words
from gpusort.algos.sizes import LARGEST_U32, require_countable
from gpusort.algos.sorts import Radix, RadixRows
from gpusort.algos.sweep_state import RUNS, SweepState
from gpusort.kernel.launch import Schedule
from gpusort.machine import Capability, Limits, TargetInfo
from gpusort.targets.cuda.target import CudaTarget
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.indices import Placement, SortOrder
from gpusort.types.keys import RankKey
from gpusort.types.params import MOST_COUNTED, RadixPolicy
from gpusort.types.scalars import U16, U32, U64
from tests.covering import few_cases
from tests.test_pairs import stable_order
from tests.test_radix import GROUP, ITEMS, TILE, able, in_order, policy_for, random_bits

Array = npt.NDArray[Any]
UP, DOWN = SortOrder.ASCENDING, SortOrder.DESCENDING
SHAPES = [(2, TILE), (2, TILE - 1), (3, TILE + 1), (3, 2 * TILE + 3), (7, 1), (0, 5), (5, 0)]
FEW = [(3, TILE + 2), (5, 17), (2, 2 * TILE)]


@pytest.fixture
def policy(target: str, sweeps: bool) -> RadixPolicy:
    return policy_for(target, sweeps=sweeps)


def has_form(case: Mapping[str, object]) -> bool:
    """Whether a target is one that runs the form of a case; on `cuda` all are run anyway."""
    return case["target"] == "simulator" or (case["target"] != "python" and case["sweeps"] == "portable")


def words(x: Array) -> Array:
    return x.view(f"u{x.itemsize}")


def sorted_rows(schedule: Schedule, target: str, x: Array) -> Array:
    """What a schedule makes of rows, in place or elsewhere."""
    given, found = x.copy(), np.zeros_like(x)
    arrays = {"data": words(given).reshape(-1), "results": words(found).reshape(-1)}
    in_place = len([buffer for buffer in schedule.buffers if buffer.name in arrays]) == 1
    if in_place:
        del arrays["results"]
    target_of(target).run(schedule, arrays)
    if in_place:
        return given
    np.testing.assert_array_equal(words(given), words(x))  # what is sorted is not written to
    return found


def check(found: Array, x: Array, order: SortOrder) -> None:
    expected = np.array([in_order(row, order) for row in x], x.dtype).reshape(x.shape)
    np.testing.assert_array_equal(found, expected)
    not_nan = found == found
    np.testing.assert_array_equal(words(found)[not_nan], words(expected)[not_nan])  # the zeros' signs too
    np.testing.assert_array_equal(np.sort(words(found), axis=-1), np.sort(words(x), axis=-1))  # every bit came back


def rows_of(dtype: str, rows: int, length: int) -> Array:
    """Any bits; in every third row few different ones."""
    found = [random_bits(dtype, length + row, few=row % 3 == 2)[:length] for row in range(rows)]
    return np.array(found, dtype).reshape(rows, length)


@few_cases(can=able("f2", downwards=False), pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("shape", [*SHAPES, *FEW])
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "i8"])
def test_rows_are_sorted(
    target: str, policy: RadixPolicy, dtype: str, shape: tuple[int, int], order: SortOrder
) -> None:
    x = rows_of(dtype, *shape)
    found = sorted_rows(radix_sort(Batch(key_for(dtype), *shape, order), policy, 8 * x.itemsize), target, x)
    check(found, x, order)


def test_rows_are_sorted_without_subgroups(target: str, policy: RadixPolicy) -> None:
    plain = attrs.evolve(policy, subgroups=False, strand=16)
    x = rows_of("u4", 3, TILE + 5)
    check(sorted_rows(radix_sort(Batch(key_for("u4"), 3, TILE + 5, UP), plain, 32), target, x), x, UP)


@few_cases(can=has_form, pairs=False)
@pytest.mark.parametrize("in_place", [False, True])
def test_digits_that_are_the_same_in_some_rows_or_in_all(target: str, policy: RadixPolicy, in_place: bool) -> None:
    """Masks leave some digits of four bits constant, each row with a constant of its own."""
    rows, length = 4, TILE + 7
    rng = np.random.default_rng(7)
    masks = [(0,) * 4, (0xF0, 0xF0, 0, 0xF0), (0xFF00, 0, 0, 0), (0x7FFF_FFF0,) * 4]
    for mask in masks:
        chosen = np.array(mask, np.uint32)[:, np.newaxis]
        constant = rng.integers(0, 1 << 32, (rows, 1), np.uint32)
        x = (rng.integers(0, 1 << 32, (rows, length), np.uint32) & chosen) | (constant & ~chosen)
        schedule = radix_sort(Batch(key_for("u4"), rows, length, UP, in_place=in_place), policy, 32)
        check(sorted_rows(schedule, target, x), x, UP)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    ("varies", "elsewhere", "in_place"),
    [(0, {0}, set[int]()), (0xF, {0}, {0, 1}), (0xF0F000, {3, 5}, {3, 5}), (0xFF0F000, {3, 5, 6}, {0, 3, 5, 6}),
     (0xFFF_FFFF, {*range(7)}, {*range(8)}), (0xFFFF_FFFF, {*range(8)}, {*range(8)})],
)  # fmt: skip
def test_a_sweep_runs_only_where_some_row_has_several_digits(
    rows: int, varies: int, elsewhere: set[int], in_place: set[int]
) -> None:
    """And where elements must get into the other buffer, or back from it."""
    length, policy = 2 * TILE + 3, policy_for("simulator", sweeps=True)
    rng = np.random.default_rng(varies % 1000)
    x = (rng.integers(0, 1 << 32, (rows, length), np.uint32) & np.uint32(varies)) | (
        rng.integers(0, 1 << 32, (rows, 1), np.uint32) & np.uint32(~varies & 0xFFFF_FFFF)
    )
    state = SweepState(rows, length, 8, policy)
    for expected, is_in_place in ((elsewhere, False), (in_place, True)):
        schedule = radix_sort(Batch(key_for("u4"), rows, length, UP, in_place=is_in_place), policy, 32)
        arrays = {"data": x.reshape(-1).copy(), "state": np.zeros(state.at.end, np.uint32)}
        results = arrays["data"] if is_in_place else np.zeros_like(arrays["data"])
        target_of("simulator").run(schedule, arrays if is_in_place else arrays | {"results": results})
        np.testing.assert_array_equal(results.reshape(x.shape), np.sort(x, axis=1))
        plans = arrays["state"][state.at.plans : state.at.plans + 8]
        assert {int(number) for number in np.flatnonzero(plans & RUNS)} == expected


@few_cases(can=able("u2", downwards=False), pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["u2", "f4"])
def test_places_count_from_the_start_of_each_row(
    target: str, policy: RadixPolicy, dtype: str, order: SortOrder
) -> None:
    for rows, length in FEW[:1] if target == "cpu" else FEW:
        x = rows_of(dtype, rows, length)
        schedule = radix_sort(Batch(RankKey(key_for(dtype)), rows, length, order, places=U64), policy, 8 * x.itemsize)
        places = np.zeros(x.shape, np.uint64)
        target_of(target).run(schedule, {"data": words(x).reshape(-1), "places": places.reshape(-1)})
        for row, found in zip(x, places, strict=True):
            np.testing.assert_array_equal(found, stable_order(row, order))


def test_values_go_along_in_each_row(target: str, policy: RadixPolicy) -> None:
    for rows, length in FEW:
        x = rows_of("u4", rows, length)
        values = np.random.default_rng(length).integers(0, 1 << 16, x.shape, np.uint16)
        schedule = radix_sort(Batch(key_for("u4"), rows, length, UP, value=U16), policy, 32)
        found, moved = np.zeros_like(x), np.zeros_like(values)
        arrays = {"data": x, "values": values, "results": found, "moved": moved}
        target_of(target).run(schedule, {name: array.reshape(-1) for name, array in arrays.items()})
        order = np.argsort(x, axis=-1, kind="stable")
        np.testing.assert_array_equal(found, np.take_along_axis(x, order, -1))
        np.testing.assert_array_equal(moved, np.take_along_axis(values, order, -1))


# -- portions ---------------------------------------------------------------------------------------------


@pytest.fixture
def portioned(target: str) -> RadixPolicy:
    """A policy whose status words count three tiles, as if they had no more bits."""
    if target != "simulator" and (
        target == "python" or Capability.FORWARD_PROGRESS not in target_of(target).info.capabilities
    ):
        pytest.skip(f"{target} does not promise forward progress between workgroups")
    return attrs.evolve(policy_for(target, sweeps=True), portion=3 * TILE + 5)


LONG = [3 * TILE + 5, 3 * TILE + 6, 6 * TILE, 6 * TILE + 1, 8 * TILE + 77]


@pytest.mark.parametrize(("dtype", "order"), [("u1", UP), ("f2", DOWN), ("f4", UP)])
def test_a_row_is_swept_in_portions(target: str, portioned: RadixPolicy, dtype: str, order: SortOrder) -> None:
    for length in LONG if dtype == "f2" else LONG[-2:]:
        x = random_bits(dtype, length)[np.newaxis]
        schedule = radix_sort(Batch(key_for(dtype), 1, length, order), portioned, 8 * x.itemsize)
        passes = 2 * x.itemsize
        assert len(schedule.launches) == 3 + passes * (1 if length <= portioned.portion else -(-length // (3 * TILE)))
        check(sorted_rows(schedule, target, x), x, order)


def test_places_and_values_in_portions(target: str, portioned: RadixPolicy) -> None:
    length = LONG[-1]
    x = random_bits("u4", length, few=True)
    places = np.zeros(length, np.uint64)
    schedule = radix_sort(Batch(RankKey(key_for("u4")), 1, length, DOWN, places=U64), portioned, 32)
    target_of(target).run(schedule, {"data": x, "places": places})
    np.testing.assert_array_equal(places, stable_order(x, DOWN))
    values, found, moved = np.arange(length, dtype=np.uint32), np.zeros_like(x), np.zeros(length, np.uint32)
    schedule = radix_sort(Batch(key_for("u4"), 1, length, UP, value=U32), portioned, 32)
    target_of(target).run(schedule, {"data": x, "values": values, "results": found, "moved": moved})
    np.testing.assert_array_equal(moved, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(found, np.sort(x))


@pytest.mark.parametrize("in_place", [False, True])
def test_portions_of_digits_that_are_the_same(target: str, portioned: RadixPolicy, in_place: bool) -> None:
    for mask in (0xF0, 0xFF0F00):
        x = (np.random.default_rng(mask).integers(0, 1 << 32, LONG[-1], np.uint32) & np.uint32(mask))[np.newaxis]
        schedule = radix_sort(Batch(key_for("u4"), 1, LONG[-1], UP, in_place=in_place), portioned, 32)
        check(sorted_rows(schedule, target, x), x, UP)


# -- limits -----------------------------------------------------------------------------------------------

SWEEP = RadixPolicy(8, 384, 28, count_group=1024, count_items=16, copies=32, count_groups=132, sweeps=True)
GROUPS = (1 << 31) - 1  # of a launch on CUDA


def test_no_sum_goes_beyond_32_bits() -> None:
    """Around the end of the longest rows. The scalars wrap as on a device."""
    tile, end = SWEEP.tile, LARGEST_U32
    last = end // tile
    long = SweepState(1, end, 4, SWEEP)
    assert long.at.end <= LARGEST_U32
    for layout in (attrs.evolve(long.layout(), carries=False), long.layout()):
        here = layout.tile_at(U32(last), tile)
        assert (int(here.start), int(here.remaining())) == (last * tile, end - last * tile)
        assert not here.leads() or last == 0 or layout.carries
    rows = Layout(*map(U32, (end // 3, 3, -(-(end // 3) // tile), 1024)), has_rows=True)
    here = rows.tile_at(U32(3 * int(rows.tiles) - 1), tile)
    assert (int(here.end), int(here.remaining()), int(here.first()) % tile) == (end, end // 3 % tile, 0)
    assert not here.leads()
    assert here.is_last_of_full_row()


def test_a_portion_fits_a_status_word() -> None:
    for length in (MOST_COUNTED + 1, 1 << 31, LARGEST_U32):
        state = SweepState(1, length, 4, SWEEP)
        assert state.portion_tiles * SWEEP.tile <= MOST_COUNTED, "the last tile's padding is counted, too"
        assert sum(state.sweeps()) == state.tiles
        assert state.layout().carries
        schedule = radix_sort(Batch(key_for("u4"), 1, length, UP), SWEEP, 32)
        assert [launch.grid.groups for launch in schedule.launches[3:]] == [*state.sweeps()] * 4
    assert not SweepState(1, MOST_COUNTED, 4, SWEEP).layout().carries


@pytest.mark.parametrize(
    ("length", "least", "most"),
    [
        (1, 1000, 10_000), (20_000, 2_000, 10_000), (1 << 20, 256, 1000), (1 << 26, 8, 63), (1 << 29, 1, 7),
        (MOST_COUNTED + 1, 1, 1), (LARGEST_U32, 1, 1), (LARGEST_U32 + 1, 0, 0),
    ],
)  # fmt: skip
def test_how_many_rows_one_run_takes(length: int, least: int, most: int) -> None:
    rows = most_radix_rows(SWEEP, length, GROUPS)
    assert least <= rows <= most
    if rows > 0:
        assert len(radix_sort(Batch(key_for("u8"), rows, length, UP), SWEEP, 64).launches) > 0
        assert shared_words(rows, length, 8, SWEEP) <= max(1 << 25, length)


def test_few_workgroups_of_a_launch_take_few_rows() -> None:
    portable = RadixPolicy(8, 256, 16)
    assert most_radix_rows(portable, 10 * portable.tile, 65_535) == 6553
    assert most_radix_rows(portable, 65_535 * portable.tile, 65_535) == 1
    assert most_radix_rows(portable, 65_535 * portable.tile + 1, 65_535) == 0
    for rows, length in product((1, 2, 70, 132, 133, 1000, 100_000), (100_000, 1 << 20)):
        groups = SweepState(rows, length, 4, SWEEP).counting_groups()
        assert groups % rows == 0
        assert groups <= max(rows, 4 * SWEEP.count_groups)


@pytest.mark.parametrize("rows", [2, 3, 7, 50, 131, 132, 133, 200])
@pytest.mark.parametrize("length", [5000, 100_000, 1 << 20])
def test_histograms_of_rows_are_shared_by_as_many_workgroups_as_end_first(rows: int, length: int) -> None:
    """In waves of those that run at once, each of which reads as many blocks as its share has, and is set up."""
    policy = attrs.evolve(SWEEP, count_groups=132)
    blocks = -(-length // (policy.count_group * policy.count_items))

    def duration(groups: int) -> int:
        waves = -(-rows * groups // 132)
        return waves * (-(-blocks // groups) + 1)

    each, rest = divmod(SweepState(rows, length, 4, policy).counting_groups(), rows)
    assert rest == 0
    assert duration(each) == min(duration(groups) for groups in range(1, max(1, min(blocks, 4 * 132 // rows)) + 1))


@pytest.mark.parametrize(("rows", "length"), [(1, 1000), (1, 1 << 22), (70, 100_000), (1000, 4096)])
def test_no_workgroup_clears_nothing(rows: int, length: int) -> None:
    state = SweepState(rows, length, 4, SWEEP)
    clearing = radix_sort(Batch(key_for("u4"), rows, length, UP), SWEEP, 32).launches[0].grid
    words = state.at.end - state.at.histograms
    assert (clearing.groups - 1) * clearing.group_size < words
    assert clearing.groups * clearing.group_size >= words or clearing.groups == 4 * SWEEP.count_groups


def test_what_is_refused() -> None:
    small = RadixPolicy(8, 256, 1, sweeps=True)
    with pytest.raises(InvalidArgumentError, match=r"no more than 4294967295 elements in all, found 2 rows"):
        radix_sort(Batch(key_for("u1"), 2, 1 << 31, UP), small, 8)
    with pytest.raises(InvalidArgumentError, match=r"in tiles of 256 elements shares more than 4294967295 words"):
        radix_sort(Batch(key_for("u1"), 1, LARGEST_U32, UP), small, 8)
    with pytest.raises(InvalidArgumentError, match="rows of at most 1073741823 elements, not 2 rows of 1073741"):
        radix_sort(Batch(key_for("u1"), 2, 1 << 30, UP), SWEEP, 8)
    with pytest.raises(InvalidArgumentError, match="portion: expected"):
        RadixPolicy(portion=1 << 30)


@pytest.mark.parametrize("passes", [1, 2])
def test_only_several_passes_have_memory_between_them(passes: int) -> None:
    policy = RadixPolicy(8, 256, 1)
    schedule = radix_sort(Batch(key_for("u4"), 3, 1000, UP, value=U16), policy, 8 * passes)
    counts = {buffer.name: buffer.count for buffer in schedule.buffers}
    assert [counts.get(name) for name in ("words", "spare")] == [None if passes == 1 else 3000] * 2


def test_counts_are_shared_as_far_as_kernels_number_them() -> None:
    policy = RadixPolicy(1, 2, 1, 2, subgroups=False)
    most = ((1 << 31) - 2) * policy.tile
    assert shared_words(1, most, 8, policy) == LARGEST_U32 - 1
    assert len(radix_sort(Batch(key_for("u1"), 1, most, UP), policy, 8).launches) == 3 * 8
    assert most_radix_rows(policy, most, GROUPS) == 1
    with pytest.raises(InvalidArgumentError, match="shares more than 4294967295 words"):
        radix_sort(Batch(key_for("u1"), 1, most + 1, UP), policy, 8)
    assert most_radix_rows(policy, most + 1, GROUPS) == 0


def test_as_many_elements_are_taken_as_kernels_count() -> None:
    require_countable(LARGEST_U32, 1)
    for rows, length, together in ((0, 5, 1), (5, 0, 1), (1, LARGEST_U32, 1), (LARGEST_U32, 1, 15)):
        require_countable(rows, length, together)
    for rows, length, together in ((-1, 5, 1), (5, -1, 1), (-5, -5, 1), (2, 1 << 31, 1), (LARGEST_U32, 1, 16)):
        with pytest.raises(InvalidArgumentError, match=f"no more than 4294967295 .* found {rows} rows of {length}"):
            require_countable(rows, length, together)


CARD = TargetInfo(
    "cuda", "a card", "none", Limits(1024, 227 << 10, GROUPS, 1 << 36, 256, 32, 32), frozenset(Capability)
)


@pytest.mark.parametrize(("rows", "length"), [(64, 1 << 20), (1000, 100_000), (39, 32_000), (3, 22_000), (2, 17_000)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_long_rows_are_sorted_in_one_run_by_tiles_they_fill(rows: int, length: int, dtype: str) -> None:
    key = key_for(dtype)
    for found in (choose_sort(CARD, key, rows, length), choose_pairs(CARD, key, rows, length, 4)):
        assert isinstance(found, Radix)
        assert found.policy.sweeps
        assert found.most_rows(length, GROUPS) >= rows
        tiles = -(-length // found.policy.tile)
        assert tiles * found.policy.tile < length * 1.25, found


@pytest.mark.parametrize(
    ("dtype", "rows", "longest", "longest_pairs"),
    [("f4", 1, 8192, 8192), ("f4", 2, 16_384, 16_384), ("f4", 40, 32_768, 24_576),
     ("f8", 1, 8192, 8192), ("f8", 2, 8192, 8192), ("f8", 40, 20_480, 16_384)],
)  # fmt: skip
def test_rows_that_workgroup_memory_holds_are_sorted_by_one_launch(
    dtype: str, rows: int, longest: int, longest_pairs: int
) -> None:
    key = key_for(dtype)
    for length in (1025, longest, longest + 1, longest_pairs, longest_pairs + 1):
        chosen, pairs = choose_sort(CARD, key, rows, length), choose_pairs(CARD, RankKey(key), rows, length, 4)
        assert pairs is not None
        schedules = (
            (longest, chosen.schedule(key, rows, length, UP, Placement.ELSEWHERE)),
            (longest_pairs, pairs.sort(Batch(RankKey(key), rows, length, UP, places=U64))),
        )
        for most, schedule in schedules:
            assert (len(schedule.launches) == 1) == (length <= most)


@pytest.mark.parametrize("kib", [48, 64, 99, 163, 227])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_no_card_sorts_rows_by_digits_of_few_bits(kib: int, dtype: str) -> None:
    """Where a row leaves no room for counters, a sweep of global memory takes fewer passes."""
    card, key = attrs.evolve(CARD, limits=attrs.evolve(CARD.limits, workgroup_bytes=kib << 10)), key_for(dtype)
    for rows, length in product((1, 2, 50), (1025, 4096, 8192, 10_000, 16_384, 20_480, 24_576, 32_768)):
        for found in (choose_sort(card, key, rows, length), choose_pairs(card, RankKey(key), rows, length, 4)):
            assert not isinstance(found, RadixRows) or found.digit_bits >= 6


def test_tiles_are_made_smaller_for_short_rows_alone() -> None:
    assert balanced(Radix(SWEEP), 22_000).policy == attrs.evolve(SWEEP, items=20)
    assert balanced(Radix(SWEEP), 2 * SWEEP.tile) == Radix(SWEEP)
    assert balanced(Radix(SWEEP), 1 << 20) == Radix(SWEEP)
    one, many = (choose_sort(CARD, key_for("u4"), rows, 22_000_000 // rows) for rows in (1, 1000))
    assert one == Radix(SWEEP) != many


# -- on a card --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "length"), [(64, 1 << 16), (300, 20_000), (33, 22_001), (500, 4096), (70, 8193)])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_rows_as_the_table_sorts_them_on_a_card(real_card: CudaTarget, dtype: str, rows: int, length: int) -> None:
    key, info = key_for(dtype), real_card.info
    x = rows_of(dtype, rows, length)
    sort = choose_sort(info, key, rows, length)
    for order in SortOrder:
        for placement in sort.placements(key):
            check(sorted_rows(sort.schedule(key, rows, length, order, placement), "cuda", x), x, order)
        pairs = choose_pairs(info, key, rows, length, 4)
        assert pairs is not None
        places = np.zeros(x.shape, np.uint64)
        schedule = pairs.sort(Batch(RankKey(key), rows, length, order, places=U64))
        real_card.run(schedule, {"data": words(x).reshape(-1), "places": places.reshape(-1)})
        np.testing.assert_array_equal(places, np.array([stable_order(row, order) for row in x]))


@pytest.mark.parametrize("tiles", [1, 3, 1000])
def test_portions_on_a_card(real_card: CudaTarget, tiles: int) -> None:
    """As if a status word counted few tiles: the next launch goes on where one ended."""
    length = 1 << 22
    x = random_bits("u4", length)[np.newaxis]
    policy = attrs.evolve(SWEEP, portion=tiles * SWEEP.tile + 1)
    check(sorted_rows(radix_sort(Batch(key_for("u4"), 1, length, UP), policy, 32), "cuda", x), x, UP)


@pytest.mark.parametrize("length", [(1 << 30) + 7, LARGEST_U32])
def test_the_longest_rows_on_a_card(real_card: CudaTarget, length: int) -> None:
    """Of bytes, which are quickly made and counted; the table's own sort of them."""
    key = key_for("u1")
    sort = choose_sort(real_card.info, key, 1, length)
    assert isinstance(sort, Radix)
    assert sort.policy.sweeps
    x = np.random.default_rng(1).integers(0, 256, length, np.uint8)
    found = np.zeros(length, np.uint8)
    real_card.run(sort.schedule(key, 1, length, UP, Placement.ELSEWHERE), {"data": x, "results": found})
    counts = np.bincount(x[: 1 << 20], minlength=256)  # in pieces: NumPy's own counting takes 8 bytes an element
    for start in range(1 << 20, length, 1 << 20):
        counts += np.bincount(x[start : start + (1 << 20)], minlength=256)
    np.testing.assert_array_equal(found, np.repeat(np.arange(256, dtype=np.uint8), counts))


def test_group_and_items_are_those_of_the_other_tests() -> None:
    assert TILE == GROUP * ITEMS == policy_for("simulator").tile
