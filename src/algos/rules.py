"""Lines of the tables: an algorithm or a policy, and when to take it."""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from ..machine import Capability, TargetInfo
from .layout import Layout
from .select import Selection
from .sorts import PairsAlgorithm, SortAlgorithm

P = TypeVar("P")
S = TypeVar("S", SortAlgorithm, PairsAlgorithm)


@attrs.frozen
class RowsRule(Generic[S]):
    """One line of a table: an algorithm for rows, and when to take it."""

    target: str
    needs: frozenset[Capability]
    bits: tuple[int, ...]  # of an element
    lengths: range  # of a row
    rows: range
    algorithm: S
    workgroup_bytes: int = 0  # what it takes of workgroup memory, where not every adapter may have that
    elements: range = range(1 << 63)  # of all rows together
    unless: frozenset[Capability] | None = None  # not where a target has all of these: it has lines of its own

    def matches(self, info: TargetInfo, bits: int, rows: int, length: int) -> bool:
        return (
            info.name == self.target
            and self.needs <= info.capabilities
            and (self.unless is None or not self.unless <= info.capabilities)
            and self.workgroup_bytes <= info.limits.workgroup_bytes
            and bits in self.bits
            and length in self.lengths
            and rows in self.rows
            and rows * length in self.elements
            and self.algorithm.most_rows(length, info.limits.groups) > 0
        )


@attrs.frozen
class SortRule(RowsRule[SortAlgorithm]):
    """For sorts."""


@attrs.frozen
class PairsRule(RowsRule[PairsAlgorithm]):
    """For sorts that take something along; the bits are counted of both together."""


@attrs.frozen
class PolicyRule(Generic[P]):
    """The same for algorithms of which there is one: a policy, and when to take it."""

    target: str
    needs: frozenset[Capability]
    lengths: range
    policy: P

    def matches(self, info: TargetInfo, length: int) -> bool:
        return info.name == self.target and self.needs <= info.capabilities and length in self.lengths


@attrs.frozen
class AxisRule(Generic[P]):
    """The same for work along an axis, which may lie in rows of neighbouring elements, or in columns."""

    target: str
    needs: frozenset[Capability]
    in_rows: bool
    lengths: range
    results: range
    policy: P
    totals_bytes: int = 1 << 20  # of an invocation, at most: of larger states it keeps fewer

    def matches(self, info: TargetInfo, layout: Layout) -> bool:
        return (
            info.name == self.target
            and self.needs <= info.capabilities
            and (layout.row_stride is not None) is self.in_rows
            and layout.length in self.lengths
            and layout.results in self.results
        )


@attrs.frozen
class SelectRule:
    """The same for top-k."""

    target: str
    bits: tuple[int, ...]  # of an element
    lengths: range  # of a row
    rows: range
    most_k: int
    selection: Selection

    def matches(self, info: TargetInfo, bits: int, rows: int, length: int, k: int) -> bool:
        return (
            info.name == self.target
            and bits in self.bits
            and length in self.lengths
            and rows in self.rows
            and k <= self.most_k
        )
