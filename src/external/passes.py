"""The two passes of an external sort of fixed-size elements: sort or partition pieces to runs, then sort buckets from
slices of all runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Protocol, TypeAlias, TypeVar

import attrs
import numpy as np

from .buckets import RunFile
from .cuts import Array
from .direct import Bytes, DirectFile, buffer_for
from .parting import Unbalanced
from .pipeline import run_pipeline, slots_for
from .pivots import Sampled, pivots_of
from .plans import Plan, beside
from .progress import Meter, Report
from .runs import SORTED, PartedRuns, Runs, SortedRuns, parted_lines
from .work import Work

Write: TypeAlias = Callable[[], object]
Made = TypeVar("Made")

_WORTH_PARTING = 1 << 28  # bytes: to load compiled loops, and to look for pivots, takes as long as is saved with less


class Input(Protocol):
    """The input. Pieces are read in ascending order; some may be skipped."""

    def read(self, buffer: Bytes, at: int, start: int, stop: int, /) -> int:
        """Reads bytes start..stop into a buffer at or after `at`; returns their position."""
        ...


class Output(Protocol):
    """The output. Pieces are written in ascending order; some may be skipped, having been written before."""

    def lead(self, offset: int, /) -> int:
        """Where in a buffer the bytes for an offset are to lie."""
        ...

    def write(self, buffer: Bytes, nbytes: int, offset: int, /) -> None:
        """Writes `nbytes` that lie in a buffer, which may be longer, from there on."""
        ...

    def sync(self) -> None:
        """Makes the written data durable."""
        ...


class Journal(Protocol):
    """The log of completed steps (see scratch.py)."""

    done: set[str]

    def mark(self, step: str, sync: Callable[[], object]) -> None:
        """Logs a completed step; `sync` must make all data written so far durable."""
        ...

    def sync(self, sync: Callable[[], object]) -> None:
        """Makes data and log durable."""
        ...


class Prepared(Protocol):
    """Does of the writing of `nbytes`, from the beginning of a buffer on, what several threads may do at once, as to
    encode them. What it returns writes them, in their turn."""

    def __call__(self, buffer: Bytes, nbytes: int, /) -> Write: ...


@attrs.frozen(eq=False)
class Endpoints:
    """The input, the file of runs, and the output of a sort."""

    given: Input
    start: int  # offset of the first element in the input, in bytes
    runs: DirectFile
    made: Output
    header: int  # offset of the first element in the output, in bytes
    sampled: Sampled | None = None  # reads the input anywhere, by offsets from the first element; None if it cannot
    prepared: Prepared | None = None  # in place of writing at once


class Passes:
    """Runs the two passes as pipelines; a single pass if everything fits into memory."""

    def __init__(
        self, work: Work, count: int, plan: Plan, ends: Endpoints, scratch: Journal, report: Report | None
    ) -> None:
        self._work, self._count, self._plan, self._scratch, self._ends = work, count, plan, scratch, ends
        length = plan.run
        self._lengths = [min(length, count - start) for start in range(0, count, length)]
        sizes = self._work.source.itemsize, self._work.spilled.itemsize, self._work.result.itemsize
        longest = max(self._lengths, default=0)
        self._workers = min(self._work.engine.workers, max(1, len(self._lengths)))
        self._slots = min(slots_for(self._workers), max(1, len(self._lengths)))
        more = beside(len(self._lengths), plan.gap, sizes[1]) if len(self._lengths) > 1 else 0
        self._loaded = [buffer_for(longest * max(sizes[:2]) + more) for _ in range(self._slots)]
        self._sorted = [buffer_for(longest * max(sizes[1:])) for _ in range(self._slots)]
        self._meter = Meter(count * sizes[0] * min(2, len(self._lengths)), report)
        self._file = RunFile(ends.runs, work.spilled, length)
        self._runs: Runs = SortedRuns(work, self._file, self._lengths, plan.gap)
        self._buckets = self._lengths  # their lengths
        self._starts = [0]  # of buckets in the result, in elements

    def run(self) -> None:
        everyone = range(len(self._lengths))
        if len(everyone) == 1:
            self._pass(everyone, self._lengths, self._load_piece, self._make_result, self._keep_result, "buckets")
            return
        try:
            self._runs = self._parted() or self._runs
            self._make_runs()
        except Unbalanced:
            self._runs = SortedRuns(self._work, self._file, self._lengths, self._plan.gap)
            self._meter.begin_anew()
            self._make_runs()
        self._scratch.sync(self._ends.runs.sync)
        self._buckets = self._runs.cut()
        self._starts = list(accumulate(self._buckets, initial=0))
        left = [
            bucket for bucket in range(len(self._buckets)) if self._runs.bucket_step(bucket) not in self._scratch.done
        ]
        self._skip(left, self._buckets)
        self._pass(left, self._buckets, self._load_bucket, self._make_bucket, self._keep_bucket, "buckets")

    def _parted(self) -> Runs | None:
        """Runs to be partitioned, if that is possible, and worth it; and if an earlier call has not sorted them."""
        parting, done, sampled = self._work.parting, self._scratch.done, self._ends.sampled
        if parting is None or SORTED in done or any(self._runs.step(run) in done for run in range(len(self._lengths))):
            return None
        whole = PartedRuns(parting, self._file, self._lengths, None)
        if not whole.left(done):
            return whole  # maybe in place, with nothing left of the input
        if parting.partition is None or sampled is None or self._count * self._work.spilled.itemsize < _WORTH_PARTING:
            return None
        pivots = pivots_of(sampled, parting, self._work.source, self._count, self._plan.run)
        return None if pivots is None else PartedRuns(parting, self._file, self._lengths, pivots)

    def _make_runs(self) -> None:
        if isinstance(self._runs, SortedRuns) and SORTED not in self._scratch.done and parted_lines(self._scratch.done):
            self._scratch.mark(SORTED, self._ends.runs.sync)
            self._scratch.sync(self._ends.runs.sync)  # before what is void is written over
        left = self._runs.left(self._scratch.done)
        self._skip(left, self._lengths)
        self._pass(left, self._lengths, self._load_piece, self._make_run, self._keep_run, "runs")

    def _pass(
        self,
        pieces: Sequence[int],
        lengths: Sequence[int],
        load: Callable[[int, int], Array],
        work: Callable[[int, Array, int], Made],
        keep: Callable[[int, Made, int], None],
        step: str,
    ) -> None:
        def tell(piece: int) -> None:
            self._meter.add(lengths[piece] * self._work.source.itemsize, step)

        run_pipeline(pieces, load, work, keep, tell, self._workers)

    def _skip(self, left: Sequence[int], lengths: Sequence[int]) -> None:
        """Counts what an earlier call has done."""
        self._meter.skip((sum(lengths) - sum(lengths[piece] for piece in left)) * self._work.source.itemsize)

    def _load_piece(self, piece: int, slot: int) -> Array:
        size = self._work.source.itemsize
        start = self._ends.start + piece * self._plan.run * size
        at = self._ends.given.read(self._loaded[slot], 0, start, start + self._lengths[piece] * size)
        return _elements(self._loaded[slot], at, self._work.source, self._lengths[piece])

    def _make_result(self, piece: int, loaded: Array, slot: int) -> Write:
        self._work.to_result(loaded, _elements(self._sorted[slot], 0, self._work.result, loaded.size))
        return self._written(slot, loaded.size * self._work.result.itemsize, self._ends.header)

    def _written(self, slot: int, nbytes: int, offset: int) -> Write:
        buffer = self._sorted[slot]
        if self._ends.prepared is not None:
            return self._ends.prepared(buffer, nbytes)
        return partial(self._ends.made.write, buffer, nbytes, offset)

    def _keep_result(self, piece: int, write: Write, slot: int) -> None:
        write()
        self._scratch.mark("bucket 0", self._ends.made.sync)

    def _make_run(self, piece: int, loaded: Array, slot: int) -> int:
        out = _elements(self._sorted[slot], 0, self._work.spilled, loaded.size)
        self._runs.make(piece, loaded, piece * self._plan.run, out)
        return out.nbytes

    def _keep_run(self, piece: int, nbytes: int, slot: int) -> None:
        self._ends.runs.write(self._sorted[slot], nbytes, self._file.start(piece))
        self._scratch.mark(self._runs.step(piece), self._ends.runs.sync)

    def _load_bucket(self, bucket: int, slot: int) -> Array:
        """A bucket's slices of all runs, concatenated."""

        def room(nbytes: int) -> Bytes:
            if self._loaded[slot].size < nbytes:
                self._loaded[slot] = buffer_for(0)  # the memory of the smaller one is free before more is taken
                self._loaded[slot] = buffer_for(nbytes)
            return self._loaded[slot]

        return self._runs.read(bucket, room)

    def _offset(self, bucket: int) -> int:
        return self._ends.header + self._starts[bucket] * self._work.result.itemsize

    def _make_bucket(self, bucket: int, loaded: Array, slot: int) -> Write:
        lead = self._ends.made.lead(self._offset(bucket))
        out = _elements(self._sorted[slot], lead, self._work.result, loaded.size)
        self._runs.to_bucket(loaded, out)
        return self._written(slot, out.nbytes, self._offset(bucket))

    def _keep_bucket(self, bucket: int, write: Write, slot: int) -> None:
        write()
        self._scratch.mark(self._runs.bucket_step(bucket), self._ends.made.sync)


def _elements(buffer: Bytes, at: int, dtype: np.dtype[Any], count: int) -> Array:
    return buffer[at : at + count * dtype.itemsize].view(dtype)
