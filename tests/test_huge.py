"""What kernels compute of places in arrays of up to 2**32 - 1 elements, which are too long to be run: their functions
are Python's too, and are called with numbers as large as can be."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from gpusort.algos.copy import CopyParams
from gpusort.algos.merge import Tile
from gpusort.algos.merge_path import MergeOrder, is_unordered, of_first_before
from gpusort.algos.radix_layout import Layout
from gpusort.algos.sizes import LARGEST_U32
from gpusort.algos.sweep_state import SweepState
from gpusort.algos.ties import Share, SharesParams, first_not_below
from gpusort.algos.transpose import Lines
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from gpusort.types.invocation import Invocation, InvocationIds
from gpusort.types.params import MergeParams, MergePolicy, RadixPolicy
from gpusort.types.scalars import U32, Bool

UP = SortOrder.ASCENDING
HUGE = (1, 2, 3, 1000, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, LARGEST_U32 - 1, LARGEST_U32)


@attrs.frozen
class Computed:
    """An array whose elements are computed when they are asked for. None lies outside it."""

    length: int
    element: Callable[[int], Any]

    def __getitem__(self, index: U32) -> Any:
        assert int(index) < self.length
        return self.element(int(index))


def of_two(length: int, end: int, before: Any, behind: Any) -> Any:
    """An array, of any class to functions that only read it: one element before an end, another one behind it."""
    return Computed(length, lambda place: before if place < end else behind)


def of_few(length: int, elements: Mapping[int, int]) -> Any:
    """An array of which these elements may be read."""
    return Computed(length, lambda place: U32(elements[place]))


def test_a_merge_is_cut_in_arrays_of_any_length() -> None:
    """In as many rounds as there are bits; the second array comes between two elements of the first."""
    by = MergeOrder(key_for("u4"), UP, False, Bool(False))
    seen = 0
    for of_first, of_second in (
        (LARGEST_U32, 0), (0, LARGEST_U32), (1 << 31, (1 << 31) - 1), ((1 << 31) - 1, 1 << 31), (LARGEST_U32 - 1, 1),
        (1, LARGEST_U32 - 1), (3 << 30, (1 << 30) - 1), (1000, 2000),
    ):  # fmt: skip
        for split in {0, 1, of_first // 3, of_first - 1, of_first} - {-1} if of_first else {0}:
            first = of_two(of_first, split, U32(0), U32(2))
            second = of_two(of_second, 0, U32(1), U32(1))
            for diagonal in (0, 5, split, split + of_second // 2, split + of_second, of_first + of_second - 1):
                if diagonal <= of_first + of_second:
                    lengths = U32(of_first), U32(of_second), U32(diagonal)
                    found = int(of_first_before(by, first, second, U32(0), *lengths))
                    assert found == max(min(diagonal, split), diagonal - of_second)
                    seen += 1
    assert seen > 150


@pytest.mark.parametrize(("start", "count"), [(0, LARGEST_U32), (LARGEST_U32 - 3, 3), (LARGEST_U32, 0), (9, -4)])
def test_no_invocation_compares_neighbours_beyond_a_range(start: int, count: int) -> None:
    """Which ends where the array does, or is empty in one that is not sorted."""
    key: Any = key_for("f4")
    lesser, greater = U32(0x3F800000), U32(0x40000000)
    for edge in {0, start, start + count // 2, start + count}:
        for rising in (False, True):
            row = of_two(start + max(count, 0), edge, *((lesser, greater) if rising else (greater, lesser)))
            found = list[bool]()
            for local in range(4):
                ids = InvocationIds(0, local, 1 << 10, 4, 4)
                cx = Invocation(ids, lambda name, operands: None)
                ends = U32(start), U32(start + count), U32(1 << 28)
                found.append(bool(is_unordered(cx, key, row, *ends, UP)))
            assert any(found) is (not rising and start < edge < start + count and (edge - start - 1) % (1 << 30) < 4)


def test_all_that_is_read_in_a_step_of_histograms_is_counted() -> None:
    policy = RadixPolicy(8, 256, count_group=256, count_items=128, count_groups=LARGEST_U32, sweeps=True)
    groups = SweepState(1, LARGEST_U32, 4, policy).counting_groups()
    assert groups == LARGEST_U32 // (256 * 128)


@pytest.mark.parametrize("ways", [2, 3, 4, 16])
def test_a_row_of_any_length_is_searched(ways: int) -> None:
    """Between where equal elements begin and the end, in as many rounds as halves take."""
    key: Any = key_for("f4")
    lesser, greater = U32(0x3F800000), U32(0x40000000)
    for length in HUGE:
        first = min(7, LARGEST_U32 - length)
        for edge in {0, 1, length // 3, length - 1, length}:
            row = of_two(first + length, first + edge, lesser, greater)
            for low in {0, edge // 2, edge}:
                within = U32(first), U32(low), U32(length)
                assert int(first_not_below(key, row, *within, key.to_word(greater), UP, ways)) == edge


# -- tiles and shares ---------------------------------------------------------------------------------------------


def spans(layout: Layout, numbers: range, tile: int) -> list[tuple[int, int, int, int]]:
    """Of each tile its row, start, elements and place in the row."""
    found = list[tuple[int, int, int, int]]()
    for number in numbers:
        place = layout.tile_at(U32(number), tile)
        remaining = int(place.remaining())
        assert int(place.number) == number
        found.append((int(place.row), int(place.start), min(tile, remaining), int(place.first())))
    return found


@pytest.mark.parametrize(
    ("rows", "length", "tile"),
    [(1, LARGEST_U32, 1 << 20), (1, 1 << 31, 999), (3, 1431655765, 1 << 16), (65_537, 65_535, 1000),
     (65_535, 65_537, 65_536), (1 << 20, 4095, 100), (5, 1, 3), (2, 17, 17), (2, 34, 17)],
)  # fmt: skip
def test_tiles_cover_rows_that_end_where_32_bits_do(rows: int, length: int, tile: int) -> None:
    tiles = -(-length // tile)
    layout = Layout(U32(length), U32(rows), U32(tiles), U32(7), has_rows=rows > 1)
    total = rows * tiles
    few = [number for number in {0, 1, tiles - 1, tiles, total // 2, total - 2, total - 1} if 0 <= number < total]
    for number in few:
        row, at = divmod(number, tiles)
        expected = row, row * length + at * tile, min(tile, length - at * tile), at * tile
        assert spans(layout, range(number, number + 1), tile) == [expected]
        place = layout.tile_at(U32(number), tile)
        assert place.leads().item() is (at == 0 and (rows > 1 or number == 0))
        if rows > 1:
            assert (int(place.leader), int(place.origin)) == (row * tiles, row * length)
            assert int(place.next_leader) == (row + 1) * tiles
            assert place.is_last_of_full_row().item() is (at == tiles - 1)


def test_portions_of_a_row_are_counted_apart() -> None:
    layout = Layout(U32(LARGEST_U32), U32(1), U32(100), U32(7), carries=True)
    for number in (0, 1, 99, 100, 101, 4094, 4095):
        place = layout.tile_at(U32(number), 1 << 20)
        portion = number // 100
        assert (int(place.row), int(place.leader), int(place.next_leader)) == (
            portion,
            100 * portion,
            100 * portion + 100,
        )
        assert (int(place.start), int(place.first()), int(place.end)) == (number << 20, number << 20, LARGEST_U32)
        assert place.leads().item() is (number % 100 == 0)
        assert place.is_last_of_full_row().item() is (number % 100 == 99)


@pytest.mark.parametrize(("rows", "length"), [(1, LARGEST_U32), (3, 1431655765), (65_535, 65_537), (7, 100), (1, 90)])
def test_workgroups_share_the_blocks_of_a_row(rows: int, length: int) -> None:
    """Each block has one, which takes as many steps as the others, or one less."""
    block = max(1, length // 13)
    for each in (1, 2, 5):
        one = Layout(U32(length), U32(rows), U32(9), U32(1), has_rows=rows > 1)
        layouts = [one, attrs.evolve(one, carries=True)] if rows == 1 else [one]
        for layout, row in ((layout, row) for layout in layouts for row in {0, rows // 2, rows - 1}):
            starts = list[int]()
            for number in range(each):
                share = layout.share_of(U32(row * each + number), U32(rows * each), U32(block))
                assert int(share.row) == row
                assert (int(share.end), int(share.step)) == ((row + 1) * length, each * block)
                starts += range(int(share.begin), (row + 1) * length, int(share.step))
            assert sorted(starts) == [*range(row * length, (row + 1) * length, block)]


def test_shares_of_rows_lie_where_their_elements_do() -> None:
    for rows, length, share in ((1, LARGEST_U32, 1 << 30), (2, (1 << 31) - 1, 400_000_000), (65_536, 5, 2), (3, 7, 9)):
        groups = -(-length // share)
        params = SharesParams(U32(length), U32(groups), U32(share))
        for index in {0, groups - 1, rows * groups // 2, rows * groups - 1}:
            row, number = divmod(index, groups)
            found = Share.of(U32(index), params)
            place = number * share
            assert (int(found.number), int(found.first)) == (number, row * length + place)
            assert int(found.count) == min(share, length - place)


def test_tiles_of_a_merge_end_with_the_arrays() -> None:
    policy = MergePolicy(16, 1000)
    for first, second in ((LARGEST_U32, 0), (1 << 31, (1 << 31) - 1), (5, LARGEST_U32 - 5), (1000, 24_001)):
        tiles = -(-(first + second) // policy.tile)
        params = MergeParams(U32(first), U32(second), U32(tiles), U32(0))
        for number in {0, tiles // 2, tiles - 1}:
            start = number * policy.tile
            cut = min(first, start // 2)
            after = min(first, cut + 77)
            cuts = of_few(tiles + 2, {number: cut, number + 1: after})
            tile = Tile.of(U32(number), cuts, params, policy)
            count = min(policy.tile, first + second - start)
            assert (int(tile.start), int(tile.count)) == (start, count)
            assert (int(tile.first), int(tile.second)) == (cut, start - cut)
            assert int(tile.of_first) == min(after - cut, count)
        unsorted = of_few(tiles + 2, {0: 0, 1: first})
        assert int(Tile.of(U32(0), unsorted, params, policy).of_first) == min(first, policy.tile)


# -- copies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_elements_are_found_by_their_number(axes: int) -> None:
    """In as many elements as there may be; strides wrap, as negative ones do."""
    rng = random.Random(axes)
    for _ in range(100):
        sizes = [1] * 4
        for axis in range(4 - axes, 4):
            most = LARGEST_U32
            for size in sizes:
                most //= size
            sizes[axis] = rng.choice((1, 2, rng.randrange(1, 100), rng.randrange(1, 70_000), most))
            sizes[axis] = max(1, min(sizes[axis], most))
        strides = [rng.randrange(-(1 << 31), 1 << 31) for _ in range(4)]
        first = rng.randrange(1 << 32)
        lines = Lines.of(first, tuple(strides))
        count = sizes[0] * sizes[1] * sizes[2] * sizes[3]
        params = CopyParams(U32(count), U32(sizes[1]), U32(sizes[2]), U32(sizes[3]), lines, lines)
        for number in {0, count - 1, count // 2, rng.randrange(count)}:
            rest, places = number, [0] * 4
            for axis in (3, 2, 1, 0):
                places[axis] = rest % sizes[axis]
                rest //= sizes[axis]
            found = params.index_of(U32(number), axes)
            assert [int(getattr(found, f"i{axis}")) for axis in range(4)] == places
            place = first + sum(place * stride for place, stride in zip(places, strides, strict=True))
            assert int(found.place(lines, axes)) == place % (1 << 32)
