"""Radix sort of rows that fit into workgroup memory: a workgroup sorts its row by all digits, in one launch.

The words go from registers into the sorted tile and back, digit by digit. Beyond a row's end stand greatest words: they
rank behind all that is there.
"""

from __future__ import annotations

from typing import TypeVar

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

A = TypeVar("A", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@kernel
def radix_rows(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], results: Storage[A], tile: Workgroup[W],
    counters: Workgroup[U32], shared: Workgroup[U32], params: RowsParams, passes: int, order: SortOrder,
    in_place: bool, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Sorts one row."""
    row = cx.group_id * params.length
    strand = Strand.of(cx, policy)
    first = strand.first_element(policy)
    words: Registers[W] = Registers(key.word, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = first + i * strand.width
        if element < params.length:
            words[i] = to_ordered(key, results[row + element] if in_place else data[row + element], order)
        else:
            words[i] = key.greatest
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
        cx.barrier()
        if number + 1 < passes:
            for i in dynamic_range(U32(0), U32(policy.items)):
                words[i] = tile[first + i * strand.width]
    for i in dynamic_range(U32(0), U32(policy.items)):
        position = i * cx.group_size + cx.local_id
        if position < params.length:
            results[row + position] = from_ordered(key, tile[position], order)


def radix_rows_sort(
    key: SortableKey[A, W], rows: int, length: int, order: SortOrder, policy: RadixPolicy, key_bits: int, in_place: bool
) -> Schedule:
    """Sorts every row of `data` into `results`, or in place. A row is no longer than a tile."""
    require_countable(rows, length)
    require_digits(key_bits, key.word.type.bits)
    if length > policy.tile:
        raise InvalidArgumentError(f"length: expected at most the {policy.tile} elements of a tile, found {length}")
    data = Buffer("data", key.element, rows * length, Role.INOUT if in_place else Role.INPUT)
    results = data if in_place else Buffer("results", key.element, rows * length, Role.OUTPUT)
    buffers = (data,) if in_place else (data, results)
    if not rows * length:
        return Schedule(buffers, ())
    launch = radix_rows.launch(
        Grid(rows, policy.group_size), key, data, results, Workgroup(key.word, policy.tile),
        Workgroup(U32, policy.counters), Workgroup(U32, policy.scanned), RowsParams(U32(rows), U32(length)),
        -(-key_bits // policy.digit_bits), order, in_place, policy,
    )  # fmt: skip
    return Schedule(buffers, (launch,))
