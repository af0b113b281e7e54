"""The sort algorithms as values with their tuning, for `algorithm=`: Bitonic, BitonicRows, Radix, RadixRows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import attrs

from ..kernel.language import *
from ..machine import TargetInfo
from ..types.checks import as_int, instance_of, is_bool, power_within, require, within
from ..types.elements import WORD_BYTES, bytes_held, dtype_of, scalar_of
from ..types.errors import CapabilityError, UnsupportedTypeError
from ..types.layout import Type
from ..types.params import MOST_INVOCATIONS, MOST_ITEMS, BitonicPolicy, RadixPolicy, RowsPolicy, power_above
from ..types.scalars import Scalar
from .argsort import bitonic_argsort, placed_class
from .batch import Batch, PairsAlgorithm
from .bitonic import bitonic_sort
from .bitonic_rows import bitonic_rows_sort
from .fit import (
    digits_in_tile,
    fitted_network,
    fitted_radix,
    has_whole_subgroups,
    in_registers,
    lanes_within,
    no_radix,
    power_below,
)
from .radix_rows import radix_rows_sort
from .radix_sorts import most_radix_rows, radix_sort
from .sizes import countable_rows

_STEPS = 8  # of an invocation's elements to a power of two: at most a ninth of a workgroup's are padding
_UNSIGNED = (Type.U8, Type.U16, Type.U32, Type.U64)


class SortAlgorithm(Protocol):
    """The trait of an algorithm that sorts rows. It must be hashable: it is part of the key of cached schedules."""

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        """In place or elsewhere: what it can do with such keys, the fastest first."""
        ...

    def most_rows(self, length: int, groups: int, /) -> int:
        """The rows that fit one schedule, on a target with `groups` workgroups a launch; 0 if one row does not fit."""
        ...

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        """Sorts every row of the buffer "data" (INOUT), contiguous rows of one length; elsewhere, from "data" (INPUT)
        into "results" (OUTPUT)."""
        ...


def fitted(
    algorithm: SortAlgorithm, key: SortableKey[E, W], length: int, info: TargetInfo, value_bytes: int = 0
) -> SortAlgorithm:
    """A sort fitted to a target, for rows of a length; raises CapabilityError where nothing fits. One without `fitted`,
    an optional method, is used as it is; targets refuse what they cannot run."""
    fits: Callable[..., SortAlgorithm] | None = getattr(algorithm, "fitted", None)
    return fits(key, length, info, *([value_bytes] if value_bytes else ())) if callable(fits) else algorithm


@attrs.frozen
class Bitonic:
    """The bitonic network: in place, without scratch memory, data-independent, and for any key."""

    policy: BitonicPolicy = attrs.field(factory=BitonicPolicy, validator=instance_of(BitonicPolicy))

    def fitted(self, key: SortableKey[E, W], length: int, info: TargetInfo, /) -> Bitonic:
        return attrs.evolve(self, policy=fitted_network(self.policy, key.word, info.limits))

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        return (Placement.IN_PLACE,)

    def most_rows(self, length: int, groups: int, /) -> int:
        padded = power_above(length)
        in_tiles = padded // self.policy.tile
        # Rows that a tile holds have no pass over global memory, which has an invocation for each pair.
        needed = max(in_tiles, padded // 2 // self.policy.group_size) if in_tiles > 1 else 1
        return min(countable_rows(length), groups // needed)

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder,
        placement: Placement = Placement.IN_PLACE, /,
    ) -> Schedule:  # fmt: skip
        return bitonic_sort(key, rows, length, order, self.policy)


@attrs.frozen
class BitonicRows(PairsAlgorithm):
    """The bitonic network in the registers of a subgroup: for short rows, all in one launch.

    For targets with Capability.SUBGROUPS, whose subgroups have at least `lanes` lanes.
    """

    lanes: int = attrs.field(default=32, converter=as_int, validator=power_within(1, 64))
    # elements in a lane before another lane is used
    items: int = attrs.field(default=8, converter=as_int, validator=power_within(1, MOST_ITEMS))
    # and at most, when all lanes are used
    most_items: int = attrs.field(default=32, converter=as_int, validator=power_within(1, MOST_ITEMS))
    group_size: int = attrs.field(default=256, converter=as_int, validator=power_within(1, MOST_INVOCATIONS))
    takes_first = True

    def __attrs_post_init__(self) -> None:
        require(self.items <= self.most_items, self, "items", f"at most most_items={self.most_items}")
        require(self.group_size >= self.lanes, self, "group_size", f"at least lanes={self.lanes}")

    def fitted(self, key: SortableKey[E, W], length: int, info: TargetInfo, value_bytes: int = 0, /) -> BitonicRows:
        if scalar_of(key.word) not in _UNSIGNED:
            raise UnsupportedTypeError(
                f"algorithm: BitonicRows sorts keys whose words are a U32 or a U64, not {key.word.__name__}; Bitonic() "
                "sorts any"
            )
        # With values, words go with their indices; the values stay in global memory.
        limits = info.limits
        entry = placed_class(cast(Any, key.word)) if value_bytes else key.word
        lanes, most_items = lanes_within(self.lanes, info), power_below(in_registers(self.most_items, entry, limits))
        while True:
            held = limits.workgroup_bytes // (bytes_held(entry) * (most_items + 1))  # lanes' blocks, padded by a word
            if held >= lanes:
                size = min(self.group_size, power_below(limits.group_size), power_below(held))
                return attrs.evolve(
                    self, lanes=lanes, items=min(self.items, most_items), most_items=most_items, group_size=size
                )
            if lanes * most_items == 1:
                raise CapabilityError(f"algorithm: {self} finds too little workgroup memory on target {info.name!r}")
            lanes, most_items = max(1, lanes // 2), most_items if lanes > 1 else most_items // 2

    @property
    def capacity(self) -> int:
        """The length of the longest row."""
        return self.lanes * self.most_items

    def policy_for(self, length: int) -> RowsPolicy:
        return RowsPolicy.holding(length, self.lanes, self.items, self.group_size)

    def most_rows(self, length: int, groups: int, /) -> int:
        if length > self.capacity:
            return 0
        return min(countable_rows(length), groups * self.policy_for(length).rows)

    def sort(self, batch: Batch, /) -> Schedule:
        return bitonic_rows_sort(batch, self.policy_for(batch.length))


@attrs.frozen
class Radix(PairsAlgorithm):
    """LSD radix sort: a few passes over the whole array, whatever its length.

    With `policy.sweeps`, one launch a digit with decoupled look-back (Onesweep): for targets with
    Capability.FORWARD_PROGRESS. Otherwise three a digit: histogram, prefix sum, scatter; two for one row of few tiles.
    """

    policy: RadixPolicy = attrs.field(factory=RadixPolicy, validator=instance_of(RadixPolicy))

    def fitted(self, key: SortableKey[E, W], length: int, info: TargetInfo, value_bytes: int = 0, /) -> Radix:
        require_integers(key, "Radix")
        own: SortableKey[Any, Any] = key
        return attrs.evolve(self, policy=fitted_radix(self.policy, own, bits_of(key), info, value_bytes))

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        require_integers(key, "Radix")
        even = -(-bits_of(key) // self.policy.digit_bits) % 2 == 0
        return super().placements(key) if even else (Placement.ELSEWHERE,)

    def most_rows(self, length: int, groups: int, /) -> int:
        return most_radix_rows(self.policy, length, groups)

    def sort(self, batch: Batch, /) -> Schedule:
        return radix_sort(batch, self.policy, bits_of(batch.key))


@attrs.frozen
class RadixRows(PairsAlgorithm):
    """LSD radix sort of rows in workgroup memory, all in one launch, a workgroup for each row.

    For targets with Capability.SUBGROUPS, whose subgroups have at least `strand` lanes.
    """

    # elements in an invocation's registers, at most
    items: int = attrs.field(default=32, converter=as_int, validator=within(1, MOST_ITEMS))
    # the smallest workgroup size: at least one invocation for each value of a digit
    least_group: int = attrs.field(default=256, converter=as_int, validator=within(2, MOST_INVOCATIONS))
    most_group: int = attrs.field(default=1024, converter=as_int, validator=power_within(2, MOST_INVOCATIONS))
    strand: int = attrs.field(default=32, converter=as_int, validator=within(1, 64))
    digit_bits: int = attrs.field(default=8, converter=as_int, validator=within(1, 12))
    subgroups: bool = attrs.field(default=True, validator=is_bool)
    takes_first = True

    def __attrs_post_init__(self) -> None:
        require(self.least_group <= self.most_group, self, "least_group", f"at most most_group={self.most_group}")
        if not self.subgroups:
            require(self.strand == power_below(self.strand), self, "strand", "a power of two without subgroups")
        self.policy_for(self.items)  # validates the rest, of the smallest workgroup

    def fitted(self, key: SortableKey[E, W], length: int, info: TargetInfo, value_bytes: int = 0, /) -> RadixRows:
        require_integers(key, "RadixRows")
        word = bytes_held(key.word) + (WORD_BYTES if value_bytes else 0)  # an index: values stay in global memory
        most = min(self.most_group, power_below(info.limits.group_size))
        whole_one = max(self.least_group, info.limits.most_subgroup_size)
        if self.subgroups and whole_one <= most and has_whole_subgroups(whole_one, info):
            least, lanes = whole_one, (True, info.limits.subgroup_size)
        else:
            least = power_below(min(self.least_group, most))
            lanes = False, min(32, least) if self.subgroups else min(self.strand, least)
        if least < 2:
            raise no_radix(info)
        bits = min(self.digit_bits, least.bit_length() - 1)
        found = RadixRows(in_registers(self.items, key.word, info.limits), least, most, lanes[1], bits, lanes[0])
        if digits := digits_in_tile(found.policy_for(min(length, found.capacity)), word, info):
            return attrs.evolve(found, digit_bits=digits)
        raise CapabilityError(
            f"x: a row of {length} elements, each of which takes {word} bytes of workgroup memory, is more than {self} "
            f"takes on target {info.name!r}; leave the algorithm to the library"
        )

    @property
    def capacity(self) -> int:
        """The length of the longest row."""
        return self.most_group * self.items

    def policy_for(self, length: int) -> RadixPolicy:
        """The policy for rows of a length: the smallest workgroup that holds one, a power of two, and as few elements
        in an invocation, in steps of a few, as each number is a kernel to compile."""
        group_size = max(self.least_group, power_above(-(-length // self.items)))
        needed = -(-length // group_size)
        step = max(1, power_above(needed) // _STEPS)
        items = max(1, min(self.items, -(-needed // step) * step))
        return RadixPolicy(self.digit_bits, group_size, items, self.strand, self.subgroups)

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        require_integers(key, "RadixRows")
        return super().placements(key)

    def most_rows(self, length: int, groups: int, /) -> int:
        return min(countable_rows(length), groups) if length <= self.capacity else 0

    def sort(self, batch: Batch, /) -> Schedule:
        return radix_rows_sort(batch, self.policy_for(batch.length), bits_of(batch.key))


def argsort(
    sort: PairsAlgorithm | None, key: SortableKey[E, Any], rows: int, length: int, order: SortOrder,
    network: BitonicPolicy,
) -> Schedule:  # fmt: skip
    """Writes the permutation that sorts each row of `data` into `places` (U64), stably; by the bitonic network where
    there is no sort."""
    if sort is None:
        return bitonic_argsort(key, rows, length, order, network)
    return sort.sort(Batch(key, rows, length, order, places=U64))


def require_integers(
    key: SortableKey[E, W], name: str, parameter: str = "algorithm", hint: str = "; Bitonic() sorts any"
) -> None:
    """Raises UnsupportedTypeError unless a key's elements and words are unsigned integers, and words fit elements."""
    if scalar_of(key.element) not in _UNSIGNED or not issubclass(key.element, Scalar):
        raise UnsupportedTypeError(
            f"{parameter}: {name} sorts keys whose elements are unsigned integers in memory, not "
            f"{key.element.__name__}{hint}"
        )
    if scalar_of(key.word) not in _UNSIGNED or bits_of(key) > element_bits(key):
        raise UnsupportedTypeError(
            f"{parameter}: {name} keeps words where elements lie: it sorts keys whose words are a U32 or a U64 and "
            f"have no more bits than an element; those of {key} have {bits_of(key)}, as it has no `bits` that says "
            f"fewer{hint}"
        )


def element_bits(key: SortableKey[E, W]) -> int:
    return 8 * dtype_of(key.element).itemsize


def bits_of(key: SortableKey[E, W]) -> int:
    """The number of low bits of a word that can differ: the key's `bits` if it declares them, else all."""
    said: object = getattr(key, "bits", None)
    return said if isinstance(said, int) else 8 * dtype_of(key.word).itemsize
