"""How the first pass of an external sort leaves its runs, and the second reads buckets from them: sorted runs, cut
exactly, or runs that are partitioned by common pivots.

Of each run the slice that belongs to a bucket is read by one read. Where a slice of a sorted run ends is known only
between two positions, before the elements there are read. So each read goes on to the farther one, the cut is found
among what was read, and the slices are moved together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import attrs
import numpy as np

from .cuts import Array, Indices, Samples, cut_between
from .direct import PAGE, Bytes, DirectFile, whole_pages
from .parting import Parting, Unbalanced
from .plans import LARGE_RUN
from .work import Work

SORTED = "runs sorted"  # a journal's line: partitioned runs of which it tells are void


@attrs.frozen(eq=False)
class RunFile:
    """The file of runs, all but the last of one length."""

    file: DirectFile
    dtype: np.dtype[np.generic]
    length: int

    def start(self, run: int) -> int:
        """Where a run begins in the file."""
        return run * self.length * self.dtype.itemsize

    def elements(self, run: int, start: int, stop: int) -> Array:
        first, item = self.start(run), self.dtype.itemsize
        return self.file.copied(first + start * item, first + stop * item).view(self.dtype)

    def slices(self, begin: Indices, end: Indices, buffer: Bytes) -> list[Array]:
        """Elements begin..end of each run, read into a buffer one behind the other."""
        found, item, at = list[Array](), self.dtype.itemsize, 0
        for run, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            start, room = self.start(run), buffer[at:]
            part = self.file.read(room, start + first * item, start + last * item) if first < last else room[:0]
            found.append(part.view(self.dtype))
            at += whole_pages(part.size) + PAGE
        return found


def joined(slices: Sequence[Array], buffer: Bytes) -> Array:
    """Slices that lie in a buffer, moved together to its beginning."""
    end = 0
    for part in slices:
        buffer[end : end + part.nbytes] = part.view(np.uint8)
        end += part.nbytes
    return buffer[:end].view(slices[0].dtype)


class SortedRuns:
    """Buckets are as long as runs."""

    def __init__(self, work: Work, file: RunFile, lengths: Sequence[int], gap: int) -> None:
        self.work, self._file, self._lengths, self._gap = work, file, lengths, gap
        self._taken: dict[int, Array] = {}  # samples of runs
        self._samples: Samples  # from the first bucket on
        self._starts = list(accumulate(lengths, initial=0))
        self._rank, self._cut = 0, np.zeros(len(lengths), np.int64)  # where the last bucket ended

    def left(self, done: set[str]) -> list[int]:
        """The runs that no earlier call has written, by its journal."""
        return [run for run in range(len(self._lengths)) if self.step(run) not in done]

    def make(self, run: int, piece: Array, out: Array) -> None:
        """Makes a run of a piece of the input, which may be overwritten."""
        self.work.to_run(piece, run * self._file.length, out)
        self._taken[run] = self.work.words(out[:: self._gap].copy())  # the buffer is used again

    def step(self, run: int) -> str:
        """The journal's line of a run that was made. Called in the order of runs."""
        return f"run {run}"

    def buckets(self) -> list[int]:
        """The lengths of buckets, when all runs are written."""
        most = LARGE_RUN // self._file.dtype.itemsize
        self._samples = Samples.of_runs(self._taken, self._lengths, self._gap, self._words, most)
        return list(self._lengths)

    def bucket_step(self, bucket: int) -> str:
        """The journal's line of a bucket that is written."""
        return f"bucket {bucket}"

    def read(self, bucket: int, buffer: Bytes) -> Array:
        """What the runs hold of a bucket, concatenated in a buffer. One that begins where the last one ended takes the
        fewest reads."""
        start, stop = self._starts[bucket : bucket + 2]
        begin = self._cut if start == self._rank else self._samples.cut(start, self._words)
        low, high = (np.maximum(bound[0], begin) for bound in self._samples.brackets([stop]))
        slices = self._file.slices(begin, high, buffer)
        inside = [part[at:] for part, at in zip(slices, (low - begin).tolist(), strict=True)]
        self._rank, self._cut = stop, self._cut_within(stop, low, inside, high)
        counts = (self._cut - begin).tolist()
        return joined([part[:count] for part, count in zip(slices, counts, strict=True)], buffer)

    def _cut_within(self, rank: int, low: Indices, inside: Sequence[Array], high: Indices) -> Indices:
        """The cut between two positions in each run, from the elements there."""
        counts = high - low
        if not counts.any():
            return low
        room = np.empty(int(counts.sum()) * self._file.dtype.itemsize, np.uint8)
        words = np.split(self.work.words(joined(inside, room)), np.cumsum(counts)[:-1])
        return cut_between(rank, low, [part for part in words if part.size], high)

    def _words(self, run: int, start: int, stop: int) -> Array:
        return self.work.words(self._file.elements(run, start, stop))


