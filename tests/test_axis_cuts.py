"""How a reduction along an axis is shared among workgroups: every column has one, none is without work, and there are
as many as there may be. A wrong number here is a slow call and seldom a wrong answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import attrs
import pytest

from gpusort.algos.cut import Arrangement, Columns, Cut, Loop, shares_of
from gpusort.algos.layout import Layout
from gpusort.algos.reduce_axis import reduce_axis, reduce_rows
from gpusort.types.dtypes import number_for
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.monoids import Sum
from gpusort.types.params import ReducePolicy, ScanPolicy, power_above

LENGTHS = (2, 7, 8, 9, 64, 65, 300, 5000)
COUNTS = (1, 2, 3, 8, 17, 64, 1000, 70_000)
POLICIES = [
    ReducePolicy(group_size=size, items=items, groups=groups, line=line, subgroups=size == 32, strand=strand)
    for (size, strand), items, groups, line in product(((32, 8), (64, 1)), (1, 4), (1, 16, 1024), (4, 64))
]


def cuts(views: Iterator[Columns]) -> Iterator[tuple[Columns, ReducePolicy, Cut]]:
    for view, policy in product([*views], POLICIES):
        yield view, policy, Cut.of(view, policy, 4)


def along_rows() -> Iterator[Columns]:
    return (Columns.of(Layout.rows(count, length)) for length, count in product(LENGTHS, COUNTS))


def along_columns() -> Iterator[Columns]:
    return (Columns.of(Layout(1, length, count, 0, count, 1)) for length, count in product(LENGTHS, COUNTS[1:]))


def blocks_of(view: Columns, policy: ReducePolicy) -> int:
    """What invocations load of a column at a time."""
    return -(-view.length // policy.items)


def test_shares_are_such_that_a_second_launch_pays() -> None:
    """Of eight blocks one workgroup is the quickest; of more, none has less than a block."""
    for block, groups in product((1, 3, 10), (1, 5, 1000)):
        assert [shares_of(length, block, groups) for length in (0, 1, block, 8 * block)] == [1] * 4
        for length in range(8 * block + 1, 30 * block):
            assert shares_of(length, block, groups) == min(groups, length // block)
        assert shares_of(9 * block, block, 0) == 1


VIEWS = {"rows": along_rows, "columns": along_columns}


def test_a_column_alone_has_one_lane() -> None:
    """No other invocation has its rank."""
    view = Columns.of(Layout(1, 500, 1, 0, 7, 1), scanned=True)
    cut = Cut.of_scan(view, ScanPolicy(64, 3, 4), 4)
    assert (cut.lanes, cut.ranks, cut.tiles(view)) == (1, 64, 1)


@pytest.mark.parametrize("views", VIEWS)
def test_every_column_has_its_lane_and_no_tile_is_empty(views: str) -> None:
    for view, policy, cut in cuts(VIEWS[views]()):
        assert cut.group_size == policy.group_size
        assert 1 <= cut.lanes * cut.ranks <= cut.group_size
        assert cut.lanes <= view.count
        assert (cut.tiles(view) - 1) * cut.lanes < view.count <= cut.tiles(view) * cut.lanes
        assert cut.groups(view) == cut.tiles(view) * cut.shares
        assert cut.ranks <= power_above(blocks_of(view, policy)), "more ranks than blocks"


@pytest.mark.parametrize("views", VIEWS)
def test_there_are_as_many_shares_as_there_are_workgroups_for(views: str) -> None:
    seen = set[bool]()
    for view, policy, cut in cuts(VIEWS[views]()):
        tiles, block = cut.tiles(view), cut.ranks * policy.items
        assert cut.shares == shares_of(view.length, block, policy.groups // tiles)
        assert cut.shares == 1 or cut.shares * tiles <= policy.groups
        seen.add(cut.shares > 1)
    assert seen == {False, True}


def test_rows_are_read_by_as_many_lanes_as_they_have_blocks() -> None:
    """Of a subgroup's strand where that has few rounds, or where there are rows for all; else of the workgroup."""
    seen = set[Arrangement]()
    for view, policy, cut in cuts(along_rows()):
        assert view.ranks_are_neighbours
        most = power_above(min(policy.group_size, blocks_of(view, policy)))
        few_rounds = view.length <= 8 * policy.strand * policy.items
        is_strand = policy.subgroups and (few_rounds or view.count * policy.strand >= policy.groups * policy.group_size)
        assert cut.arrangement is (Arrangement.STRANDS if is_strand else Arrangement.GRID)
        assert cut.ranks == min(most, policy.strand if is_strand else policy.group_size)
        assert cut.lanes == min(policy.group_size // cut.ranks, view.count)
        seen.add(cut.arrangement)
    assert len(seen) == 2


def test_lanes_give_way_to_ranks_while_workgroups_are_too_few() -> None:
    """But for a cache line of them."""
    for view, policy, cut in cuts(along_columns()):
        assert cut.arrangement is Arrangement.GRID
        size, least = policy.group_size, min(policy.group_size, policy.line // 4)
        most_ranks = power_above(min(size, blocks_of(view, policy)))
        widest = min(size, view.count)
        chosen = [widest, *(lanes for lanes in (1 << bit for bit in range(15, -1, -1)) if least < lanes < widest)]
        chosen += [least] if least < widest else []
        stops = (
            lanes for lanes in chosen
            if lanes <= least or size // lanes >= most_ranks or -(-view.count // lanes) >= policy.groups
        )  # fmt: skip
        assert cut.lanes == next(stops)
        assert cut.ranks == min(size // cut.lanes, most_ranks)


@pytest.mark.parametrize(("line", "itemsize", "least"), [(64, 4, 16), (64, 64, 1), (64, 128, 1), (8, 8, 1), (16, 8, 2)])
def test_a_scan_s_lanes_give_way_to_ranks_but_for_a_cache_line_of_them(line: int, itemsize: int, least: int) -> None:
    """However large elements are, it has one."""
    view = Columns.of(Layout(1, 5000, 24, 0, 24, 1), scanned=True)
    for groups, lanes in ((1000, least), (1, 24)):
        cut = Cut.of_scan(view, ScanPolicy(64, 3, groups, line=line), itemsize)
        assert cut.lanes == lanes
        assert cut.ranks == 64 // lanes
        assert Cut.of(view, ReducePolicy(64, 3, groups, line=line), itemsize).lanes == lanes


def test_a_lane_is_left_where_a_workgroup_has_fewer_ranks_than_would_pay() -> None:
    """One of 48 invocations, which is no power of two."""
    view = Columns.of(Layout(1, 5000, 24, 0, 24, 1))
    cut = Cut.of(view, ReducePolicy(48, 3, 1000, line=4), 8)
    assert (cut.lanes, cut.ranks) == (1, 48)


@pytest.mark.parametrize(
    ("columns", "size", "found"),
    [(7, 256, 0), (8, 256, 8), (63, 256, 8), (64, 256, 64), (255, 256, 64), (256, 256, 256), (9999, 256, 256),
     (9999, 32, 32), (31, 32, 8), (9999, 8, 8), (9999, 4, 4)],
)  # fmt: skip
def test_columns_side_by_side_fill_their_workgroup(columns: int, size: int, found: int) -> None:
    policy = ReducePolicy(group_size=size, side_by_side=True)
    view = Columns.of(Layout(3, 500, columns, 500 * columns, columns, 1))
    cut = Cut.of(view, policy, 4)
    assert (cut.arrangement is Arrangement.SIDE_BY_SIDE) == (found > 0)
    if found:
        assert (cut.group_size, cut.lanes, cut.ranks) == (found, found, 1)
        assert cut.tiles(view) == -(-columns // found)
        assert cut.groups(view) == 3 * cut.tiles(view) * cut.shares
    scanned = Columns.of(Layout(3, 500, columns, 500 * columns, columns, 1), scanned=True)
    scan = Cut.of_scan(scanned, ScanPolicy(group_size=size, side_by_side=True), 4)
    assert (scan.arrangement, scan.group_size) == (cut.arrangement, found or size)
    if found:
        assert (scan.lanes, scan.ranks) == (found, 1)


def test_a_scan_of_columns_side_by_side_is_shared_by_half_the_workgroups() -> None:
    """24 for three planes: seven shares of five of the 34 tiles, as an eighth has none. Fewer than eight do not pay."""
    policy = ScanPolicy(group_size=64, items=15, groups=48, side_by_side=True)
    view = Columns.of(Layout(3, 500, 64, 32_000, 64, 1), scanned=True)
    cut = Cut.of_scan(view, policy, 4)
    assert (cut.arrangement, cut.shares, cut.groups(view)) == (Arrangement.SIDE_BY_SIDE, 7, 21)
    assert cut.share == 5 * 15
    assert Cut.of_scan(view, attrs.evolve(policy, groups=47), 4).shares == 1


@pytest.mark.parametrize("layout", [Layout(1, 500, 70, 0, 140, 2), Layout(70, 500, 1, 1, 70, 1)])
def test_columns_are_side_by_side_where_they_are_and_their_scans_are(layout: Layout) -> None:
    """And not where either has a stride."""
    scan = Cut.of_scan(Columns.of(layout, scanned=True), ScanPolicy(64, 15, side_by_side=True), 4)
    assert scan.arrangement is Arrangement.GRID
    reduction = Cut.of(Columns.of(layout), ReducePolicy(64, 15, side_by_side=True), 4)
    assert (reduction.arrangement is Arrangement.GRID) == (layout.inner == 70)


@pytest.mark.parametrize(
    ("layout", "columns", "scanned"),
    [(Layout(1, 5, 4, 1, 12, 3), 4, 4), (Layout(6, 5, 1, 5, 1, 1), 6, 6), (Layout(6, 5, 4, 1, 24, 6), 6, 4)],
)
def test_an_axis_of_one_is_not_that_of_the_columns(layout: Layout, columns: int, scanned: int) -> None:
    """However close it lies."""
    assert Columns.of(layout).columns.size == columns
    assert Columns.of(layout, scanned=True).columns.size == scanned


@pytest.mark.parametrize("views", VIEWS)
def test_every_invocation_has_one_lane_and_rank_and_neighbours_read_neighbours(views: str) -> None:
    for view, _, cut in cuts(VIEWS[views]()):
        found = cut.params(view, view.count)
        steps = int(found.lane_step), int(found.rank_step)
        places = [lane * steps[0] + rank * steps[1] for lane in range(cut.lanes) for rank in range(cut.ranks)]
        assert sorted(places) == [*range(len(places))]
        if cut.lanes > 1 < cut.ranks:
            assert steps[views == "rows"] == 1


def test_a_column_alone_is_read_along_its_length() -> None:
    for layout in (Layout(1, 500, 1, 1, 7, 1), Layout(1, 500, 1, 0, 7, 0), Layout(1, 1, 1, 1, 7, 1)):
        assert Columns.of(layout, scanned=True).ranks_are_neighbours
        assert Columns.of(layout).ranks_are_neighbours


def test_partial_results_lie_one_share_after_another() -> None:
    """Columns of several planes are one line of them where their results are."""
    view = Columns.of(Layout(3, 50, 5, 250, 5, 1))
    assert view.planes == Loop(3, 250, 5)
    assert view.partials(4) == Columns(Loop(1, 0, 0), Loop(15, 1, 1), 4, 15)
    turned = Columns.of(Layout(3, 50, 5, 1, 3, 150))
    assert (turned.planes, turned.columns) == (Loop(5, 150, 1), Loop(3, 1, 5))
    assert turned.partials(4) == Columns(Loop(5, 3, 1), Loop(3, 1, 5), 4, 15)
    assert Columns.of(Layout.rows(7, 90)).partials(2) == Columns(Loop(1, 0, 0), Loop(7, 1, 1), 2, 7)


@pytest.mark.parametrize("rows", [1, 3, 16, 17])
def test_rows_have_as_many_workgroups_as_there_are_for_each(rows: int) -> None:
    """And a second launch, of one for each row, where that is more than one."""
    policy = ReducePolicy(group_size=32, items=4, groups=16)
    for length in (1, 128, 1024, 1025, 1280, 2000, 100_000):
        each = shares_of(length, 128, 16 // rows)
        launches = reduce_rows(Sum(number_for("u4")), rows, length, policy).launches
        assert [one.grid.groups for one in launches] == ([rows] if each == 1 else [rows * each, rows])


def test_columns_that_workgroups_share_take_a_second_launch() -> None:
    """Of two shares as of more; a column of one workgroup is done in one."""
    seen = set[int]()
    for groups in range(1, 6):
        policy = ReducePolicy(group_size=32, items=4, groups=groups, subgroups=False)
        layout = Layout(1, 5000, 4, 0, 4, 1)
        shares = Cut.of(Columns.of(layout), policy, 4).shares
        launches = reduce_axis(Sum(number_for("u4")), layout, policy).launches
        assert len(launches) == (1 if shares == 1 else 2)
        seen.add(shares)
    assert {1, 2, 3} <= seen


@pytest.mark.parametrize("number", [-1, 2**63 + 1, 1.0])
def test_a_layout_is_of_numbers_that_memories_may_have(number: int) -> None:
    assert Layout(1, 2**63, 0, 0, 2**63, 1).length == 2**63
    with pytest.raises(InvalidArgumentError, match="length: expected an int from 0 to"):
        Layout(1, number, 1, 0, 1, 1)


def test_a_view_spans_what_lies_between_its_first_and_last_element() -> None:
    assert Layout.rows(3, 5).span == 15
    assert Layout(2, 3, 2, 100, 10, 1).span == 1 + 100 + 20 + 1
    assert Layout.rows(0, 5).span == Layout.rows(3, 0).span == 0


LAYOUTS = (
    Layout.rows(1, 5), Layout.rows(3, 5), Layout(1, 5, 4, 0, 4, 1), Layout(2, 5, 4, 20, 4, 1),
    Layout(3, 5, 4, 1, 12, 3), Layout(2, 1, 4, 4, 9, 1), Layout(2, 5, 1, 7, 30, 9), Layout(2, 3, 4, 0, 4, 1),
    Layout(4, 3, 2, 100, 7, 30), Layout(5, 3, 4, 1, 20, 5),
)  # fmt: skip


def columns_of(view: Columns) -> list[tuple[int, int]]:
    """Where each column begins, in the array and in the results."""
    planes, columns = view.planes, view.columns
    return [
        (plane * planes.stride + column * columns.stride, plane * planes.result + column * columns.result)
        for plane in range(planes.size)
        for column in range(columns.size)
    ]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_columns_begin_where_those_of_the_layout_do(layout: Layout) -> None:
    """And so do their results: those of a scan, of a reduction, and of a share of one, which are packed."""
    places = [(outer, inner) for outer in range(layout.outer) for inner in range(layout.inner)]
    starts = [outer * layout.outer_stride + inner * layout.inner_stride for outer, inner in places]
    scanned, reduced = Columns.of(layout, scanned=True), Columns.of(layout)
    results = [outer * layout.length * layout.inner + inner for outer, inner in places]
    assert sorted(columns_of(scanned)) == sorted(zip(starts, results, strict=True))
    assert sorted(columns_of(reduced)) == sorted(zip(starts, range(len(places)), strict=True))
    for view in (scanned, reduced):
        assert (view.length, view.length_stride) == (layout.length, layout.length_stride)
        assert view.count == len(places)
    assert columns_of(reduced.in_order(1)) == [(start, at) for at, (start, _) in enumerate(columns_of(reduced))]
    partials = reduced.partials(3)
    assert (partials.length, partials.length_stride) == (3, len(places))
    assert columns_of(partials) == [(at, result) for at, (_, result) in enumerate(columns_of(reduced))]


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5, 10, 11, 100])
def test_shares_of_a_scan_are_of_two_tiles_or_more(blocks: int) -> None:
    """As many as half the workgroups there are, so that both launches have work for all; none is empty."""
    policy = ScanPolicy(32, 3, 40, line=4)
    view = Columns.of(Layout(1, 96 * blocks - 5, 2, 0, 2, 1), scanned=True)
    cut = Cut.of_scan(view, policy, 4)
    tile = cut.ranks * policy.items
    tiles = -(-view.length // tile)
    most = max(1, min(20 // cut.tiles(view) if 20 // cut.tiles(view) >= 8 else 1, tiles // 2))
    each = -(-tiles // most)
    assert cut.shares == -(-tiles // each)
    assert cut.share == min(view.length, each * tile)
    assert (cut.shares - 1) * cut.share < view.length
