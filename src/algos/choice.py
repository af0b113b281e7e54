"""Which algorithm sorts, as a typed value that carries its tuning; and the policies that fit a target's limits.

An algorithm is handed to `sort` as such a value, never as a string; where none is, the functions here choose.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import attrs

from ..kernel.launch import Schedule
from ..types.elements import dtype_of
from ..types.indices import SortOrder
from ..types.keys import SortableKey, Word
from ..types.params import BitonicPolicy, ReducePolicy
from .bitonic import bitonic_sort

E = TypeVar("E")
W = TypeVar("W", bound=Word)


class SortAlgorithm(Protocol):
    """Anything that makes a schedule which sorts rows in place. It is hashable: schedules are kept by it."""

    def schedule(self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, /) -> Schedule:
        """Sorts every row of the INOUT buffer "data", rows of one length that lie one behind the other."""
        ...

    def groups_of(self, length: int, /) -> int:
        """The most workgroups that one launch uses for a row."""
        ...


@attrs.frozen
class Bitonic:
    """The bitonic network. It needs no memory besides the array, and does the same whatever the data."""

    policy: BitonicPolicy = attrs.field(factory=BitonicPolicy)

    def schedule(self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, /) -> Schedule:
        return bitonic_sort(key, rows, length, order, self.policy)

    def groups_of(self, length: int, /) -> int:
        padded = 1 << max(0, length - 1).bit_length()
        return max(1, padded // self.policy.tile, padded // 2 // self.policy.group_size)


def _power_of_two(most: int) -> int:
    """The greatest power of two that is not above."""
    return 1 << (max(1, most).bit_length() - 1)


def fitting_bitonic(word: object, workgroup_bytes: int, group_size: int) -> Bitonic:
    """The bitonic sort for a key's words on a target with these limits."""
    wished = BitonicPolicy()
    tile = min(wished.tile, _power_of_two(workgroup_bytes // dtype_of(word).itemsize))
    return Bitonic(attrs.evolve(wished, tile=tile, group_size=min(wished.group_size, _power_of_two(group_size))))


_ITEMS_TO_SHARE = 256  # a row shorter than this is worth few invocations


def fitting_reduction(state: object, length: int, workgroup_bytes: int, group_size: int) -> ReducePolicy:
    """The reduction for rows of a length, to states of a type, on a target with these limits.

    Two sizes only: a short row would leave most of a large workgroup idle, and each size is a kernel to compile.
    """
    wished = ReducePolicy() if length > _ITEMS_TO_SHARE else ReducePolicy(group_size=8, items=4)
    held = _power_of_two(workgroup_bytes // dtype_of(state).itemsize)
    return attrs.evolve(wished, group_size=min(wished.group_size, _power_of_two(group_size), held))
