"""Commits in-place sorts: at any time the array holds all its elements, so that Ctrl-C, another signal's handler or a
MemoryError leaves a permutation of the input.

Long rows are sorted in scratch memory while the input stays intact. Then one call into C copies the result back, or
worker threads do, in which signal handlers never run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..pool import Pool
from .counting_loops import fill
from .key_words import Elements
from .loops import PIECE

WORTH_SHARING = 1 << 22  # bytes: below, threads take longer to wake than one call takes


def put_in_place(ordered: Elements, results: Elements, pool: Pool) -> None:
    """Copies a sorted row from scratch memory back."""

    def put(start: int, stop: int) -> None:
        results[start:stop] = ordered[start:stop]

    write_whole(put, results, pool)


def write_whole(write: Callable[[int, int], None], results: Elements, pool: Pool) -> None:
    """Calls write(start, stop), a single call into C, for all of the results, uninterrupted."""
    if results.nbytes < WORTH_SHARING:
        write(0, results.size)
    else:
        pool.finish(write, results.size)


def fill_runs(results: Elements, sequence: Elements, ends: npt.NDArray[np.int64], in_place: bool, pool: Pool) -> None:
    """Fills results with runs: sequence[k] up to ends[k]. In place, wholly or not at all."""
    write = fill(results.itemsize).on(results, sequence, ends)
    if in_place:
        write_whole(write, results, pool)
        return
    pool.over(results.size, lambda own: write(own.start, own.stop), least=PIECE)
