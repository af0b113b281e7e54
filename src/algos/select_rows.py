"""Selection by workgroups: the first k of each part of a row, then of the parts' candidates, until one part is left.

A workgroup holds its part in registers. The k-th of the minima of a few sets of invocations is a threshold that at
least k elements pass, and rarely many more. Those go to workgroup memory and are ranked by counting how many precede
each. Where too many pass, the k-th element itself is found by radix select. Candidates: see candidates.py.
"""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from ..kernel.language import *
from ..kernel.launch import unbound
from ..types.checks import as_int, require, within
from ..types.monoids import OverStates
from ..types.params import MOST_INVOCATIONS, MOST_ITEMS, TilePolicy
from .candidates import DIGITS, C, digits_of, first_of

D = TypeVar("D")


@attrs.frozen
class SelectParams:
    """Rows of one length, in parts of equal size but for the last."""

    num_rows: U32
    length: U32
    k: U32
    parts: U32  # of a row


@attrs.frozen
class PartPolicy(TilePolicy):
    """Tuning of selection from parts of rows: a part is a tile, or less."""

    group_size: int = attrs.field(default=256, converter=as_int, validator=within(1, MOST_INVOCATIONS))
    # elements in an invocation's registers
    items: int = attrs.field(default=16, converter=as_int, validator=within(1, MOST_ITEMS))
    # sets of invocations, whose minima are ranked: at least k
    sets: int = attrs.field(default=64, converter=as_int, validator=within(1, MOST_INVOCATIONS))
    # candidates in workgroup memory: at least k
    kept: int = attrs.field(default=512, converter=as_int, validator=within(1, 1 << 20))

    def __attrs_post_init__(self) -> None:
        require(self.sets <= self.group_size, self, "sets", f"at most group_size={self.group_size}")


def count_before(candidates: Workgroup[C], mine: C, count: U32) -> U32:
    """The rank of a candidate among the first `count`: how many precede it."""
    before = U32(0)
    for i in dynamic_range(U32(0), count):
        before += U32(candidates[i] < mine)
    return before


def kth_of(
    cx: Invocation, source: Monoid[E, C], data: Storage[E], first: U32, place: U32, count: U32, k: U32,
    counters: Workgroup[U32], digits: int,
) -> C:  # fmt: skip
    """Radix select: the k-th of `count` elements from index `first`, which is `place` in the row."""
    found = source.identity()
    wanted = k
    for number in dynamic_range(U32(0), U32(digits)):
        for d in dynamic_range(cx.local_id, U32(DIGITS), cx.group_size):
            counters[d] = U32(0)
        cx.barrier()
        for i in dynamic_range(cx.local_id, count, cx.group_size):
            state = source.lift(data[first + i], place + i)
            if state.begins_as(found, number):
                counters.atomic_add(state.digit(number), U32(1))
        cx.barrier()
        seen = U32(0)
        before = U32(0)
        digit = U32(0)
        for d in dynamic_range(U32(0), U32(DIGITS)):
            seen += counters[d]
            if seen < wanted:
                before = seen
                digit = d + 1
        wanted = wanted - before
        found = found.with_digit(number, digit)
        cx.barrier()
    return found


def gather_first(
    cx: Invocation, source: Monoid[E, C], data: Storage[E], first: U32, place: U32, count: U32, k: U32,
    least: Workgroup[C], kept: Workgroup[C], counters: Workgroup[U32],
    total: Workgroup[U32], digits: int, policy: PartPolicy,
) -> U32:  # fmt: skip
    """Collects at least the first k elements of a part in `kept`, unordered, or all that are not padding if they are
    fewer; returns how many. k is at most `count`."""
    elements: Registers[E] = Registers(source.element, policy.items)
    last = source.state.last_element()  # padding comes after it
    mine = last
    for i in dynamic_range(U32(0), U32(policy.items)):
        elements[i] = data[first + minimum(i * cx.group_size + cx.local_id, count - 1)]
    for i in dynamic_range(U32(0), U32(policy.items)):
        index = i * cx.group_size + cx.local_id
        state = source.lift(elements[i], place + index)
        if index < count and state < mine:
            mine = state
    least[cx.local_id] = mine
    if cx.local_id == 0:
        least[cx.group_size] = last
        counters[DIGITS] = U32(0)
    cx.barrier()
    if cx.local_id < policy.sets:
        for i in dynamic_range(cx.local_id + policy.sets, cx.group_size, U32(policy.sets)):
            other = least[i]
            if other < mine:
                mine = other
        least[cx.local_id] = mine
    cx.barrier()
    if (cx.local_id < policy.sets) & (mine < last):
        if count_before(least, mine, U32(policy.sets)) == k - 1:
            least[cx.group_size] = mine
    cx.barrier()
    threshold = least[cx.group_size]
    for i in dynamic_range(U32(0), U32(policy.items)):
        index = i * cx.group_size + cx.local_id
        state = source.lift(elements[i], place + index)
        if index < count and not threshold < state:
            slot = counters.atomic_add(DIGITS, U32(1))
            if slot < policy.kept:
                kept[slot] = state
    cx.barrier()
    if cx.local_id == 0:
        total[0] = counters[DIGITS]
    if cx.load_uniform(total, 0) > policy.kept:
        threshold = kth_of(cx, source, data, first, place, count, k, counters, digits)
        if cx.local_id == 0:
            counters[DIGITS] = U32(0)
        cx.barrier()
        for i in dynamic_range(cx.local_id, count, cx.group_size):
            state = source.lift(data[first + i], place + i)
            if not threshold < state:
                slot = counters.atomic_add(DIGITS, U32(1))
                if slot < policy.kept:  # always true, as exactly k pass
                    kept[slot] = state
        cx.barrier()
    return counters[DIGITS]


