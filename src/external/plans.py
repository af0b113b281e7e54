"""The memory budget of an external sort, and the run lengths and sampling interval that it allows."""

from __future__ import annotations

import re
from math import isqrt
from pathlib import Path
from typing import SupportsIndex, cast

import attrs

from ..types.checks import as_int
from ..types.environment import memory_bytes, memory_limits
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
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
    # Each worker, and one more, has a slot of input and of output; each worker its temporary memory.
    workers = work.engine.workers
    slots = slots_for(workers)
    each = slots * (max(read, spilled) + max(spilled, written)) + workers * work.extra
    runs = max(2, min(MIN_RUNS, count * read // LARGE_RUN))
    enough = max(FEW_RUNS, isqrt(count * spilled // PAGE))
    while True:
        run = -(-count // runs)
        gap = max(PAGE // spilled, 1, usual_gap(count, runs))
        samples = 32 * (count // gap + min(3 * runs * gap, count))
        others = samples + slots * runs * REST
        taken = run * each + (others if others > _LITTLE else 0)
        if taken <= memory or (runs >= enough and taken <= LITTLE_IN_ALL):
            return Plan(run, gap)
        if run == 1:
            return Plan(run, gap) if samples <= max(memory, _LITTLE) else None
        runs += 1 + runs // 32


def beside(runs: int, gap: int, itemsize: int) -> int:
    """The most bytes read with a bucket besides its elements: three gaps of each run, and the rest of pages."""
    return runs * (3 * gap * itemsize + REST)


def data_budget(memory: int) -> int:
    """The part of the memory budget that is for data: without the libraries' overhead, but at least half."""
    return memory - min(memory // 2, _LIBRARIES)


LEAST = 1 << 16
_MOST = float(1 << 60)  # a cap on numbers, so that they stay finite
_SHARE = 2  # "auto" takes one half; the other is for other processes and for libraries
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def bytes_of(memory: object, name: str = "memory") -> int:
    """Parses a number of bytes, a text such as "600M" or "1.5GiB", or "auto": half of what is free. Units are powers
    of 1024. Raises InvalidArgumentError below LEAST."""
    expected = f'{name}: expected a number of bytes, a text such as "600M" or "1.5GiB", or "auto",'
    if not isinstance(memory, str):
        memory = as_int(cast(SupportsIndex, memory))
        if type(memory) is not int:
            raise UnsupportedTypeError(f"{expected} found {memory!r}")
    if memory == "auto":
        return max(LEAST, free_memory() // _SHARE)
    if isinstance(memory, str):
        parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", memory.strip(), re.ASCII | re.IGNORECASE)
        if parts is None:
            raise InvalidArgumentError(f"{expected} found {memory!r}")
        number, unit = parts.groups()
        memory = int(min(float(number), _MOST) * (1 << _UNITS[unit.lower()]))
    if memory < LEAST:
        raise InvalidArgumentError(f"{name}: expected at least {LEAST} bytes, found {memory}")
    return memory


def free_memory() -> int:
    """Free bytes: the least of the machine's (MemAvailable) and of those left in this process's control groups."""
    return min([_machine_free(), *(max(0, limit - used) for limit, used in memory_limits())])


def _machine_free() -> int:
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) << 10 if found else memory_bytes() // 2
