"""Commits in-place sorts: at any time the array holds all its elements, so that Ctrl-C, another signal's handler or a
MemoryError leaves a permutation of the input.

Long rows are sorted in scratch memory while the input stays intact. Then one call into C copies the result back, or
worker threads do, in which signal handlers never run.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....arrays.host import copy_elements
from ..crew import share
from ..pool import Pool
from .counting_loops import fill
from .key_words import Elements

WORTH_SHARING = 1 << 22  # bytes: below, threads take longer to wake than one call takes


def put_in_place(ordered: Elements, results: Elements, pool: Pool) -> None:
    """Copies sorted rows from scratch memory back, whichever way they lie."""
    if results.nbytes < WORTH_SHARING or pool.threads < 2:
        results[...] = ordered
        return
    longest = results.shape.index(max(results.shape))
    source, to = ordered.swapaxes(0, longest), results.swapaxes(0, longest)
    pool.finish(lambda start, stop: copy_elements(source[start:stop], to[start:stop]), len(to))


def fill_runs(results: Elements, sequence: Elements, ends: npt.NDArray[np.int64], in_place: bool, pool: Pool) -> None:
    """Fills results with runs: sequence[k] up to ends[k]. In place, wholly or not at all."""
    loop = fill(results.itemsize)
    if not in_place:
        share(loop, results.size, pool, results, sequence, ends)
    elif results.nbytes < WORTH_SHARING:
        loop(0, results.size, results, sequence, ends)
    else:
        pool.finish(lambda start, stop: loop(start, stop, results, sequence, ends), results.size)