@kernel
def select_from_parts(
    cx: Invocation, source: Monoid[E, C], from_: Storage[E], data: Storage[D], least: Workgroup[C],
    kept: Workgroup[C], counters: Workgroup[U32], total: Workgroup[U32], candidates: Storage[C], values: Storage[D],
    indices: Storage[U64], params: SelectParams, length: U32, digits: int, is_last: bool, policy: PartPolicy,
) -> None:  # fmt: skip
    """Writes the first k of every part, sorted; a shorter part is padded with the identity, which comes last. In the
    last launch a part is a whole row, and its values and indices are written; `length` is that of `data`'s rows."""
    for part in dynamic_range(cx.group_id, params.num_rows * params.parts, cx.num_groups):
        row = part if is_last else part // params.parts
        place = U32(0) if is_last else (part - row * params.parts) * policy.tile
        count = params.length if is_last else minimum(U32(policy.tile), params.length - place)
        wanted = params.k if is_last else minimum(params.k, count)
        found = gather_first(
            cx, source, from_, row * params.length + place, place, count, wanted, least, kept, counters, total, digits,
            policy,
        )  # fmt: skip
        for i in dynamic_range(cx.local_id, found, cx.group_size):
            rank = count_before(kept, kept[i], found)
            slot = part * params.k + rank
            if rank < params.k:
                if is_last:
                    index = kept[i].place
                    indices[slot] = U64(index)
                    values[slot] = data[row * length + index]
                else:
                    candidates[slot] = kept[i]
        if not is_last:
            for i in dynamic_range(found + cx.local_id, params.k, cx.group_size):
                candidates[part * params.k + i] = source.identity()
        cx.barrier()


def parts_of(length: int, policy: PartPolicy) -> int:
    return -(-length // policy.tile)


def select_by_parts(
    key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder,
    buffers: tuple[Buffer[E], Buffer[E], Buffer[U64]], groups: int, policy: PartPolicy,
) -> Schedule:  # fmt: skip
    """All launches, of at most `groups` workgroups. k is at most half a tile, so that each launch shrinks the rows."""
    data, values, indices = buffers
    source = first_of(key, order)
    digits = digits_of(source.state)
    launches: list[Launch] = []
    memories = (
        Workgroup(source.state, policy.group_size + 1), Workgroup(source.state, policy.kept),
        Workgroup(U32, DIGITS + 1), Workgroup(U32, 1),
    )  # fmt: skip
    from_: Buffer[Any] = data
    left, is_last = length, False
    while not is_last:
        parts = parts_of(left, policy)
        is_last = parts == 1
        into: Buffer[Any] = unbound(source.state)
        if not is_last:
            into = Buffer(f"candidates_{len(launches)}", source.state, rows * parts * k, Role.SCRATCH)
        grid = Grid(min(groups, rows * parts), policy.group_size)
        params = SelectParams(U32(rows), U32(left), U32(k), U32(parts))
        launches.append(
            select_from_parts.launch(
                grid, source, from_, data, *memories, into, values, indices, params, U32(length), digits, is_last,
                policy,
            )
        )  # fmt: skip
        from_, left, source = into, parts * k, OverStates(first_of(key, order))
    return Schedule(buffers, tuple(launches))
