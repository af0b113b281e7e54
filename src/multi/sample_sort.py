"""Distributed sample sort: ranks partition by sampled splitters, exchange buckets all-to-all, and sort what they get.

Unlike sort and merge (shard.py) this takes no merge passes, and the exchange overlaps with sorting: each rank has a few
buckets, and sorts one while the next is in flight. Splitters from samples make the sizes only nearly right, so in the
end ranks exchange the few elements that are too many or too few. If the samples, or later the counts, show that buckets
would be too uneven (many equal keys, or very different data on each rank), all ranks sort and merge instead.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any

import attrs
import numpy as np

from ..algos.fit import fitted_partition
from ..algos.partition import BUCKETS, partition
from ..algos.sizes import LARGEST_U32
from ..api.sorting import sort
from ..external.cuts import Array
from ..kernel.launch import Schedule
from ..machine import TargetInfo
from ..targets.base import prepared_by
from ..types.dtypes import key_for
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.params import ScanPolicy
from ..types.specs import Memory as Where
from .memory import Memory
from .shard import Columns, Exchange, Gather, Marks, Shard, Started, Step, Work, in_parts, sort_shard

_LEAST = 1 << 27  # elements of each rank: with fewer, the host's part takes longer than merging
_SAMPLES = 1 << 12  # from each rank
_POLICY = ScanPolicy(group_size=256, items=15, subgroups=True)
_MOST_PIECES = 3  # buckets of each rank
_GROWTH = 2.5  # size of a bucket relative to the one before, as sorting takes so much longer than transfer
_SIGMAS = 6  # standard deviations of headroom for a bucket beyond its estimated size
_MOST_OVER = 1.1  # the most imbalance: elements of a rank after the exchange relative to those wanted


def _suits(work: Work, memory: Memory, lengths: Sequence[int]) -> bool:
    """Whether there are enough elements on each rank, on devices, and they are plain keys with distinct words."""
    if type(work) is not Work or work.stable or work.key is not None or memory.where is Where.HOST:
        return False
    return 2 <= len(lengths) <= BUCKETS and min(lengths) >= _LEAST


def sort_by_samples(
    work: Work, memory: Memory, given: Columns, rank: int, lengths: Sequence[int], sizes: Sequence[int]
) -> Shard:
    """One rank's generator: sample sort if it suits, else `sort_shard`."""
    if not _suits(work, memory, lengths):
        return (yield from sort_shard(work, memory, given, rank, lengths, sizes))
    plan = yield from _Plan.agreed(work, memory, given[0], lengths, sizes)
    if plan is not None:
        held, taken = plan.partitioned(work, memory, given[0], rank)
        yield Started()
        counts = np.stack((yield Gather(memory.to_host(taken).astype(np.int64))))
        if plan.has_held(counts, sizes):
            return (yield from _sorted(work, memory, held, plan, rank, counts, sizes))
        del held
    return (yield from sort_shard(work, memory, given, rank, lengths, sizes))


