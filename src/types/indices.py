"""The words of the algorithms: every index-like quantity is a class of its own, so that none passes for another.

All count from zero and ranges are half open. A class of one field costs nothing on a device: it is its field there.
"""

from __future__ import annotations

from enum import Enum

import attrs

from .scalars import U32


class Placement(Enum):
    """Where a schedule leaves the sorted rows."""

    IN_PLACE = "in place"  # in the INOUT buffer "data", which brought them
    ELSEWHERE = "elsewhere"  # in the OUTPUT buffer "results"; the INPUT buffer "data" is only read


class SortOrder(Enum):
    """Which end comes first. NaN and NaT come last in both."""

    __hash__ = object.__hash__  # each call looks a plan up by it, and Enum's own is slow

    ASCENDING = 0
    DESCENDING = 1


class ScanKind(Enum):
    """Whether an element's own value is part of its prefix."""

    __hash__ = object.__hash__  # each call looks a plan up by it, and Enum's own is slow

    INCLUSIVE = 0
    EXCLUSIVE = 1


@attrs.frozen
class ThreadId:
    """Which of the threads that share a row's work this is."""

    value: U32


@attrs.frozen
class ElementIndex:
    """A place in a row."""

    value: U32


@attrs.frozen
class Pass:
    """A pass of a stage of the bitonic network, from 0: each halves the distance of the one before."""

    value: U32


@attrs.frozen
class Stage:
    """A stage of the bitonic network, from 0: after stage s, blocks of 2 << s elements are sorted."""

    value: U32

    def next_pass(self) -> Pass:
        """One past this stage's last pass."""
        return Pass(self.value + 1)


@attrs.frozen
class Row:
    """A row of a batch and a thread's place in it. Rows lie one behind the other."""

    first: U32  # where the row starts in the buffer
    thread: ThreadId

    @classmethod
    def of(cls, group_id: U32, local_id: U32, group_size: U32, groups_per_row: U32, length: U32) -> Row:
        """Every row is worked on by the same number of workgroups."""
        row = group_id // groups_per_row
        group = group_id - row * groups_per_row
        return cls(row * length, ThreadId(group * group_size + local_id))

    def at(self, element: ElementIndex) -> U32:
        """Where an element of the row lies in the buffer."""
        return self.first + element.value
