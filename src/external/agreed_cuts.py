"""Exact cuts over sorted runs that lie on as many ranks, or in memory: found in rounds, of few samples each.

Every cut has a bracket in each run. A round samples the brackets, which narrows them to some gaps between samples; what
is left after a few rounds is read, and decides. The host handles some thousand words a round, however long the runs
are. All ranks see the same samples, and so find the same cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import attrs
import numpy as np

from .cuts import Array, Places, Samples, cut_between

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]  # lengths, words

_SAMPLES = 512  # of a bracket, at most, in a round
_FEW = 1 << 12  # elements in the brackets of a cut that are read


@attrs.frozen(eq=False)
class Gather:
    """Every rank's values are wanted, here on the host, in the order of ranks."""

    values: HostArray


@attrs.frozen(eq=False)
class Cut:
    """The first elements of all, so many; and what is known of how many of them each run has: between two numbers."""

    rank: int
    low: Places
    high: Places

    @property
    def left(self) -> int:
        return int((self.high - self.low).sum())

    @property
    def gap(self) -> int:
        """Between two samples of this round; 1 in the last."""
        return 1 if self.left <= _FEW else -(-int((self.high - self.low).max()) // _SAMPLES)

    def narrowed(self, samples: Sequence[HostArray]) -> Cut:
        """By samples of each run's bracket."""
        if self.gap == 1:
            cut = cut_between(self.rank, self.low, [sample for sample in samples if sample.size], self.high)
            return Cut(self.rank, cut, cut)
        found = Samples.of(samples, (self.high - self.low).tolist(), self.gap)
        low, high = found.brackets(self.rank - int(self.low.sum()))
        return Cut(self.rank, self.low + low, self.low + high)


class Rounds:
    """All cuts of one sort, as far as they are known."""

    def __init__(self, lengths: Sequence[int], sizes: Sequence[int]) -> None:
        none, everything = np.zeros(len(lengths), np.int64), np.array(lengths, np.int64)
        self._cuts = [Cut(rank, none, everything) for rank in accumulate(sizes, initial=0)]
        self._cuts[0], self._cuts[-1] = Cut(0, none, none), Cut(sum(lengths), everything, everything)

    @property
    def _open(self) -> list[int]:
        return [number for number, cut in enumerate(self._cuts) if cut.left]

    @property
    def are_over(self) -> bool:
        return not self._open

    def samples(self, run: int) -> list[slice]:
        """What the next round asks of a run, one behind the other."""
        cuts = (self._cuts[number] for number in self._open)
        return [slice(int(cut.low[run]), int(cut.high[run]), cut.gap) for cut in cuts]

    def narrow(self, found: Sequence[HostArray]) -> None:
        """By the words of all samples of each run."""
        ends = np.zeros(len(found), np.int64)
        for number in self._open:
            cut = self._cuts[number]
            starts, ends = ends, ends + -(-(cut.high - cut.low) // cut.gap)
            self._cuts[number] = cut.narrowed([run[i:j] for run, i, j in zip(found, starts, ends, strict=True)])

    @property
    def found(self) -> Places:
        """Where what each rank gets starts in every run, a row a rank, and a last row with the lengths."""
        return np.array([cut.low for cut in self._cuts], np.int64)


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
