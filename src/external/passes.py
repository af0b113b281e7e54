"""The two passes of an external sort of fixed-size elements: sort pieces to runs, then sort buckets from slices of all
runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from .buckets import BucketReader
from .cuts import Array, Samples
from .direct import Bytes, DirectFile, buffer_for
from .pipeline import run_pipeline, slots_for
from .plans import LARGE_RUN, Plan
from .progress import Meter, Report
from .work import Work


class Input(Protocol):
    """The input. Pieces are read in ascending order; some may be skipped."""

    def read(self, buffer: Bytes, at: int, start: int, stop: int, /) -> int:
        """Reads bytes start..stop into a buffer at or after `at`; returns their position."""
        ...


class Output(Protocol):
    """The output. Pieces are written in ascending order; some may be skipped, having been written before."""

    def write(self, buffer: Bytes, nbytes: int, offset: int, /) -> None:
        """Writes `nbytes` from the start of a buffer, which may be longer."""
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


@attrs.frozen(eq=False)
class Endpoints:
    """The input, the file of runs, and the output of a sort."""

    given: Input
    start: int  # offset of the first element in the input, in bytes
    runs: DirectFile
    made: Output
    header: int  # offset of the first element in the output, in bytes


class Passes:
    """Runs the two passes as pipelines; a single pass if everything fits into memory."""

    def __init__(
        self, work: Work, count: int, plan: Plan, ends: Endpoints, scratch: Journal, report: Report | None
    ) -> None:
        self._work, self._count, self._plan, self._scratch = work, count, plan, scratch
        self._given, self._start, self._runs = ends.given, ends.start, ends.runs
        self._made, self._header, length = ends.made, ends.header, plan.run
        self._lengths = [min(length, count - start) for start in range(0, count, length)]
        sizes = self._work.source.itemsize, self._work.spilled.itemsize, self._work.result.itemsize
        longest = max(self._lengths, default=0)
        self._workers = min(self._work.engine.workers, max(1, len(self._lengths)))
        self._slots = min(slots_for(self._workers), max(1, len(self._lengths)))
        self._loaded = [buffer_for(longest * max(sizes[:2])) for _ in range(self._slots)]
        self._sorted = [buffer_for(longest * max(sizes[1:])) for _ in range(self._slots)]
        self._meter = Meter(count * sizes[0] * min(2, len(self._lengths)), report)
        self._taken: dict[int, Array] = {}  # samples of runs
        self._buckets = self._reader(Samples.of([], [], 1))

    def run(self) -> None:
        everyone = range(len(self._lengths))
        if len(everyone) == 1:
            self._pass(everyone, self._load_piece, self._make_result, self._keep_bucket, "buckets")
            return
        self._pass(self._left("run"), self._load_piece, self._make_run, self._keep_run, "runs")
        self._scratch.sync(self._runs.sync)
        taken = [self._taken[run] if run in self._taken else self._sample_again(run) for run in everyone]
        self._buckets = self._reader(Samples.of(taken, self._lengths, self._plan.gap))
        self._taken.clear()
        self._pass(self._left("bucket"), self._load_slices, self._make_bucket, self._keep_bucket, "buckets")

    def _pass(
        self,
        pieces: Sequence[int],
        load: Callable[[int, int], Array],
        work: Callable[[int, Array, int], int],
        keep: Callable[[int, int, int], None],
        step: str,
    ) -> None:
        def tell(piece: int) -> None:
            self._meter.add(self._bytes_of(piece), step)

        run_pipeline(pieces, load, work, keep, tell, self._workers)

    def _left(self, step: str) -> list[int]:
        """The pieces without a completed step of this kind."""
        done = [f"{step} {piece}" in self._scratch.done for piece in range(len(self._lengths))]
        self._meter.skip(sum(self._bytes_of(piece) for piece, is_done in enumerate(done) if is_done))
        return [piece for piece, is_done in enumerate(done) if not is_done]

    def _bytes_of(self, piece: int) -> int:
        return self._lengths[piece] * self._work.source.itemsize

    def _load_piece(self, piece: int, slot: int) -> Array:
        start = self._start + piece * self._plan.run * self._work.source.itemsize
        nbytes = self._bytes_of(piece)
        at = self._given.read(self._loaded[slot], 0, start, start + nbytes)
        return _elements(self._loaded[slot][at:], self._work.source, self._lengths[piece])

    def _make_result(self, piece: int, loaded: Array, slot: int) -> int:
        self._work.to_result(loaded, self._out(slot, self._work.result, loaded.size))
        return loaded.size * self._work.result.itemsize

    def _make_run(self, piece: int, loaded: Array, slot: int) -> int:
        out = self._out(slot, self._work.spilled, loaded.size)
        self._work.to_run(loaded, piece * self._plan.run, out)
        self._taken[piece] = self._work.words(out[:: self._plan.gap].copy())  # the slot is used again
        return out.nbytes

    def _sample_again(self, run: int) -> Array:
        """Samples of a run that an earlier call wrote."""
        length, gap = self._lengths[run], self._plan.gap
        step = -(-LARGE_RUN // (gap * self._work.spilled.itemsize)) * gap
        return np.concatenate(
            [self._buckets.words_between(run, at, min(at + step, length))[::gap] for at in range(0, length, step)]
        )

    def _keep_run(self, piece: int, nbytes: int, slot: int) -> None:
        self._runs.write(self._sorted[slot], nbytes, self._run_start(piece))
        self._scratch.mark(f"run {piece}", self._runs.sync)

    def _load_slices(self, piece: int, slot: int) -> Array:
        """A bucket's slices of all runs, concatenated."""

        def room(nbytes: int) -> Bytes:
            if self._loaded[slot].size < nbytes:
                self._loaded[slot] = buffer_for(0)  # the memory of the smaller one is free before more is taken
                self._loaded[slot] = buffer_for(nbytes)
            return self._loaded[slot]

        start = piece * self._plan.run
        return self._buckets.read(start, start + self._lengths[piece], room)

    def _make_bucket(self, piece: int, loaded: Array, slot: int) -> int:
        out = self._out(slot, self._work.result, loaded.size)
        self._work.to_bucket(loaded, out)
        return out.nbytes

    def _keep_bucket(self, piece: int, nbytes: int, slot: int) -> None:
        offset = self._header + piece * self._plan.run * self._work.result.itemsize
        self._made.write(self._sorted[slot], nbytes, offset)
        self._scratch.mark(f"bucket {piece}", self._made.sync)

    def _reader(self, samples: Samples) -> BucketReader:
        return BucketReader(self._runs, self._work.spilled, self._plan.run, samples, self._work.words)

    def _run_start(self, run: int) -> int:
        return run * self._plan.run * self._work.spilled.itemsize

    def _out(self, slot: int, dtype: np.dtype[Any], count: int) -> Array:
        return _elements(self._sorted[slot], dtype, count)


def _elements(buffer: Bytes, dtype: np.dtype[Any], count: int) -> Array:
    return buffer[: count * dtype.itemsize].view(dtype)
