"""The sorts as typed values that carry their tuning. One is handed to `sort` as such a value, never as a string."""

from __future__ import annotations

from enum import Enum
from typing import Protocol, TypeVar, cast

import attrs

from ..kernel.launch import Schedule
from ..types.elements import dtype_of
from ..types.errors import UnsupportedTypeError
from ..types.indices import SortOrder
from ..types.keys import SortableKey, UnsignedKey, Word
from ..types.params import BitonicPolicy, RadixPolicy, RowsPolicy, power_above
from ..types.scalars import U32, Scalar
from .bitonic import bitonic_sort
from .bitonic_rows import bitonic_rows_sort
from .radix_rows import radix_rows_sort
from .radix_sorts import radix_sort
from .radix_sweep import MOST_ELEMENTS

E = TypeVar("E")
W = TypeVar("W", bound=Word)

LARGEST_U32 = (1 << 32) - 1


class Placement(Enum):
    """Where a schedule leaves the sorted rows."""

    IN_PLACE = "in place"  # in the INOUT buffer "data", which brought them
    ELSEWHERE = "elsewhere"  # in the OUTPUT buffer "results"; the INPUT buffer "data" is only read


class SortAlgorithm(Protocol):
    """Anything that makes schedules which sort rows. It is hashable: schedules are kept by it."""

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        """What it can do with such keys, the best first."""
        ...

    def most_rows(self, length: int, groups: int, /) -> int:
        """How many rows of a length one schedule takes, on a target with so many workgroups a launch; 0 for none."""
        ...

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        """Sorts every row of the buffer "data", rows of one length that lie one behind the other."""
        ...


@attrs.frozen
class Bitonic:
    """The bitonic network. It needs no memory besides the array, and does the same whatever the data."""

    policy: BitonicPolicy = attrs.field(factory=BitonicPolicy)

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        return (Placement.IN_PLACE,)

    def most_rows(self, length: int, groups: int, /) -> int:
        padded = power_above(length)
        needed = max(1, padded // self.policy.tile, padded // 2 // self.policy.group_size)
        return min(LARGEST_U32 // max(1, length), groups // needed)

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder,
        placement: Placement = Placement.IN_PLACE, /,
    ) -> Schedule:  # fmt: skip
        return bitonic_sort(key, rows, length, order, self.policy)


@attrs.frozen
class BitonicRows:
    """The bitonic network in the registers of a subgroup: for short rows, all of which one launch sorts.

    For targets with Capability.SUBGROUPS whose subgroups have at least so many lanes.
    """

    lanes: int = 32
    items: int = 8  # elements a lane holds before another lane is taken
    most_items: int = 32
    group_size: int = 256

    @property
    def capacity(self) -> int:
        """The longest row."""
        return self.lanes * self.most_items

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        return (Placement.ELSEWHERE, Placement.IN_PLACE)

    def most_rows(self, length: int, groups: int, /) -> int:
        if length > self.capacity:
            return 0
        policy = RowsPolicy.holding(length, self.lanes, self.items, self.group_size)
        return min(LARGEST_U32 // max(1, length), groups * policy.rows)

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        policy = RowsPolicy.holding(length, self.lanes, self.items, self.group_size)
        found = cast("UnsignedKey[U32, U32]", key)  # as good as any key of numbers
        return bitonic_rows_sort(found, rows, length, order, policy, placement is Placement.IN_PLACE)


@attrs.frozen
class Radix:
    """Radix sort, a digit at a time: a few readings and writings of the whole array, whatever its length.

    With `policy.sweeps`, one launch a digit, whose workgroups wait for each other: for targets with
    Capability.FORWARD_PROGRESS. Else each digit is counted, added up and moved by launches of their own.
    """

    policy: RadixPolicy = attrs.field(factory=RadixPolicy)

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        _require_integers(key, "Radix")
        even = -(-bits_of(key) // self.policy.digit_bits) % 2 == 0
        return tuple(Placement)[::-1] if even else (Placement.ELSEWHERE,)

    def most_rows(self, length: int, groups: int, /) -> int:
        most = MOST_ELEMENTS - 1 if self.policy.sweeps else LARGEST_U32
        return int(length <= most and -(-length // self.policy.tile) <= groups)

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        assert rows == 1, "as most_rows says"
        found = cast("UnsignedKey[U32, U32]", key)  # as good as any key of numbers
        return radix_sort(found, length, order, self.policy, bits_of(key), placement is Placement.IN_PLACE)


@attrs.frozen
class RadixRows:
    """Radix sort of rows in workgroup memory, all of which one launch sorts, a row a workgroup.

    For targets with Capability.SUBGROUPS whose subgroups have at least `strand` lanes.
    """

    items: int = 16  # elements an invocation holds
    least_group: int = 256  # invocations of the smallest workgroup: one for each digit
    most_group: int = 1024
    strand: int = 32
    digit_bits: int = 8

    @property
    def capacity(self) -> int:
        """The longest row."""
        return self.most_group * self.items

    def policy_for(self, length: int) -> RadixPolicy:
        """Of the workgroups that hold a row, the smallest whose size is a power of two."""
        needed = max(1, -(-length // self.items))
        group_size = max(self.least_group, power_above(needed))
        return RadixPolicy(self.digit_bits, group_size, self.items, self.strand)

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        _require_integers(key, "RadixRows")
        return (Placement.ELSEWHERE, Placement.IN_PLACE)

    def most_rows(self, length: int, groups: int, /) -> int:
        return min(LARGEST_U32 // max(1, length), groups) if length <= self.capacity else 0

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        found = cast("UnsignedKey[U32, U32]", key)  # as good as any key of numbers
        in_place = placement is Placement.IN_PLACE
        return radix_rows_sort(found, rows, length, order, self.policy_for(length), bits_of(key), in_place)


def _require_integers(key: SortableKey[E, W], name: str) -> None:
    if not issubclass(key.element, Scalar) or key.element.type.is_float:
        raise UnsupportedTypeError(
            f"algorithm: {name} sorts keys whose elements are integers in memory, not {key.element.__name__}; "
            "Bitonic() sorts any"
        )


def bits_of(key: SortableKey[E, W]) -> int:
    """How many bits of a word can differ: as many as an element has."""
    return 8 * dtype_of(key.element).itemsize
