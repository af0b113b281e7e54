"""Exact cuts over sorted runs that lie on as many ranks: found in rounds, of few samples each.

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

from ..external.cuts import Places, Samples

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
        found = Samples.of(samples, (self.high - self.low).tolist(), self.gap)
        rank = self.rank - int(self.low.sum())
        if self.gap == 1:
            low = high = found.cut(rank, lambda run, start, stop: samples[run][start:stop])
        else:
            low, high = found.brackets(rank)
        return Cut(self.rank, self.low + low, self.low + high)


Sample: TypeAlias = Callable[[slice], HostArray]


def agreed_cuts(
    words: Sample, mine: int, lengths: Sequence[int], sizes: Sequence[int]
) -> Generator[Gather, Sequence[HostArray], Places]:
    """Where what each rank gets starts in every run, a row a rank, and a last row with the lengths. `words` gives those
    of this rank's elements, at a slice of its run."""
    none, all_ = np.zeros(len(lengths), np.int64), np.array(lengths, np.int64)
    cuts = [Cut(rank, none, all_) for rank in accumulate(sizes, initial=0)]
    cuts[0], cuts[-1] = Cut(0, none, none), Cut(sum(lengths), all_, all_)
    while open_cuts := [number for number, cut in enumerate(cuts) if cut.left]:
        taken = [words(slice(int(cuts[n].low[mine]), int(cuts[n].high[mine]), cuts[n].gap)) for n in open_cuts]
        found = yield Gather(np.concatenate(taken))
        ends = np.zeros(len(lengths), np.int64)
        for number in open_cuts:
            cut = cuts[number]
            starts, ends = ends, ends + -(-(cut.high - cut.low) // cut.gap)
            cuts[number] = cut.narrowed([run[i:j] for run, i, j in zip(found, starts, ends, strict=True)])
    return np.array([cut.low for cut in cuts], np.int64)
