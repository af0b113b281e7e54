"""Exact splitters of runs in many tasks: what each task computes, independent of dask.

Tasks sample their run; the samples of all runs bracket each cut in every run; each run returns the words in its
brackets; these decide the cuts (see external/cuts.py). Lengths are collected with the samples, so chunk sizes need not
be known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isqrt
from typing import Any, ClassVar, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ..external.cuts import Array, Indices, Samples, cut_between
from ..types.errors import UnsupportedTypeError

Counts: TypeAlias = npt.NDArray[np.integer[Any]]  # in the narrowest dtype: there is one for every pair of chunks
Run: TypeAlias = tuple[Any, ...]  # a sorted chunk: arrays, or a dataframe


class Work(ABC):
    """How chunks become sorted runs, and pieces of runs become chunks of the result."""

    # Whether equal elements stay in one chunk of the result, whose lengths are unknown then; no run has two.
    keeps_equals: ClassVar[bool] = False

    @abstractmethod
    def to_run(self, chunk: Any) -> Run: ...

    @abstractmethod
    def words(self, run: Run, indices: slice | Indices) -> Array:
        """Host words that compare in the order of the elements at these indices."""

    def dtype(self, run: Run) -> object:
        """What must be alike in all runs, as their words are compared; None where the words say nothing of it."""
        return None

    @abstractmethod
    def to_chunk(self, pieces: Sequence[Run]) -> Any:
        """A chunk of the result, from the pieces of all runs in order."""

    def piece(self, run: Run, start: int, stop: int, offset: int) -> Run:
        """Elements start..stop of a run, maybe a view. `offset` is the number of elements in earlier chunks."""
        return tuple([column[start:stop] for column in run])


@attrs.frozen(eq=False)
class RunSamples:
    """Every gap-th word of a run. Gaps are powers of two, so that a finer sample contains any coarser one."""

    length: int
    gap: int
    words: Array
    dtype: object  # of the elements

    @classmethod
    def of(cls, work: Work, run: Run, runs: int) -> RunSamples:
        """With a gap that makes samples and brackets of about equal size in all."""
        length = len(run[0])
        gap = 1 << (isqrt(length // (3 * runs)).bit_length())
        return cls(length, gap, work.words(run, slice(None, None, gap)), work.dtype(run))


@attrs.frozen(eq=False)
class Brackets:
    """Bounds of each cut (row) in each run (column). The buckets have the lengths of the runs; where equal elements are
    kept together, those that a cut would leave behind move to the bucket that begins with one of them."""

    lengths: Indices
    low: Counts
    high: Counts
    keeps_equals: bool

    @classmethod
    def of(cls, drawn: Sequence[RunSamples], *, keeps_equals: bool) -> Brackets:
        dtypes = list(dict.fromkeys(one.dtype for one in drawn if one.length))
        if len(dtypes) > 1:  # words of one are none of the other
            found = " and ".join(map(str, dtypes))
            raise UnsupportedTypeError(
                f"x: expected one dtype in all chunks, found {found}; make them alike, e.g. by "
                "`x.map_blocks(lambda chunk: chunk.astype('f8'))`"
            )
        gap = max(one.gap for one in drawn)
        lengths = np.array([one.length for one in drawn], np.int64)
        samples = Samples.of(np.concatenate([one.words[:: gap // one.gap] for one in drawn]), lengths, gap)
        low, high = samples.brackets(np.cumsum(lengths)[:-1].tolist())
        if keeps_equals:  # the elements on either side of a cut lie in its brackets
            low, high = np.maximum(low - 1, 0), np.minimum(high + 1, lengths)
        narrow = np.dtype(np.uint32 if lengths.max() < 1 << 32 else np.int64)
        return cls(lengths, low.astype(narrow), high.astype(narrow), keeps_equals)

    def inside(self, work: Work, run: Run, number: int) -> Array:
        """The words in all brackets of a run, concatenated."""
        low, sizes = self.low[:, number].astype(np.int64), self._sizes()[:, number]
        ends = np.cumsum(sizes)
        indices: Indices = np.arange(int(ends[-1])) + np.repeat(low - (ends - sizes), sizes)
        return work.words(run, indices)

    def cuts(self, inside: Sequence[Array], first: int, end: int) -> Counts:
        """The cuts first..end, from the words in all brackets of each run."""
        ends = np.cumsum(self._sizes(), axis=0)
        ranks = np.cumsum(self.lengths)
        found = np.empty((end - first, self.lengths.size), self.low.dtype)
        for row, cut in enumerate(range(first, end)):
            low, high = self.low[cut].astype(np.int64), self.high[cut].astype(np.int64)
            some = np.flatnonzero(low < high)
            spans: list[list[int]] = np.stack([some, (ends[cut] - high + low)[some], ends[cut, some]], axis=1).tolist()
            words = [inside[run][start:stop] for run, start, stop in spans]
            found[row] = cut_between(int(ranks[cut]), low, words, high)
            if self.keeps_equals:
                found[row, some] -= _equals_left(words, found[row, some] - low[some])
        return found

    def _sizes(self) -> Indices:
        return self.high.astype(np.int64) - self.low


def _equals_left(words: Sequence[Array], cut: Indices) -> Counts:
    """How many words of each run before a cut, one or none, equal the first that comes behind it in any run."""
    behind = [piece[at] for piece, at in zip(words, cut.tolist(), strict=True) if at < piece.size]
    first = min(behind, default=None)
    return np.array(
        [at > 0 and piece[at - 1] == first for piece, at in zip(words, cut.tolist(), strict=True)], np.uint8
    )


@attrs.frozen(eq=False)
class Cuts:
    """The start of each bucket (row) in every run (column); the last row has the runs' lengths."""

    at: Counts
    offsets: list[int]  # the number of elements before each run's chunk

    @classmethod
    def of(cls, found: Sequence[Counts], brackets: Brackets) -> Cuts:
        lengths = brackets.lengths.astype(brackets.low.dtype)
        at = np.concatenate([np.zeros_like(lengths)[np.newaxis], *found, lengths[np.newaxis]])
        return cls(at, (np.cumsum(brackets.lengths) - brackets.lengths).tolist())

    def piece(self, work: Work, run: Run, number: int, bucket: int) -> Run | None:
        """A run's piece for a bucket; None if it is empty, except of the first run."""
        start, stop = self.at[bucket : bucket + 2, number].tolist()
        return work.piece(run, start, stop, self.offsets[number]) if start < stop or not number else None
