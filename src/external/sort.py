"""Sorts a file of fixed-size elements: runs, exact cuts, buckets. Everything is read twice and written twice.

What fits into memory is one piece, read once and written once. Buckets do not depend on each other, and where each
belongs is known beforehand, so one that was interrupted is done again alone.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import gcd, lcm
from pathlib import Path
from typing import Any, cast

import attrs
import numpy as np

from ..types.errors import InvalidArgumentError
from .cuts import Array, Samples, usual_gap
from .direct import PAGE, Bytes, DirectFile, buffer_for, whole_pages
from .formats import Layout, header_for
from .pipeline import side_by_side, slots_for
from .progress import Meter, Report
from .scratch import Scratch, disk_full, identity_of, require_room
from .work import Work

_LIBRARIES = 3 << 25  # what of a large memory is left to NumPy, Numba and their like, which take about twice that
ENOUGH = 8  # runs: reading the first and writing the last have nothing beside them
_LITTLE = 1 << 24  # bytes that are not counted
_LARGE = 1 << 26  # bytes of a run that is long enough for the disk and for all threads


@attrs.frozen
class Plan:
    """How a file is parted. Buckets have as many elements as runs."""

    run: int
    gap: int

    @classmethod
    def within(cls, memory: int, count: int, work: Work) -> Plan:
        """One run, if the memory takes everything; else as few as it allows, and enough to have all at work."""
        memory = for_data(memory)
        read, spilled, written = work.source.itemsize, work.spilled.itemsize, work.result.itemsize
        if count * (read + written + work.extra) <= memory:
            return cls(max(1, count), 1)
        step = lcm(*(PAGE // gcd(PAGE, size) for size in (spilled, written)))  # both are written in whole pages
        workers = work.engine.workers
        each = slots_for(workers) * (max(read, spilled) + max(spilled, written)) + workers * work.extra
        runs = max(2, min(ENOUGH, count * read // _LARGE))
        while True:
            run = -(-count // runs // step) * step
            gap = max(PAGE // spilled, 1, usual_gap(count, runs))
            samples = 32 * (count // gap + min(3 * runs * gap, count))
            if run * each + (samples if samples > _LITTLE else 0) <= memory:
                return cls(run, gap)
            if run == step:
                if samples > max(memory, _LITTLE):
                    raise InvalidArgumentError(f"memory: expected more for {count:,} elements, found {memory:,} bytes")
                return cls(run, gap)
            runs += 1 + runs // 32


def for_data(memory: int) -> int:
    """What of the memory is for the data: what libraries take is within what the caller said, as far as it is much."""
    return memory - min(memory // 2, _LIBRARIES)


def agreed_plan(scratch: Scratch, source: Path, target: Path, work: str, plan: Plan, *, resume: bool) -> Plan:
    """The plan of the call that is gone on from; this one, if there is none."""
    identity = {**identity_of(source), "target": str(target), "work": work}
    return Plan(**cast("dict[str, int]", scratch.claim(identity, attrs.asdict(plan), resume=resume)))


@attrs.frozen(eq=False)
class FileSort:
    """One file being sorted."""

    source: Path
    layout: Layout
    target: Path
    work: Work
    scratch: Scratch
    report: Report | None

    def run(self, memory: int, *, resume: bool) -> None:
        """All of it. The target gets its name when it is whole."""
        with self.scratch as scratch:
            if resume and scratch.is_published():
                return
            plan = Plan.within(memory, self.layout.count, self.work)
            self._run(agreed_plan(scratch, self.source, self.target, self.work.describe(), plan, resume=resume))
            scratch.publish()

    def _run(self, plan: Plan) -> None:
        header = header_for(self.target, self.work.result, self.layout.count)
        count, spilled = self.layout.count, self.work.spilled.itemsize
        whole = len(header) + count * self.work.result.itemsize
        spill = count * spilled if count > plan.run else 0
        runs_file = self.scratch.folder / "runs"
        require_room({runs_file: whole_pages(spill), self.scratch.part: whole_pages(whole)})
        with (
            DirectFile(self.source) as given,
            DirectFile(runs_file, write=True) as runs,
            DirectFile(self.scratch.part, write=True) as made,
        ):
            with _as_disk_full(self.scratch.part, spill + whole):
                runs.reserve(whole_pages(spill))
                made.reserve(whole_pages(whole))
                if header:
                    page = buffer_for(len(header))
                    page[: len(header)] = np.frombuffer(header, np.uint8)
                    made.write(page, len(header), 0)
                _Passes(self, plan, given, runs, made, len(header)).run()
            made.cut_off(whole)


@contextmanager
def _as_disk_full(path: Path, nbytes: int) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise disk_full(path.parent, nbytes, 0) from error


class _Passes:
    """The two passes over the open files; of what fits into memory, one."""

    def __init__(
        self, sort: FileSort, plan: Plan, given: DirectFile, runs: DirectFile, made: DirectFile, header: int
    ) -> None:
        self._work, self._scratch, self._layout = sort.work, sort.scratch, sort.layout
        self._plan, self._given, self._runs, self._made, self._header = plan, given, runs, made, header
        count, length = sort.layout.count, plan.run
        self._lengths = [min(length, count - start) for start in range(0, count, length)]
        sizes = self._work.source.itemsize, self._work.spilled.itemsize, self._work.result.itemsize
        longest = max(self._lengths, default=0)
        self._workers = min(self._work.engine.workers, max(1, len(self._lengths)))
        self._slots = min(slots_for(self._workers), max(1, len(self._lengths)))
        self._loaded = [buffer_for(longest * max(sizes[:2])) for _ in range(self._slots)]
        self._sorted = [buffer_for(longest * max(sizes[1:])) for _ in range(self._slots)]
        self._cut = lru_cache(maxsize=2)(self._find_cut)  # each is where a bucket ends and the next one starts
        self._meter = Meter(sort.layout.nbytes * min(2, len(self._lengths)), sort.report)
        self._taken: dict[int, Array] = {}  # samples of runs
        self._samples = Samples.of([], [], 1)

    def run(self) -> None:
        everyone = range(len(self._lengths))
        if len(everyone) == 1:
            self._pass(everyone, self._load_piece, self._make_result, self._keep_bucket, "buckets")
            return
        self._pass(self._left("run"), self._load_piece, self._make_run, self._keep_run, "runs")
        self._scratch.sync(self._runs.sync)
        taken = [self._taken[run] if run in self._taken else self._sample_again(run) for run in everyone]
        self._samples = Samples.of(taken, self._lengths, self._plan.gap)
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

        side_by_side(pieces, load, work, keep, tell, self._workers)

    def _left(self, step: str) -> list[int]:
        """Which pieces are not yet done."""
        done = [f"{step} {piece}" in self._scratch.done for piece in range(len(self._lengths))]
        self._meter.skip(sum(self._bytes_of(piece) for piece, is_done in enumerate(done) if is_done))
        return [piece for piece, is_done in enumerate(done) if not is_done]

    def _bytes_of(self, piece: int) -> int:
        return self._lengths[piece] * self._work.source.itemsize

    def _load_piece(self, piece: int, slot: int) -> Array:
        start = self._layout.start + piece * self._plan.run * self._work.source.itemsize
        nbytes = self._bytes_of(piece)
        at = self._given.read(self._loaded[slot], 0, start, start + nbytes)
        return _elements(self._loaded[slot][at:], self._work.source, self._lengths[piece])

    def _make_result(self, piece: int, loaded: Array, slot: int) -> int:
        self._work.to_result(loaded, self._out(slot, self._work.result, loaded.size))
        return loaded.size * self._work.result.itemsize

    def _make_run(self, piece: int, loaded: Array, slot: int) -> int:
        out = self._out(slot, self._work.spilled, loaded.size)
        self._work.to_run(loaded, piece * self._plan.run, out)
        self._taken[piece] = self._work.words(out[:: self._plan.gap])
        return out.nbytes

    def _sample_again(self, run: int) -> Array:
        """Samples of a run that an earlier call sorted."""
        length, gap = self._lengths[run], self._plan.gap
        step = -(-_LARGE // (gap * self._work.spilled.itemsize)) * gap
        return np.concatenate(
            [self._words_between(run, at, min(at + step, length))[::gap] for at in range(0, length, step)]
        )

    def _keep_run(self, piece: int, nbytes: int, slot: int) -> None:
        self._runs.write(self._sorted[slot], nbytes, self._run_start(piece))
        self._scratch.mark(f"run {piece}", self._runs.sync)

    def _load_slices(self, piece: int, slot: int) -> Array:
        """A bucket's slice of every run, one behind the other."""
        item, end = self._work.spilled.itemsize, 0
        for run, (low, high) in enumerate(zip(self._cut(piece), self._cut(piece + 1), strict=True)):
            if low < high:
                start = self._run_start(run)
                self._runs.read_to(self._loaded[slot], end, start + low * item, start + high * item)
                end += (high - low) * item
        return _elements(self._loaded[slot], self._work.spilled, self._lengths[piece])

    def _make_bucket(self, piece: int, loaded: Array, slot: int) -> int:
        out = self._out(slot, self._work.result, loaded.size)
        self._work.to_bucket(loaded, out)
        return out.nbytes

    def _keep_bucket(self, piece: int, nbytes: int, slot: int) -> None:
        offset = self._header + piece * self._plan.run * self._work.result.itemsize
        self._made.write(self._sorted[slot], nbytes, offset)
        self._scratch.mark(f"bucket {piece}", self._made.sync)

    def _find_cut(self, bucket: int) -> list[int]:
        """Where a bucket starts in every run."""
        rank = min(bucket * self._plan.run, self._layout.count)
        cut: list[int] = self._samples.cut(rank, self._words_between).tolist()
        return cut

    def _words_between(self, run: int, start: int, stop: int) -> Array:
        first = self._run_start(run) + start * self._work.spilled.itemsize
        return self._work.words(self._runs.read_elements(self._work.spilled, first, stop - start))

    def _run_start(self, run: int) -> int:
        return run * self._plan.run * self._work.spilled.itemsize

    def _out(self, slot: int, dtype: np.dtype[Any], count: int) -> Array:
        return _elements(self._sorted[slot], dtype, count)


def _elements(buffer: Bytes, dtype: np.dtype[Any], count: int) -> Array:
    return buffer[: count * dtype.itemsize].view(dtype)
