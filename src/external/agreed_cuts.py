"""Exact cuts over sorted runs that lie on as many ranks, or in memory: found in rounds, of few samples each.

Every cut has a bracket in each run, in the first round all the same. A round samples the brackets, which narrows
them to some gaps between samples; what is left after a few rounds is read, and decides. The host handles some thousand
words a round, however long the runs are. All ranks see the same samples, and so find the same cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import attrs
import numpy as np

from .cuts import Array, Places, Samples, cut_between

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]  # lengths, words

_SAMPLES = 512  # of a bracket in a round, for each run; though no more than are
_ENOUGH = 1 << 13  # of many runs
_FEW = 1 << 12  # elements in the brackets of a cut that are read


@attrs.frozen(eq=False)
class Gather:
    """Every rank's values are wanted, here on the host, in the order of ranks."""

    values: HostArray


@attrs.frozen(eq=False)
class Bracket:
    """What is known of the cuts at some ranks: how many elements of each run lie before them, between two numbers."""

    ranks: tuple[int, ...]
    numbers: tuple[int, ...]  # of the cuts
    low: Places
    high: Places
    left: int  # elements between

    @classmethod
    def of(cls, ranks: Sequence[int], numbers: Sequence[int], low: Places, high: Places) -> Bracket:
        return cls(tuple(ranks), tuple(numbers), low, high, int((high - low).sum()))

    @property
    def gap(self) -> int:
        """Between two samples of this round; 1 in the last."""
        if self.left <= _FEW:
            return 1
        runs = self.low.size
        return -(-self.left // min(_SAMPLES * runs, max(_ENOUGH, 8 * runs)))  # what is left is some `runs` gaps

    def narrowed(self, samples: Sequence[HostArray]) -> list[Bracket]:
        """By samples of each run's bracket: one for each cut."""
        before = int(self.low.sum())
        if self.gap == 1:
            pieces = [sample for sample in samples if sample.size]
            cuts = [cut_between(rank, self.low, pieces, self.high) for rank in self.ranks]
            lows, highs = cuts, cuts
        else:
            found = Samples.of(samples, (self.high - self.low).tolist(), self.gap)
            low, high = found.brackets_of([rank - before for rank in self.ranks])
            lows, highs = [self.low + row for row in low], [self.low + row for row in high]
        each = zip(self.ranks, self.numbers, lows, highs, strict=True)
        return [Bracket.of([rank], [number], low, high) for rank, number, low, high in each]


class Rounds:
    """All cuts of one sort, as far as they are known. In the first round they share one bracket."""

    def __init__(self, lengths: Sequence[int], sizes: Sequence[int]) -> None:
        none, everything = np.zeros(len(lengths), np.int64), np.array(lengths, np.int64)
        ranks = list(accumulate(sizes, initial=0))
        self._found = [none] * len(ranks)
        self._found[-1] = everything
        inner = range(1, len(ranks) - 1)
        self._open = self._kept([Bracket.of([ranks[number] for number in inner], inner, none, everything)])

    def _kept(self, brackets: Sequence[Bracket]) -> list[Bracket]:
        """Those with anything left between; of all others the cut is known."""
        for bracket in brackets:
            for number in () if bracket.left else bracket.numbers:
                self._found[number] = bracket.low
        return [bracket for bracket in brackets if bracket.left and bracket.numbers]

    @property
    def are_over(self) -> bool:
        return not self._open

    def samples(self, run: int) -> list[slice]:
        """What the next round asks of a run, one behind the other."""
        return [slice(int(bracket.low[run]), int(bracket.high[run]), bracket.gap) for bracket in self._open]

    def narrow(self, found: Sequence[HostArray]) -> None:
        """By the words of all samples of each run."""
        ends = np.zeros(len(found), np.int64)
        narrowed: list[Bracket] = []
        for bracket in self._open:
            starts, ends = ends, ends + -(-(bracket.high - bracket.low) // bracket.gap)
            narrowed += bracket.narrowed([run[i:j] for run, i, j in zip(found, starts, ends, strict=True)])
        self._open = self._kept(narrowed)

    @property
    def found(self) -> Places:
        """Where what each rank gets starts in every run, a row a rank, and a last row with the lengths."""
        return np.array(self._found, np.int64)


def agreed_cuts(
    words: Callable[[list[slice]], HostArray], mine: int, lengths: Sequence[int], sizes: Sequence[int]
) -> Generator[Gather, Sequence[HostArray], Places]:
    """Where what each rank gets starts in every run. `words` gives those of this rank's elements, at slices of its run,
    one behind the other."""
    rounds = Rounds(lengths, sizes)
    while not rounds.are_over:
        rounds.narrow((yield Gather(words(rounds.samples(mine)))))
    return rounds.found


def held_cuts(runs: Sequence[Array], sizes: Sequence[int], words: Callable[[Array], HostArray]) -> Places:
    """The same where all runs lie in memory."""
    rounds = Rounds([run.size for run in runs], sizes)
    while not rounds.are_over:
        rounds.narrow(
            [words(np.concatenate([run[part] for part in rounds.samples(rank)])) for rank, run in enumerate(runs)]
        )
    return rounds.found
