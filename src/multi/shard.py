"""Distributed sort of one rank: local sort, exact splitters, all-to-all exchange, merge.

A rank is a generator (coroutine) that yields communication steps and receives their results. So one thread can drive
all ranks of a process in turn, a communicator can drive one rank of many processes, and tests any number. Device work
is asynchronous: it continues while other ranks are driven.

Elements are ordered by (word, rank, position), so sizes are exact whatever the data, and the sort is stable.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import attrs
import numpy as np

from ..api.sorting import argsort, merge, merge_by_key, sort, sort_by_key
from ..external.cuts import Array, Bracket, Indices, counts_of
from ..external.order import words_of
from ..types.dtypes import key_for
from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey
from .memory import Mark, Memory

Columns: TypeAlias = tuple[Array, ...]  # keys, and values if there are any


@attrs.frozen
class Work:
    """Sorts keys."""

    dtype: np.dtype[Any]
    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    # whether equal elements with different bits keep their order: 0.0 and -0.0, and all NaNs
    stable: bool = False

    @property
    def descending(self) -> bool:
        return self.order is SortOrder.DESCENDING

    def words(self, keys: Array) -> Array:
        """Integers in sort order, of keys on the host."""
        return words_of(keys, self.order, ranks=self.stable, key=self.key)

    @property
    def merged_by(self) -> SortableKey[Any, Any] | None:
        if not self.stable:
            return self.key
        return RankKey(key_for(self.dtype) if self.key is None else self.key)

    def sorted(self, given: Columns, offset: int) -> Columns:
        """The rank's sorted run. `offset` is the number of elements on lower ranks."""
        return (sort(given[0], descending=self.descending, stable=self.stable, key=self.key),)

    def merged(self, first: Columns, second: Columns) -> Columns:
        return (merge(*first, *second, descending=self.descending, key=self.merged_by),)


@attrs.frozen
class PairsWork(Work):
    """Sorts keys, and values by them."""

    def sorted(self, given: Columns, offset: int) -> Columns:
        return sort_by_key(*given, descending=self.descending, key=self.key)

    def merged(self, first: Columns, second: Columns) -> Columns:
        return merge_by_key(*first, *second, descending=self.descending, key=self.merged_by)


@attrs.frozen
class IndexWork(PairsWork):
    """Sorts keys with their indices in the concatenation of all ranks' elements."""

    stable: bool = True

    def sorted(self, given: Columns, offset: int) -> Columns:
        (keys,) = given
        indices = argsort(keys, descending=self.descending, key=self.key)
        return keys[indices], indices + np.int64(offset)


@attrs.frozen
class Started:
    """A step without communication: device work is queued, and the next rank can be driven."""


@attrs.frozen(eq=False)
class Gather:
    """An all-gather of values on the host, in the order of ranks."""

    values: Array


@attrs.frozen(eq=False)
class Swap:
    """An all-to-all exchange of values on the host: a piece to every rank, and from each as many as `counts` says."""

    pieces: Sequence[Array]
    counts: Sequence[int]


@attrs.frozen(eq=False)
class Marks:
    """Events of an exchange: pieces received, and pieces sent. Empty if the rank's stream waits for them anyway."""

    arrived: list[Mark] = attrs.field(factory=list[Any])
    left: list[Mark] = attrs.field(factory=list[Any])


@attrs.frozen(eq=False)
class Exchange:
    """An all-to-all exchange: sends a piece to every rank, and receives one from each into given memory.

    The rank's stream waits for it. With `marks` it does not: the rank waits for these events itself. Behind the last
    one a rank takes no step more, and does nothing that may fail, for the others have gone on.
    """

    pieces: tuple[Array, ...]
    received: tuple[Array, ...]
    marks: Marks | None = None
    is_last: bool = False


Step: TypeAlias = Started | Gather | Swap | Exchange
Runs: TypeAlias = list[Columns]
# Sent: what a Gather or Swap asks for, from each rank. Returned: sorted runs, whose merge is the rank's result, and
# waits for no other rank.
Shard: TypeAlias = Generator[Step, Sequence[Array], Runs]


def sort_shard(
    work: Work, memory: Memory, given: Columns, rank: int, lengths: Sequence[int], sizes: Sequence[int]
) -> Shard:
    """One rank's generator: ranks have `lengths` elements before, and `sizes` after."""
    held = work.sorted(given, sum(lengths[:rank]))
    yield Started()
    if len(lengths) == 1:
        return [held]

    def words(positions: Indices) -> Array:
        return work.words(memory.to_host(held[0][memory.from_host(positions)]))

    cuts, counts = yield from agreed_cuts(words, rank, lengths, sizes)
    counts[rank] = 0  # the rank's own slice is merged in place, not sent
    columns: list[list[Array]] = []
    for number, column in enumerate(held, 1):
        pieces = [column[start:stop] for start, stop in pairwise(cuts)]
        whole = memory.empty(sum(counts), column.dtype)
        room = [*in_parts(whole, counts)]
        stays, pieces[rank] = pieces[rank], room[rank]
        yield Exchange(tuple(pieces), tuple(room), is_last=number == len(held))
        room[rank] = stays
        columns.append(room)
    return list(zip(*columns, strict=True))


def agreed_cuts(
    words: Callable[[Indices], Array], mine: int, lengths: Sequence[int], sizes: Sequence[int]
) -> Generator[Step, Sequence[Array], tuple[list[int], list[int]]]:
    """Where each rank's part starts in this rank's run, and the run's end; and how many elements each rank has for this
    one. `words` returns those at some positions of this rank's run.

    A rank seeks one cut, the start of its own part. It tells each rank what to sample of its run, and gets the samples.
    """
    bracket = Bracket.whole(lengths, sum(sizes[:mine]))
    told = yield Gather(words(np.arange(0, lengths[mine], bracket.gap)))  # all ranks seek their cuts in whole runs
    while True:
        (bracket,) = bracket.narrowed(np.concatenate(told))
        gap = bracket.gap if bracket.left else 0
        wanted = np.stack([bracket.low, bracket.high, np.full_like(bracket.low, gap)], axis=1)
        asked = np.stack((yield Swap([*wanted], [3] * len(lengths))))
        if not asked[:, 2].any():
            break
        positions: list[Indices] = [np.arange(low, high, gap or 1) for low, high, gap in asked.tolist()]
        sampled = np.split(words(np.concatenate(positions)), np.cumsum([part.size for part in positions])[:-1])
        told = yield Swap(sampled, counts_of(bracket.high - bracket.low, bracket.gap).tolist())
    cuts = np.append(asked[:, 0], lengths[mine])
    counts = np.concatenate((yield Swap([*np.diff(cuts)[:, None]], [1] * len(lengths))))
    return cuts.tolist(), counts.tolist()


def in_parts(array: Array, sizes: Sequence[int]) -> tuple[Array, ...]:
    return tuple(array[start:stop] for start, stop in pairwise(accumulate(sizes, initial=0)))


def merged(work: Work, runs: Runs) -> Columns:
    """Merges neighbouring runs pairwise, so that equal elements keep the order of ranks. Empties the list, so that runs
    are freed as soon as they are merged."""
    while len(runs) > 1:
        pairs = [runs[at : at + 2] for at in range(0, len(runs), 2)]
        runs[:] = [pair[0] if len(pair) == 1 else work.merged(*pair) for pair in pairs]
    return runs.pop()
