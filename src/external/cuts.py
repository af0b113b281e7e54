"""Exact splitters (multisequence selection): where to cut several sorted runs so that buckets of given sizes result.

Elements are ordered by (word, run, position): all are distinct, so buckets have their exact sizes whatever the data, be
it ties or one value. Regular sampling: every `gap`-th word of each run is a sample. In the order of all samples each
has a least and a greatest possible rank, which for a cut leaves a bracket of a few gaps in each run. The elements in
the brackets are read, and decide.

Positions and ranks count from zero, and ranges are half open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from math import isqrt
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]  # elements, or their words, of whatever dtype
Indices: TypeAlias = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Samples:
    """Every gap-th word of each run, sorted, with bounds of their ranks."""

    lengths: Indices
    gap: int
    run_of: Indices  # for each sample in order: its run
    least: Indices  # for each sample in order: the least number of elements before it
    most: Indices

    @classmethod
    def of_runs(
        cls, taken: dict[int, Array], lengths: Sequence[int], gap: int, words: Callable[[int, int, int], Array],
        most: int,
    ) -> Samples:  # fmt: skip
        """From those that were taken of some runs, which are used up. `words(run, start, stop)` reads the others', of
        about `most` elements at a time."""
        step = -(-most // gap) * gap
        for run, length in enumerate(lengths):
            if run not in taken:
                parts = [words(run, at, min(at + step, length))[::gap] for at in range(0, length, step)]
                taken[run] = np.concatenate(parts)
        samples = [taken.pop(run) for run in range(len(lengths))]
        return cls.of(np.concatenate(samples), np.array(lengths, np.int64), gap)

    @classmethod
    def of(cls, words: Array, lengths: Indices, gap: int) -> Samples:
        """From the words at positions 0, gap, 2 gap, … of each run, of one run after the other."""
        counts = counts_of(lengths, gap)
        in_order = np.argsort(words, kind="stable")
        ends = np.cumsum(counts)
        starts = ends - counts
        some = np.flatnonzero(counts)
        # What a sample adds to the ranks of later ones: at least the elements up to it, at most those up to the next.
        up_to = np.full(words.size, gap, np.int64)
        up_to[starts[some]] = 1
        beyond = np.full(words.size, gap, np.int64)
        beyond[ends[some] - 1] = lengths[some] - (counts[some] - 1) * gap
        run_of = np.repeat(np.arange(counts.size), counts)[in_order]
        return cls(lengths, gap, run_of, _sums_before(up_to[in_order]), _sums_before(beyond[in_order]))

    def brackets(self, ranks: Sequence[int]) -> tuple[Indices, Indices]:
        """For ascending ranks two positions in each run, a row for each rank: elements before the first are among the
        `rank` least of all runs, elements from the second on are not."""
        below = self._of_each_run(np.searchsorted(self.most, ranks))
        maybe = self._of_each_run(np.searchsorted(self.least, ranks))
        return np.maximum((below - 1) * self.gap + 1, 0), np.minimum(maybe * self.gap, self.lengths)

    def _of_each_run(self, firsts: Indices) -> Indices:
        """For ascending numbers of first samples in order, how many are of each run."""
        runs, past = self.lengths.size, np.append(firsts, self.run_of.size)
        part_of = np.repeat(np.arange(past.size), np.diff(past, prepend=0))
        counts = np.bincount(part_of * runs + self.run_of, minlength=past.size * runs).reshape(past.size, runs)
        return np.cumsum(counts[:-1], axis=0)

    def cut(self, rank: int, words: Callable[[int, int, int], Array]) -> Indices:
        """How many of the `rank` least elements each run holds. `words(run, start, stop)` reads the bracket's words."""
        (low,), (high,) = self.brackets([rank])
        runs = np.flatnonzero(low < high).tolist()
        return cut_between(rank, low, [words(run, int(low[run]), int(high[run])) for run in runs], high)


