"""LSD radix sort of rows that fit into workgroup memory: a workgroup sorts a row by all digits, in one launch. Values
are gathered once, at the end. Rows are padded with the greatest word, which ranks last."""

from __future__ import annotations

from ..kernel.language import *
from ..types.errors import InvalidArgumentError
from ..types.params import RadixPolicy, RowsParams
from .batch import Batch, Mode
from .bitonic import from_ordered, to_ordered
from .radix_layout import DigitPlace
from .radix_tile import Ranking, Strand, clear_counters
from .sizes import require_countable, require_digits


@kernel
def radix_rows(
    cx: Invocation, key: SortableKey[A, N], data: Storage[A], results: Storage[A], values: Storage[V],
    moved: Storage[V], tile: Workgroup[N], beside: Workgroup[U32], counters: Workgroup[U32], shared: Workgroup[U32],
    params: RowsParams, passes: int, order: SortOrder, mode: Mode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Sorts one row."""
    row = cx.group_id * params.length
    strand = Strand.of(cx, policy)
    first = strand.first_element(policy)
    words: Registers[N] = Registers(key.word, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        element = first + i * strand.width
        word = to_ordered(key, data[row + minimum(element, params.length - 1)], order)  # waits for no branch
        words[i] = word if element < params.length else key.greatest
    came_from: Registers[U32] = Registers(U32, policy.items if mode.takes_values else 1)
    if mode.takes_values:
        for i in dynamic_range(U32(0), U32(policy.items)):
            came_from[i] = first + i * strand.width
    places: Registers[U32] = Registers(U32, policy.items)
    for number in dynamic_range(U32(0), U32(passes)):
        ranking = Ranking(words, strand, counters, DigitPlace(number, policy.digit_bits))
        clear_counters(cx, counters, policy.counters)
        cx.barrier()
        ranking.count_strands(cx, policy)
        counts: Registers[U32] = Registers(U32, policy.strands)
        total = ranking.total_of_digit(cx, counts, policy)
        ranking.place_strands(cx, counts, shared, total, policy)
        cx.barrier()
        ranking.sort_tile(cx, tile, places, policy)
        if mode.takes_values:
            for i in dynamic_range(U32(0), U32(policy.items)):
                beside[places[i]] = came_from[i]
        cx.barrier()
        if number + 1 < passes:
            for i in dynamic_range(U32(0), U32(policy.items)):
                words[i] = tile[first + i * strand.width]
                if mode.takes_values:
                    came_from[i] = beside[first + i * strand.width]
    to = cx.group_id * params.kept
    for i in dynamic_range(U32(0), U32(policy.items)):
        at = i * cx.group_size + cx.local_id
        if at < params.kept:
            if mode.keeps_keys:
                results[to + at] = data[row + beside[at]] if mode.counts_places else from_ordered(key, tile[at], order)
            if mode.takes_values:
                moved[to + at] = mode.value(beside[at]) if mode.counts_places else values[row + beside[at]]


def radix_rows_sort(batch: Batch, policy: RadixPolicy, key_bits: int) -> Schedule:
    """Sorts every row by the low bits of its words. Raises InvalidArgumentError for rows beyond a tile."""
    key, length = batch.key, batch.length
    require_countable(batch.rows, length)
    require_digits(key_bits, key.word.type.bits)
    if length > policy.tile:
        raise InvalidArgumentError(f"length: expected at most the {policy.tile} elements of a tile, found {length}")
    if not batch.count:
        return batch.schedule(())
    launch = radix_rows.launch(
        Grid(batch.rows, policy.group_size), key, *batch.arguments, Workgroup(key.word, policy.tile),
        Workgroup(U32, policy.tile), Workgroup(U32, policy.counters), Workgroup(U32, policy.scanned),
        batch.params, -(-key_bits // policy.digit_bits), batch.order, batch.mode(), policy,
    )  # fmt: skip
    return batch.schedule((launch,))
