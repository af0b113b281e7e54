"""Which part of an array an invocation has, in reductions and scans along an axis (cut.py says how they are shared)."""

from __future__ import annotations

import attrs

from ..kernel.language import *
from ..types.params import AxisParams
from .cut import Arrangement


@attrs.frozen
class Column:
    """The indices of a column's first element, of its first result, and of itself among all columns."""

    first: U32
    result: U32
    number: U32


def column_at(number: U32, params: AxisParams) -> Column:
    """The column of a number, with one division at most."""
    plane = U32(0)
    if params.columns < params.all_columns:
        plane = number // params.columns
    column = number - plane * params.columns
    first = plane * params.plane_stride + column * params.column_stride
    return Column(first, plane * params.plane_result + column * params.column_result, number)


@attrs.frozen
class Place:
    """An invocation's rank in a share of a column."""

    column: Column
    share: U32
    lane: U32
    rank: U32
    works: Bool  # whether no other invocation has the same column, share and rank


def place_of(cx: Invocation, group: U32, params: AxisParams, arrangement: Arrangement) -> Place:
    """The place of an invocation of a workgroup. Surplus invocations read what another reads."""
    if arrangement is Arrangement.ALONE:  # which must cost one division at most
        own = group * cx.group_size + cx.local_id
        column = column_at(minimum(own, params.all_columns - 1), params)
        return Place(column, U32(0), cx.local_id, U32(0), own < params.all_columns)
    if arrangement is Arrangement.ROWS:  # whose shares neighbouring workgroups read: they are neighbours in memory
        row = group // params.shares
        return Place(column_at(row, params), group - row * params.shares, U32(0), cx.local_id, Bool(True))
    tile = group % params.tiles
    rest = group // params.tiles
    match arrangement:
        case Arrangement.SIDE_BY_SIDE:  # the last tile is shifted back to be full
            share = rest % params.shares
            plane = rest // params.shares
            index = minimum(tile * cx.group_size, params.columns - cx.group_size) + cx.local_id
            first, result = plane * params.plane_stride + index, plane * params.plane_result
            column = Column(first, result + index * params.column_result, plane * params.columns + index)
            return Place(column, share, cx.local_id, U32(0), index >= tile * cx.group_size)
        case _:
            lane = cx.local_id // params.lane_step % params.lanes
            rank = cx.local_id // params.rank_step % params.ranks
            number = tile * params.lanes + lane
            works = (number < params.all_columns) & (cx.local_id < params.lanes * params.ranks)
            return Place(column_at(minimum(number, params.all_columns - 1), params), rest, lane, rank, works)


def load_column(data: Storage[E], found: Registers[E], column: Column, params: AxisParams, items: int) -> None:
    """Loads a column of up to so many elements, all in flight at once; beyond its end, its last element."""
    for i in dynamic_range(U32(0), U32(items)):
        found[i] = data[minimum(i, params.length - 1) * params.length_stride + column.first]
