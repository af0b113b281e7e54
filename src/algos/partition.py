"""Eight-way partition by seven splitters (as in sample sort): one pass, unstable within buckets.

Counts are packed to save registers: four bits for each bucket in an invocation, sixteen in a workgroup's scan. A tile's
elements are grouped in workgroup memory, and room in each bucket is reserved by an atomic add; elements beyond it are
counted and not written, so that the host can detect it.
"""

from __future__ import annotations

from typing import Any

import attrs

from ..kernel.language import *
from ..types.params import ScanPolicy
from .bitonic import from_ordered, to_ordered
from .scan_tile import exclusive_scan_workgroup, scan_lanes
from .sizes import require_countable

BUCKETS = 8
MOST_ITEMS = 15  # of an invocation: its counts have four bits each
_PAIRS = 0x000F000F  # selects two of the eight counts


@attrs.frozen
class BucketCounts:
    """Sixteen bits for each bucket, two to a word: `of_0_and_4` has bucket 0 in its lower half, 4 in the upper."""

    of_0_and_4: U32
    of_1_and_5: U32
    of_2_and_6: U32
    of_3_and_7: U32

    @classmethod
    def of(cls, counts: U32) -> BucketCounts:
        """Unpacks counts of four bits each."""
        return cls(counts & _PAIRS, (counts >> 4) & _PAIRS, (counts >> 8) & _PAIRS, (counts >> 12) & _PAIRS)

    def plus(self, other: BucketCounts) -> BucketCounts:
        return BucketCounts(
            self.of_0_and_4 + other.of_0_and_4, self.of_1_and_5 + other.of_1_and_5,
            self.of_2_and_6 + other.of_2_and_6, self.of_3_and_7 + other.of_3_and_7,
        )  # fmt: skip

    def minus(self, other: BucketCounts) -> BucketCounts:
        return BucketCounts(
            self.of_0_and_4 - other.of_0_and_4, self.of_1_and_5 - other.of_1_and_5,
            self.of_2_and_6 - other.of_2_and_6, self.of_3_and_7 - other.of_3_and_7,
        )  # fmt: skip

    def count(self, bucket: U32) -> U32:
        even = self.of_0_and_4 if (bucket & 2) == 0 else self.of_2_and_6
        odd = self.of_1_and_5 if (bucket & 2) == 0 else self.of_3_and_7
        return ((even if (bucket & 1) == 0 else odd) >> ((bucket >> 2) * 16)) & 0xFFFF

    def starts(self) -> BucketCounts:
        """The exclusive prefix sum over buckets: where each starts if they are contiguous."""
        first = self.of_0_and_4 + self.of_1_and_5
        lower = first + self.of_2_and_6 + self.of_3_and_7  # the lower half: the sum of the first four buckets
        begin = (lower & 0xFFFF) << 16
        return BucketCounts(
            begin, begin + self.of_0_and_4, begin + first, begin + first + self.of_2_and_6
        )  # fmt: skip


@attrs.frozen
class CountBuckets:
    """The sum of counts, as a monoid."""

    element: type[BucketCounts] = BucketCounts
    state: type[BucketCounts] = BucketCounts

    def identity(self) -> BucketCounts:
        return BucketCounts(U32(0), U32(0), U32(0), U32(0))

    def lift(self, element: BucketCounts, index: U32) -> BucketCounts:
        return element

    def combine(self, a: BucketCounts, b: BucketCounts) -> BucketCounts:
        return a.plus(b)


def bucket_of(word: W, edges: Registers[W]) -> U32:
    """The bucket of a word between the sorted splitters: a binary search with three selects."""
    in_lower = word < edges[3]
    in_first = word < (edges[1] if in_lower else edges[5])
    low = edges[0] if in_first else edges[2]
    high = edges[4] if in_first else edges[6]
    is_even = word < (low if in_lower else high)
    return (U32(0) if in_lower else U32(4)) | (U32(0) if in_first else U32(2)) | (U32(0) if is_even else U32(1))


def counts_before(
    cx: Invocation, shared: Workgroup[BucketCounts], mine: BucketCounts, policy: ScanPolicy
) -> BucketCounts:  # fmt: skip
    """The exclusive scan of counts within a strand: a subgroup, or without these all. Leaves the strands' totals in
    `shared`."""
    if not policy.subgroups:
        return exclusive_scan_workgroup(cx, CountBuckets(), shared, mine)
    up_to_me = scan_lanes(cx, CountBuckets(), mine, cx.lane, cx.subgroup_size)
    if cx.lane == minimum(cx.subgroup_size, cx.group_size) - 1:
        shared[cx.subgroup_id] = up_to_me
    cx.barrier()
    return up_to_me.minus(mine)


