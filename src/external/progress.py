"""Progress reports of file sorts: bytes done, rate, estimated time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import attrs


@attrs.frozen
class Progress:
    """What `sort_file` passes to its `progress` after every step."""

    done: int  # bytes sorted so far; bytes of a file larger than memory count twice
    total: int
    seconds: float  # since this call began
    rate: float  # bytes per second in this call
    step: str  # "runs", or "buckets" in the last pass

    @property
    def fraction(self) -> float:
        """The part that is done, from 0 to 1; 1 for a file without elements."""
        return self.done / self.total if self.total else 1.0

    @property
    def seconds_left(self) -> float:
        """The estimated time left at this rate; infinite if the rate is 0 and something is left."""
        left = self.total - self.done
        return left / self.rate if self.rate else float("inf") if left else 0.0


Report: TypeAlias = Callable[[Progress], object]


class Meter:
    """Counts bytes done, and calls the report."""

    def __init__(self, total: int, report: Report | None) -> None:
        self._total, self._report = total, report
        self._done = self._before = 0
        self._began = time.perf_counter()

    def skip(self, nbytes: int) -> None:
        """Counts bytes that an earlier call had done: not part of the rate."""
        self._done += nbytes
        self._before += nbytes

    def begin_anew(self) -> None:
        """Resets the count: the work is done again."""
        self._done = self._before = 0

    def add(self, nbytes: int, step: str) -> None:
        self._done += nbytes
        if self._report is not None:
            seconds = time.perf_counter() - self._began
            rate = (self._done - self._before) / max(seconds, 1e-9)
            self._report(Progress(self._done, self._total, seconds, rate, step))
