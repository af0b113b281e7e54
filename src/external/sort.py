"""External sort of fixed-size elements: sorted runs, exact splitters (cuts.py), then buckets, in two passes. The first
sorts or partitions pieces to runs, the second sorts buckets from slices of all runs.

All data is read twice and written twice; if it fits into memory, once. Unlike in a merge, buckets are independent and
have known positions in the result: they can be sorted out of order, and an interrupted one is done again alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import accumulate
from typing import Any, Protocol

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


class Passes:
    """Runs the two passes as pipelines, by way of a file of runs; a single pass if everything fits into memory."""

    def __init__(
        self, work: Work, count: int, plan: Plan, given: Input, runs: DirectFile, made: Output, journal: NoJournal,
        report: Report | None,
    ) -> None:  # fmt: skip
        self._work, self._count, self._plan, self._journal = work, count, plan, journal
        self._given, self._runs, self._made = given, runs, made
        self._lengths = [min(plan.run, count - start) for start in range(0, max(1, count), plan.run)]
        sizes = self._work.source.itemsize, self._work.spilled.itemsize, self._work.result.itemsize
        longest = max(self._lengths)
        self._workers = min(self._work.engine.workers, len(self._lengths))
        slots, more = 1, 0
        if len(self._lengths) > 1:  # of partitioned runs there may be more buckets than runs
            slots, more = slots_for(self._workers), beside(len(self._lengths), plan.gap, sizes[1])
        self._loaded = [buffer_for(longest * max(sizes[:2]) + more) for _ in range(slots)]
        self._sorted = [buffer_for(longest * max(sizes[1:])) for _ in range(slots)]
        self._meter = Meter(self._lengths, sizes[0], report)
        self._file = RunFile(runs, work.spilled, plan.run)

    def run(self) -> None:
        if len(self._lengths) == 1:
            sort = self._work.alone.to_result
            self._pass(
                "buckets", self._lengths, [0], self._load_piece, lambda _, piece, out: sort(piece, out),
                "bucket {}".format, self._made, self._work.result,
            )  # fmt: skip
            return
        runs = self._made_runs()
        self._journal.sync(self._runs.sync)
        buckets = runs.buckets()
        left = [bucket for bucket in range(len(buckets)) if runs.bucket_step(bucket) not in self._journal.done]
        self._pass(
            "buckets", buckets, left, lambda bucket, slot: runs.read(bucket, self._loaded[slot]),
            lambda _, piece, out: runs.work.to_bucket(piece, out), runs.bucket_step, self._made,
            self._work.result,
        )  # fmt: skip

    def _made_runs(self) -> Runs:
        with suppress(Unbalanced):  # so that what comes later has no context of it
            return self._make(self._parted())
        self._meter.begin_anew()
        if SORTED not in self._journal.done and parted_lines(self._journal.done):
            self._journal.mark(SORTED, self._runs.sync)
            self._journal.sync(self._runs.sync)  # before what is void is written over
        return self._make(SortedRuns(self._work, self._file, self._lengths, self._plan.gap))

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
        pivots = parting.pivots(self._given.copied, self._count, self._plan.run)
        return PartedRuns(parting, self._file, self._lengths, pivots)

    def _make(self, runs: Runs) -> Runs:
        left = runs.left(self._journal.done)
        self._pass("runs", self._lengths, left, self._load_piece, runs.make, runs.step, self._runs, self._work.spilled)
        return runs

    def _load_piece(self, piece: int, slot: int) -> Array:
        source, first = self._work.source, piece * self._plan.run
        start, stop = (at * source.itemsize for at in (first, first + self._lengths[piece]))
        return self._given.read(self._loaded[slot], start, stop).view(source)

    def _pass(
        self, name: str, lengths: Sequence[int], left: Sequence[int], load: Callable[[int, int], Array],
        make: Callable[[int, Array, Array], object], step: Callable[[int], str], file: Output, dtype: np.dtype[Any],
    ) -> None:  # fmt: skip
        """Makes those pieces that are left of all, which lie in a file one behind the other, and journals each."""
        item, done = dtype.itemsize, self._meter.begin(name, lengths, left)
        starts = [start * item for start in accumulate(lengths, initial=0)]

        def work(piece: int, loaded: Array, slot: int) -> int:
            lead = file.lead(starts[piece])
            out = self._sorted[slot][lead : lead + loaded.size * item].view(dtype)
            make(piece, loaded, out)
            return out.nbytes

        def keep(piece: int, nbytes: int, slot: int) -> None:
            file.write(self._sorted[slot], nbytes, starts[piece])
            self._journal.mark(step(piece), file.sync)

        run_pipeline(left, load, work, keep, done, self._workers)


class Elements(Protocol):
    """What a file has to be sorted by: how many, and how they are read."""

    @property
    def count(self) -> int: ...
    def opened(self) -> AbstractContextManager[Input]: ...


def sort_elements(layout: Elements, work: Work, scratch: Scratch, report: Report | None, memory: int) -> None:
    """Sorts a file. The result is renamed to the target when it is complete."""
    count, runs_file, part = layout.count, scratch.folder / "runs", scratch.part
    header = header_for(scratch.target, work.result, count)
    whole = len(header) + count * work.result.itemsize

    def by(plan: Plan) -> None:
        spill = count * work.spilled.itemsize if count > plan.run else 0
        scratch.require_kept("run ", runs_file, spill)
        has_buckets = scratch.require_kept("bucket", part, whole)
        require_disk_space({runs_file: spill, part: whole})
        with (
            layout.opened() as given,
            DirectFile(runs_file, write=True) as runs,
            DirectFile(part, write=True, base=len(header)) as made,
        ):
            runs.reserve(spill)
            made.reserve(whole)
            if not has_buckets:  # the first of which may begin in the header's last page
                page = buffer_for(len(header))
                page[: len(header)] = np.frombuffer(header, np.uint8)
                made.write(page, len(header), -len(header))
            Passes(work, count, plan, given, runs, made, scratch.journal, report).run()
            made.cut_off(whole)

    with raising_disk_full(whole, scratch.folder.parent, part.parent):
        scratch.sort(repr(work), Plan.within(memory, count, work), by)
