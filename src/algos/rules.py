"""Rules of the selection tables: an algorithm or a policy, and the conditions under which it is chosen."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

import attrs

from ..machine import Capability, TargetInfo
from .batch import PairsAlgorithm
from .layout import Layout
from .select import Selection
from .sorts import SortAlgorithm

P = TypeVar("P")
S = TypeVar("S")

SWEEPS = frozenset({Capability.SUBGROUPS, Capability.FORWARD_PROGRESS})
SUBGROUPS = frozenset({Capability.SUBGROUPS})
NONE: frozenset[Capability] = frozenset()
ANY = range(1 << 63)


@attrs.frozen
class RowsRule(Generic[S]):
    """A rule for the algorithm by which rows are sorted, or the first k elements of each are found."""

    target: str
    needs: frozenset[Capability]
    bits: tuple[int, ...]  # of an element
    lengths: range  # of a row
    rows: range
    algorithm: S
    workgroup_bytes: int = 0  # required, where it is more than every adapter has
    elements: range = ANY  # in all rows together
    unless: frozenset[Capability] | None = None  # does not match a target with all of these, which has other rules
    most_k: int = 1 << 63
    least_k: int = 0
    ratios: range = ANY  # of the length to k, rounded down

    def matches(self, info: TargetInfo, bits: int, rows: int, length: int, k: int = 0) -> bool:
        return (
            info.name == self.target
            and self.needs <= info.capabilities
            and (self.unless is None or not self.unless <= info.capabilities)
            and self.workgroup_bytes <= info.limits.workgroup_bytes
            and bits in self.bits
            and length in self.lengths
            and rows in self.rows
            and rows * length in self.elements
            and self.least_k <= k <= self.most_k
            and length // max(k, 1) in self.ratios
        )


SortRule: TypeAlias = RowsRule[SortAlgorithm]
PairsRule: TypeAlias = RowsRule[PairsAlgorithm]  # whose `bits` are those of key and value together
SelectRule: TypeAlias = RowsRule[Selection | None]  # None for a full argsort, as PairsRules choose it


@attrs.frozen
class PolicyRule(Generic[P]):
    """A rule for the policy of a reduction or a scan along an axis."""

    target: str
    needs: frozenset[Capability]
    in_rows: bool | None  # whether the axis is contiguous; None for either
    lengths: range
    results: range
    policy: P
    row_bytes: int = 1 << 62  # of a row's elements, at most
    totals_bytes: int = 1 << 20  # bounds `items` by the bytes of an invocation's states: register pressure
    row_states: int = 1 << 62  # bytes of as many states as a row has elements, at most: what one workgroup combines

    def matches(self, info: TargetInfo, layout: Layout, itemsize: int = 0, state_bytes: int = 0) -> bool:
        return (
            info.name == self.target
            and layout.length * state_bytes <= self.row_states
            and layout.length * itemsize <= self.row_bytes
            and self.needs <= info.capabilities
            and self.in_rows in (None, layout.row_stride is not None)
            and layout.length in self.lengths
            and layout.results in self.results
        )