@kernel
def part_elements(
    cx: Invocation, key: SortableKey[E, W], data: Storage[E], between: Storage[W], rooms: Storage[U32],
    taken: Storage[U32], results: Storage[E], tile: Workgroup[W], shared: Workgroup[BucketCounts],
    segments: Workgroup[U32], length: U32, order: SortOrder, policy: ScanPolicy,
) -> None:  # fmt: skip
    """Partitions a tile. Bucket b is `results` from rooms[2 * b] to rooms[2 * b + 1]; taken[b] counts its elements."""
    edges: Registers[W] = Registers(key.word, BUCKETS - 1)
    for edge in range(BUCKETS - 1):
        edges[edge] = between[edge]
    first = cx.group_id * policy.tile
    remaining = length - first
    mine = first + cx.local_id
    words: Registers[W] = Registers(key.word, policy.items)
    buckets: Registers[U32] = Registers(U32, policy.items)
    counts = U32(0)
    if remaining >= policy.tile:
        for i in dynamic_range(U32(0), U32(policy.items)):
            words[i] = to_ordered(key, data[add_nowrap(mine, i * cx.group_size)], order)
        for i in dynamic_range(U32(0), U32(policy.items)):
            buckets[i] = bucket_of(words[i], edges)
            counts = counts + (U32(1) << (buckets[i] * 4))
    else:
        for i in dynamic_range(U32(0), U32(policy.items)):
            if i * cx.group_size + cx.local_id < remaining:
                words[i] = to_ordered(key, data[add_nowrap(mine, i * cx.group_size)], order)
                buckets[i] = bucket_of(words[i], edges)
                counts = counts + (U32(1) << (buckets[i] * 4))
    before = counts_before(cx, shared, BucketCounts.of(counts), policy)
    strands = cx.group_size // minimum(cx.subgroup_size, cx.group_size) if policy.subgroups else U32(1)
    totals = U32(0) if policy.subgroups else cx.group_size - 1  # where the strands' are in workgroup memory
    offsets = (cx.group_size + 1) // 2 if policy.subgroups else cx.group_size  # and their offsets in the tile
    for lane in dynamic_range(cx.local_id, maximum(strands, U32(BUCKETS)), cx.group_size):
        total, earlier = CountBuckets().identity(), CountBuckets().identity()
        for strand in dynamic_range(U32(0), strands):
            if strand == lane:
                earlier = total
            total = total.plus(shared[totals + strand])
        starts = total.starts()
        if lane < strands:
            shared[offsets + lane] = starts.plus(earlier)
        if lane < BUCKETS:
            count, first_room = total.count(lane), rooms[lane * 2]
            room = rooms[lane * 2 + 1] - first_room
            before_tile = taken.atomic_add(lane, count)
            segments[lane] = starts.count(lane)
            segments[BUCKETS + lane] = minimum(count, room - minimum(before_tile, room))
            segments[2 * BUCKETS + lane] = first_room + before_tile
    cx.barrier()
    place = shared[offsets + cx.subgroup_id if policy.subgroups else offsets].plus(before)
    counts = U32(0)
    for i in dynamic_range(U32(0), U32(policy.items)):
        if i * cx.group_size + cx.local_id < remaining:
            bucket = buckets[i]
            tile[place.count(bucket) + ((counts >> (bucket * 4)) & 0xF)] = words[i]
            counts = counts + (U32(1) << (bucket * 4))
    cx.barrier()
    for bucket in dynamic_range(U32(0), U32(BUCKETS)):
        start = segments[bucket]
        target = segments[2 * BUCKETS + bucket]
        for i in dynamic_range(cx.local_id, segments[BUCKETS + bucket], cx.group_size):
            results[target + i] = from_ordered(key, tile[start + i], order)


def partition(
    key: SortableKey[Any, Any], length: int, room: int, order: SortOrder, policy: ScanPolicy
) -> Schedule:  # fmt: skip
    """Partitions `data` into `results`, of `room` elements. The caller fills `taken` with zeros."""
    require_countable(1, max(length, room))
    data = Buffer("data", key.element, length, Role.INPUT)
    between = Buffer("between", key.word, BUCKETS - 1, Role.INPUT)
    rooms = Buffer("rooms", U32, 2 * BUCKETS, Role.INPUT)
    taken = Buffer("taken", U32, BUCKETS, Role.INOUT)
    results = Buffer("results", key.element, room, Role.INOUT)
    launch = part_elements.launch(
        Grid(-(-length // policy.tile), policy.group_size), key, data, between, rooms, taken, results,
        Workgroup(key.word, policy.tile), Workgroup(BucketCounts, policy.group_size + 1), Workgroup(U32, 3 * BUCKETS),
        U32(length), order, policy,
    )  # fmt: skip
    return Schedule((data, between, rooms, taken, results), (launch,))
