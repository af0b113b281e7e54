"""Schedules that say where elements come from in order, and such as take values along: what they depend on."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import attrs

from .algos.argsort import bitonic_argsort, placed_class
from .algos.choice import fitting_bitonic
from .algos.sizes import LARGEST_U32
from .algos.sorts import PairsAlgorithm
from .kernel.launch import Schedule
from .targets.base import Limits, Target
from .types.dtypes import ArrayKey
from .types.errors import CapabilityError
from .types.indices import SortOrder
from .types.keys import RankKey
from .types.scalars import U8, U16, U32, U64

VALUES: dict[int, Any] = {1: U8, 2: U16, 4: U32, 8: U64}  # what values are moved as, by their bytes


@attrs.frozen
class PlacesPlan:
    """All that an argsort's schedule depends on."""

    sort: PairsAlgorithm | None
    key: ArrayKey
    rows: int
    length: int
    order: SortOrder
    limits: Limits
    by_bits: bool = False  # -0.0 before 0.0, and NaNs by their bits; else all that are equal keep their order


@lru_cache(maxsize=256)
def places_schedule(plan: PlacesPlan) -> Schedule:
    """From "data" to "places"."""
    ranks: Any = plan.key if plan.by_bits else RankKey(plan.key)
    if plan.sort is not None:
        return plan.sort.argsort(ranks, plan.rows, plan.length, plan.order)
    bitonic = fitting_bitonic(placed_class(plan.key.word), plan.limits)
    return bitonic_argsort(ranks, plan.rows, plan.length, plan.order, bitonic.policy)


def sorted_together(sort: PairsAlgorithm, length: int, target: Target) -> int:
    """How many rows such a sort argsorts at once."""
    limits = target.info.limits
    return max(1, min(sort.most_rows(length, limits.groups), limits.storage_bytes // (length * 8)))


def placed_together(length: int, itemsize: int, target: Target) -> int:
    """How many rows the network argsorts at once."""
    limits = target.info.limits
    most = min(limits.storage_bytes // (length * 16), LARGEST_U32 // length)
    if most < 1:
        raise CapabilityError(
            f"x: a row of {length} elements of {itemsize} bytes is more than target {target.info.name!r} can argsort: "
            f"at most {limits.storage_bytes // 16} elements"
        )
    return most


@attrs.frozen
class PairsPlan:
    """All that a schedule for keys and values depends on."""

    sort: PairsAlgorithm
    key: ArrayKey
    value: Any
    length: int
    order: SortOrder


@lru_cache(maxsize=256)
def pairs_schedule(plan: PairsPlan) -> Schedule:
    """From "data" and "values" to "results" and "moved"."""
    return plan.sort.pairs(plan.key, plan.value, 1, plan.length, plan.order)
