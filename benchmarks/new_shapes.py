"""Calls with arrays of ever new shapes, as batches are: `python -m benchmarks.new_shapes`.

Beside the same calls of one shape, which find what was planned for it, and NumPy's. Medians of the thread's time, of
single calls by turns; each array is read before it is timed.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time

import attrs

from benchmarks.sweep import call_of
from benchmarks.sweep_cases import FUNCTIONS, Case
from benchmarks.sweep_libraries import NumPy
from benchmarks.timing import Work

_CALLS, _WARM_UP = 60, 5
_SHAPES: tuple[tuple[int, ...], ...] = ((300,), (10_000,), (50_000,), (100, 50), (400, 100), (50, 1000), (40, 20, 60))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.new_shapes", description=__doc__)
    parser.add_argument("--only", default="", type=re.compile, help="cases whose name fits, e.g. 'sum f4 .* axis 0'")
    only = parser.parse_args().only
    print(f"{'microseconds':44s} {'new':>8s} {'NumPy':>8s} {'known':>8s} {'a shape':>8s}")
    for function in (each for each in FUNCTIONS if not (each.says and each.is_of_rows)):  # not of special values
        for dtype in ("f4", "u1"):
            for shape in _SHAPES:
                axes = (None, *range(len(shape))) if not function.is_of_rows else (0,) if len(shape) == 1 else ()
                for axis in axes:
                    case = Case(NumPy(), function, dtype, shape, "C", axis)
                    if only.search(case.name):
                        new, peer, known = timed(case)
                        print(f"{case.name:44s} {new:8.1f} {peer:8.1f} {known:8.1f} {new - known:+8.1f}", flush=True)


def timed(case: Case) -> tuple[float, float, float]:
    """Microseconds of ours and of NumPy's for shapes that are new, and of ours for one that is not."""
    times: tuple[list[int], list[int], list[int]] = [], [], []
    length, *rest = case.shape
    for number in range(_CALLS + _WARM_UP):
        x, new = case.host(number), attrs.evolve(case, shape=(length + _CALLS // 2 - number, *rest)).host()
        ((_, peer),) = case.library.peers(case.function, x, case.axis)
        works = (new, call_of(case, new)), (x, peer), (x, call_of(case, x))
        for turn in range(number, number + len(works)):  # whoever is the first finds the caches full of other things
            read, work = works[turn % len(works)]
            read.tobytes()
            times[turn % len(works)].append(_nanoseconds(work))
    ours, peers, known = (statistics.median(found[_WARM_UP:]) / 1e3 for found in times)
    return ours, peers, known


def _nanoseconds(work: Work) -> int:
    start = time.thread_time_ns()
    work()
    return time.thread_time_ns() - start


if __name__ == "__main__":
    main()
