"""How the first pass of an external sort leaves its runs, and the second reads buckets from them: sorted runs, cut
exactly, or runs that are partitioned by common pivots.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np

from .buckets import BucketReader, Room, RunFile
from .cuts import Array, Indices, Samples
from .parting import Parting, Unbalanced
from .plans import LARGE_RUN
from .work import Work

SORTED = "runs sorted"  # a journal's line: partitioned runs of which it tells are void


class Runs(Protocol):
    """The runs of a sort, and its buckets."""

    def left(self, done: set[str], /) -> list[int]:
        """The runs that no earlier call has written, by its journal."""
        ...

    def make(self, run: int, piece: Array, start: int, out: Array, /) -> None:
        """Makes a run of a piece of the input, from element `start` on. The piece may be overwritten."""
        ...

    def step(self, run: int, /) -> str:
        """The journal's line of a run that was made. Called in the order of runs. Raises Unbalanced."""
        ...

    def cut(self) -> list[int]:
        """The lengths of buckets, when all runs are written."""
        ...

    def bucket_step(self, bucket: int, /) -> str:
        """The journal's line of a bucket that is written."""
        ...

    def read(self, bucket: int, room: Room, /) -> Array:
        """What the runs hold of a bucket, concatenated."""
        ...

    def to_bucket(self, piece: Array, out: Array, /) -> None:
        """Sorts that. It may be overwritten."""
        ...


class SortedRuns:
    """Buckets are as long as runs."""

    def __init__(self, work: Work, file: RunFile, lengths: Sequence[int], gap: int) -> None:
        self._work, self._file, self._lengths, self._gap = work, file, lengths, gap
        self._taken: dict[int, Array] = {}  # samples of runs
        self._starts = list(accumulate(lengths, initial=0))
        self._buckets = self._reader(Samples.of([], [], 1))

    def left(self, done: set[str]) -> list[int]:
        return [run for run in range(len(self._lengths)) if self.step(run) not in done]

    def make(self, run: int, piece: Array, start: int, out: Array) -> None:
        self._work.to_run(piece, start, out)
        self._taken[run] = self._work.words(out[:: self._gap].copy())  # the buffer is used again

    def step(self, run: int) -> str:
        return f"run {run}"

    def cut(self) -> list[int]:
        runs = range(len(self._lengths))
        taken = [self._taken[run] if run in self._taken else self._sample_again(run) for run in runs]
        self._buckets = self._reader(Samples.of(taken, self._lengths, self._gap))
        self._taken.clear()
        return list(self._lengths)

    def bucket_step(self, bucket: int) -> str:
        return f"bucket {bucket}"

    def read(self, bucket: int, room: Room) -> Array:
        return self._buckets.read(self._starts[bucket], self._starts[bucket + 1], room)

    def to_bucket(self, piece: Array, out: Array) -> None:
        self._work.to_bucket(piece, out)

    def _sample_again(self, run: int) -> Array:
        """Samples of a run that an earlier call wrote."""
        length, gap = self._lengths[run], self._gap
        step = -(-LARGE_RUN // (gap * self._file.dtype.itemsize)) * gap
        return np.concatenate(
            [self._buckets.words_between(run, at, min(at + step, length))[::gap] for at in range(0, length, step)]
        )

    def _reader(self, samples: Samples) -> BucketReader:
        return BucketReader(self._file, samples, self._work.words)


class PartedRuns:
    """A bucket is as many parts as fit: where they begin in each run is counted, and told to the journal."""

    def __init__(self, parting: Parting, file: RunFile, lengths: Sequence[int], pivots: Array | None) -> None:
        """`pivots` may be None if all runs are written."""
        self._parting, self._file, self._lengths, self._pivots = parting, file, lengths, pivots
        self._made: dict[int, Indices] = {}  # of runs: where parts begin, and the last one's end
        self._ends: dict[int, Indices] = {}  # the same of those that are counted
        self._totals: Indices = np.zeros(1, np.int64)  # the elements of each part
        self._groups: list[tuple[int, int]] = []  # of buckets: the first part, and the first that is not in it

    def left(self, done: set[str]) -> list[int]:
        for run, ends in parted_lines(done).items():
            if run not in self._ends:
                self._add(run, ends)
        return [run for run in range(len(self._lengths)) if run not in self._ends]

    def make(self, run: int, piece: Array, start: int, out: Array) -> None:
        self._parting.note(piece, start)
        numbers = self._parting.numbers(piece, start)
        partition = self._parting.partition
        assert partition is not None  # else all runs are written
        assert self._pivots is not None
        self._made[run] = partition(numbers, out.view(numbers.dtype), self._pivots)
        self._parting.foresee_buckets(self._file.length)  # not sooner: nothing is done before the partition is loaded

    def step(self, run: int) -> str:
        ends = self._made.pop(run)
        self._add(run, ends)
        return f"run {run} {' '.join(map(str, ends.tolist()))}"

    def _add(self, run: int, ends: Indices) -> None:
        self._ends[run] = ends
        self._totals = self._totals + np.diff(ends)
        if self._totals.max() > self._file.length:
            raise Unbalanced  # a part of all runs is more than fits into memory

    def cut(self) -> list[int]:
        self._groups = grouped(self._totals.tolist(), self._file.length)
        return [int(self._totals[first:stop].sum()) for first, stop in self._groups]

    def bucket_step(self, bucket: int) -> str:
        return f"bucket {bucket} of parts"

    def read(self, bucket: int, room: Room) -> Array:
        first, stop = self._groups[bucket]
        begin, end = (np.array([self._ends[run][part] for run in range(len(self._lengths))]) for part in (first, stop))
        return self._file.joined(*self._file.slices(begin, end, room), end - begin)

    def to_bucket(self, piece: Array, out: Array) -> None:
        self._parting.to_bucket(piece, out)


def grouped(totals: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Consecutive parts, as many in a group as hold no more elements than that."""
    starts, held = [0], 0
    for part, total in enumerate(totals):
        if held + total > most:
            starts.append(part)
            held = 0
        held += total
    return list(pairwise([*starts, len(totals)]))


def parted_lines(done: set[str]) -> dict[int, Indices]:
    """The partitioned runs that a journal tells of, and where their parts begin."""
    found: dict[int, Indices] = {}
    for line in done:
        match line.split():
            case ["run", run, _, _, *_]:
                found[int(run)] = np.array(line.split()[2:], np.int64)
            case _:
                pass
    return found
