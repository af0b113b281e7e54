"""Onesweep: LSD radix sort with one launch, one read and one write a digit, by decoupled look-back.

After Merrill and Garland 2016 and Adinets and Merrill 2022. It requires forward progress of started workgroups. Each
tile publishes its digit counts in status words at once, and inclusive prefix sums as soon as it has them; it walks back
over its predecessors', a window at a time, until it meets a prefix sum. Tiles are numbered by an atomic ticket, so that
none waits for one that has not started. A row of more elements than a status word's 30 bits count is swept in portions,
a launch each.
"""

from __future__ import annotations

from ..kernel.language import *
from ..types.keys import UnsignedKey
from ..types.params import MOST_COUNTED, RadixPolicy
from .batch import Mode
from .radix_layout import DigitPlace, Layout, TilePlace
from .radix_tile import Ranking, Strand, clear_counters, load_tile, place_given, place_values, store_keys, store_values
from .sweep_state import INTO_WORDS, IS_LAST, READS_DATA, RUNS, PassPlan

# A status word, one for each tile and digit value: flags in the two high bits, a count below. Less than OWN: invalid.
# Passes alternate the highest bit (PassPlan.phase_bit), so that words left by the pass before are invalid without
# clearing them.
COUNT = MOST_COUNTED
OWN = 1 << 30  # the tile's own count (Merrill and Garland's "aggregate")
UP_TO_HERE = 1 << 31  # the inclusive prefix sum

_UP = SortOrder.ASCENDING  # of words, of which descending ones are mirrored


