"""Work partitioning of reductions and scans along an axis: which workgroup and invocation has which elements.

It depends on layout and policy alone, so results are reproducible. Neighbouring invocations read neighbouring elements:
ranks of one column where the axis is contiguous, else lanes, with a column each.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeVar

import attrs

from ..types.elements import WORD_BYTES
from ..types.params import AxisParams, ReducePolicy, ScanPolicy, power_above
from ..types.scalars import U32
from .layout import Layout, is_closer
from .sizes import LARGEST_U32

P = TypeVar("P", ReducePolicy, ScanPolicy)

_FEW_ROUNDS = 8  # of loads a lane: rows this short gain nothing from more lanes
_ALONE = 8  # blocks that one workgroup reads faster than a second launch could combine partial results
_FEWEST_BLOCKS = 2  # of a share in a scan, for a second launch to pay
_FEWEST_SHARES = 8  # of a column's, for a second launch, which reads all elements again, to pay
_ROUNDS = 4  # of workgroups, for which columns are shared; lanes give way to ranks where one round is not full
_SIZES = (64, 8)  # workgroup sizes with a column for each invocation, where columns are few; each is a kernel


@attrs.frozen
class Loop:
    """A loop over columns or planes: trip count, stride in the buffer, stride in the results."""

    size: int
    stride: int
    result: int


_ALL_IN_ONE = Loop(1, 0, 0)  # plane


@attrs.frozen
class Columns:
    """A layout as the kernels traverse it: of the two axes that stay, `columns` is the one with the lesser stride, or
    in a scan the inner one."""

    planes: Loop
    columns: Loop
    length: int
    length_stride: int
    are_rows: bool = False  # of contiguous elements, in one plane, and long enough for a workgroup each

    @classmethod
    def of(cls, layout: Layout, *, scanned: bool = False) -> Columns:
        """For a reduction, whose results are outer x inner; or for a scan, with results outer x length x inner, which
        are contiguous along `inner`."""
        outer = Loop(layout.outer, layout.outer_stride, layout.inner * (layout.length if scanned else 1))
        inner = Loop(layout.inner, layout.inner_stride, 1)
        if outer.size == 1:
            outer = attrs.evolve(outer, stride=0)
        first_is_closer = inner.size == 1 or (not scanned and is_closer(outer.stride, inner.stride))
        planes, columns = (inner, outer) if first_is_closer else (outer, inner)
        return cls(planes, columns, layout.length, layout.length_stride)

    @property
    def count(self) -> int:
        return self.planes.size * self.columns.size

    def in_order(self, shares: int) -> Columns:
        """The same with packed results, plane by plane, or of rows with those of a row's shares together."""
        planes = attrs.evolve(self.planes, result=self.columns.size)
        return attrs.evolve(
            self, planes=planes, columns=attrs.evolve(self.columns, result=shares if self.are_rows else 1)
        )

    def partials(self, shares: int) -> Columns:
        """The layout of the partial results of a first launch: each share's are packed, one share after another; those
        of a row are a row."""
        if self.are_rows:
            return Columns(_ALL_IN_ONE, Loop(self.count, shares, 1), shares, 1, are_rows=True)
        planes = attrs.evolve(self.planes, stride=self.columns.size)
        columns = attrs.evolve(self.columns, stride=1)
        if self.planes.size == 1 or self.planes.result == self.columns.size * self.columns.result:
            planes, columns = _ALL_IN_ONE, attrs.evolve(columns, size=self.count)
        return Columns(planes, columns, shares, self.count)

    @property
    def ranks_are_neighbours(self) -> bool:
        """Whether neighbouring invocations read along the length."""
        return self.columns.size == 1 or (self.length > 1 and is_closer(self.length_stride, self.columns.stride))


class Arrangement(Enum):
    """How a workgroup's invocations are assigned to columns."""

    GRID = auto()  # lanes x ranks; ranks combine in workgroup memory
    ROWS = auto()  # one row, of contiguous elements; all invocations are its ranks
    STRANDS = auto()  # the ranks of a column are lanes of one subgroup, and combine, or scan, by shuffles
    SIDE_BY_SIDE = auto()  # one column for each invocation, contiguous ones, and no invocation without one
    ALONE = auto()  # one short column for each invocation, which loads all of it at once