class PartedRuns:
    """A bucket is as many parts as fit: where they begin in each run is counted, and told to the journal. Methods are
    those of sorted runs, but that `make` and `step` raise Unbalanced."""

    def __init__(self, parting: Parting, file: RunFile, lengths: Sequence[int], pivots: Array | None) -> None:
        """`pivots` may be None if all runs are written."""
        self.work, self._file, self._lengths, self._pivots = parting, file, lengths, pivots
        self._made: dict[int, Indices] = {}  # of runs: where parts begin, and the last one's end
        self._ends: dict[int, Indices] = {}  # the same of those that are counted
        self._totals: Indices = np.zeros(1, np.int64)  # the elements of each part
        self._firsts = [0]  # the first part of each bucket; the number of parts

    def left(self, done: set[str]) -> list[int]:
        for run, ends in parted_lines(done).items():
            if run not in self._ends:
                self._add(run, ends)
        return [run for run in range(len(self._lengths)) if run not in self._ends]

    def make(self, run: int, piece: Array, out: Array) -> None:
        assert self._pivots is not None  # else all runs are written
        self._made[run] = self.work.to_parts(piece, run * self._file.length, out, self._pivots)
        self.work.foresee_buckets(self._file.length)  # not sooner: nothing is done before the partition is loaded

    def step(self, run: int) -> str:
        ends = self._made.pop(run)
        self._add(run, ends)
        return f"run {run} {' '.join(map(str, ends.tolist()))}"

    def _add(self, run: int, ends: Indices) -> None:
        self._ends[run] = ends
        self._totals = self._totals + np.diff(ends)
        if self._totals.max() > self._file.length:
            raise Unbalanced  # a part of all runs is more than fits into memory

    def buckets(self) -> list[int]:
        self._firsts = grouped(self._totals.tolist(), self._file.length)
        return [int(self._totals[first:stop].sum()) for first, stop in pairwise(self._firsts)]

    def bucket_step(self, bucket: int) -> str:
        return f"bucket {bucket} of parts"

    def read(self, bucket: int, buffer: Bytes) -> Array:
        runs, firsts = range(len(self._lengths)), self._firsts[bucket : bucket + 2]
        begin, end = (np.array([self._ends[run][part] for run in runs]) for part in firsts)
        return joined(self._file.slices(begin, end, buffer), buffer)


def grouped(totals: Sequence[int], most: int) -> list[int]:
    """Where groups of consecutive parts begin, and the last one ends: as many in each as hold no more than that."""
    starts, held = [0], 0
    for part, total in enumerate(totals):
        if held + total > most:
            starts.append(part)
            held = 0
        held += total
    return [*starts, len(totals)]


def parted_lines(done: set[str]) -> dict[int, Indices]:
    """The partitioned runs that a journal tells of, and where their parts begin."""
    parted = (words for words in map(str.split, done) if words[:1] == ["run"] and len(words) > 3)
    return {int(run): np.array(ends, np.int64) for _, run, *ends in parted}


Runs: TypeAlias = SortedRuns | PartedRuns
