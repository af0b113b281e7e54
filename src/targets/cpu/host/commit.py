"""The last step of sorting in place. An array that is sorted where it lies must hold all its elements at any time:
whoever strikes meanwhile (Ctrl-C, a handler of another signal, no memory) finds them there, in some order.

So long rows are sorted in other memory, and what was given stays whole until all is done. Then one call into C puts the
result in its place, or threads do, which no handler interrupts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..pool import Pool
from .key_words import Elements

WORTH_SHARING = 1 << 22  # bytes: below, threads take longer to wake than one call takes


def put_in_place(ordered: Elements, results: Elements, pool: Pool) -> None:
    """Copies what was ordered elsewhere."""

    def put(start: int, stop: int) -> None:
        results[start:stop] = ordered[start:stop]

    write_whole(put, results, pool)


def write_whole(write: Callable[[int, int], None], results: Elements, pool: Pool) -> None:
    """Has write(start, stop), which is one call into C, write all of the results."""
    if results.nbytes < WORTH_SHARING:
        write(0, results.size)
    else:
        pool.finish(write, results.size)


def fill_runs(results: Elements, sequence: Elements, ends: npt.NDArray[np.int64], in_place: bool, pool: Pool) -> None:
    """Writes sequence[k] as far as ends[k]: where what was counted lay, all of it or nothing."""
    from .counting_kernels import fill

    def write(start: int, stop: int) -> None:
        fill(results, sequence, ends, start, stop)

    if in_place:
        write(0, 0)  # compiles it
        write_whole(write, results, pool)
        return
    pool.over(results.size, lambda own: write(own.start, own.stop))
