"""What the host tells a launch: run-time numbers in structs, compile-time choices in policies.

A struct's scalars reach the device with every launch. A policy holds Python ints, and a kernel is compiled for them.
"""

from __future__ import annotations

import attrs

from .indices import Pass, SortOrder, Stage
from .scalars import U32


@attrs.frozen
class BitonicParams:
    """One launch of the bitonic network, over every row of a batch."""

    num_elements: U32  # in one row
    groups_per_row: U32
    stage: Stage
    pass_of_stage: Pass
    order: SortOrder


@attrs.frozen
class BitonicPolicy:
    """How a bitonic sort is cut up. All numbers are powers of two, but for `fused_passes`."""

    tile: int = 2048  # elements sorted in workgroup memory
    group_size: int = 256
    fused_passes: int = 3  # passes over global memory that one launch does in registers


@attrs.frozen
class ReduceParams:
    """One launch of a reduction, over every row of a batch."""

    num_elements: U32  # in one row
    groups_per_row: U32


@attrs.frozen
class ReducePolicy:
    """How a reduction is cut up."""

    group_size: int = 256
    items: int = 8  # running totals that one invocation keeps
    groups: int = 1024  # workgroups over all rows, at most
    subgroups: bool = False  # whether lanes combine by shuffles before workgroup memory is used

    @property
    def halvings(self) -> tuple[int, ...]:
        """How many totals are left before each combination in pairs: 8, 4, 2."""
        widths: list[int] = []
        width = self.items
        while width > 1:
            widths.append(width)
            width = (width + 1) // 2
        return tuple(widths)
