"""Reduction of rows over any monoid.

Invocations reduce blocks of a row in a grid-stride loop; totals are combined by shuffles, then as a tree in workgroup
memory, those of workgroups by a second launch. The order depends on lengths and policy alone, so results are
reproducible; a float sum's rounding error grows with the iterations of one invocation, not with the length.

An invocation has a share of a row, and takes a block of elements at a time. With an accumulator for each element of a
block, a CPU vectorises. On a GPU, to hide latency, a block is loaded before any of it is used, combined pairwise, and
added to a single accumulator (`Totals`); a float sum is then rounded log2(items) + 1 times a block.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import attrs

from ..kernel.language import *
from ..types.params import ReducePolicy, Totals
from ..types.searches import Ranked, Search


@attrs.frozen
class Share:
    """The blocks of a row that an invocation reduces together with others, its ranks: a strided loop."""

    first: U32  # the index of the row's first element in the buffer
    stride: U32  # from an element of the row to the next
    length: U32  # of the row
    start: U32  # the first block
    leap: U32  # from a block to the next
    rank: U32
    ranks: U32
    takes_rest: Bool  # whether it also reduces the remainder after the whole blocks


def take_block(
    monoid: Monoid[E, S], total: S, found: Registers[E], index: U32, step: U32, count: U32, policy: ReducePolicy
) -> S:
    """Combines the total with the first `count` elements of `found`, whose indices in the row are `index`, `index +
    step`, and so on, all greater than those of the total."""
    if is_search(monoid):
        first: S = search_block(monoid, total, found, index, step, count, policy)
        return first
    states: Registers[S] = Registers(monoid.state, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        states[i] = monoid.lift(found[i], index + i * step) if i < count else monoid.identity()
    return monoid.combine(total, combine_pairs(monoid, states, policy))


def is_search(monoid: object) -> TypeGuard[Search[Any, Any]]:
    return isinstance(monoid, Search)


def search_block(
    search: Search[Any, Any], total: Any, found: Registers[E], index: U32, step: U32, count: U32, policy: ReducePolicy
) -> Any:
    """The same for argmin and argmax: finds a block's least word, which is cheap, and its index only if it precedes the
    total, which is rare."""
    nothing = search.identity()
    words: Registers[Any] = Registers(search.key.word, policy.items)
    least = nothing.rank
    for i in dynamic_range(U32(0), U32(policy.items)):
        words[i] = search.word(found[i]) if i < count else nothing.rank
        least = minimum(least, words[i])
    rank = search.rank(least)
    if (count > 0) & Ranked(rank, index).precedes(total):
        place = nothing.index
        for i in dynamic_range(U32(0), U32(policy.items)):
            if search.rank(words[i]) == rank:
                place = minimum(place, index + i * step)
        total = Ranked(rank, place)
    return total


def combine_pairs(monoid: Monoid[E, S], states: Registers[S], policy: ReducePolicy) -> S:
    """Combines an invocation's states pairwise, as a tree."""
    for width in policy.halvings:
        half = (width + 1) // 2
        for i in range(width - half):
            states[i] = monoid.combine(states[i], states[i + half])
    return states[0]


def reduce_share(monoid: Monoid[E, S], data: Storage[E], share: Share, policy: ReducePolicy) -> S:
    match policy.totals:
        case Totals.ONE:
            return reduce_blocks(monoid, data, share, policy)
        case Totals.EACH:
            return reduce_side_by_side(monoid, data, share, policy)


def whole_blocks(share: Share, policy: ReducePolicy) -> U32:
    """The end of the whole blocks, which need no bounds checks."""
    return share.length - share.length % (share.ranks * policy.items)


def reduce_blocks(monoid: Monoid[E, S], data: Storage[E], share: Share, policy: ReducePolicy) -> S:
    """Reduces a share with a single accumulator."""
    whole = whole_blocks(share, policy)
    total = monoid.identity()
    found: Registers[E] = Registers(monoid.element, policy.items)
    for start in dynamic_range(share.start, whole, share.leap):
        index = start + share.rank
        place = share.first + index * share.stride
        for i in dynamic_range(U32(0), U32(policy.items)):
            found[i] = data[add_nowrap(place, i * (share.ranks * share.stride))]
        total = take_block(monoid, total, found, index, share.ranks, U32(policy.items), policy)
    if share.takes_rest and whole < share.length:
        load_rest(data, found, share, whole, policy)
        rest = share.length - whole
        count = (rest - minimum(share.rank, rest) + share.ranks - 1) // share.ranks
        total = take_block(monoid, total, found, whole + share.rank, share.ranks, count, policy)
    return total


def reduce_side_by_side(monoid: Monoid[E, S], data: Storage[E], share: Share, policy: ReducePolicy) -> S:
    """Reduces a share with an accumulator for each element of a block."""
    whole = whole_blocks(share, policy)
    totals: Registers[S] = Registers(monoid.state, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        totals[i] = monoid.identity()
    for start in dynamic_range(share.start, whole, share.leap):
        for i in dynamic_range(U32(0), U32(policy.items)):
            index = start + i * share.ranks + share.rank
            element = data[index * share.stride + share.first]
            totals[i] = monoid.combine(totals[i], monoid.lift(element, index))
    if share.takes_rest and whole < share.length:
        found: Registers[E] = Registers(monoid.element, policy.items)
        load_rest(data, found, share, whole, policy)
        for i in dynamic_range(U32(0), U32(policy.items)):
            behind = i * share.ranks + share.rank
            if behind < share.length - whole:
                totals[i] = monoid.combine(totals[i], monoid.lift(found[i], whole + behind))
    return combine_pairs(monoid, totals, policy)


def load_rest(data: Storage[E], found: Registers[E], share: Share, whole: U32, policy: ReducePolicy) -> None:
    """Loads the remainder after the whole blocks; beyond the row's end, its last element."""
    rest = share.length - whole
    for i in dynamic_range(U32(0), U32(policy.items)):
        found[i] = data[(whole + minimum(i * share.ranks + share.rank, rest - 1)) * share.stride + share.first]


def reduce_lanes(cx: Invocation, monoid: Monoid[E, S], total: S, lanes: U32) -> S:
    """A butterfly reduction over so many neighbouring lanes, a power of two; all get the result."""
    distance = lanes // 2
    while distance > 0:
        total = monoid.combine(total, cx.shuffle_xor(total, distance))
        distance = distance // 2
    return total


def reduce_all(cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], total: S, policy: ReducePolicy) -> S:
    """Combines the states of a workgroup's invocations, those of a subgroup by shuffles."""
    count = cx.group_size
    if policy.subgroups:
        total = reduce_lanes(cx, monoid, total, cx.subgroup_size)
        count = cx.group_size // cx.subgroup_size
        if cx.lane == 0:
            shared[cx.subgroup_id] = total
    else:
        shared[cx.local_id] = total
    cx.barrier()
    reduce_workgroup(cx, monoid, shared, count)
    return shared[0]


def reduce_workgroup(cx: Invocation, monoid: Monoid[E, S], shared: Workgroup[S], count: U32) -> None:
    """A tree reduction of the first `count` states of workgroup memory, into its first."""
    while count > 1:
        half = (count + 1) // 2
        if cx.local_id < count - half:
            shared[cx.local_id] = monoid.combine(shared[cx.local_id], shared[cx.local_id + half])
        cx.barrier()
        count = half
