"""Distributed exact splitters: cuts over sorted runs on several ranks (or in memory), by sampling in rounds.

Every cut has a bracket (an interval of positions) in each run, at first the whole run. A round gathers samples of the
brackets from all ranks, which narrows each to a few gaps between samples; after a few rounds what is left is gathered
whole, and decides. A round takes some thousand words for each cut, however long the runs. All ranks see the same
samples, so all compute the same cuts without a coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import attrs
import numpy as np

from .cuts import Array, Indices, Samples, counts_of, cut_by_sorting

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]  # lengths, words

_SAMPLES = 512  # of a bracket in a round, for each run
_ENOUGH = 1 << 13  # samples in all, if there are many runs
_FEW = 1 << 12  # elements left in a cut's brackets that are gathered whole


@attrs.frozen(eq=False)
class Gather:
    """A request to the driver of the generator: all-gather the values, on the host, in the order of ranks."""

    values: HostArray


@attrs.frozen(eq=False)
class Bracket:
    """Bounds for the cuts at some ranks (elements before a cut): in each run a cut is between low and high."""

    ranks: tuple[int, ...]
    numbers: tuple[int, ...]  # indices of the cuts
    low: Indices
    high: Indices
    left: int  # elements between low and high, over all runs
    shares: int = 1  # times as many samples as one cut has in a round

    @classmethod
    def of(cls, rank: int, number: int, low: Indices, high: Indices) -> Bracket:
        return cls((rank,), (number,), low, high, int((high - low).sum()))

    @classmethod
    def shared(cls, lengths: Sequence[int], sizes: Sequence[int], shares: int = 1) -> Bracket:
        """The first one, which all cuts have in common: whole runs."""
        ranks, inner = list(accumulate(sizes, initial=0)), range(1, len(sizes))
        everything = np.array(lengths, np.int64)
        none, left = np.zeros_like(everything), int(everything.sum())
        return cls(tuple(ranks[number] for number in inner), tuple(inner), none, everything, left, shares)

    @property
    def gap(self) -> int:
        """The distance of samples in this round; 1 in the last."""
        if self.left <= _FEW:
            return 1
        runs = self.low.size
        of_each = min(_SAMPLES * runs, max(_ENOUGH, 8 * runs))
        least = min(2, len(self.ranks))  # what is gathered whole decides each cut anew
        return max(least, -(-self.left // (of_each * self.shares)))  # leaves about `runs` gaps to each

    def positions(self, run: int) -> slice:
        """What is sampled of a run."""
        return slice(int(self.low[run]), int(self.high[run]), self.gap)

    def narrowed(self, words: HostArray) -> list[Bracket]:
        """A bracket for each cut, narrowed by samples from one run after the other."""
        before = int(self.low.sum())
        if self.gap == 1:
            cuts = [cut_by_sorting(rank, self.low, words, self.high) for rank in self.ranks]
            lows, highs = cuts, cuts
        else:
            found = Samples.of_words(words, self.high - self.low, self.gap)
            low, high = found.brackets_of([rank - before for rank in self.ranks])
            lows, highs = [self.low + row for row in low], [self.low + row for row in high]
        each = zip(self.ranks, self.numbers, lows, highs, strict=True)
        return [Bracket.of(rank, number, low, high) for rank, number, low, high in each]


class Rounds:
    """The state of the search for all cuts of one sort. In the first round they share one bracket."""

    def __init__(self, lengths: Sequence[int], sizes: Sequence[int]) -> None:
        shared = Bracket.shared(lengths, sizes, max(1, len(sizes) - 1))
        self._found = [shared.low] * len(sizes) + [shared.high]
        self._open = self._kept([shared])

    def _kept(self, brackets: Sequence[Bracket]) -> list[Bracket]:
        """The brackets that are not yet exact; records the cuts of the others."""
        for bracket in brackets:
            for number in () if bracket.left else bracket.numbers:
                self._found[number] = bracket.low
        return [bracket for bracket in brackets if bracket.left and bracket.numbers]

    @property
    def are_over(self) -> bool:
        return not self._open

    def samples(self, run: int) -> list[slice]:
        """The positions to sample in a run in the next round, to be concatenated."""
        return [bracket.positions(run) for bracket in self._open]

    def narrow(self, found: Sequence[HostArray]) -> None:
        """Narrows all brackets by the words sampled from each run."""
        words, sizes = np.concatenate(found), np.array([run.size for run in found], np.int64)
        starts = np.cumsum(sizes) - sizes  # of what comes next in each run
        narrowed: list[Bracket] = []
        for bracket in self._open:
            counts = counts_of(bracket.high - bracket.low, bracket.gap)
            before = np.cumsum(counts) - counts
            narrowed += bracket.narrowed(words[np.repeat(starts - before, counts) + np.arange(counts.sum())])
            starts += counts
        self._open = self._kept(narrowed)

    @property
    def found(self) -> Indices:
        """The cuts: row r has the start of rank r's part in every run; the last row has the lengths."""
        return np.array(self._found, np.int64)


def agreed_cuts(
    words: Callable[[list[slice]], HostArray], mine: int, lengths: Sequence[int], sizes: Sequence[int]
) -> Generator[Gather, Sequence[HostArray], Indices]:
    """Finds the cuts in all runs (see Rounds.found) as a generator, which yields all-gathers to its driver. `words`
    returns the concatenated words of this rank's run at some slices."""
    rounds = Rounds(lengths, sizes)
    while not rounds.are_over:
        rounds.narrow((yield Gather(words(rounds.samples(mine)))))
    return rounds.found


def held_cuts(
    runs: Sequence[Array], sizes: Sequence[int], words: Callable[[Array], HostArray],
    sampled: Sequence[HostArray] | None = None,
) -> Iterator[Indices]:  # fmt: skip
    """The same, a cut at a time, if all runs are in memory. `sampled`: of each run, the words at the positions of the
    bracket that all cuts share, if they have been read already. That one has few samples, for the first cut soon."""
    shared = Bracket.shared([run.size for run in runs], sizes)

    def read(bracket: Bracket) -> HostArray:
        return words(np.concatenate([run[bracket.positions(number)] for number, run in enumerate(runs)]))

    if sizes:
        yield shared.low
    if shared.ranks:
        for bracket in shared.narrowed(read(shared) if sampled is None else np.concatenate(sampled)):
            while bracket.left:
                (bracket,) = bracket.narrowed(read(bracket))
            yield bracket.low
    yield shared.high