def counts_of(lengths: Indices, gap: int) -> Indices:
    """How many samples there are of each run."""
    return -(-lengths // gap)


def usual_gap(count: int, runs: int) -> int:
    """The gap with which all samples take as much memory as the brackets of one cut."""
    return max(1, isqrt(count // (3 * runs))) if runs else 1


def _sums_before(numbers: Indices) -> Indices:
    return np.cumsum(numbers) - numbers


_ENOUGH = 1 << 13  # words of a round, samples or all that are left
_ENOUGH_OF_A_RUN = 1 << 6  # the same for each run, if there are many: a round leaves some gaps in each


@attrs.frozen(eq=False)
class Bracket:
    """Bounds for the cuts at some ranks (elements before a cut): in each run a cut is between low and high, an interval
    of positions that is at first the whole run.

    So runs are cut that are too long, or too far away, to be read whole. A round samples the brackets, which narrows
    each to a few gaps between samples; after a few rounds what is left is read whole, and decides. A round takes some
    thousand words for a cut, however long the runs.
    """

    ranks: tuple[int, ...]
    low: Indices
    high: Indices
    left: int  # elements between low and high, over all runs

    @classmethod
    def of(cls, rank: int, low: Indices, high: Indices) -> Bracket:
        return cls((rank,), low, high, int((high - low).sum()))

    @classmethod
    def whole(cls, lengths: Sequence[int], *ranks: int) -> Bracket:
        """The first one, which all cuts have in common: whole runs."""
        everything = np.array(lengths, np.int64)
        return cls(ranks, np.zeros_like(everything), everything, int(everything.sum()))

    @property
    def gap(self) -> int:
        """The distance of samples in this round; 1 in the last."""
        return max(1, -(-self.left // max(_ENOUGH, _ENOUGH_OF_A_RUN * self.low.size)))

    def positions(self, run: int) -> slice:
        """What is sampled of a run."""
        return slice(int(self.low[run]), int(self.high[run]), self.gap)

    def narrowed(self, words: Array) -> list[Bracket]:
        """A bracket for each cut, narrowed by samples from one run after the other."""
        before = int(self.low.sum())
        within = [rank - before for rank in self.ranks]
        if self.gap == 1:
            whose = np.repeat(np.arange(self.low.size), self.high - self.low)[np.argsort(words, kind="stable")]
            lows = highs = np.array([np.bincount(whose[:rank], minlength=self.low.size) for rank in within])
        else:
            lows, highs = Samples.of(words, self.high - self.low, self.gap).brackets(within)
        return [Bracket.of(*one) for one in zip(self.ranks, self.low + lows, self.low + highs, strict=True)]

    def cut(self, words: Callable[[Bracket], Array]) -> Indices:
        """The cut itself, in as many rounds as it takes. `words` returns those at the positions of a bracket."""
        bracket = self
        while bracket.left:
            (bracket,) = bracket.narrowed(words(bracket))
        return bracket.low


def sampled(runs: Sequence[Array], bracket: Bracket) -> Array:
    """What a round looks at, of runs in memory."""
    return np.concatenate([run[bracket.positions(number)] for number, run in enumerate(runs)])


def cut_between(rank: int, low: Indices, pieces: Sequence[Array], high: Indices) -> Indices:
    """The cut at a rank, from the words between low and high of each run where there are any."""
    cut = low.copy()
    bracket = Bracket.whole([piece.size for piece in pieces], rank - int(low.sum()))
    cut[low < high] += bracket.cut(partial(sampled, pieces))
    return cut


def held_cuts(runs: Sequence[Array], sizes: Sequence[int], words: Callable[[Array], Array]) -> Iterator[Indices]:
    """The cuts into parts of some sizes, one at a time, if all runs are in memory: where each part starts in every run,
    and in the end the lengths. All are sought in the same samples first, few of them, for the first cut soon."""
    shared = Bracket.whole([run.size for run in runs], *list(accumulate(sizes))[:-1])

    def read(bracket: Bracket) -> Array:
        return words(sampled(runs, bracket))

    if sizes:
        yield shared.low
    if shared.ranks:
        for bracket in shared.narrowed(read(shared)):
            yield bracket.cut(read)
    yield shared.high
