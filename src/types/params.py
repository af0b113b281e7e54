"""Arguments of the built-in kernels: structs of run-time numbers; policies, on whose Python ints kernels are
specialised."""

from __future__ import annotations

from enum import Enum

import attrs

from .checks import as_int, instance_of, is_bool, power_within, require, within
from .indices import Pass, SortOrder, Stage
from .needs import Needs, Policy
from .scalars import U32

# Limits beyond any machine's; targets refuse what is beyond their own.
MOST_INVOCATIONS = 1 << 12  # in a workgroup
MOST_ITEMS = 1 << 8  # elements in an invocation's registers
MOST_GROUPS = (1 << 32) - 1
MOST_COUNTED = (1 << 30) - 1  # elements: a sweep's status word has two flag bits and a 30-bit count
_MOST_TILE = 1 << 20
_MOST_PASSES = 6  # fused in registers: each pass doubles the elements of an invocation
MASK_LANES, WIDE_MASK_LANES = 32, 64  # bits of a lane mask in workgroup memory, and in a register


def power_above(least: int) -> int:
    """The least power of two that is at least `least`."""
    return 1 << max(0, least - 1).bit_length()


class TilePolicy(Policy):
    """The base of policies by which a workgroup works on a tile: so many items for each of its invocations."""

    __slots__ = ()
    group_size: int
    items: int

    @property
    def tile(self) -> int:
        """The elements that a workgroup has at a time."""
        return self.group_size * self.items


class ScanningPolicy(TilePolicy):
    """The base of policies by which a workgroup scans."""

    __slots__ = ()
    subgroups: bool  # whether lanes combine by shuffles before workgroup memory is used

    @property
    def needs(self) -> Needs:
        """The last lane of each subgroup has its total, so subgroups must be whole."""
        return Needs(1, self.group_size, or_one=True) if self.subgroups else Needs()


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
    """Tuning of the bitonic sort. All numbers are powers of two, except `fused_passes`."""

    # elements sorted in workgroup memory
    tile: int = attrs.field(default=2048, converter=as_int, validator=power_within(2, _MOST_TILE))
    group_size: int = attrs.field(default=256, converter=as_int, validator=power_within(1, MOST_INVOCATIONS))
    # passes over global memory that one launch does in registers
    fused_passes: int = attrs.field(default=3, converter=as_int, validator=within(1, _MOST_PASSES))


@attrs.frozen
class PartsParams:
    """Two sorted parts of a row, in buffers of their own; all parts but the last have the same length."""

    num_lower: U32
    num_upper: U32
    order: SortOrder


@attrs.frozen
class RowsParams:
    """Contiguous rows of one length."""

    num_rows: U32
    length: U32

    @property
    def kept(self) -> U32:
        """The elements that are stored of a sorted row."""
        return self.length


@attrs.frozen
class FirstParams(RowsParams):
    """Contiguous rows of one length, of each of which the first k are wanted."""

    k: U32

    @property
    def kept(self) -> U32:
        return self.k


