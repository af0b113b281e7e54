"""What the host tells a launch: run-time numbers in structs, compile-time choices in policies.

A struct's scalars reach the device with every launch. A policy holds Python ints, and a kernel is compiled for them.
"""

from __future__ import annotations

from enum import Enum

import attrs

from .checks import holds, power_within, require, truth, whole, within
from .indices import Pass, SortOrder, Stage
from .needs import Needs, Policy
from .scalars import U32

# Beyond what any machine has, and small enough that a schedule can be made, only to be refused.
MOST_INVOCATIONS = 1 << 12  # in a workgroup
MOST_ITEMS = 1 << 8  # held by an invocation
MOST_GROUPS = (1 << 32) - 1
MOST_COUNTED = (1 << 30) - 1  # elements: a status word of a sweep has two bits beside its count
_MOST_TILE = 1 << 20
_MOST_PASSES = 6  # in registers: twice as many elements for each
_MASK, _WIDE_MASK = 32, 64  # lanes that a mask in workgroup memory has bits for, and one in a register


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
class BitonicPolicy(Policy):
    """How a bitonic sort is cut up. All numbers are powers of two, but for `fused_passes`."""

    # elements sorted in workgroup memory
    tile: int = attrs.field(default=2048, converter=whole, validator=power_within(2, _MOST_TILE))
    group_size: int = attrs.field(default=256, converter=whole, validator=power_within(1, MOST_INVOCATIONS))
    # passes over global memory that one launch does in registers
    fused_passes: int = attrs.field(default=3, converter=whole, validator=within(1, _MOST_PASSES))


@attrs.frozen
class PartsParams:
    """Two sorted parts of a row that lie in memories of their own; all parts are as long but the last."""

    num_lower: U32
    num_upper: U32
    order: SortOrder


@attrs.frozen
class RowsParams:
    """Rows of one length that lie one behind the other."""

    num_rows: U32
    length: U32


@attrs.frozen
class RowsPolicy(Policy):
    """How short rows are held: so many lanes a row, with so many elements each. All numbers are powers of two."""

    lanes: int = attrs.field(converter=whole, validator=power_within(1, _WIDE_MASK))
    items: int = attrs.field(converter=whole, validator=power_within(1, MOST_ITEMS))
    group_size: int = attrs.field(default=256, converter=whole, validator=power_within(1, MOST_INVOCATIONS))

    def __attrs_post_init__(self) -> None:
        require(self.group_size >= self.lanes, self, "group_size", f"at least the {self.lanes} lanes of a row")

    @property
    def needs(self) -> Needs:
        """A row's lanes are of one subgroup. One lane asks no other."""
        return Needs(self.lanes if self.lanes > 1 else 0)

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
    row_stride: U32  # elements from one row's first to the next one's


@attrs.frozen
class AxisParams:
    """One launch over an array of planes x length x columns, however these lie; combined, or scanned, along length.

    A workgroup has so many lanes for columns, and for each of them so many ranks that share its elements.
    """

    columns: U32  # of a plane
    all_columns: U32  # of all planes
    length: U32
    plane_stride: U32
    length_stride: U32
    column_stride: U32
    plane_result: U32  # how far apart the results lie
    length_result: U32  # of a scan; of a reduction, those of the shares of a column
    column_result: U32
    column_total: U32  # how far apart the totals of a column's shares lie in a scan
    lanes: U32
    ranks: U32
    lane_step: U32  # invocations from one lane to the next, and from one rank to the next
    rank_step: U32
    tiles: U32  # of all columns, each as wide as a workgroup; where columns lie side by side, of those of a plane
    shares: U32  # workgroups that share the elements of a column
    share: U32  # elements of one of them in a scan; in a reduction they take blocks in turn


class Totals(Enum):
    """The running totals that an invocation of a reduction keeps."""

    EACH = 0  # one for each element that it takes at a time
    ONE = 1


@attrs.frozen
class ReducePolicy(Policy):
    """How a reduction is cut up."""

    group_size: int = attrs.field(default=256, converter=whole, validator=within(1, MOST_INVOCATIONS))
    # elements that one invocation takes at a time
    items: int = attrs.field(default=8, converter=whole, validator=within(1, MOST_ITEMS))
    # workgroups over all rows, at most
    groups: int = attrs.field(default=1024, converter=whole, validator=within(1, MOST_GROUPS))
    # whether lanes combine by shuffles before workgroup memory is used
    subgroups: bool = attrs.field(default=False, validator=truth)
    # bytes of neighbouring columns that a workgroup reads at a time, at least: coalesced loads want whole cache lines
    line: int = attrs.field(default=128, converter=whole, validator=within(1, 1 << 20))
    # rows that are shorter are reduced several a workgroup
    short: int = attrs.field(default=1, converter=whole, validator=within(1, MOST_GROUPS))
    # lanes that share such a row, with subgroups: all are of one
    strand: int = attrs.field(default=1, converter=whole, validator=power_within(1, _WIDE_MASK))
    # whether an invocation has a column to itself where there are enough, so that a CPU's vectors take neighbours
    side_by_side: bool = attrs.field(default=False, validator=truth)
    totals: Totals = attrs.field(default=Totals.EACH, validator=holds(Totals))

    @property
    def needs(self) -> Needs:
        """Each subgroup combines in halves, down from its size; a strand is part of one."""
        return Needs(self.strand, self.group_size) if self.subgroups else Needs()

    @property
    def halvings(self) -> tuple[int, ...]:
        """How many states are left before each combination in pairs: 8, 4, 2."""
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
    row_stride: U32  # elements from one row's first to the next one's; results lie packed


