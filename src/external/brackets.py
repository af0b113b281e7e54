"""Exact splitters in rounds: cuts over sorted runs that are too long, or too far away, to be read whole.

A cut has a bracket (an interval of positions) in each run, at first the whole run. A round samples the brackets, which
narrows each to a few gaps between samples; after a few rounds what is left is read whole, and decides. A round takes
some thousand words for a cut, however long the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import attrs
import numpy as np

from .cuts import Array, Indices, Samples, cut_by_sorting

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[Any]]  # lengths, words

_ENOUGH = 1 << 13  # words of a round, samples or all that are left
_ENOUGH_OF_A_RUN = 1 << 6  # the same for each run, if there are many: a round leaves some gaps in each


@attrs.frozen(eq=False)
class Bracket:
    """Bounds for the cuts at some ranks (elements before a cut): in each run a cut is between low and high."""

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
        return [Bracket.of(*one) for one in zip(self.ranks, lows, highs, strict=True)]


def held_cuts(
    runs: Sequence[Array], sizes: Sequence[int], words: Callable[[Array], HostArray],
    sampled: Sequence[HostArray] | None = None,
) -> Iterator[Indices]:  # fmt: skip
    """The cuts into parts of some sizes, one at a time, if all runs are in memory: where each part starts in every run,
    and in the end the lengths. `sampled`: of each run, the words at the positions of `shared_bracket`, if they have
    been read already."""
    shared = shared_bracket([run.size for run in runs], sizes)

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


def shared_bracket(lengths: Sequence[int], sizes: Sequence[int]) -> Bracket:
    """Where all cuts between parts of some sizes are sought first. It has few samples, for the first cut soon."""
    return Bracket.whole(lengths, *list(accumulate(sizes))[:-1])
