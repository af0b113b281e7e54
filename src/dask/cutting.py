"""Exact cuts of runs that lie in many tasks: what each task does. Nothing here knows dask.

A run draws samples; all samples together bracket each cut in every run; each run hands out what lies in its brackets;
and that decides the cuts. Lengths are those that are found, so none needs to be known before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ..external.cuts import Array, Places, Samples, cut_between

Counts: TypeAlias = npt.NDArray[np.integer[Any]]  # narrow ones, as there is one for every pair of chunks
Run: TypeAlias = tuple[Any, ...]  # what a chunk became: arrays, or a dataframe, in sorted order


class Work(Protocol):
    """How chunks become runs, and pieces of runs chunks of the result."""

    def to_run(self, chunk: Any, /) -> Run: ...

    def length(self, run: Run, /) -> int: ...

    def words(self, run: Run, places: slice | Places, /) -> Array:
        """What compares as the elements at these places are ordered, on the host."""
        ...

    def piece(self, run: Run, start: int, stop: int, offset: int, /) -> Run:
        """A stretch of a run whose chunk has so many elements before it. It may be a view."""
        ...

    def to_chunk(self, pieces: Sequence[Run], /) -> Any:
        """A chunk of the result, of the pieces of all runs in their order."""
        ...


@attrs.frozen(eq=False)
class Drawn:
    """Every gap-th word of a run. Gaps are powers of two, so that a lesser one has all that a greater one has."""

    length: int
    gap: int
    words: Array

    @classmethod
    def of(cls, work: Work, run: Run, runs: int) -> Drawn:
        """As many samples in all as words in all brackets, about."""
        length = work.length(run)
        gap = 1 << (isqrt(length // (3 * runs)).bit_length())
        return cls(length, gap, work.words(run, slice(None, None, gap)))


@attrs.frozen(eq=False)
class Brackets:
    """Where each cut may lie: a row a cut, a column a run. The cuts are those between buckets as long as the runs."""

    lengths: Places
    low: Counts
    high: Counts

    @classmethod
    def of(cls, drawn: Sequence[Drawn]) -> Brackets:
        gap = max(one.gap for one in drawn)
        lengths = [one.length for one in drawn]
        samples = Samples.of([one.words[:: gap // one.gap] for one in drawn], lengths, gap)
        low, high = samples.brackets_of(np.cumsum(lengths)[:-1].tolist())
        narrow = np.dtype(np.uint32 if max(lengths) < 1 << 32 else np.int64)
        return cls(np.array(lengths, np.int64), low.astype(narrow), high.astype(narrow))

    def inside(self, work: Work, run: Run, number: int) -> Array:
        """The words in all brackets of a run, one bracket behind the other."""
        low, high = self.low[:, number].astype(np.int64), self.high[:, number].astype(np.int64)
        sizes = high - low
        ends = np.cumsum(sizes)
        places: Places = np.arange(int(ends[-1])) + np.repeat(low - (ends - sizes), sizes)
        return work.words(run, places)

    def cuts(self, inside: Sequence[Array], first: int, end: int) -> Counts:
        """Some of the cuts, from what lies in all brackets of each run."""
        low, high = self.low.astype(np.int64), self.high.astype(np.int64)
        ranks = np.cumsum(self.lengths)
        starts = np.concatenate([np.zeros((1, low.shape[1]), np.int64), np.cumsum(high - low, axis=0)])
        found = np.empty((end - first, low.shape[1]), self.low.dtype)
        for row, cut in enumerate(range(first, end)):
            start, stop = starts[cut], starts[cut + 1]
            pieces = [inside[run][start[run] : stop[run]] for run in np.flatnonzero(start < stop).tolist()]
            found[row] = cut_between(int(ranks[cut]), low[cut], pieces, high[cut])
        return found


@attrs.frozen(eq=False)
class Cuts:
    """Where each bucket begins in every run, a row a bucket; and a last row with the lengths of the runs."""

    at: Counts

    @classmethod
    def of(cls, found: Sequence[Counts], brackets: Brackets) -> Cuts:
        lengths = brackets.lengths.astype(brackets.low.dtype)
        return cls(np.concatenate([np.zeros_like(lengths)[np.newaxis], *found, lengths[np.newaxis]]))

    def of_bucket(self, work: Work, runs: Sequence[Run], bucket: int) -> list[Run]:
        """The pieces of all runs that belong into a bucket. Empty ones are left out, but for the first."""
        low, high, offsets = self.at[bucket].tolist(), self.at[bucket + 1].tolist(), self._offsets()
        return [
            work.piece(run, low[number], high[number], offsets[number])
            for number, run in enumerate(runs)
            if low[number] < high[number] or not number
        ]

    def of_run(self, work: Work, run: Run, number: int) -> list[Run | None]:
        """The pieces of a run that belong into all buckets. Empty ones are None, but for those of the first run."""
        offset = self._offsets()[number]
        return [
            work.piece(run, start, stop, offset) if start < stop or not number else None
            for start, stop in pairwise(self.at[:, number].tolist())
        ]

    def _offsets(self) -> list[int]:
        """How many elements lie before each chunk."""
        lengths = self.at[-1].astype(np.int64)
        offsets: list[int] = (np.cumsum(lengths) - lengths).tolist()
        return offsets