@attrs.frozen
class ScanPolicy(Policy):
    """How a scan is cut up. A workgroup goes through its share tile by tile."""

    group_size: int = attrs.field(default=256, converter=whole, validator=within(1, MOST_INVOCATIONS))
    # elements an invocation holds; an odd number, so that its lanes meet different memory banks
    items: int = attrs.field(default=15, converter=whole, validator=within(1, MOST_ITEMS))
    # workgroups, at most
    groups: int = attrs.field(default=1024, converter=whole, validator=within(1, MOST_GROUPS))
    # whether lanes combine by shuffles before workgroup memory is used
    subgroups: bool = attrs.field(default=False, validator=truth)
    # bytes of neighbouring columns that a workgroup reads at a time, at least: coalesced loads want whole cache lines
    line: int = attrs.field(default=128, converter=whole, validator=within(1, 1 << 20))
    # whether an invocation has a column to itself where there are enough, so that a CPU's vectors take neighbours
    side_by_side: bool = attrs.field(default=False, validator=truth)

    @property
    def needs(self) -> Needs:
        """The last lane of each subgroup tells what all of it holds."""
        return Needs(1, self.group_size, or_one=True) if self.subgroups else Needs()

    @property
    def tile(self) -> int:
        """Elements of one workgroup at a time."""
        return self.group_size * self.items


@attrs.frozen
class MergePolicy(Policy):
    """How a merge is cut up. A workgroup of one invocation shares nothing: it merges from both ends of its tile."""

    group_size: int = attrs.field(default=256, converter=whole, validator=within(1, MOST_INVOCATIONS))
    # elements that one invocation merges; an odd number of them, so that lanes meet different memory banks
    items: int = attrs.field(default=15, converter=whole, validator=within(1, 1 << 20))

    @property
    def tile(self) -> int:
        """Elements of one workgroup."""
        return self.group_size * self.items


@attrs.frozen
class RadixParams:
    """What a launch of a radix sort does to all elements alike."""

    num_elements: U32  # of all rows


@attrs.frozen
class RadixPolicy(Policy):
    """How a radix sort is cut up. A workgroup's tile falls into strands, one a subgroup, which rank their elements.

    A workgroup has at least as many invocations as there are digits.
    """

    digit_bits: int = attrs.field(default=8, converter=whole, validator=within(1, 12))
    group_size: int = attrs.field(default=256, converter=whole, validator=within(2, MOST_INVOCATIONS))
    # elements an invocation holds
    items: int = attrs.field(default=16, converter=whole, validator=within(1, MOST_ITEMS))
    # lanes in the smallest subgroup the kernel may meet; without subgroups, those that rank together
    strand: int = attrs.field(default=32, converter=whole, validator=within(1, _WIDE_MASK))
    subgroups: bool = attrs.field(default=True, validator=truth)
    # status words that a look-back asks for at a time
    lookback: int = attrs.field(default=4, converter=whole, validator=within(1, 32))
    # invocations of a workgroup that counts the digits of all passes
    count_group: int = attrs.field(default=256, converter=whole, validator=within(1, MOST_INVOCATIONS))
    # elements that each of them holds at a time
    count_items: int = attrs.field(default=4, converter=whole, validator=within(1, MOST_ITEMS))
    # of every counter there
    copies: int = attrs.field(default=1, converter=whole, validator=within(1, 1 << 10))
    # workgroups that count, at most
    count_groups: int = attrs.field(default=1024, converter=whole, validator=within(1, MOST_GROUPS))
    # one launch a digit, whose workgroups wait for each other
    sweeps: bool = attrs.field(default=False, validator=truth)
    # elements that such a launch moves of one row, at most: a longer row takes more launches
    portion: int = attrs.field(default=MOST_COUNTED, converter=whole, validator=within(1, MOST_COUNTED))

    def __attrs_post_init__(self) -> None:
        digits = f"at least {self.radix}, an invocation for each of the 2**{self.digit_bits} digits"
        require(self.group_size >= self.radix, self, "group_size", digits)
        if not self.subgroups:
            strands = f"at most {_MASK}, the bits of a mask, and a divisor of group_size={self.group_size}"
            require(self.strand <= _MASK and self.group_size % self.strand == 0, self, "strand", strands)
        if self.sweeps:
            require(self.digit_bits > 1, self, "digit_bits", "at least 2 in a sweep, which has a bit for each pass")

    @property
    def needs(self) -> Needs:
        """A strand is a whole subgroup. The workgroups of a sweep wait for each other."""
        if not self.subgroups:
            return Needs(forward_progress=self.sweeps)
        return Needs(self.strand, self.group_size, forward_progress=self.sweeps)

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
