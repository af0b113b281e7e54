"""LSD radix sort of rows that fit into workgroup memory: a workgroup sorts a row by all digits, in one launch.

Words go from registers to the sorted tile in workgroup memory and back, digit by digit. With values or indices, each
word's index goes along, and values are gathered once, at the end. Rows are padded with the greatest word, which ranks
last.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.digits import DigitPlace
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RadixPolicy, RowsParams
from ..types.scalars import U8, U16, U32, U64
from .bitonic import from_ordered, to_ordered
from .radix_tile import Strand, clear_counters, count_strands, place_strands, sort_tile, total_of_digit
from .sizes import require_countable, require_digits
from .unbound import unbound

A = TypeVar("A", U8, U16, U32, U64)
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@attrs.frozen
class RowsMode:
    """What a sort of rows reads and writes."""

    in_place: bool = False  # keys are read from `results`, not `data`
    keeps_keys: bool = True  # keys are written
    takes_values: bool = False  # values are permuted alike
    gives_places: bool = False  # indices are written (argsort)

    @property
    def follows(self) -> bool:
        """Whether the permutation is needed."""
        return self.takes_values or self.gives_places


@kernel
def radix_rows(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], results: Storage[A], values: Storage[V],
    moved: Storage[V], numbers: Storage[U64], tile: Workgroup[W], beside: Workgroup[U32], counters: Workgroup[U32],
    shared: Workgroup[U32], params: RowsParams, passes: int, order: SortOrder, mode: RowsMode, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Sorts one row."""
    row = cx.group_id * params.length
    strand = Strand.of(cx, policy)
    first = strand.first_element(policy)
    words: Registers[W] = Registers(key.word, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = first + i * strand.width
        if element < params.length:
            words[i] = to_ordered(key, results[row + element] if mode.in_place else data[row + element], order)
        else:
            words[i] = key.greatest
    came_from: Registers[U32] = Registers(U32, policy.items if mode.follows else 1)
    if mode.follows:
        for i in dynamic_range(U32(0), U32(policy.items)):
            came_from[i] = first + i * strand.width
    places: Registers[U32] = Registers(U32, policy.items)
    for number in dynamic_range(U32(0), U32(passes)):
        place = DigitPlace(number, policy.digit_bits)
        clear_counters(cx, counters, policy)
        cx.barrier()
        count_strands(cx, words, strand, counters, place, policy)
        counts: Registers[U32] = Registers(U32, policy.strands)
        total = total_of_digit(cx, counters, counts, policy)
        place_strands(cx, counters, counts, shared, total, policy)
        cx.barrier()
        sort_tile(cx, words, strand, tile, counters, places, place, policy)
        if mode.follows:
            for i in dynamic_range(U32(0), U32(policy.items)):
                beside[places[i]] = came_from[i]
        cx.barrier()
        if number + 1 < passes:
            for i in dynamic_range(U32(0), U32(policy.items)):
                words[i] = tile[first + i * strand.width]
                if mode.follows:
                    came_from[i] = beside[first + i * strand.width]
    for i in dynamic_range(U32(0), U32(policy.items)):
        position = i * cx.group_size + cx.local_id
        if position < params.length:
            if mode.keeps_keys:
                results[row + position] = from_ordered(key, tile[position], order)
            if mode.gives_places:
                numbers[row + position] = U64(beside[position])
            if mode.takes_values:
                moved[row + position] = values[row + beside[position]]


_NO_VALUES: Any = unbound(U32)
_NO_PLACES: Any = unbound(U64)


def radix_rows_sort(
    key: SortableKey[A, W], rows: int, length: int, order: SortOrder, policy: RadixPolicy, key_bits: int, in_place: bool
) -> Schedule:
    """Sorts every row of `data` into `results`, or in place. Raises InvalidArgumentError for rows beyond a tile."""
    data = Buffer("data", key.element, rows * length, Role.INOUT if in_place else Role.INPUT)
    results = data if in_place else Buffer("results", key.element, rows * length, Role.OUTPUT)
    sort = _Rows(key, rows, length, order, policy, key_bits, RowsMode(in_place))
    return sort.schedule((data,) if in_place else (data, results), data, results, _NO_VALUES, _NO_VALUES, _NO_PLACES)


def radix_rows_pairs(
    key: SortableKey[A, W], value: type[V], rows: int, length: int, order: SortOrder, policy: RadixPolicy,
    key_bits: int,
) -> Schedule:  # fmt: skip
    """Sorts every row of `data` into `results`, and permutes `values` alike into `moved`; stable."""
    count = rows * length
    data, values = Buffer("data", key.element, count, Role.INPUT), Buffer("values", value, count, Role.INPUT)
    results, moved = Buffer("results", key.element, count, Role.OUTPUT), Buffer("moved", value, count, Role.OUTPUT)
    sort = _Rows(key, rows, length, order, policy, key_bits, RowsMode(takes_values=True))
    return sort.schedule((data, values, results, moved), data, results, values, moved, _NO_PLACES)


def radix_rows_argsort(
    key: SortableKey[A, W], rows: int, length: int, order: SortOrder, policy: RadixPolicy, key_bits: int
) -> Schedule:
    """Writes the permutation that sorts each row of `data` into `places` (U64); stable."""
    data = Buffer("data", key.element, rows * length, Role.INPUT)
    places = Buffer("places", U64, rows * length, Role.OUTPUT)
    sort = _Rows(key, rows, length, order, policy, key_bits, RowsMode(keeps_keys=False, gives_places=True))
    return sort.schedule((data, places), data, unbound(key.element), _NO_VALUES, _NO_VALUES, places)


@attrs.frozen
class _Rows:
    """The parameters of a sort of rows."""

    key: SortableKey[Any, Any]
    rows: int
    length: int
    order: SortOrder
    policy: RadixPolicy
    key_bits: int
    mode: RowsMode

    def schedule(
        self, buffers: tuple[Buffer[Any], ...], data: Buffer[A], results: Buffer[A], values: Buffer[V],
        moved: Buffer[V], places: Buffer[U64],
    ) -> Schedule:  # fmt: skip
        require_countable(self.rows, self.length)
        require_digits(self.key_bits, self.key.word.type.bits)
        policy, length = self.policy, self.length
        if length > policy.tile:
            raise InvalidArgumentError(f"length: expected at most the {policy.tile} elements of a tile, found {length}")
        if not self.rows * length:
            return Schedule(buffers, ())
        launch = radix_rows.launch(
            Grid(self.rows, policy.group_size), self.key, data, results, values, moved, places,
            Workgroup(self.key.word, policy.tile), Workgroup(U32, policy.tile), Workgroup(U32, policy.counters),
            Workgroup(U32, policy.scanned), RowsParams(U32(self.rows), U32(length)),
            -(-self.key_bits // policy.digit_bits), self.order, self.mode, policy,
        )  # fmt: skip
        return Schedule(buffers, (launch,))
