"""Which algorithm sorts where the caller names none, and the policies that fit a target's limits."""

from __future__ import annotations

from typing import TypeVar

import attrs

from ..machine import Limits, TargetInfo
from ..types.errors import CapabilityError, UnsupportedTypeError
from ..types.keys import RankKey, SortableKey, Word
from ..types.params import BitonicPolicy, MergePolicy, ReducePolicy, ScanPolicy, power_above
from ..types.scalars import U32, U64
from .fit import bytes_held, fitted_merge, fitted_network, fitted_reduce, fitted_scan_policy, power_below
from .layout import Layout
from .select import ArgsortAndTake, Selection
from .sorts import Bitonic, PairsAlgorithm, Radix, SortAlgorithm, bits_of, element_bits, fitted, require_integers
from .table import AXIS_REDUCTIONS, AXIS_SCANS, MERGES, PAIRS, REDUCTIONS, SCANS, SELECTIONS, SORTS
from .tuned import tuned_rules

E = TypeVar("E")
W = TypeVar("W", bound=Word)
N = TypeVar("N", U32, U64)


def choose_sort(
    info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, with_tuned: bool = True
) -> SortAlgorithm:
    """The sort for so many rows of a length on a target: the first that suits of what was measured on this machine
    and of the table, as the target can run it, else the network."""
    for line in (*tuned_rules(info), *SORTS) if with_tuned else SORTS:
        if line.matches(info, element_bits(key), rows, length):
            found = _fitted_or_none(line.algorithm, key, length, info)
            if found is not None:
                return balanced(found, length) if isinstance(found, Radix) and rows > 1 else found
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


def choose_pairs(
    info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, value_bytes: int
) -> PairsAlgorithm | None:
    """The sort that takes values of a size along, for so many rows of a length; None where a target has none."""
    for line in PAIRS:
        if line.matches(info, element_bits(key) + 8 * value_bytes, rows, length):
            found = _fitted_pairs(line.algorithm, key, length, value_bytes, info)
            if found is not None:
                return balanced(found, length) if isinstance(found, Radix) and rows > 1 else found
    return None


_SMALLER = 4  # items fewer: few sizes only, for each is a kernel to compile
_FEWEST = 8
_MANY_TILES = 16  # of a row: of the last of them little is empty
_TILE_ITEMS = 6  # what a tile costs besides its elements: as much as so many more an invocation


def balanced(radix: Radix, length: int) -> Radix:
    """The sort with tiles that rows of a length fill: what a row's last tile lacks is ranked all the same.

    Rows of 22,000 are three tiles of 10,752, a third of which would be empty; of 7,680 they fill three.
    """
    policy = radix.policy
    if length > _MANY_TILES * policy.tile:
        return radix

    def cost(items: int) -> int:
        return -(-length // (policy.group_size * items)) * (items + _TILE_ITEMS)

    items = min((policy.items, *range(policy.items - _SMALLER, _FEWEST - 1, -_SMALLER)), key=cost)
    return radix if items == policy.items else Radix(attrs.evolve(policy, items=items))


def _fitted_pairs(
    algorithm: PairsAlgorithm, key: SortableKey[E, W], length: int, value_bytes: int, info: TargetInfo
) -> PairsAlgorithm | None:
    """A sort with values as a target can run it, if it can."""
    try:
        require_integers(key, "Radix")
        found = algorithm.fitted_pairs(key, length, value_bytes, info)
    except (CapabilityError, UnsupportedTypeError):
        return None
    return found if found.most_rows(length, info.limits.groups) > 0 else None


def choose_bitonic(word: object, limits: Limits) -> Bitonic:
    """The bitonic sort for a key's words on a target with these limits."""
    return Bitonic(fitted_network(BitonicPolicy(), word, limits))


def choose_top_k(info: TargetInfo, key: SortableKey[E, N], rows: int, length: int, k: int) -> Selection:
    """What selects the first k of so many rows of a length on a target: the first line that suits and that the target
    can run, else a sort of everything."""
    for line in SELECTIONS:
        if line.matches(info, bits_of(key), rows, length, k):
            try:
                found = line.selection.fitted(key, length, k, info)
            except (CapabilityError, UnsupportedTypeError):
                continue
            if found.most_rows(key, length, k, info.limits) > 0:
                return found
    return ArgsortAndTake(choose_pairs(info, RankKey(key), rows, length, 4)).fitted(key, length, k, info)


_ITEMS_TO_SHARE = 256  # a row shorter than this is worth few invocations


def choose_reduction(state: object, length: int, info: TargetInfo) -> ReducePolicy:
    """The reduction for rows of a length, to states of a type, on a target.

    Few sizes only: a short row would leave most of a large workgroup idle, and each size is a kernel to compile.
    """
    for line in REDUCTIONS:
        if line.matches(info, length):
            return fitted_reduce(line.policy, state, info)
    wished = ReducePolicy() if length > _ITEMS_TO_SHARE else ReducePolicy(group_size=8, items=4)
    return fitted_reduce(wished, state, info)


def choose_axis_reduction(state: object, layout: Layout, info: TargetInfo) -> ReducePolicy:
    """The reduction along an axis that lies so, to states of a type, on a target."""
    for line in AXIS_REDUCTIONS:
        if line.matches(info, layout):
            items = min(line.policy.items, max(1, line.totals_bytes // bytes_held(state)))
            return fitted_reduce(attrs.evolve(line.policy, items=items), state, info)
    return choose_reduction(state, layout.length, info)


_LEAST_TO_SCAN = 32  # invocations: a smaller workgroup would leave lanes of a subgroup idle


def choose_scan(state: object, length: int, info: TargetInfo) -> ScanPolicy:
    """The scan of rows of a length to states of a type on a target.

    A tile and what its invocations share must fit. Few sizes only, as for reductions.
    """
    wished = next((line.policy for line in SCANS if line.matches(info, length)), ScanPolicy())
    held = info.limits.workgroup_bytes // bytes_held(state)
    needed = power_above(-(-length // wished.items))
    least = min(wished.group_size, _LEAST_TO_SCAN)
    group_size = max(least, min(wished.group_size, needed))
    group_size = min(group_size, power_below(info.limits.group_size), power_below(held // 2))
    most = min(wished.items, held // group_size - 1)
    items = min(power_below(most + 1) - 1, power_above(-(-length // group_size) + 1) - 1)
    return fitted_scan_policy(attrs.evolve(wished, group_size=group_size, items=max(1, items)), state, info)


def choose_axis_scan(state: object, layout: Layout, info: TargetInfo) -> ScanPolicy:
    """The scan along an axis that lies so, to states of a type, on a target."""
    if layout.inner == 1 and layout.row_stride is not None:
        return choose_scan(state, layout.length, info)
    for line in AXIS_SCANS:
        if line.matches(info, layout.length):
            return fitted_scan_policy(line.policy, state, info)
    return choose_scan(state, layout.length, info)


def choose_merge(key: SortableKey[E, W], length: int, info: TargetInfo) -> MergePolicy:
    """How so many elements are merged on a target."""
    wished = next((line.policy for line in MERGES if line.matches(info, length)), MergePolicy())
    return fitted_merge(wished, key, info)
