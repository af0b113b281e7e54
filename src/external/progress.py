"""Progress reports of file sorts: bytes done, rate, estimated time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
    """Counts bytes done in two passes over pieces, or in one if there is one piece, and calls the report."""

    def __init__(self, lengths: Sequence[int], size: int, report: Report | None) -> None:
        self._total, self._size, self._report = sum(lengths) * size * min(2, len(lengths)), size, report
        self._done = self._before = 0
        self._began = time.perf_counter()

    def begin_anew(self) -> None:
        """Resets the count: the work is done again."""
        self._done = self._before = 0

    def begin(self, step: str, lengths: Sequence[int], left: Sequence[int]) -> Callable[[int], None]:
        """Begins a pass over pieces, of which an earlier call had done all but those that are left: they are not part
        of the rate. Returns what is to be called for each."""
        skipped = (sum(lengths) - sum(lengths[piece] for piece in left)) * self._size
        self._done += skipped
        self._before += skipped
        return lambda piece: self._add(lengths[piece] * self._size, step)

    def _add(self, nbytes: int, step: str) -> None:
        self._done += nbytes
        if self._report is not None:
            seconds = time.perf_counter() - self._began
            rate = (self._done - self._before) / max(seconds, 1e-9)
            self._report(Progress(self._done, self._total, seconds, rate, step))
