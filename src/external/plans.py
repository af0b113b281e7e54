"""How elements are parted into runs, as memory allows."""

from __future__ import annotations

from math import gcd, lcm

import attrs

from ..types.errors import InvalidArgumentError
from .cuts import usual_gap
from .direct import PAGE
from .pipeline import slots_for
from .work import Work

_LIBRARIES = 3 << 25  # what of a large memory is left to NumPy, Numba and their like, which take about twice that
ENOUGH = 8  # runs: reading the first and writing the last have nothing beside them
_LITTLE = 1 << 24  # bytes that are not counted
LARGE = 1 << 26  # bytes of a run that is long enough for the disk and for all threads


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
        runs = max(2, min(ENOUGH, count * read // LARGE))
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
