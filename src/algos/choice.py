"""Which algorithm sorts where the caller names none, and the policies that fit a target's limits."""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..targets.base import TargetInfo
from ..types.elements import dtype_of
from ..types.keys import SortableKey, Word
from ..types.params import BitonicPolicy, ReducePolicy, ScanPolicy, power_above
from .sorts import Bitonic, Radix, SortAlgorithm, bits_of
from .table import PAIRS, REDUCTIONS, SCANS, SORTS
from .tuned import tuned_lines

E = TypeVar("E")
W = TypeVar("W", bound=Word)


def fitting_sort(
    info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, with_tuned: bool = True
) -> SortAlgorithm:
    """The sort for so many rows of a length on a target: the first that suits of what was measured on this machine
    and of the table, else the network."""
    for line in (*tuned_lines(info), *SORTS) if with_tuned else SORTS:
        if line.suits(info, bits_of(key), rows, length):
            return line.algorithm
    return fitting_bitonic(key.word, info.limits.workgroup_bytes, info.limits.group_size)


def fitting_pairs(info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, value_bytes: int) -> Radix | None:
    """The radix sort that takes values of a size along, for a row of a length; None where a target has none."""
    for line in PAIRS:
        if line.suits(info, bits_of(key) + 8 * value_bytes, rows, length) and isinstance(line.algorithm, Radix):
            return line.algorithm
    return None


def _power_of_two(most: int) -> int:
    """The greatest power of two that is not above."""
    return 1 << (max(1, most).bit_length() - 1)


def fitting_bitonic(word: object, workgroup_bytes: int, group_size: int) -> Bitonic:
    """The bitonic sort for a key's words on a target with these limits."""
    wished = BitonicPolicy()
    tile = min(wished.tile, _power_of_two(workgroup_bytes // dtype_of(word).itemsize))
    return Bitonic(attrs.evolve(wished, tile=tile, group_size=min(wished.group_size, _power_of_two(group_size))))


_ITEMS_TO_SHARE = 256  # a row shorter than this is worth few invocations


def fitting_reduction(state: object, length: int, info: TargetInfo) -> ReducePolicy:
    """The reduction for rows of a length, to states of a type, on a target.

    Few sizes only: a short row would leave most of a large workgroup idle, and each size is a kernel to compile.
    """
    workgroup_bytes, group_size = info.limits.workgroup_bytes, info.limits.group_size
    for line in REDUCTIONS:
        if line.suits(info, length):
            return line.policy
    wished = ReducePolicy() if length > _ITEMS_TO_SHARE else ReducePolicy(group_size=8, items=4)
    held = _power_of_two(workgroup_bytes // dtype_of(state).itemsize)
    return attrs.evolve(wished, group_size=min(wished.group_size, _power_of_two(group_size), held))


_LEAST_TO_SCAN = 32  # invocations: a smaller workgroup would leave lanes of a subgroup idle


def fitting_scan(state: object, length: int, info: TargetInfo) -> ScanPolicy:
    """The scan of rows of a length to states of a type on a target.

    A tile and what its invocations share must fit. Few sizes only, as for reductions.
    """
    wished = next((line.policy for line in SCANS if line.suits(info, length)), ScanPolicy())
    held = info.limits.workgroup_bytes // dtype_of(state).itemsize
    needed = power_above(-(-length // wished.items))
    least = min(wished.group_size, _LEAST_TO_SCAN)
    group_size = max(least, min(wished.group_size, needed))
    group_size = min(group_size, _power_of_two(info.limits.group_size), _power_of_two(held // 2))
    most = min(wished.items, held // group_size - 1)
    items = min(_power_of_two(most + 1) - 1, power_above(-(-length // group_size) + 1) - 1)
    return attrs.evolve(wished, group_size=group_size, items=max(1, items))
