"""Sorting keys and taking a value along with each, by the single-sweep radix sort; and argsort, made of it.

Keys go as in `radix_sweep`. A value is read once its key has a place in the sorted tile, is put there, and is written
beside its key: it never waits in a register while keys are ranked.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.digits import DigitPlace
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range, exact_sum
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U8, U16, U32, U64
from .bitonic import from_ordered
from .radix_sweep import look_back, take_tile
from .radix_tile import Strand, count_strands, load_tile, place_strands, take_place, total_of_digit
from .sweep_state import MOST_ELEMENTS, OWN, UP_TO_HERE, SweepState, prepare

A = TypeVar("A", U8, U16, U32, U64)
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@attrs.frozen
class PairsMode(Generic[V]):
    """What the values are, and what is left out where nobody needs it."""

    value: type[V]
    counts_places: bool  # the values are the elements' places in the data: they are not read, but counted
    keeps_keys: bool  # the last pass writes the keys too


# -- kernels ----------------------------------------------------------------------------------------------


@kernel
def sweep_pairs(
    cx: Invocation, key: SortableKey[A, W], plain: UnsignedKey[A, W], data: Storage[A], results: Storage[A],
    words: Storage[A], values: Storage[V], moved: Storage[V], spare: Storage[V], tile: Workgroup[W],
    beside: Workgroup[V], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    state: Storage[U32], params: RadixParams, ticket: U32, plan_at: U32, first_cell: U32, place: DigitPlace,
    order: SortOrder, mode: PairsMode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Moves every key of one tile to its digit's place, and its value to the same place of `moved`, or of `spare`."""
    plan = take_tile(cx, counters, bases, state, ticket, plan_at, policy)
    if plan.runs():
        index = bases[1]
        strand = Strand.of(cx, policy)
        mine: Registers[W] = Registers(key.word, policy.items)
        if plan.reads_data():
            load_tile(key, data, order, index, strand, mine, params, policy)
        elif plan.goes_into_words():
            load_tile(plain, results, SortOrder.ASCENDING, index, strand, mine, params, policy)
        else:
            load_tile(plain, words, SortOrder.ASCENDING, index, strand, mine, params, policy)

        count_strands(cx, mine, strand, counters, place, policy)
        counts: Registers[U32] = Registers(U32, policy.strands)
        total = total_of_digit(cx, counters, counts, policy)
        cell = first_cell + (index + policy.looks) * policy.radix + cx.local_id
        if cx.local_id < policy.radix:
            state.atomic_store(cell, total | OWN)
        first = place_strands(cx, counters, counts, shared, total, policy)
        cx.barrier()

        places: Registers[U32] = Registers(U32, policy.items)
        for row in dynamic_range(U32(0), U32(policy.items)):
            places[row] = take_place(cx, place.digit_of(mine[row]), strand, counters, policy)
            tile[places[row]] = mine[row]
        if plan.reads_data():
            if mode.counts_places:
                start = strand.first_element(index, policy)
                for row in dynamic_range(U32(0), U32(policy.items)):
                    beside[places[row]] = mode.value(start + row * strand.width)
            else:
                place_values(values, index, strand, places, beside, params, policy)
        elif plan.goes_into_words():
            place_values(moved, index, strand, places, beside, params, policy)
        else:
            place_values(spare, index, strand, places, beside, params, policy)
        if cx.local_id < policy.radix:
            before = look_back(state, cell, policy)
            state.atomic_store(cell, (before + total) | UP_TO_HERE)
            bases[cx.local_id] = before - first
        cx.barrier()

        if plan.is_last():
            store_pairs(
                cx, tile, beside, key, results, moved, order, mode.keeps_keys, index, bases, params, place, policy
            )
        elif plan.goes_into_words():
            store_pairs(
                cx, tile, beside, plain, words, spare, SortOrder.ASCENDING, True, index, bases, params, place, policy
            )
        else:
            store_pairs(
                cx, tile, beside, plain, results, moved, SortOrder.ASCENDING, True, index, bases, params, place, policy
            )


