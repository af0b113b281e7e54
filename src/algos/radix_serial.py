"""LSD radix sort for CPU cores: each core scans a share of the elements serially, so there is no ranking and no
barrier. A pass is a histogram of every share, a prefix sum over digits and shares, and a scatter."""

from __future__ import annotations

import attrs

from ..kernel.language import *
from ..machine import TargetInfo
from ..types.checks import as_int, instance_of, within
from ..types.elements import WORD_BYTES
from ..types.keys import UnsignedKey
from .batch import Batch, Mode, PairsAlgorithm
from .bitonic import from_ordered, to_ordered
from .fit import no_radix
from .radix_layout import DigitPlace
from .sizes import LARGEST_U32, require_countable, require_digits
from .sorts import bits_of, element_bits, require_integers

_UP = SortOrder.ASCENDING


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
    cx: Invocation, key: SortableKey[A, N], data: Storage[A], counters: Workgroup[U32], counts: Storage[U32],
    shares: Shares, place: DigitPlace, order: SortOrder,
) -> None:  # fmt: skip
    """Writes the digit histogram of every share."""
    for digit in dynamic_range(U32(0), U32(place.radix)):
        counters[digit] = U32(0)
    for i in dynamic_range(shares.begin(cx.group_id), shares.end(cx.group_id)):
        mine = place.digit_of(to_ordered(key, data[i], order))
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
    cx: Invocation, source: SortableKey[A, N], data: Storage[A], target: SortableKey[A, N], results: Storage[A],
    values: Storage[V], moved: Storage[V], places: Workgroup[U32], counts: Storage[U32], shares: Shares,
    place: DigitPlace, orders: tuple[SortOrder, SortOrder], mode: Mode[V],
) -> None:  # fmt: skip
    """Scatters every key, and its value if it has one, to its sorted index."""
    for digit in dynamic_range(U32(0), U32(place.radix)):
        places[digit] = counts[shares.counter(cx.group_id, digit, place.radix)]
    origin = shares.origin(cx.group_id)
    for i in dynamic_range(shares.begin(cx.group_id), shares.end(cx.group_id)):
        word = to_ordered(source, data[i], orders[0])
        mine = place.digit_of(word)
        to = places[mine]
        places[mine] = to + U32(1)
        if mode.keeps_keys:
            results[to] = from_ordered(target, word, orders[1])
        if mode.takes_values:
            moved[to] = mode.value(i - origin) if mode.counts_places else values[i]


@attrs.frozen
class SerialRadixPolicy:
    """Tuning of SerialRadix."""

    digit_bits: int = attrs.field(default=8, converter=as_int, validator=within(1, 12))
    # shares of a single row, at most
    shares: int = attrs.field(default=16, converter=as_int, validator=within(1, 1 << 16))
    # elements in a share, at least
    least: int = attrs.field(default=1 << 13, converter=as_int, validator=within(1, 1 << 30))

    @property
    def radix(self) -> int:
        return 1 << self.digit_bits

    def share(self, rows: int, length: int) -> int:
        """The elements in a share, never more than there are. With several rows, each is a share."""
        return length if rows > 1 else min(length, max(self.least, -(-length // self.shares)))


def serial_radix_sort(batch: Batch, policy: SerialRadixPolicy, bits: range) -> Schedule:
    """Sorts every row, stably, by the given bits of its words, in three launches a pass."""
    key, rows = batch.key, batch.rows
    require_countable(rows, batch.length)
    require_digits(bits.stop, key.word.type.bits)
    if not batch.count:
        return batch.schedule(())
    first, end = bits.start // policy.digit_bits, max(1, -(-bits.stop // policy.digit_bits))
    mode = batch.mode()
    keys, values = batch.alternating(mode, end - first)
    share = policy.share(rows, batch.length)
    number = -(-batch.count // share)
    shares = Shares(U32(batch.count), U32(share), U32(number), rows > 1)
    counts = Buffer("counts", U32, number * policy.radix, Role.SCRATCH)
    grid, counters = Grid(number, 1), Workgroup(U32, policy.radix)
    plain = UnsignedKey(key.element, key.word, element_bits(key))  # one kernel for all `bits`
    launches: list[Launch] = []
    before = 0
    for number in range(first, end):
        is_first, is_last = number == first, number == end - 1
        after = 1 if (end - number) % 2 == 1 else 2
        source, target = key if is_first else plain, key if is_last else plain
        orders = (batch.order if is_first else _UP, batch.order if is_last else _UP)
        place, own = DigitPlace(U32(number), policy.digit_bits), mode.in_pass(is_first, is_last)
        launches += (
            serial_count.launch(grid, source, keys[before], counters, counts, shares, place, orders[0]),
            serial_add_up.launch(Grid(rows, 1), counts, shares, place),
            serial_scatter.launch(
                grid, source, keys[before], target, keys[after], values[before], values[after], counters, counts,
                shares, place, orders, own,
            ),
        )  # fmt: skip
        before = after
    return batch.schedule(launches)


@attrs.frozen
class SerialRadix(PairsAlgorithm):
    """LSD radix sort for CPU cores: each invocation serially sorts a share of the elements; of several rows, one
    each."""

    policy: SerialRadixPolicy = attrs.field(factory=SerialRadixPolicy, validator=instance_of(SerialRadixPolicy))

    def fitted(self, key: SortableKey[E, W], length: int, info: TargetInfo, value_bytes: int = 0, /) -> SerialRadix:
        require_integers(key, "SerialRadix")
        policy, limits = self.policy, info.limits
        bits = min(policy.digit_bits, (limits.workgroup_bytes // WORD_BYTES).bit_length() - 1)
        if bits < 1:
            raise no_radix(info)
        return SerialRadix(attrs.evolve(policy, digit_bits=bits, shares=min(policy.shares, limits.groups)))

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        require_integers(key, "SerialRadix")
        return (Placement.ELSEWHERE,)

    def most_rows(self, length: int, groups: int, /) -> int:
        return min(LARGEST_U32 // max(length, self.policy.radix), groups)

    def sort(self, batch: Batch, /) -> Schedule:
        return serial_radix_sort(batch, self.policy, range(bits_of(batch.key)))
