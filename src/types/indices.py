"""Newtypes of the algorithms, so that type checkers tell index-like quantities apart. All count from 0, half open."""

from __future__ import annotations

from enum import Enum

import attrs

from .scalars import U32


class Placement(Enum):
    """Where a schedule writes the sorted rows."""

    IN_PLACE = "in place"  # to the INOUT buffer "data", which has the input
    ELSEWHERE = "elsewhere"  # to the OUTPUT buffer "results"; the INPUT buffer "data" is only read


class SortOrder(Enum):
    """Ascending or descending; NaN and NaT come last in both."""

    __hash__ = object.__hash__  # part of every plan's key, and Enum's own hash is slow

    ASCENDING = 0
    DESCENDING = 1


class ScanKind(Enum):
    """Whether an element is part of its own prefix."""

    __hash__ = object.__hash__  # part of every plan's key, and Enum's own hash is slow

    INCLUSIVE = 0
    EXCLUSIVE = 1


@attrs.frozen
class ThreadId:
    """The index of an invocation among those of its row."""

    value: U32


@attrs.frozen
class ElementIndex:
    """The index of an element in its row."""

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
    """A row of a batch of contiguous rows, and an invocation's index in it."""

    first: U32  # the index of the row's first element in the buffer
    thread: ThreadId

    @classmethod
    def of(cls, group_id: U32, local_id: U32, group_size: U32, groups_per_row: U32, length: U32) -> Row:
        """The row of an invocation, where every row has the same number of workgroups."""
        row = group_id // groups_per_row
        group = group_id - row * groups_per_row
        return cls(row * length, ThreadId(group * group_size + local_id))

    def at(self, element: ElementIndex) -> U32:
        """The index in the buffer of an element of the row."""
        return self.first + element.value
