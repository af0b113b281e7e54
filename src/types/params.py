"""What the host tells a launch: run-time numbers in structs, compile-time choices in policies.

A struct's scalars reach the device with every launch. A policy holds Python ints, and a kernel is compiled for them.
"""

from __future__ import annotations

import attrs

from .indices import Pass, SortOrder, Stage
from .scalars import U32


def power_above(least: int) -> int:
    """The least power of two that is not below."""
    return 1 << max(0, least - 1).bit_length()


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
class RowsParams:
    """Rows of one length that lie one behind the other."""

    num_rows: U32
    length: U32


@attrs.frozen
class RowsPolicy:
    """How short rows are held: so many lanes a row, with so many elements each. All numbers are powers of two."""

    lanes: int
    items: int
    group_size: int = 256

    @classmethod
    def holding(cls, length: int, lanes: int, items: int, group_size: int) -> RowsPolicy:
        """For rows of a length; at most so many lanes, and so many elements each before more lanes are taken."""
        padded = power_above(length)
        few = min(items, padded)
        taken = min(lanes, padded // few)
        return cls(taken, padded // taken, max(group_size, taken))

    @property
    def rows(self) -> int:
        """Rows of one workgroup."""
        return self.group_size // self.lanes

    @property
    def padded(self) -> int:
        """How far apart the lanes' blocks lie in workgroup memory."""
        return self.items + 1

    @property
    def stages(self) -> int:
        """Two to the stages is what the lanes of a row hold."""
        return (self.lanes * self.items).bit_length() - 1


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


@attrs.frozen
class ScanParams:
    """One launch of a scan, over every row of a batch."""

    num_elements: U32  # in one row
    groups_per_row: U32
    share: U32  # elements of one workgroup, which are whole tiles


@attrs.frozen
class ScanPolicy:
    """How a scan is cut up. A workgroup goes through its share tile by tile."""

    group_size: int = 256
    items: int = 15  # elements an invocation holds; an odd number, so that its lanes meet different memory banks
    groups: int = 1024  # workgroups, at most
    subgroups: bool = False  # whether lanes combine by shuffles before workgroup memory is used

    @property
    def tile(self) -> int:
        """Elements of one workgroup at a time."""
        return self.group_size * self.items


@attrs.frozen
class RadixParams:
    """One pass of a radix sort."""

    num_elements: U32


@attrs.frozen
class RadixPolicy:
    """How a radix sort is cut up. A workgroup's tile falls into strands, one a subgroup, which rank their elements.

    A workgroup has at least as many invocations as there are digits.
    """

    digit_bits: int = 8
    group_size: int = 256
    items: int = 16  # elements an invocation holds
    strand: int = 32  # lanes in the smallest subgroup the kernel may meet; without subgroups, those that rank together
    subgroups: bool = True
    looks: int = 4  # status words that a look-back asks for at a time
    count_group: int = 256  # invocations of a workgroup that counts the digits of all passes
    count_items: int = 4  # elements that each of them holds at a time
    copies: int = 1  # of every counter there
    count_groups: int = 1024  # workgroups that count, at most
    sweeps: bool = False  # one launch a digit, whose workgroups wait for each other

    @property
    def tile(self) -> int:
        """Elements of one workgroup."""
        return self.group_size * self.items

    @property
    def radix(self) -> int:
        return 1 << self.digit_bits

    @property
    def strands(self) -> int:
        """Strands of one tile, at most."""
        return -(-self.group_size // self.strand)

    @property
    def digit_strands(self) -> int:
        """Strands whose invocations look after a digit."""
        return -(-self.radix // self.strand)

    @property
    def scanned(self) -> int:
        """Workgroup words for a sum over the invocations: one for each subgroup, or for each invocation."""
        return self.strands if self.subgroups else self.group_size

    @property
    def counters(self) -> int:
        """Workgroup words for counting: a counter for every strand and digit; without subgroups, a mask too."""
        return self.strands * self.radix * (1 if self.subgroups else 2)
