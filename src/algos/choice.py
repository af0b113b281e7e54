"""Which algorithm sorts where the caller names none, and the policies that fit a target's limits."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import attrs

from ..targets.base import Limits, TargetInfo
from ..types.errors import CapabilityError, UnsupportedTypeError
from ..types.keys import SortableKey, Word
from ..types.params import BitonicPolicy, RadixPolicy, ReducePolicy, ScanPolicy, power_above
from .fit import bytes_held, fitted_network, fitted_radix, fitted_reduce, fitted_scan_policy, power_below
from .sorts import Bitonic, Radix, SortAlgorithm, bits_of, element_bits, fitted, require_integers
from .table import PAIRS, REDUCTIONS, SCANS, SORTS
from .tuned import tuned_lines

E = TypeVar("E")
W = TypeVar("W", bound=Word)


def fitting_sort(
    info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, with_tuned: bool = True
) -> SortAlgorithm:
    """The sort for so many rows of a length on a target: the first that suits of what was measured on this machine
    and of the table, as the target can run it, else the network."""
    for line in (*tuned_lines(info), *SORTS) if with_tuned else SORTS:
        if line.suits(info, element_bits(key), rows, length):
            found = _fitted_or_none(line.algorithm, key, length, info)
            if found is not None:
                return found
    return Bitonic().fitted(key, length, info)


def _fitted_or_none(
    algorithm: SortAlgorithm, key: SortableKey[E, W], length: int, info: TargetInfo
) -> SortAlgorithm | None:
    """A sort as a target can run it, if it can."""
    try:
        found = fitted(algorithm, key, length, info)
    except (CapabilityError, UnsupportedTypeError):  # of a target, of a key
        return None
    return found if found.most_rows(length, info.limits.groups) > 0 else None


def fitting_pairs(info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, value_bytes: int) -> Radix | None:
    """The radix sort that takes values of a size along, for a row of a length; None where a target has none."""
    for line in PAIRS:
        if line.suits(info, element_bits(key) + 8 * value_bytes, rows, length) and isinstance(line.algorithm, Radix):
            found = _fitted_pairs(line.algorithm.policy, key, length, value_bytes, info)
            if found is not None:
                return found
    return None


def _fitted_pairs(
    policy: RadixPolicy, key: SortableKey[E, W], length: int, value_bytes: int, info: TargetInfo
) -> Radix | None:
    """A radix sort with values as a target can run it, if it can."""
    try:
        require_integers(key, "Radix")
        found = Radix(fitted_radix(policy, cast("SortableKey[Any, Any]", key), bits_of(key), info, value_bytes))
    except (CapabilityError, UnsupportedTypeError):
        return None
    return found if found.most_rows(length, info.limits.groups) > 0 else None


def fitting_bitonic(word: object, limits: Limits) -> Bitonic:
    """The bitonic sort for a key's words on a target with these limits."""
    return Bitonic(fitted_network(BitonicPolicy(), word, limits))


_ITEMS_TO_SHARE = 256  # a row shorter than this is worth few invocations


def fitting_reduction(state: object, length: int, info: TargetInfo) -> ReducePolicy:
    """The reduction for rows of a length, to states of a type, on a target.

    Few sizes only: a short row would leave most of a large workgroup idle, and each size is a kernel to compile.
    """
    for line in REDUCTIONS:
        if line.suits(info, length):
            return fitted_reduce(line.policy, state, info)
    wished = ReducePolicy() if length > _ITEMS_TO_SHARE else ReducePolicy(group_size=8, items=4)
    return fitted_reduce(wished, state, info)


_LEAST_TO_SCAN = 32  # invocations: a smaller workgroup would leave lanes of a subgroup idle


def fitting_scan(state: object, length: int, info: TargetInfo) -> ScanPolicy:
    """The scan of rows of a length to states of a type on a target.

    A tile and what its invocations share must fit. Few sizes only, as for reductions.
    """
    wished = next((line.policy for line in SCANS if line.suits(info, length)), ScanPolicy())
    held = info.limits.workgroup_bytes // bytes_held(state)
    needed = power_above(-(-length // wished.items))
    least = min(wished.group_size, _LEAST_TO_SCAN)
    group_size = max(least, min(wished.group_size, needed))
    group_size = min(group_size, power_below(info.limits.group_size), power_below(held // 2))
    most = min(wished.items, held // group_size - 1)
    items = min(power_below(most + 1) - 1, power_above(-(-length // group_size) + 1) - 1)
    return fitted_scan_policy(attrs.evolve(wished, group_size=group_size, items=max(1, items)), state, info)
