"""External sort of fixed-size elements: sorted runs, exact splitters (cuts.py), then buckets, in two passes. The first
sorts or partitions pieces to runs, the second sorts buckets from slices of all runs.

All data is read twice and written twice; if it fits into memory, once. Unlike in a merge, buckets are independent and
have known positions in the result: they can be sorted out of order, and an interrupted one is done again alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import accumulate
from typing import Any, Protocol

import attrs
import numpy as np

from .cuts import Array
from .direct import Bytes, DirectFile, buffer_for
from .disk_space import raising_disk_full, require_disk_space
from .formats import header_for
from .journal import NoJournal
from .parting import Unbalanced
from .pipeline import run_pipeline, slots_for
from .plans import Plan, beside
from .progress import Meter, Report
from .runs import SORTED, PartedRuns, RunFile, Runs, SortedRuns, parted_lines
from .scratch import Scratch
from .work import Work

_WORTH_PARTING = 1 << 28  # bytes: to load compiled loops, and to look for pivots, takes as long as is saved with less


class Input(Protocol):
    """The input, from its first element on. Pieces are read in ascending order; some may be skipped."""

    def read(self, buffer: Bytes, start: int, stop: int, /) -> Bytes:
        """Reads bytes start..stop into a buffer; returns the part of it that has them."""
        ...

    def copied(self, start: int, stop: int, /) -> Bytes:
        """Bytes start..stop in new memory, or some near them, for a sample. Raises Unbalanced if they are far."""
        ...


class Output(Protocol):
    """The output, from its first element on. Pieces are written in ascending order; some may be skipped, having been
    written before."""

    def lead(self, offset: int, /) -> int:
        """The position in a buffer of the bytes for an offset."""
        ...

    def write(self, buffer: Bytes, nbytes: int, offset: int, /) -> None:
        """Writes `nbytes` of a buffer, which may be longer, from that position on."""
        ...

    def sync(self) -> None:
        """Makes the written data durable."""
        ...


@attrs.frozen(eq=False)
class Endpoints:
    """The input, the file of runs, and the output of a sort."""

    given: Input
    runs: DirectFile
    made: Output


class Passes:
    """Runs the two passes as pipelines; a single pass if everything fits into memory."""

    def __init__(
        self, work: Work, count: int, plan: Plan, ends: Endpoints, journal: NoJournal, report: Report | None
    ) -> None:
        self._work, self._count, self._plan, self._journal, self._ends = work, count, plan, journal, ends
        self._lengths = [min(plan.run, count - start) for start in range(0, max(1, count), plan.run)]
        sizes = self._work.source.itemsize, self._work.spilled.itemsize, self._work.result.itemsize
        longest = max(self._lengths)
        self._workers = min(self._work.engine.workers, len(self._lengths))
        slots = min(slots_for(self._workers), len(self._lengths))
        more = beside(len(self._lengths), plan.gap, sizes[1]) if len(self._lengths) > 1 else 0
        self._loaded = [buffer_for(longest * max(sizes[:2]) + more) for _ in range(slots)]
        self._sorted = [buffer_for(longest * max(sizes[1:])) for _ in range(slots)]
        self._meter = Meter(count * sizes[0] * min(2, len(self._lengths)), report)
        self._file = RunFile(ends.runs, work.spilled, plan.run)
        self._runs: Runs = SortedRuns(work, self._file, self._lengths, plan.gap)
        self._starts = [0]  # of buckets in the result, in elements

    def run(self) -> None:
        everyone = range(len(self._lengths))
        if len(everyone) == 1:
            make = partial(self._make_bucket, self._work.alone.to_result)
            self._pass(everyone, self._lengths, self._load_piece, make, self._keep_bucket, "buckets")
            return
        are_parted = False
        with suppress(Unbalanced):  # so that what comes later has no context of it
            self._make_runs(self._parted())
            are_parted = True
        if not are_parted:
            self._meter.begin_anew()
            if SORTED not in self._journal.done and parted_lines(self._journal.done):
                self._journal.mark(SORTED, self._ends.runs.sync)
                self._journal.sync(self._ends.runs.sync)  # before what is void is written over
            self._make_runs(SortedRuns(self._work, self._file, self._lengths, self._plan.gap))
        self._journal.sync(self._ends.runs.sync)
        buckets = self._runs.buckets()
        self._starts = list(accumulate(buckets, initial=0))
        left = [n for n in range(len(buckets)) if self._runs.bucket_step(n) not in self._journal.done]
        make = partial(self._make_bucket, self._runs.work.to_bucket)
        self._pass(left, buckets, self._load_bucket, make, self._keep_bucket, "buckets")

    def _parted(self) -> Runs:
        """Runs to be partitioned. Raises Unbalanced if that is not possible, or not worth it, or if an earlier call has
        sorted them."""
        parting, done = self._work.parting, self._journal.done
        if parting is None or SORTED in done or any(f"run {run}" in done for run in range(len(self._lengths))):
            raise Unbalanced
        whole = PartedRuns(parting, self._file, self._lengths, None)
        if not whole.left(done):
            return whole  # maybe in place, with nothing left of the input
        if self._count * self._work.spilled.itemsize < _WORTH_PARTING:
            raise Unbalanced
        pivots = parting.pivots(self._ends.given.copied, self._count, self._plan.run)
        return PartedRuns(parting, self._file, self._lengths, pivots)

    def _make_runs(self, runs: Runs) -> None:
        self._runs = runs
        left = runs.left(self._journal.done)
        self._pass(left, self._lengths, self._load_piece, self._make_run, self._keep_run, "runs")

    def _pass(
        self, left: Sequence[int], lengths: Sequence[int], load: Callable[[int, int], Array],
        make: Callable[[int, Array, int], int], keep: Callable[[int, int, int], None], step: str,
    ) -> None:  # fmt: skip
        size = self._work.source.itemsize
        self._meter.skip((sum(lengths) - sum(lengths[piece] for piece in left)) * size)
        run_pipeline(left, load, make, keep, lambda piece: self._meter.add(lengths[piece] * size, step), self._workers)

    def _load_piece(self, piece: int, slot: int) -> Array:
        source, first = self._work.source, piece * self._plan.run
        start, stop = (at * source.itemsize for at in (first, first + self._lengths[piece]))
        return self._ends.given.read(self._loaded[slot], start, stop).view(source)

    def _make_run(self, piece: int, loaded: Array, slot: int) -> int:
        lead = self._ends.runs.lead(self._file.start(piece))
        out = _elements(self._sorted[slot], lead, self._work.spilled, loaded.size)
        self._runs.make(piece, loaded, piece * self._plan.run, out)
        return out.nbytes

    def _keep_run(self, piece: int, nbytes: int, slot: int) -> None:
        self._ends.runs.write(self._sorted[slot], nbytes, self._file.start(piece))
        self._journal.mark(self._runs.step(piece), self._ends.runs.sync)

    def _load_bucket(self, bucket: int, slot: int) -> Array:
        return self._runs.read(bucket, self._loaded[slot])

    def _make_bucket(self, sort: Callable[[Array, Array], None], bucket: int, loaded: Array, slot: int) -> int:
        out = _elements(self._sorted[slot], self._ends.made.lead(self._offset(bucket)), self._work.result, loaded.size)
        sort(loaded, out)
        return out.nbytes

    def _keep_bucket(self, bucket: int, nbytes: int, slot: int) -> None:
        self._ends.made.write(self._sorted[slot], nbytes, self._offset(bucket))
        self._journal.mark(self._runs.bucket_step(bucket), self._ends.made.sync)

    def _offset(self, bucket: int) -> int:
        return self._starts[bucket] * self._work.result.itemsize


def _elements(buffer: Bytes, at: int, dtype: np.dtype[Any], count: int) -> Array:
    return buffer[at : at + count * dtype.itemsize].view(dtype)


class Elements(Protocol):
    """What a file has to be sorted by: how many, and how they are read."""

    @property
    def count(self) -> int: ...
    def opened(self) -> AbstractContextManager[Input]: ...


@attrs.frozen(eq=False)
class FileSort:
    """The sort of one file."""

    layout: Elements
    work: Work
    scratch: Scratch
    report: Report | None

    def run(self, memory: int) -> None:
        """Sorts. The result is renamed to the target when it is complete."""
        whole = self.layout.count * self.work.result.itemsize
        with raising_disk_full(whole, self.scratch.folder.parent, self.scratch.part.parent):
            self.scratch.sort(repr(self.work), Plan.within(memory, self.layout.count, self.work), self._run)

    def _run(self, plan: Plan) -> None:
        header = header_for(self.scratch.target, self.work.result, self.layout.count)
        count, spilled = self.layout.count, self.work.spilled.itemsize
        whole = len(header) + count * self.work.result.itemsize
        spill = count * spilled if count > plan.run else 0
        runs_file = self.scratch.folder / "runs"
        self.scratch.require_kept("run ", runs_file, spill)
        self.scratch.require_kept("bucket", self.scratch.part, whole)
        require_disk_space({runs_file: spill, self.scratch.part: whole})
        with (
            self.layout.opened() as given,
            DirectFile(runs_file, write=True) as runs,
            DirectFile(self.scratch.part, write=True, base=len(header)) as made,
        ):
            runs.reserve(spill)
            made.reserve(whole)
            page = buffer_for(len(header))
            page[: len(header)] = np.frombuffer(header, np.uint8)
            made.write(page, len(header), -len(header))
            Passes(self.work, count, plan, Endpoints(given, runs, made), self.scratch.journal, self.report).run()
            made.cut_off(whole)
