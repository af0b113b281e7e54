"""Chooses run lengths and the sampling interval of an external sort within a memory budget."""

from __future__ import annotations

from math import gcd, isqrt, lcm

import attrs

from ..types.errors import InvalidArgumentError
from .cuts import usual_gap
from .direct import PAGE
from .pipeline import slots_for
from .work import Work

_LIBRARIES = 3 << 25  # bytes left to NumPy, LLVM and others (half of what they take) if the budget is large
MIN_RUNS = 8  # runs: with fewer, reading the first and writing the last, which overlap with nothing, weigh more
_LITTLE = 1 << 24  # bytes of samples, and of what is read besides buckets, that are neglected
FEW_RUNS = 32  # so many are read quickly, however short they are
REST = 2 * PAGE  # bytes of a read besides its elements: some before them, and some after
LITTLE_IN_ALL = 1 << 25  # bytes that a plan may take beyond the budget; libraries take several times as much
LARGE_RUN = 1 << 26  # bytes of a run that is long enough for disk throughput and for all threads


@attrs.frozen
class Plan:
    """The length of runs, and of buckets, and the distance of samples in runs: in elements."""

    run: int
    gap: int

    @classmethod
    def within(cls, memory: int, count: int, work: Work) -> Plan:
        """The plan of a sort. Raises InvalidArgumentError if not even the samples fit."""
        found = _plan(memory, count, work)
        if found is not None:
            return found
        enough = memory
        while _plan(enough, count, work) is None:
            enough *= 2
        raise InvalidArgumentError(
            f"memory: expected more for {count:,} elements, such as {-(-enough >> 20)}M, found {memory:,} bytes"
        )


def _plan(memory: int, count: int, work: Work) -> Plan | None:
    """One run if everything fits into memory; else as few as fit, but enough for the pipeline to overlap. None if not
    even the samples fit. Each bucket reads a slice of each run, and that at least a page: runs that are more than the
    square root of the file's pages have most of what is read thrown away. Then a budget of some kilobytes is exceeded
    instead."""
    memory = data_budget(memory)
    read, spilled, written = work.source.itemsize, work.spilled.itemsize, work.result.itemsize
    if count * (read + written + work.extra) <= memory:
        return Plan(max(1, count), 1)
    step = lcm(*(PAGE // gcd(PAGE, size) for size in (spilled, written)))  # both are written in whole pages
    # Each worker, and one more, has a slot of input and of output; each worker its temporary memory.
    workers = work.engine.workers
    slots = slots_for(workers)
    each = slots * (max(read, spilled) + max(spilled, written)) + workers * work.extra
    runs = max(2, min(MIN_RUNS, count * read // LARGE_RUN))
    enough = max(FEW_RUNS, isqrt(count * spilled // PAGE))
    while True:
        run = -(-count // runs // step) * step
        gap = max(PAGE // spilled, 1, usual_gap(count, runs))
        samples = 32 * (count // gap + min(3 * runs * gap, count))
        others = samples + slots * runs * REST
        taken = run * each + (others if others > _LITTLE else 0)
        if taken <= memory or (runs >= enough and taken <= LITTLE_IN_ALL):
            return Plan(run, gap)
        if run == step:
            return Plan(run, gap) if samples <= max(memory, _LITTLE) else None
        runs += 1 + runs // 32


def beside(runs: int, gap: int, itemsize: int) -> int:
    """Bytes that are read with a bucket besides its elements: of each run a few gaps at most, and the rest of pages."""
    return runs * (3 * gap * itemsize + REST)


def data_budget(memory: int) -> int:
    """The part of the memory budget that is for data: without the libraries' overhead, but at least half."""
    return memory - min(memory // 2, _LIBRARIES)