@attrs.frozen
class RowsPolicy(Policy):
    """Tuning of sorts of short rows: `lanes` hold a row, with `items` elements each. All numbers are powers of two."""

    lanes: int = attrs.field(converter=as_int, validator=power_within(1, WIDE_MASK_LANES))
    items: int = attrs.field(converter=as_int, validator=power_within(1, MOST_ITEMS))
    group_size: int = attrs.field(default=256, converter=as_int, validator=power_within(1, MOST_INVOCATIONS))

    def __attrs_post_init__(self) -> None:
        require(self.group_size >= self.lanes, self, "group_size", f"at least the {self.lanes} lanes of a row")

    @property
    def needs(self) -> Needs:
        """The lanes of a row must be in one subgroup; a single lane needs none."""
        return Needs(self.lanes if self.lanes > 1 else 0)

    @classmethod
    def holding(cls, length: int, lanes: int, items: int, group_size: int) -> RowsPolicy:
        """The policy for rows of a length: as few lanes as hold it with `items` elements each, at most `lanes`; then
        more elements each."""
        padded = power_above(length)
        few = min(items, padded)
        taken = min(lanes, padded // few)
        return cls(taken, padded // taken, max(group_size, taken))

    @property
    def rows(self) -> int:
        """Rows of one workgroup."""
        return self.group_size // self.lanes

    @property
    def held(self) -> int:
        """Elements of a row that its lanes hold."""
        return self.lanes * self.items

    @property
    def of_lane(self) -> RowsPolicy:
        """The policy by which a lane alone sorts as many as it holds."""
        return RowsPolicy(1, self.items, self.group_size)

    @property
    def padded(self) -> int:
        """The stride of the lanes' blocks in workgroup memory: one word of padding avoids bank conflicts."""
        return self.items + 1

    @property
    def stages(self) -> int:
        """The stages of the network: log2 of the elements that the lanes of a row hold."""
        return self.held.bit_length() - 1


@attrs.frozen
class AxisParams:
    """One launch of a reduction or scan along `length` of an array of planes x length x columns, with any strides.
    Columns may be shared: a workgroup has `lanes` columns; the elements of each are shared by `ranks` invocations."""

    columns: U32  # of a plane
    all_columns: U32  # of all planes
    length: U32
    plane_stride: U32
    length_stride: U32
    column_stride: U32
    plane_result: U32  # strides of the results
    length_result: U32  # in a scan between elements; in a reduction between the partial results of a column
    column_result: U32
    lanes: U32
    ranks: U32
    lane_step: U32  # invocations from one lane to the next
    rank_step: U32  # and from one rank to the next
    tiles: U32  # of `lanes` columns each, over all planes; with Arrangement.SIDE_BY_SIDE, in a plane
    shares: U32  # workgroups for each column
    share: U32  # elements of a column for each of them in a scan; in a reduction they interleave blocks


class Totals(Enum):
    """The accumulators of an invocation in a reduction."""

    EACH = 0  # one for each element of a block: suits SIMD on a CPU
    ONE = 1  # one in all: leaves a GPU's registers to loads in flight


@attrs.frozen
class ReducePolicy(Policy):
    """Tuning of reductions."""

    group_size: int = attrs.field(default=256, converter=as_int, validator=within(1, MOST_INVOCATIONS))
    # elements that an invocation loads at a time
    items: int = attrs.field(default=8, converter=as_int, validator=within(1, MOST_ITEMS))
    # workgroups over all rows, at most
    groups: int = attrs.field(default=1024, converter=as_int, validator=within(1, MOST_GROUPS))
    # whether lanes combine by shuffles before workgroup memory is used
    subgroups: bool = attrs.field(default=False, validator=is_bool)
    # bytes of neighbouring columns that a workgroup reads at a time, at least: coalesced loads want whole cache lines
    line: int = attrs.field(default=128, converter=as_int, validator=within(1, 1 << 20))
    # rows shorter than this are reduced several to a workgroup
    short: int = attrs.field(default=1, converter=as_int, validator=within(1, MOST_GROUPS))
    # with subgroups, the lanes of one that share such a row
    strand: int = attrs.field(default=1, converter=as_int, validator=power_within(1, WIDE_MASK_LANES))
    # whether each invocation has a column of its own, if there are enough: a CPU vectorises over neighbouring columns
    side_by_side: bool = attrs.field(default=False, validator=is_bool)
    # whether a column of no more than `items` has an invocation of its own, which loads all of it at once
    alone: bool = attrs.field(default=False, validator=is_bool)
    totals: Totals = attrs.field(default=Totals.EACH, validator=instance_of(Totals))

    @property
    def needs(self) -> Needs:
        """Butterfly reductions need whole subgroups, and a strand within one."""
        return Needs(self.strand, self.group_size) if self.subgroups else Needs()

    @property
    def halvings(self) -> tuple[int, ...]:
        """The states left before each step of a pairwise reduction: 8, 4, 2. An odd one is carried along."""
        return tuple(-(-self.items >> step) for step in range((self.items - 1).bit_length()))


@attrs.frozen
class ScanPolicy(ScanningPolicy):
    """Tuning of scans. A workgroup goes through its share of a row tile by tile."""

    group_size: int = attrs.field(default=256, converter=as_int, validator=within(1, MOST_INVOCATIONS))
    # elements in an invocation's registers; an odd number avoids bank conflicts
    items: int = attrs.field(default=15, converter=as_int, validator=within(1, MOST_ITEMS))
    # workgroups, at most
    groups: int = attrs.field(default=1024, converter=as_int, validator=within(1, MOST_GROUPS))
    subgroups: bool = attrs.field(default=False, validator=is_bool)
    # bytes of neighbouring columns that a workgroup reads at a time, at least: coalesced loads want whole cache lines
    line: int = attrs.field(default=128, converter=as_int, validator=within(1, 1 << 20))
    # whether each invocation has a column of its own, if there are enough: a CPU vectorises over neighbouring columns
    side_by_side: bool = attrs.field(default=False, validator=is_bool)
    # whether a column of no more than `items` has an invocation of its own, which loads all of it at once
    alone: bool = attrs.field(default=False, validator=is_bool)
    # with subgroups, the lanes of one that share a contiguous row; 1: all rows have workgroups of their own
    strand: int = attrs.field(default=1, converter=as_int, validator=power_within(1, WIDE_MASK_LANES))

    @property
    def needs(self) -> Needs:
        """A strand is within a subgroup."""
        in_strands = self.subgroups and self.strand > 1
        return Needs(self.strand, self.group_size) if in_strands else super().needs


@attrs.frozen
class MergePolicy(TilePolicy):
    """Tuning of merges. A workgroup of one invocation, for CPUs, merges its tile serially from both ends."""

    group_size: int = attrs.field(default=256, converter=as_int, validator=within(1, MOST_INVOCATIONS))
    # elements that an invocation merges; an odd number avoids bank conflicts
    items: int = attrs.field(default=15, converter=as_int, validator=within(1, 1 << 20))


@attrs.frozen
class MergeParams:
    """The lengths of both arrays, the tiles of the merged one, and the workgroups that check ties, if keys have any."""

    first: U32
    second: U32
    tiles: U32
    groups: U32


@attrs.frozen
class RadixPolicy(TilePolicy):
    """Tuning of radix sorts. A workgroup's tile is divided among strands (subgroups), each of which ranks its elements.

    A workgroup needs at least one invocation for each value of a digit.
    """

    digit_bits: int = attrs.field(default=8, converter=as_int, validator=within(1, 12))
    group_size: int = attrs.field(default=256, converter=as_int, validator=within(2, MOST_INVOCATIONS))
    # elements in an invocation's registers
    items: int = attrs.field(default=16, converter=as_int, validator=within(1, MOST_ITEMS))
    # the least subgroup size that the kernel supports; without subgroups, the lanes that rank together
    strand: int = attrs.field(default=32, converter=as_int, validator=within(1, WIDE_MASK_LANES))
    subgroups: bool = attrs.field(default=True, validator=is_bool)
    # the lookback window: status words loaded at a time
    lookback: int = attrs.field(default=4, converter=as_int, validator=within(1, 32))
    # the workgroup size of the histogram kernel
    count_group: int = attrs.field(default=256, converter=as_int, validator=within(1, MOST_INVOCATIONS))
    # elements that each of its invocations loads at a time
    count_items: int = attrs.field(default=4, converter=as_int, validator=within(1, MOST_ITEMS))
    # privatised copies of each of its counters, against contention
    copies: int = attrs.field(default=1, converter=as_int, validator=within(1, 1 << 10))
    # its workgroups, at most
    count_groups: int = attrs.field(default=1024, converter=as_int, validator=within(1, MOST_GROUPS))
    # one launch a digit with decoupled look-back, rather than three without
    sweeps: bool = attrs.field(default=False, validator=is_bool)
    # elements of a row that one sweep moves, at most: a longer row takes more launches a digit
    portion: int = attrs.field(default=MOST_COUNTED, converter=as_int, validator=within(1, MOST_COUNTED))

    def __attrs_post_init__(self) -> None:
        digits = f"at least {self.radix}, an invocation for each of the 2**{self.digit_bits} digits"
        require(self.group_size >= self.radix, self, "group_size", digits)
        if not self.subgroups:
            strands = f"at most {MASK_LANES}, the bits of a mask, and a divisor of group_size={self.group_size}"
            require(self.strand <= MASK_LANES and self.group_size % self.strand == 0, self, "strand", strands)
        if self.sweeps:
            require(self.digit_bits > 1, self, "digit_bits", "at least 2 in a sweep, which has a bit for each pass")

    @property
    def needs(self) -> Needs:
        """A strand is a whole subgroup; the lookback of a sweep needs forward progress."""
        if not self.subgroups:
            return Needs(forward_progress=self.sweeps)
        return Needs(self.strand, self.group_size, forward_progress=self.sweeps)

    @property
    def radix(self) -> int:
        return 1 << self.digit_bits

    @property
    def strands(self) -> int:
        """Strands in a workgroup, at most."""
        return -(-self.group_size // self.strand)

    @property
    def digit_strands(self) -> int:
        """Strands among the first `radix` invocations, which each have a digit."""
        return -(-self.radix // self.strand)

    @property
    def scanned(self) -> int:
        """Words of workgroup memory for a scan over the workgroup: one for each subgroup, or each invocation."""
        return self.strands if self.subgroups else self.group_size

    @property
    def counters(self) -> int:
        """Words of workgroup memory for counting: one for each strand and digit; without subgroups, a mask each too."""
        return self.strands * self.radix * (1 if self.subgroups else 2)
