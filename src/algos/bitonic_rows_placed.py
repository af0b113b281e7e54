"""Argsort, and sort of key-value pairs, of many short rows in registers: `bitonic_rows.py` with (word, index) pairs."""

from __future__ import annotations

from typing import Any, TypeVar

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RowsParams, RowsPolicy
from ..types.scalars import U8, U16, U32, U64
from .argsort import Placed, PlacedKey, placed_key
from .bitonic import from_ordered, to_ordered
from .bitonic_rows import count_of, require_held, row_of, sort_rows, stage_blocks, staged_at
from .radix_rows import RowsMode
from .unbound import unbound

E = TypeVar("E")
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@kernel
def bitonic_rows_placed(
    cx: Invocation, key: SortableKey[E, W], own: PlacedKey[W], data: Storage[E], results: Storage[E],
    values: Storage[V], moved: Storage[V], places: Storage[U64], tile: Workgroup[Placed[W]], params: RowsParams,
    order: SortOrder, mode: RowsMode, policy: RowsPolicy,
) -> None:  # fmt: skip
    """Sorts every row's words with their indices; stable."""
    words: Registers[Placed[W]] = Registers(own.word, policy.items)
    row, lane, count = row_of(cx, policy), cx.local_id % policy.lanes, count_of(cx, params, policy)
    first = row * params.length
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = i * policy.lanes + lane
        words[i] = own.greatest
        if element < count:
            words[i] = Placed(to_ordered(key, data[first + element], order), element)
    sort_rows(cx, words, policy)
    stage_blocks(cx, tile, words, policy)
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = i * policy.lanes + lane
        if element < count:
            found = tile[staged_at(cx, element, policy)]
            if mode.keeps_keys:
                results[first + element] = from_ordered(key, found.word, order)
            if mode.gives_places:
                places[first + element] = U64(found.place)
            if mode.takes_values:
                moved[first + element] = values[first + found.place]


def argsort_short_rows(
    key: SortableKey[E, W], rows: int, length: int, order: SortOrder, policy: RowsPolicy
) -> Schedule:
    """Writes the permutation that sorts each row of `data` into `places` (U64); stable."""
    data = Buffer("data", key.element, rows * length, Role.INPUT)
    places = Buffer("places", U64, rows * length, Role.OUTPUT)
    mode = RowsMode(keeps_keys=False, gives_places=True)
    launch = _launch(
        key, rows, length, order, policy, mode, (data, unbound(key.element), unbound(U32), unbound(U32), places)
    )
    return Schedule((data, places), (launch,))


def sort_short_rows_with_values(
    key: SortableKey[E, W], value: type[V], rows: int, length: int, order: SortOrder, policy: RowsPolicy
) -> Schedule:
    """Sorts every row of `data` into `results`, and permutes `values` alike into `moved`; stable."""
    count = rows * length
    data, values = Buffer("data", key.element, count, Role.INPUT), Buffer("values", value, count, Role.INPUT)
    results, moved = Buffer("results", key.element, count, Role.OUTPUT), Buffer("moved", value, count, Role.OUTPUT)
    buffers = data, results, values, moved, unbound(U64)
    launch = _launch(key, rows, length, order, policy, RowsMode(takes_values=True), buffers)
    return Schedule((data, values, results, moved), (launch,))


def _launch(
    key: SortableKey[Any, Any], rows: int, length: int, order: SortOrder, policy: RowsPolicy, mode: RowsMode,
    buffers: tuple[Buffer[Any], Buffer[Any], Buffer[Any], Buffer[Any], Buffer[Any]],
) -> Launch:  # fmt: skip
    require_held(rows, length, policy)
    own, params = placed_key(key.word), RowsParams(U32(rows), U32(length))
    grid = Grid(-(-rows // policy.rows), policy.group_size)
    tile: Workgroup[Any] = Workgroup(own.word, policy.group_size * policy.padded)
    return bitonic_rows_placed.launch(grid, key, own, *buffers, tile, params, order, mode, policy)
