"""Radix sort for processor cores: each has a share of the elements and goes through it one after another.

A pass counts the digits of every share, adds the counts up, digit by digit and share by share, and moves every element
to its digit's place. No two invocations share memory, so there is nothing to rank, and nobody to wait for. A core's
cache holds what 256 digits are about to write.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..kernel.kernel import kernel
from ..types.digits import DigitPlace
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Storage, Workgroup
from ..types.scalars import U8, U16, U32, U64
from .bitonic import from_ordered, to_ordered
from .radix_tile import RadixMode

A = TypeVar("A", U8, U16, U32, U64)
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@attrs.frozen
class Shares:
    """Of one row, all of one length but for the last; or rows of one length, each of them a share."""

    num_elements: U32  # of all
    share: U32
    number: U32
    are_rows: bool

    def begin(self, group: U32) -> U32:
        return group * self.share

    def end(self, group: U32) -> U32:
        """An array may end where 32 bits end, so no sum here goes beyond it."""
        begin = group * self.share
        return self.num_elements if self.num_elements - begin < self.share else begin + self.share

    def origin(self, group: U32) -> U32:
        """Where the row of a share begins."""
        return group * self.share if self.are_rows else U32(0)

    def counter(self, group: U32, digit: U32, radix: int) -> U32:
        """Where a share's count of a digit lies: those of a row together, and in it those of a digit."""
        return group * radix + digit if self.are_rows else digit * self.number + group

    def counters_of_row(self, radix: int) -> U32:
        return U32(radix) if self.are_rows else self.number * radix


@kernel
def serial_count(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], counters: Workgroup[U32], counts: Storage[U32],
    shares: Shares, place: DigitPlace, order: SortOrder,
) -> None:  # fmt: skip
    """Counts the digits of every share."""
    for digit in dynamic_range(U32(0), U32(place.radix)):
        counters[digit] = U32(0)
    for i in dynamic_range(shares.begin(cx.group_id), shares.end(cx.group_id)):
        mine = place.digit_of(to_ordered(key, data[i], order)).value
        counters[mine] += U32(1)
    for digit in dynamic_range(U32(0), U32(place.radix)):
        counts[shares.counter(cx.group_id, digit, place.radix)] = counters[digit]


@kernel
def serial_add_up(cx: Invocation, counts: Storage[U32], shares: Shares, place: DigitPlace) -> None:
    """A workgroup a row: turns each share's count of a digit into the place of the first of them in the array."""
    before = shares.origin(cx.group_id)
    first = cx.group_id * shares.counters_of_row(place.radix)
    for i in dynamic_range(first, first + shares.counters_of_row(place.radix)):
        mine = counts[i]
        counts[i] = before
        before += mine


@kernel
def serial_scatter(
    cx: Invocation, source: SortableKey[A, W], data: Storage[A], target: SortableKey[A, W], results: Storage[A],
    values: Storage[V], moved: Storage[V], places: Workgroup[U32], counts: Storage[U32], shares: Shares,
    place: DigitPlace, orders: tuple[SortOrder, SortOrder], mode: RadixMode[V],
) -> None:  # fmt: skip
    """Moves every key to its digit's place, and its value, if it has one, to the same place."""
    for digit in dynamic_range(U32(0), U32(place.radix)):
        places[digit] = counts[shares.counter(cx.group_id, digit, place.radix)]
    origin = shares.origin(cx.group_id)
    for i in dynamic_range(shares.begin(cx.group_id), shares.end(cx.group_id)):
        word = to_ordered(source, data[i], orders[0])
        mine = place.digit_of(word).value
        to = places[mine]
        places[mine] = to + U32(1)
        if mode.keeps_keys:
            results[to] = from_ordered(target, word, orders[1])
        if mode.takes_values:
            moved[to] = mode.value(i - origin) if mode.counts_places else values[i]
