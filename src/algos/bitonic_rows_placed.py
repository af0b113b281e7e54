"""Where the elements of many short rows come from in order, in registers: `bitonic_rows.py` with words that know it."""

from __future__ import annotations

from typing import Any, TypeVar

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RowsParams, RowsPolicy
from ..types.scalars import U8, U16, U32, U64
from .argsort import Placed, PlacedKey, own_key
from .bitonic import from_ordered, to_ordered
from .bitonic_rows import require_held, row_of, sort_rows, stage_blocks, staged_at

E = TypeVar("E")
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@kernel
def bitonic_rows_argsort(
    cx: Invocation, key: SortableKey[E, W], own: PlacedKey[W], data: Storage[E],
    places: Storage[U64], tile: Workgroup[Placed[W]], params: RowsParams, order: SortOrder, policy: RowsPolicy,
) -> None:  # fmt: skip
    """The places of every row's elements in order. Equal words keep theirs."""
    sort_placed(cx, key, own, data, tile, params, order, policy)
    row, lane = row_of(cx, policy), cx.local_id % policy.lanes
    count = params.length if row < params.num_rows else U32(0)
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = i * policy.lanes + lane
        if element < count:
            places[row * params.length + element] = U64(tile[staged_at(cx, element, policy)].place)


@kernel
def bitonic_rows_pairs(
    cx: Invocation, key: SortableKey[E, W], own: PlacedKey[W], data: Storage[E],
    values: Storage[V], results: Storage[E], moved: Storage[V], tile: Workgroup[Placed[W]], params: RowsParams,
    order: SortOrder, policy: RowsPolicy,
) -> None:  # fmt: skip
    """Every row sorted into `results`, and its values in the same order into `moved`."""
    sort_placed(cx, key, own, data, tile, params, order, policy)
    row, lane = row_of(cx, policy), cx.local_id % policy.lanes
    count = params.length if row < params.num_rows else U32(0)
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = i * policy.lanes + lane
        if element < count:
            found = tile[staged_at(cx, element, policy)]
            results[row * params.length + element] = from_ordered(key, found.word, order)
            moved[row * params.length + element] = values[row * params.length + found.place]


def sort_placed(
    cx: Invocation, key: SortableKey[E, W], own: PlacedKey[W], data: Storage[E],
    tile: Workgroup[Placed[W]], params: RowsParams, order: SortOrder, policy: RowsPolicy,
) -> None:  # fmt: skip
    """Every row's words with their places, sorted, in workgroup memory."""
    words: Registers[Placed[W]] = Registers(own.word, policy.items)
    row, lane = row_of(cx, policy), cx.local_id % policy.lanes
    count = params.length if row < params.num_rows else U32(0)
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = i * policy.lanes + lane
        words[i] = own.greatest
        if element < count:
            words[i] = Placed(to_ordered(key, data[row * params.length + element], order), element)
    sort_rows(cx, words, policy)
    stage_blocks(cx, tile, words, policy)


def argsort_short_rows(
    key: SortableKey[E, W], rows: int, length: int, order: SortOrder, policy: RowsPolicy
) -> Schedule:
    """Where the elements of each row of `data` come from in order, into `places`. Equal words keep their order."""
    require_held(rows, length, policy)
    data = Buffer("data", key.element, rows * length, Role.INPUT)
    places = Buffer("places", U64, rows * length, Role.OUTPUT)
    own, grid, tile, params = _launched(key, rows, length, policy)
    launch = bitonic_rows_argsort.launch(grid, key, own, data, places, tile, params, order, policy)
    return Schedule((data, places), (launch,))


def sort_short_rows_with_values(
    key: SortableKey[E, W], value: type[V], rows: int, length: int, order: SortOrder, policy: RowsPolicy
) -> Schedule:
    """Sorts every row of `data` into `results` and takes `values` along into `moved`. Equal words keep their order."""
    require_held(rows, length, policy)
    count = rows * length
    data, values = Buffer("data", key.element, count, Role.INPUT), Buffer("values", value, count, Role.INPUT)
    results, moved = Buffer("results", key.element, count, Role.OUTPUT), Buffer("moved", value, count, Role.OUTPUT)
    own, grid, tile, params = _launched(key, rows, length, policy)
    launch = bitonic_rows_pairs.launch(grid, key, own, data, values, results, moved, tile, params, order, policy)
    return Schedule((data, values, results, moved), (launch,))


def _launched(
    key: SortableKey[Any, Any], rows: int, length: int, policy: RowsPolicy
) -> tuple[PlacedKey[Any], Grid, Workgroup[Any], RowsParams]:
    own = own_key(key.word)
    grid = Grid(-(-rows // policy.rows), policy.group_size)
    tile: Workgroup[Any] = Workgroup(own.word, policy.group_size * policy.padded)
    return own, grid, tile, RowsParams(U32(rows), U32(length))
