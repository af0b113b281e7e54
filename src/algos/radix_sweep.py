"""Radix sort with one sweep over memory a digit, for targets whose workgroups all make progress.

A single launch a pass sorts each tile and finds out, while it does, how many elements with each digit stand in the
tiles before it: every tile publishes its own counts at once, and the sum up to itself as soon as it knows that of a
tile before it; it looks back over its predecessors until it meets such a sum (decoupled look-back). Tiles are numbered
in the order in which workgroups start, so nobody waits for a tile that has not started.
"""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.digits import DigitPlace
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U8, U16, U32, U64, Bool
from .radix_tile import (
    Strand,
    clear_counters,
    count_strands,
    load_tile,
    place_strands,
    sort_tile,
    store_tile,
    total_of_digit,
)
from .sweep_state import COUNT, MOST_ELEMENTS, OWN, UP_TO_HERE, PassPlan, SweepState, prepare

A = TypeVar("A", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


# -- kernels ----------------------------------------------------------------------------------------------


def look_back(state: Storage[U32], cell: U32, policy: RadixPolicy) -> U32:
    """How many elements with a digit stand before a tile, whose own status word is `cell`.

    Several words are asked for at a time, for each takes long to come; a word that is not there yet ends the round.
    """
    total = U32(0)
    before = cell - policy.radix
    found: Registers[U32] = Registers(U32, policy.looks)
    done = Bool(False)
    while not done:
        for i in range(policy.looks):
            found[i] = state.atomic_load(before - i * policy.radix)
        waiting = Bool(False)
        for i in range(policy.looks):
            if not done and not waiting:
                word = found[i]
                waiting = word == 0
                done = word >= UP_TO_HERE
                if not waiting:
                    total += word & COUNT
                    before -= policy.radix
    return total


@kernel
def sweep(
    cx: Invocation, key: SortableKey[A, W], plain: UnsignedKey[A, W], data: Storage[A], results: Storage[A],
    words: Storage[A], tile: Workgroup[W], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    state: Storage[U32], params: RadixParams, ticket: U32, plan_at: U32, first_cell: U32, place: DigitPlace,
    order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Moves every element of one tile to its digit's place."""
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
        sort_swept_tile(cx, mine, strand, tile, counters, shared, bases, state, first_cell, index, place, policy)
        store_swept_tile(cx, plan, key, plain, tile, results, words, bases, index, params, place, order, policy)


@kernel
def sweep_in_place(
    cx: Invocation, key: SortableKey[A, W], plain: UnsignedKey[A, W], data: Storage[A], words: Storage[A],
    tile: Workgroup[W], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    state: Storage[U32], params: RadixParams, ticket: U32, plan_at: U32, first_cell: U32, place: DigitPlace,
    order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """The same where the results take the data's place."""
    plan = take_tile(cx, counters, bases, state, ticket, plan_at, policy)
    if plan.runs():
        index = bases[1]
        strand = Strand.of(cx, policy)
        mine: Registers[W] = Registers(key.word, policy.items)
        if plan.reads_data():
            load_tile(key, data, order, index, strand, mine, params, policy)
        elif plan.goes_into_words():
            load_tile(plain, data, SortOrder.ASCENDING, index, strand, mine, params, policy)
        else:
            load_tile(plain, words, SortOrder.ASCENDING, index, strand, mine, params, policy)
        sort_swept_tile(cx, mine, strand, tile, counters, shared, bases, state, first_cell, index, place, policy)
        store_swept_tile(cx, plan, key, plain, tile, data, words, bases, index, params, place, order, policy)


def take_tile(
    cx: Invocation, counters: Workgroup[U32], bases: Workgroup[U32], state: Storage[U32], ticket: U32, plan_at: U32,
    policy: RadixPolicy,
) -> PassPlan:  # fmt: skip
    """The pass's plan; `bases[1]` is then the number of the next tile that nobody has, and the counters are clear."""
    if cx.local_id == 0:
        bases[1] = state.atomic_add(ticket, U32(1))
        bases[0] = state[plan_at]
    clear_counters(cx, counters, policy)
    return PassPlan(cx.load_for_all(bases, 0))


def sort_swept_tile(
    cx: Invocation, words: Registers[W], strand: Strand, tile: Workgroup[W], counters: Workgroup[U32],
    shared: Workgroup[U32], bases: Workgroup[U32], state: Storage[U32], first_cell: U32, index: U32,
    place: DigitPlace, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Sorts the tile, publishes its counts, and leaves in `bases` what leads from the tile to the result."""
    count_strands(cx, words, strand, counters, place, policy)
    counts: Registers[U32] = Registers(U32, policy.strands)
    total = total_of_digit(cx, counters, counts, policy)
    cell = first_cell + (index + policy.looks) * policy.radix + cx.local_id
    if cx.local_id < policy.radix:
        state.atomic_store(cell, total | OWN)
    first = place_strands(cx, counters, counts, shared, total, policy)
    cx.barrier()
    sort_tile(cx, words, strand, tile, counters, place, policy)
    if cx.local_id < policy.radix:
        before = look_back(state, cell, policy)
        state.atomic_store(cell, (before + total) | UP_TO_HERE)
        bases[cx.local_id] = before - first
    cx.barrier()


def store_swept_tile(
    cx: Invocation, plan: PassPlan, key: SortableKey[A, W], plain: UnsignedKey[A, W], tile: Workgroup[W],
    results: Storage[A], words: Storage[A], bases: Workgroup[U32], index: U32, params: RadixParams,
    place: DigitPlace, order: SortOrder, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Writes the tile to where the plan says: elements at the end, words before."""
    if plan.is_last():
        store_tile(cx, tile, key, results, order, index, bases, params, place, policy)
    elif plan.goes_into_words():
        store_tile(cx, tile, plain, words, SortOrder.ASCENDING, index, bases, params, place, policy)
    else:
        store_tile(cx, tile, plain, results, SortOrder.ASCENDING, index, bases, params, place, policy)


# -- schedule ---------------------------------------------------------------------------------------------


def radix_sweep_sort(
    key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int, in_place: bool = False
) -> Schedule:
    """Sorts `data` into `results`, or in place: fewer than 2**30 elements.

    `key_bits` says how many bits of a word differ at all; in place they must make an even number of digits.
    """
    if length >= MOST_ELEMENTS:
        raise InvalidArgumentError(f"a single-sweep radix sort takes fewer than {MOST_ELEMENTS} elements, not {length}")
    passes = -(-key_bits // policy.digit_bits)
    if in_place and passes % 2 == 1:
        raise InvalidArgumentError(f"a radix sort in place takes an even number of passes, not {passes}")
    data = Buffer("data", key.element, length, Role.INOUT if in_place else Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    words = Buffer("words", key.element, length, Role.SCRATCH)
    plain: UnsignedKey[A, W] = UnsignedKey(key.element, key.word, key_bits)
    state = SweepState(length, passes, policy)
    launches: list[Launch] = []
    if length:
        launches += prepare(key, data, state, order, in_place)
    for number in range(passes if length else 0):
        rest = (
            Workgroup(key.word, policy.tile), Workgroup(U32, policy.counters), Workgroup(U32, policy.scanned),
            Workgroup(U32, policy.radix), state.buffer(), RadixParams(U32(length)), U32(state.tickets + number),
            U32(state.plans + number), U32(number * state.cells), state.place(number), order, policy,
        )  # fmt: skip
        grid = Grid(state.tiles, policy.group_size)
        launches.append(
            sweep_in_place.launch(grid, key, plain, data, words, *rest)
            if in_place
            else sweep.launch(grid, key, plain, data, results, words, *rest)
        )
    arrays: list[Buffer[A]] = [data] if in_place else [data, results]
    return Schedule((*arrays, words, state.buffer()), tuple(launches))