@attrs.frozen(eq=False)
class _Plan:
    """Splitters and bucket capacities. The same for all ranks, as all see the same samples."""

    between: Array  # the splitters' words, one fewer than buckets
    pieces: int  # buckets of each rank; surplus buckets come first and are empty
    most: Array  # capacities: the most elements of a bucket (column) that a rank (row) may hold

    @classmethod
    def agreed(
        cls, work: Work, memory: Memory, data: Array, lengths: Sequence[int], sizes: Sequence[int]
    ) -> Generator[Step, Sequence[Array], _Plan | None]:
        gap = max(1, sum(lengths) // (_SAMPLES * len(sizes)))
        samples = yield Gather(work.words(memory.to_host(data[::gap])))
        told = tuple(found.tobytes() for found in samples)
        return _plan_for(told, samples[0].dtype, tuple(lengths), tuple(sizes))

    def bucket(self, rank: int, piece: int) -> int:
        """The index of a rank's bucket."""
        return BUCKETS - (len(self.most) - rank) * self.pieces + piece

    def owned(self, rank: int) -> slice:
        """The indices of a rank's buckets."""
        return slice(self.bucket(rank, 0), self.bucket(rank, self.pieces))

    @cached_property
    def rooms(self) -> Array:
        """Positions of the buckets in each rank's memory, a row for each: start, end of its capacity, start of the
        next. Behind the rank's own buckets there is room to receive the other ranks' elements."""
        apart = self.most.copy()
        for rank in range(len(apart)):
            apart[rank, self.owned(rank)] = self.most[:, self.owned(rank)].sum(axis=0)
        starts = np.cumsum(apart, axis=1) - apart
        return np.stack([starts, starts + self.most, starts + apart], axis=2)

    def room(self, rank: int) -> int:
        """Elements of memory for all of a rank's buckets."""
        return _rounded(int(self.rooms[rank, -1, 2]))

    def partitioned(self, work: Work, memory: Memory, data: Array, rank: int) -> tuple[Array, Array]:
        """Partitions the rank's elements. Returns the buckets' memory, and their counts, which may exceed capacity."""
        room, target = self.room(rank), memory.target()
        schedule = _schedule(work.dtype, len(data), room, work.order, target.info)
        held, taken = memory.empty(room, work.dtype), np.zeros(BUCKETS, np.uint32)
        limits = self.rooms[rank, :, :2].astype(np.uint32)
        tables = [table.view(np.uint8).reshape(-1) for table in (self.between, limits, taken)]
        between, rooms, counts = in_parts(memory.from_host(np.concatenate(tables)), [table.size for table in tables])
        packed = data if data.flags.c_contiguous else data.copy()
        prepared_by(target, schedule).run((packed, between, rooms, counts, held))
        return held, counts.view(np.uint32)

    def has_held(self, counts: Array, sizes: Sequence[int]) -> bool:
        """Whether no bucket overflowed, and the imbalance is small."""
        got = counts.sum(axis=0)
        held = [int(got[self.owned(rank)].sum()) for rank in range(len(sizes))]
        return bool((counts <= self.most).all() and (held <= _MOST_OVER * np.array(sizes) + 1).all())


@lru_cache(4)
def _plan_for(
    told: tuple[bytes, ...], word: np.dtype[Any], lengths: tuple[int, ...], sizes: tuple[int, ...]
) -> _Plan | None:
    """Memoised, as the ranks of a process ask alike, one after another."""
    ranks, pieces = len(sizes), min(_MOST_PIECES, BUCKETS // len(sizes))
    samples = [np.sort(np.frombuffer(found, word)) for found in told]
    words = np.sort(np.concatenate(samples))
    ends = np.array([*_ends(sizes, pieces)][:-1]) / sum(sizes)
    between = np.zeros(BUCKETS - 1, word)  # no word is below zero: surplus buckets stay empty
    between[BUCKETS - 1 - ends.size :] = words[np.minimum((ends * words.size).astype(np.int64), words.size - 1)]
    below = np.array([[0, *np.searchsorted(found, between), found.size] for found in samples])
    share = np.diff(below) / np.maximum(below[:, -1:], 1)
    held = (share * np.array(lengths)[:, None]).sum(axis=0)[-ranks * pieces :].reshape(ranks, pieces).sum(axis=1)
    if (held > _MOST_OVER * np.array(sizes)).any():
        return None
    margin = _SIGMAS * (np.sqrt(share * (1 - share) / _SAMPLES) + 1 / _SAMPLES)
    most = np.ceil(np.minimum(share + margin, 1) * np.array(lengths)[:, None]).astype(np.int64)
    plan = _Plan(between, pieces, most)
    return plan if all(plan.room(rank) <= LARGEST_U32 for rank in range(ranks)) else None


@lru_cache(32)
def _schedule(dtype: np.dtype[Any], length: int, room: int, order: SortOrder, info: TargetInfo) -> Schedule:
    """Memoised, as targets cache what they prepare as long as the schedule lives."""
    key: SortableKey[Any, Any] = key_for(dtype)
    return partition(key, length, room, order, fitted_partition(_POLICY, key, info))


def _rounded(room: int) -> int:
    """Rounded up to a size class, so that the next sort of similar size has the same schedule."""
    step = 1 << max(0, room.bit_length() - 5)
    return -(-room // step) * step


def _ends(sizes: Sequence[int], pieces: int) -> Generator[float]:
    """The ranks (numbers of elements before) of the buckets' ends, for geometrically growing buckets."""
    shares = list(accumulate(_GROWTH**piece for piece in range(pieces)))
    for start, stop in pairwise(accumulate(sizes, initial=0)):
        for share in shares:
            yield start + (stop - start) * share / shares[-1]


def _sorted(
    work: Work, memory: Memory, held: Array, plan: _Plan, rank: int, counts: Array, sizes: Sequence[int]
) -> Shard:
    """Exchanges and sorts buckets, then exchanges elements for exact sizes."""
    ranks = range(len(sizes))
    rooms = plan.rooms[rank, :, 0].tolist()
    buckets: list[Array] = []
    marks: list[Marks] = []
    for piece in range(plan.pieces):
        mine = plan.bucket(rank, piece)
        offered = [plan.bucket(other, piece) for other in ranks]
        others = counts[:, mine].copy()
        others[rank] = 0
        ends = [rooms[mine] + int(counts[rank, mine] + end) for end in accumulate(others.tolist(), initial=0)]
        buckets.append(held[rooms[mine] : ends[-1]])
        marks.append(Marks())
        yield Exchange(
            tuple(held[rooms[b] : rooms[b] + (0 if b == mine else int(counts[rank, b]))] for b in offered),
            tuple(held[start:stop] for start, stop in pairwise(ends)),
            marks[-1],
        )
    wanted = list(pairwise(accumulate(sizes, initial=0)))
    totals = counts.sum(axis=0)
    got = list(pairwise(accumulate((int(totals[plan.owned(other)].sum()) for other in ranks), initial=0)))
    (start, stop), (first, last) = wanted[rank], got[rank]
    origin = min(start, first)
    whole = memory.empty(max(stop, last) - origin, held.dtype)
    at = first - origin
    for bucket, mark in zip(buckets, marks, strict=True):
        for arrived in mark.arrived:
            memory.wait(arrived)
        sort(bucket, descending=work.descending, out=whole[at : at + len(bucket)])
        at += len(bucket)
        yield Started()
    for mark in marks:
        for left in mark.left:
            memory.wait(left)  # before the sent buckets' memory is reused
    sent, received = list[Array](), list[Array]()
    for other in ranks:
        for pieces, own, theirs in ((sent, got[rank], wanted[other]), (received, wanted[rank], got[other])):
            low, high = max(own[0], theirs[0]), min(own[1], theirs[1])
            pieces.append(whole[:0] if other == rank else whole[low - origin : max(low, high) - origin])
    yield Exchange(tuple(sent), tuple(received), is_last=True)
    return [(whole[start - origin : stop - origin],)]
