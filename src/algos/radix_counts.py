"""The digit histograms of a radix pass's tiles, in the portable form: how a tile learns where its digits begin."""

from __future__ import annotations

from typing import Protocol

import attrs

from ..kernel.language import *
from ..types.params import RadixPolicy
from .radix_layout import TilePlace

MOST_SUMMED = 320  # tiles: with more, a launch of prefix sums is as fast
_SPAN = 16  # tiles
_IN_FLIGHT = 8  # loads of an invocation at a time


@attrs.frozen
class DigitCounts:
    """The elements of a tile's row with one digit."""

    total: U32
    before: U32  # of these, in the tiles before


class Histograms(Protocol):
    """The trait of what a pass keeps of its tiles' histograms. An invocation asks about the digit of its local id."""

    def write(
        self, cx: Invocation, counts: Storage[U32], totals: Storage[U32], count: U32, policy: RadixPolicy
    ) -> None: ...
    def of_digit(
        self, cx: Invocation, counts: Storage[U32], totals: Storage[U32], here: TilePlace, policy: RadixPolicy
    ) -> DigitCounts: ...  # fmt: skip


@attrs.frozen
class Scanned:
    """A launch between histogram and scatter makes prefix sums of each digit's counts over the tiles of all rows."""

    has_rows: bool

    def write(
        self, cx: Invocation, counts: Storage[U32], totals: Storage[U32], count: U32, policy: RadixPolicy
    ) -> None:
        counts[cx.local_id * cx.num_groups + cx.group_id] = count

    def of_digit(
        self, cx: Invocation, counts: Storage[U32], totals: Storage[U32], here: TilePlace, policy: RadixPolicy
    ) -> DigitCounts:  # fmt: skip
        line = cx.local_id * cx.num_groups
        before, total = counts[line + cx.group_id], totals[cx.local_id]
        if self.has_rows:
            first = counts[line + here.leader]
            if here.next_leader < cx.num_groups:
                total = counts[line + here.next_leader]
            before -= first
            total -= first
        return DigitCounts(total, before)


@attrs.frozen
class Summed:
    """Of one row with few tiles: every tile adds its counts to those of its span of tiles, which are zero at first; the
    scatter adds up the spans, and the tiles before its own in the span. That saves a launch."""

    first: U32  # this pass's first span

    def write(
        self, cx: Invocation, counts: Storage[U32], totals: Storage[U32], count: U32, policy: RadixPolicy
    ) -> None:  # fmt: skip
        counts[cx.group_id * policy.radix + cx.local_id] = count
        totals.atomic_add((self.first + cx.group_id // _SPAN) * policy.radix + cx.local_id, count)

    def of_digit(
        self, cx: Invocation, counts: Storage[U32], totals: Storage[U32], here: TilePlace, policy: RadixPolicy
    ) -> DigitCounts:  # fmt: skip
        span, end = cx.group_id // _SPAN, (cx.num_groups + _SPAN - 1) // _SPAN
        before = added_up(cx, totals, self.first, self.first + span, policy)
        total = before + added_up(cx, totals, self.first + span, self.first + end, policy)
        return DigitCounts(total, before + added_up(cx, counts, span * _SPAN, cx.group_id, policy))


def added_up(cx: Invocation, histograms: Storage[U32], begin: U32, end: U32, policy: RadixPolicy) -> U32:
    """The sum over some histograms of this invocation's digit."""
    total = U32(0)
    loaded: Registers[U32] = Registers(U32, _IN_FLIGHT)
    for first in dynamic_range(begin, end, U32(_IN_FLIGHT)):
        for i in dynamic_range(U32(0), U32(_IN_FLIGHT)):
            loaded[i] = histograms[minimum(first + i, end - 1) * policy.radix + cx.local_id]
        for i in dynamic_range(U32(0), U32(_IN_FLIGHT)):
            total += loaded[i] if first + i < end else U32(0)
    return total


def spans_of(rows: int, tiles: int) -> int:
    """The spans of all tiles; 0 if there are too many tiles, or rows, to do without prefix sums."""
    return -(-tiles // _SPAN) if rows == 1 and tiles <= MOST_SUMMED else 0
