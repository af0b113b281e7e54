"""SerialRadix: schedules of the radix sort for CPU cores, of keys, pairs and indices; see radix_serial.py."""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..machine import TargetInfo
from ..types.checks import as_int, instance_of, within
from ..types.digits import DigitPlace
from ..types.indices import Placement, SortOrder
from ..types.keys import SortableKey, UnsignedKey, Word
from ..types.memory import Workgroup
from ..types.scalars import U8, U16, U32, U64
from .radix_serial import Shares, serial_add_up, serial_count, serial_scatter
from .radix_tile import RadixMode
from .sizes import LARGEST_U32, require_countable, require_digits
from .sorts import as_integer_key, bits_of, element_bits, require_integers
from .unbound import unbound

A = TypeVar("A", U8, U16, U32, U64)
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)
E = TypeVar("E")
K = TypeVar("K", bound=Word)

_UP = SortOrder.ASCENDING


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


def serial_radix_sort(
    key: SortableKey[A, W], rows: int, length: int, order: SortOrder, policy: SerialRadixPolicy, bits: range
) -> Schedule:
    """Sorts every row of `data` into `results`, stably, by the given bits of its words."""
    count = rows * length
    data, results = Buffer("data", key.element, count, Role.INPUT), Buffer("results", key.element, count, Role.OUTPUT)
    words = Buffer("words", key.element, count, Role.SCRATCH)
    sort = _SerialSort(key, rows, length, order, RadixMode(U32), policy, bits)
    return sort.schedule([data, results, words], [unbound(U32)] * 3, [data, results, words])


def serial_radix_pairs(
    key: SortableKey[A, W], value: type[V], rows: int, length: int, order: SortOrder, policy: SerialRadixPolicy,
    bits: range,
) -> Schedule:  # fmt: skip
    """The same, and permutes `values` alike into `moved`."""
    count = rows * length
    data, values = Buffer("data", key.element, count, Role.INPUT), Buffer("values", value, count, Role.INPUT)
    results, moved = Buffer("results", key.element, count, Role.OUTPUT), Buffer("moved", value, count, Role.OUTPUT)
    words, spare = Buffer("words", key.element, count, Role.SCRATCH), Buffer("spare", value, count, Role.SCRATCH)
    sort = _SerialSort(key, rows, length, order, RadixMode(value, takes_values=True), policy, bits)
    return sort.schedule([data, results, words], [values, moved, spare], [data, values, results, moved, words, spare])


def serial_radix_argsort(
    key: SortableKey[A, W], rows: int, length: int, order: SortOrder, policy: SerialRadixPolicy, bits: range
) -> Schedule:
    """Writes the permutation that sorts each row of `data` by the given bits into `places` (U64); stable."""
    count = rows * length
    data, places = Buffer("data", key.element, count, Role.INPUT), Buffer("places", U64, count, Role.OUTPUT)
    keys: list[Buffer[Any]] = [Buffer(name, key.element, count, Role.SCRATCH) for name in ("results", "words")]
    spare = Buffer("spare", U64, count, Role.SCRATCH)
    mode = RadixMode(U64, takes_values=True, counts_places=True, keeps_keys=False)
    sort = _SerialSort(key, rows, length, order, mode, policy, bits)
    return sort.schedule([data, *keys], [unbound(U64), places, spare], [data, places, *keys, spare])


@attrs.frozen
class _SerialSort:
    """The parameters of a sort of rows, common to its launches."""

    key: SortableKey[Any, Any]
    rows: int
    length: int
    order: SortOrder
    mode: RadixMode[Any]
    policy: SerialRadixPolicy
    bits: range

    def schedule(self, keys: list[Buffer[Any]], values: list[Buffer[Any]], buffers: list[Buffer[Any]]) -> Schedule:
        """All launches, three a pass. `keys` and `values` are (input, output, scratch) buffers."""
        policy, rows, bits = self.policy, self.rows, self.bits
        require_countable(rows, self.length)
        require_digits(bits.stop, self.key.word.type.bits)
        if not rows * self.length:
            return Schedule(tuple(buffers), ())
        share = policy.share(rows, self.length)
        number = -(-rows * self.length // share)
        shares = Shares(U32(rows * self.length), U32(share), U32(number), rows > 1)
        counts = Buffer("counts", U32, number * policy.radix, Role.SCRATCH)
        grid, counters = Grid(number, 1), Workgroup(U32, policy.radix)
        plain = UnsignedKey(self.key.element, self.key.word, element_bits(self.key))  # one kernel for all `bits`
        first, end = bits.start // policy.digit_bits, max(1, -(-bits.stop // policy.digit_bits))
        launches: list[Launch] = []
        before = 0
        for number in range(first, end):
            is_first, is_last = number == first, number == end - 1
            after = 1 if (end - number) % 2 == 1 else 2
            source, target = self.key if is_first else plain, self.key if is_last else plain
            orders = (self.order if is_first else _UP, self.order if is_last else _UP)
            place = DigitPlace(U32(number), policy.digit_bits)
            mode = attrs.evolve(
                self.mode, counts_places=self.mode.counts_places and is_first,
                keeps_keys=self.mode.keeps_keys or not is_last,
            )  # fmt: skip
            launches += (
                serial_count.launch(grid, source, keys[before], counters, counts, shares, place, orders[0]),
                serial_add_up.launch(Grid(rows, 1), counts, shares, place),
                serial_scatter.launch(
                    grid, source, keys[before], target, keys[after], values[before], values[after], counters, counts,
                    shares, place, orders, mode,
                ),
            )  # fmt: skip
            before = after
        return Schedule((*buffers, counts), tuple(launches))


@attrs.frozen
class SerialRadix:
    """LSD radix sort for CPU cores: each invocation processes a share of the elements serially; of several rows, one
    each.
    """

    policy: SerialRadixPolicy = attrs.field(factory=SerialRadixPolicy, validator=instance_of(SerialRadixPolicy))

    def fitted(self, key: SortableKey[E, K], length: int, info: TargetInfo, /) -> SerialRadix:
        require_integers(key, "SerialRadix")
        return self

    def fitted_pairs(self, key: SortableKey[E, K], length: int, value_bytes: int, info: TargetInfo, /) -> SerialRadix:
        return self.fitted(key, length, info)

    def placements(self, key: SortableKey[E, K], /) -> tuple[Placement, ...]:
        require_integers(key, "SerialRadix")
        return (Placement.ELSEWHERE,)

    def most_rows(self, length: int, groups: int, /) -> int:
        return min(LARGEST_U32 // max(length, self.policy.radix), groups)

    def schedule(
        self, key: SortableKey[E, K], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        return serial_radix_sort(as_integer_key(key), rows, length, order, self.policy, range(bits_of(key)))

    def argsort(self, key: SortableKey[E, K], rows: int, length: int, order: SortOrder, /) -> Schedule:
        return serial_radix_argsort(as_integer_key(key), rows, length, order, self.policy, range(bits_of(key)))

    def pairs(self, key: SortableKey[E, K], value: type[Any], rows: int, length: int, order: SortOrder, /) -> Schedule:
        return serial_radix_pairs(as_integer_key(key), value, rows, length, order, self.policy, range(bits_of(key)))
