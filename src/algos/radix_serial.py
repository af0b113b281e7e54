"""LSD radix sort for CPU cores: each core scans a share of the elements serially.

A pass is a histogram of every share, a prefix sum over digits and shares, and a scatter. Invocations share no memory,
so there is no ranking and no barrier. With 256 digit values, the cache lines being written fit a core's cache.
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
    """The shares of one row, of equal length but for the last; or rows of one length, of which each is a share."""

    num_elements: U32  # in all shares
    share: U32
    number: U32
    are_rows: bool

    def begin(self, group: U32) -> U32:
        return group * self.share

    def end(self, group: U32) -> U32:
        """One past the share's last element, computed without overflow: an array may end at 2**32 - 1."""
        begin = group * self.share
        return self.num_elements if self.num_elements - begin < self.share else begin + self.share

    def origin(self, group: U32) -> U32:
        """The index of the first element of a share's row."""
        return group * self.share if self.are_rows else U32(0)

    def counter(self, group: U32, digit: U32, radix: int) -> U32:
        """The index of a share's counter of a digit: counters are grouped by row, then by digit."""
        return group * radix + digit if self.are_rows else digit * self.number + group

    def counters_of_row(self, radix: int) -> U32:
        return U32(radix) if self.are_rows else self.number * radix


@kernel
def serial_count(
    cx: Invocation, key: SortableKey[A, W], data: Storage[A], counters: Workgroup[U32], counts: Storage[U32],
    shares: Shares, place: DigitPlace, order: SortOrder,
) -> None:  # fmt: skip
    """Writes the digit histogram of every share."""
    for digit in dynamic_range(U32(0), U32(place.radix)):
        counters[digit] = U32(0)
    for i in dynamic_range(shares.begin(cx.group_id), shares.end(cx.group_id)):
        mine = place.digit_of(to_ordered(key, data[i], order)).value
        counters[mine] += U32(1)
    for digit in dynamic_range(U32(0), U32(place.radix)):
        counts[shares.counter(cx.group_id, digit, place.radix)] = counters[digit]


@kernel
def serial_add_up(cx: Invocation, counts: Storage[U32], shares: Shares, place: DigitPlace) -> None:
    """An exclusive prefix sum, one workgroup for each row: from counts to the index of each share's first element."""
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
    """Scatters every key, and its value if it has one, to its sorted index."""
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