@attrs.frozen
class Cut:
    """The partitioning: columns for each workgroup (lanes), invocations and workgroups for each column."""

    arrangement: Arrangement
    group_size: int
    lanes: int
    ranks: int
    shares: int
    share: int = 0  # the elements of a column in a share of a scan: whole tiles, or the whole column

    @classmethod
    def of(cls, view: Columns, policy: ReducePolicy, itemsize: int) -> Cut:
        """For a reduction: ranks enough for `items` elements each, and shares enough to use all workgroups."""
        size, items = policy.group_size, policy.items
        side_by_side = _most_side_by_side(view, size) if policy.side_by_side else 0
        arrangement = Arrangement.GRID
        if _is_short(view, policy):
            arrangement, lanes, ranks = Arrangement.ALONE, size, 1
        elif view.are_rows:
            arrangement, lanes, ranks = Arrangement.ROWS, 1, size
        elif view.ranks_are_neighbours:
            most_ranks = power_above(min(size, -(-view.length // items)))
            ranks = min(most_ranks, size)
            rounds = -(-view.length // (policy.strand * items))
            if policy.subgroups and (rounds <= _FEW_ROUNDS or view.count * policy.strand >= policy.groups * size):
                arrangement, ranks = Arrangement.STRANDS, min(most_ranks, policy.strand)
            lanes = min(size // ranks, view.count)
        elif side_by_side:
            arrangement, size, lanes, ranks = Arrangement.SIDE_BY_SIDE, side_by_side, side_by_side, 1
        else:
            lanes, ranks = _lanes_and_ranks(view, size, items, policy.groups, policy.line // itemsize)
        one = cls(arrangement, size, lanes, ranks, 1)
        return attrs.evolve(one, shares=shares_of(view.length, ranks * items, policy.groups // one.groups(view)))

    @classmethod
    def of_scan(cls, view: Columns, policy: ScanPolicy, itemsize: int) -> Cut:
        """For a scan, in order: ranks have consecutive elements, lanes are neighbours, shares are whole tiles."""
        size, items = policy.group_size, policy.items
        if _is_short(view, policy):
            return cls(Arrangement.ALONE, size, size, 1, 1)
        if policy.subgroups and policy.strand > 1 and view.are_rows and view.ranks_are_neighbours:
            return cls(Arrangement.STRANDS, size, size // policy.strand, policy.strand, 1)
        if view.are_rows:
            each, number = shares(view.count, view.length, policy)
            return cls(Arrangement.ROWS, size, 1, size, number, min(each * policy.tile, LARGEST_U32))
        side_by_side = _most_side_by_side(view, size) if policy.side_by_side else 0
        if side_by_side and view.columns.result == 1:
            one = cls(Arrangement.SIDE_BY_SIDE, side_by_side, side_by_side, 1, 1)
        else:
            # Of short elements half a cache line does: as many lanes would be few workgroups.
            least = policy.line // max(itemsize, WORD_BYTES)
            lanes, ranks = _lanes_and_ranks(view, size, items, policy.groups // _ROUNDS, least)
            one = cls(Arrangement.GRID, size, lanes, ranks, 1)
        block = one.ranks * items
        blocks = -(-view.length // block)
        most = policy.groups // 2 // one.groups(view)
        each = -(-blocks // max(1, min(most if most >= _FEWEST_SHARES else 1, blocks // _FEWEST_BLOCKS)))
        number = -(-blocks // each)
        return attrs.evolve(one, shares=number, share=min(view.length, block * -(-blocks // number)))

    def tiles(self, view: Columns) -> int:
        """The tiles of `lanes` columns: of a plane with SIDE_BY_SIDE, else of all planes."""
        columns = view.columns.size if self.arrangement is Arrangement.SIDE_BY_SIDE else view.count
        return -(-columns // self.lanes)

    def groups(self, view: Columns) -> int:
        planes = view.planes.size if self.arrangement is Arrangement.SIDE_BY_SIDE else 1
        return self.tiles(view) * planes * self.shares

    def sized(self, policy: P) -> P:
        """The policy for this workgroup size; with a column for each invocation no lanes combine."""
        subgroups = policy.subgroups and self.arrangement is not Arrangement.SIDE_BY_SIDE
        return attrs.evolve(policy, group_size=self.group_size, subgroups=subgroups)

    def params(self, view: Columns, length_result: int) -> AxisParams:
        steps = (self.ranks, 1) if view.ranks_are_neighbours else (1, self.lanes)
        numbers = (
            view.columns.size, view.count, view.length, view.planes.stride, view.length_stride, view.columns.stride,
            view.planes.result, length_result, view.columns.result, self.lanes, self.ranks, *steps, self.tiles(view),
            self.shares, self.share,
        )  # fmt: skip
        return AxisParams(*map(U32, numbers))


def shares_of(length: int, block: int, groups: int) -> int:
    """The workgroups for each column, of `groups` available; 1 where a second launch does not pay."""
    return 1 if length <= _ALONE * block else max(1, min(groups, length // block))


def shares(rows: int, length: int, policy: ScanPolicy) -> tuple[int, int]:
    """The tiles in a share of a scan of rows, and the shares in a row."""
    tiles = -(-length // policy.tile)
    most = max(1, policy.groups // max(1, rows))
    each = max(1, -(-tiles // most))
    return each, -(-tiles // each)


def _is_short(view: Columns, policy: ReducePolicy | ScanPolicy) -> bool:
    return policy.alone and 0 < view.length <= policy.items


def _most_side_by_side(view: Columns, size: int) -> int:
    """The largest workgroup size with a column for each invocation; 0 if columns are not contiguous, or too few."""
    sizes = [n for n in (size, *_SIZES) if n <= min(view.columns.size, size)]
    return max(sizes, default=0) if view.columns.stride == 1 else 0


def _lanes_and_ranks(view: Columns, size: int, items: int, groups: int, least: int) -> tuple[int, int]:
    """The lanes and ranks of a workgroup: as many lanes as possible, then fewer in favour of ranks while workgroups
    would be too few for the device, but at least `least`, which read a whole cache line."""
    least = max(1, min(least, size))
    most_ranks = power_above(min(size, -(-view.length // items)))
    lanes = min(size, view.count)
    while lanes > least and size // lanes < most_ranks and -(-view.count // lanes) < groups:
        lanes = max(least, power_above(lanes) // 2)
    return lanes, min(size // lanes, most_ranks)