@kernel
def sweep(
    cx: Invocation, key: SortableKey[A, N], plain: UnsignedKey[A, N], data: Storage[A], results: Storage[A],
    words: Storage[A], values: Storage[V], moved: Storage[V], spare: Storage[V], permutation: Storage[U64],
    tile: Workgroup[N], beside: Workgroup[V], counters: Workgroup[U32], shared: Workgroup[U32], bases: Workgroup[U32],
    state: Storage[U32], layout: Layout, ticket: U32, plan_at: U32, first_start: U32, place: DigitPlace,
    order: SortOrder, mode: Mode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Scatters every key of a tile, and its value if it has one, to its sorted index. The first pass that runs makes
    words of the elements in `data`, the last makes elements of them; which buffers those between read and write, only
    the device knows, where passes are skipped."""
    plan = take_tile(cx, counters, bases, state, ticket, plan_at, policy)
    if plan.has(RUNS):
        here = layout.tile_at(bases[1], policy.tile)
        strand = Strand.of(cx, policy)
        mine: Registers[N] = Registers(key.word, policy.items)
        if plan.has(READS_DATA):
            load_tile(key, data, order, here, strand, mine, policy)
        elif plan.has(INTO_WORDS):
            load_tile(plain, results, _UP, here, strand, mine, policy)
        else:
            load_tile(plain, words, _UP, here, strand, mine, policy)
        ranking = Ranking(mine, strand, counters, place)
        ranking.count_strands(cx, policy)
        counts: Registers[U32] = Registers(U32, policy.strands)
        total = ranking.total_of_digit(cx, counts, policy)
        publish_own(cx, state, here, total, plan.phase_bit(), policy)
        first = ranking.place_strands(cx, counts, shared, total, policy)
        cx.barrier()
        places: Registers[U32] = Registers(U32, policy.items)
        targets: Registers[U32] = Registers(U32, policy.items)
        ranking.sort_tile(cx, tile, places, policy)
        lead_from_tile(cx, state, bases, layout, here, total, first, first_start, plan.phase_bit(), policy)
        if plan.has(IS_LAST):
            store_keys(cx, tile, key, results, order, mode.keeps_keys, here, bases, targets, place, policy)
        elif plan.has(INTO_WORDS):
            store_keys(cx, tile, plain, words, _UP, True, here, bases, targets, place, policy)
        else:
            store_keys(cx, tile, plain, results, _UP, True, here, bases, targets, place, policy)
        if mode.takes_values:
            cx.barrier()  # the tile is dead from here: the values may be overlaid on it
            if plan.has(READS_DATA):
                place_given(values, here, strand, places, beside, mode, policy)
            elif plan.has(INTO_WORDS):
                place_values(moved, here, strand, places, beside, policy)
            else:
                place_values(spare, here, strand, places, beside, policy)
            cx.barrier()
            if mode.widens and plan.has(IS_LAST):
                store_values(cx, beside, permutation, U64, targets, here, policy)
            elif plan.has(INTO_WORDS):
                store_values(cx, beside, spare, mode.value, targets, here, policy)
            else:
                store_values(cx, beside, moved, mode.value, targets, here, policy)


def take_tile(
    cx: Invocation, counters: Workgroup[U32], bases: Workgroup[U32], state: Storage[U32], ticket: U32, plan_at: U32,
    policy: RadixPolicy,
) -> PassPlan:  # fmt: skip
    """Draws a ticket: leaves the tile's number in `bases[1]`, and clears the counters. Returns the pass's plan."""
    if cx.local_id == 0:
        bases[1] = state.atomic_add(ticket, U32(1))
        bases[0] = state[plan_at]
    clear_counters(cx, counters, policy.counters)
    return PassPlan(cx.load_uniform(bases, 0))


def status_word(cx: Invocation, index: U32, policy: RadixPolicy) -> U32:
    """The index of a tile's status word of this invocation's digit."""
    return (index + policy.lookback) * policy.radix + cx.local_id


def publish_own(
    cx: Invocation, state: Storage[U32], here: TilePlace, total: U32, phase_bit: U32, policy: RadixPolicy
) -> None:
    """Publishes the tile's own counts. A row's first tile does not: it publishes prefix sums shortly."""
    if cx.local_id < policy.radix and not here.leads():
        state.atomic_store(status_word(cx, here.number, policy), (total | OWN) ^ phase_bit)


def lead_from_tile(
    cx: Invocation, state: Storage[U32], bases: Workgroup[U32], layout: Layout, here: TilePlace, total: U32,
    first: U32, first_start: U32, phase_bit: U32, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Looks back, publishes prefix sums, and leaves in `bases` each digit's offset from the tile to the result."""
    if cx.local_id < policy.radix:
        status = status_word(cx, here.number, policy)
        starts_at = first_start + here.row * layout.apart + cx.local_id
        start = state[starts_at] if layout.carries else U32(0)
        before = U32(0)
        if not layout.carries:
            before = state[starts_at] if here.leads() else U32(0)
        if here.leads():  # inside the branch: in the simulator's lockstep the other tiles spin in the `else`
            publish_sum(state, status, before + total, phase_bit)
        else:
            before = look_back(state, status, phase_bit, policy)
            publish_sum(state, status, before + total, phase_bit)
        if layout.carries:
            before += start
            if here.is_last_of_full_row() and here.remaining() > policy.tile:
                state[starts_at + layout.apart] = before + total
        bases[cx.local_id] = here.origin + before - first
    cx.barrier()


def publish_sum(state: Storage[U32], status: U32, count: U32, phase_bit: U32) -> None:
    state.atomic_store(status, (count | UP_TO_HERE) ^ phase_bit)


def look_back(state: Storage[U32], status: U32, phase_bit: U32, policy: RadixPolicy) -> U32:
    """The exclusive prefix of a tile's digit; `status` is the index of the tile's own status word. A window of several
    words is loaded at a time, to overlap their latency; an invalid word ends the round."""
    total = U32(0)
    before = status - policy.radix
    found: Registers[U32] = Registers(U32, policy.lookback)
    done = Bool(False)
    while not done:
        for i in range(policy.lookback):
            found[i] = state.atomic_load(before - i * policy.radix)
        waiting = Bool(False)
        for i in range(policy.lookback):
            if not done and not waiting:
                word = found[i] ^ phase_bit
                waiting = word < OWN
                done = word >= UP_TO_HERE
                if not waiting:
                    total += word & COUNT
                    before -= policy.radix
    return total