def place_values(
    values: Storage[V], index: U32, strand: Strand, places: Registers[U32], beside: Workgroup[V],
    params: RadixParams, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Reads the tile's values, and puts them where their keys are."""
    start = strand.first_element(index, policy)
    if (index + 1) * policy.tile <= params.num_elements:
        for row in dynamic_range(U32(0), U32(policy.items)):
            beside[places[row]] = values[exact_sum(start, row * strand.width)]
    else:
        for row in dynamic_range(U32(0), U32(policy.items)):
            element = start + row * strand.width
            if element < params.num_elements:
                beside[places[row]] = values[element]


def store_pairs(
    cx: Invocation, tile: Workgroup[W], beside: Workgroup[V], target: SortableKey[A, W], results: Storage[A],
    values: Storage[V], order: SortOrder, keeps_keys: bool, index: U32, bases: Workgroup[U32], params: RadixParams,
    place: DigitPlace, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Writes the sorted tile, keys and values."""
    if (index + 1) * policy.tile <= params.num_elements:
        for i in dynamic_range(U32(0), U32(policy.items)):
            position = i * cx.group_size + cx.local_id
            word = tile[position]
            element = bases[place.digit_of(word).value] + position
            if keeps_keys:
                results[element] = from_ordered(target, word, order)
            values[element] = beside[position]
    else:
        for position in dynamic_range(cx.local_id, params.num_elements - index * policy.tile, cx.group_size):
            word = tile[position]
            element = bases[place.digit_of(word).value] + position
            if keeps_keys:
                results[element] = from_ordered(target, word, order)
            values[element] = beside[position]


@kernel
def widen_places(cx: Invocation, places: Storage[U32], wide: Storage[U64], params: RadixParams) -> None:
    """Places as the host's 64-bit indices."""
    for i in dynamic_range(cx.global_id, params.num_elements, cx.num_groups * cx.group_size):
        wide[i] = U64(places[i])


# -- schedules --------------------------------------------------------------------------------------------


def sweep_launches(
    key: SortableKey[A, W], keys: tuple[Buffer[A], Buffer[A], Buffer[A]],
    values: tuple[Buffer[V], Buffer[V], Buffer[V]], state: SweepState, order: SortOrder, mode: PairsMode[V],
    key_bits: int,
) -> list[Launch]:  # fmt: skip
    """All launches. `keys` and `values` are where they come from, where they end, and what lies between."""
    policy, length = state.policy, state.length
    if length >= MOST_ELEMENTS:
        raise InvalidArgumentError(f"a single-sweep radix sort takes fewer than {MOST_ELEMENTS} elements, not {length}")
    if not length:
        return []
    plain: UnsignedKey[A, W] = UnsignedKey(key.element, key.word, key_bits)
    launches = list(prepare(key, keys[0], state, order, in_place=False))
    for number in range(state.passes):
        launches.append(
            sweep_pairs.launch(
                Grid(state.tiles, policy.group_size), key, plain, *keys, *values, Workgroup(key.word, policy.tile),
                Workgroup(values[1].element, policy.tile), Workgroup(U32, policy.counters),
                Workgroup(U32, policy.scanned), Workgroup(U32, policy.radix), state.buffer(),
                RadixParams(U32(length)), U32(state.tickets + number), U32(state.plans + number),
                U32(number * state.cells), state.place(number), order, mode, policy,
            )
        )  # fmt: skip
    return launches


def radix_sort_pairs(
    key: SortableKey[A, W], value: type[V], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int
) -> Schedule:
    """Sorts `data` into `results` and takes `values` along into `moved`. Equal words keep their order."""
    data, values = Buffer("data", key.element, length, Role.INPUT), Buffer("values", value, length, Role.INPUT)
    results, moved = Buffer("results", key.element, length, Role.OUTPUT), Buffer("moved", value, length, Role.OUTPUT)
    words, spare = Buffer("words", key.element, length, Role.SCRATCH), Buffer("spare", value, length, Role.SCRATCH)
    state = SweepState(length, -(-key_bits // policy.digit_bits), policy)
    launches = sweep_launches(
        key, (data, results, words), (values, moved, spare), state, order, PairsMode(value, False, True), key_bits
    )
    return Schedule((data, values, results, moved, words, spare, state.buffer()), tuple(launches))


def radix_argsort(
    key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int
) -> Schedule:
    """Where the elements of `data` come from in order, into `places`. Equal words keep their order."""
    data, places = Buffer("data", key.element, length, Role.INPUT), Buffer("places", U64, length, Role.OUTPUT)
    results, words = (Buffer(name, key.element, length, Role.SCRATCH) for name in ("results", "words"))
    moved, spare = (Buffer(name, U32, length, Role.SCRATCH) for name in ("moved", "spare"))
    none = Buffer("none", U32, 1, Role.SCRATCH)  # no values are read
    state = SweepState(length, -(-key_bits // policy.digit_bits), policy)
    launches = sweep_launches(
        key, (data, results, words), (none, moved, spare), state, order, PairsMode(U32, True, False), key_bits
    )
    if length:
        size = policy.group_size
        grid = Grid(min(policy.count_groups, -(-length // size)), size)
        launches.append(widen_places.launch(grid, moved, places, RadixParams(U32(length))))
    return Schedule((data, places, results, words, moved, spare, none, state.buffer()), tuple(launches))
