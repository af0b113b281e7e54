"""Algorithm selection: by the tables of measurements, what fits a target's limits first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

import attrs

from ..machine import Capability, Limits, TargetInfo
from ..types.elements import bytes_held
from ..types.errors import CapabilityError, UnsupportedTypeError
from ..types.keys import RankKey, SortableKey, Word
from ..types.params import BitonicPolicy, MergePolicy, ReducePolicy, ScanPolicy, power_above
from ..types.scalars import U32, U64
from .batch import PairsAlgorithm
from .fit import fitted_merge, fitted_network, fitted_reduce, fitted_scan_policy, power_below
from .host_sort import HostSort
from .layout import Layout
from .rules import RowsRule
from .select import ArgsortAndTake, Selection
from .sorts import Bitonic, Radix, SortAlgorithm, element_bits, fitted, require_integers
from .table import PAIRS, SELECTIONS, SORTS
from .table_axes import AXIS_REDUCTIONS, AXIS_SCANS, MERGES, SCAN_BY_SUBGROUPS, SCANS, SHORT_SCANS
from .tuned import tuned_rules

E = TypeVar("E")
S = TypeVar("S", SortAlgorithm, PairsAlgorithm)
W = TypeVar("W", bound=Word)
N = TypeVar("N", U32, U64)


def choose_sort(
    info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, with_tuned: bool = True
) -> SortAlgorithm:
    """The sort for rows of a length: the first matching rule, of those tuned on this machine, then of the table."""
    rules = (*tuned_rules(info.name, info.adapter), *SORTS) if with_tuned else SORTS
    return _first_that_fits(rules, info, key, rows, length) or Bitonic().fitted(key, length, info)


def choose_pairs(
    info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, value_bytes: int
) -> PairsAlgorithm | None:
    """The sort of key-value pairs for rows of a length on a target; None if no rule matches."""
    return _first_that_fits(PAIRS, info, key, rows, length, value_bytes)


def _first_that_fits(
    rules: Iterable[RowsRule[S]], info: TargetInfo, key: SortableKey[E, W], rows: int, length: int, value_bytes: int = 0
) -> S | None:
    """The algorithm of the first rule that matches and that can run there with such keys, fitted to the limits."""
    for rule in rules:
        makes_schedules = not isinstance(rule.algorithm, HostSort)
        if not makes_schedules or not rule.matches(info, element_bits(key) + 8 * value_bytes, rows, length):
            continue
        try:
            if value_bytes:
                require_integers(key, "Radix")
            found: Any = fitted(rule.algorithm, key, length, info, value_bytes)
        except (CapabilityError, UnsupportedTypeError):  # by the target, by the key
            continue
        if found.most_rows(length, info.limits.groups) > 0:
            return cast(S, balanced(found, length) if isinstance(found, Radix) and rows > 1 else found)
    return None


_SMALLER = 4  # the step between item counts to try: few, as each is a kernel to compile
_FEWEST = 8
_MANY_TILES = 16  # of a row, from which padding in the last one is negligible
_TILE_ITEMS = 6  # the fixed cost of a tile, in items of an invocation


def balanced(radix: Radix, length: int) -> Radix:
    """The sort with a tile size that wastes little padding: the last tile of a row costs as much as a full one. Rows of
    22,000 take three tiles of 10,752 elements, a third of them padding, or nearly fill three of 7,680."""
    policy = radix.policy
    if length > _MANY_TILES * policy.tile:
        return radix

    def cost(items: int) -> int:
        return -(-length // (policy.group_size * items)) * (items + _TILE_ITEMS)

    items = min((policy.items, *range(policy.items - _SMALLER, _FEWEST - 1, -_SMALLER)), key=cost)
    return radix if items == policy.items else Radix(attrs.evolve(policy, items=items))


def choose_bitonic(word: object, limits: Limits) -> Bitonic:
    return Bitonic(fitted_network(BitonicPolicy(), word, limits))


def choose_top_k(info: TargetInfo, key: SortableKey[E, N], rows: int, length: int, k: int) -> Selection:
    """The top-k algorithm for rows of a length: the first matching rule that fits, else a full argsort."""
    for rule in SELECTIONS:
        if rule.matches(info, key.word.type.bits, rows, length, k):
            if rule.algorithm is None:
                break
            try:
                found = rule.algorithm.fitted(key, length, k, info)
            except (CapabilityError, UnsupportedTypeError):
                continue
            if found.most_rows(key, length, k, info.limits) > 0:
                return found
    return ArgsortAndTake(choose_pairs(info, RankKey(key), rows, length, 4)).fitted(key, length, k, info)


_ITEMS_TO_SHARE = 256  # of a shorter row a large workgroup would be idle for the most part


def choose_axis_reduction(state: object, layout: Layout, info: TargetInfo, itemsize: int = 8) -> ReducePolicy:
    """The policy of a reduction along an axis of a layout, of elements of so many bytes to states of a type."""
    held = bytes_held(state)
    for rule in AXIS_REDUCTIONS:
        if rule.matches(info, layout, itemsize, held):
            items = min(rule.policy.items, max(1, rule.totals_bytes // held))
            return fitted_reduce(attrs.evolve(rule.policy, items=items), state, info)
    wished = ReducePolicy() if layout.length > _ITEMS_TO_SHARE else ReducePolicy(group_size=8, items=4)
    return fitted_reduce(wished, state, info)


_LEAST_TO_SCAN = 32  # invocations: smaller workgroups leave lanes of a subgroup idle


def choose_scan(state: object, length: int, info: TargetInfo) -> ScanPolicy:
    """The policy of a scan of rows of a length: the tile and the states must fit into workgroup memory."""
    has_subgroups = Capability.SUBGROUPS in info.capabilities
    wished = SCANS.get(info.name, SCAN_BY_SUBGROUPS if has_subgroups else ScanPolicy())
    held = info.limits.workgroup_bytes // bytes_held(state)
    needed = power_above(-(-length // wished.items))
    least = min(wished.group_size, _LEAST_TO_SCAN)
    group_size = min(max(least, min(wished.group_size, needed)), power_below(info.limits.group_size))
    most = min(wished.items, held // group_size - 1)
    items = min(power_below(most + 1) - 1, power_above(-(-length // group_size) + 1) - 1)
    return fitted_scan_policy(attrs.evolve(wished, group_size=group_size, items=max(1, items)), state, info)


def choose_axis_scan(state: object, layout: Layout, info: TargetInfo) -> ScanPolicy:
    """The policy of a scan along an axis of a layout, to states of a type, on a target."""
    for rule in SHORT_SCANS:
        if rule.matches(info, layout):
            fitted = fitted_scan_policy(rule.policy, state, info)
            in_strands = fitted.strand > 1 or rule.policy.strand == 1
            if in_strands and (not fitted.alone or layout.length <= fitted.items):
                return fitted
    is_of_rows = layout.inner == 1 and layout.row_stride is not None
    if is_of_rows or info.name not in AXIS_SCANS:
        return choose_scan(state, layout.length, info)
    return fitted_scan_policy(AXIS_SCANS[info.name], state, info)


def choose_merge(key: SortableKey[E, W], info: TargetInfo) -> MergePolicy:
    return fitted_merge(MERGES.get(info.name, MergePolicy()), key, info)
