"""Sorts in place under real signals, whose handler raises, until so many have come. Prints what became of it.

`python -m tests.signal_storm 5000 0.0001`: so many signals; seconds between them while one call runs (0: one a call).
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import time
from types import FrameType

import numpy as np

import gpusort
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.targets.cpu.pool import shared_pool
from gpusort.types.indices import SortOrder
from tests.striking import Array, elements_of
from tests.test_interrupts import CASES, TARGET

_SECONDS = 240  # more is a hang


class Rung(BaseException):
    """What the handler raises."""


def storm(wanted: int, pause: float) -> dict[str, object]:
    signals = lost = late = interrupted = 0
    longest = 0.0

    def ring(_: int, frame: FrameType | None) -> None:
        """Raise in the sort alone: one that comes late, while this script clears up, would end the script."""
        nonlocal signals
        while frame is not None and frame.f_code is not _sort.__code__:
            frame = frame.f_back
        if frame is not None:
            signals += 1
            raise Rung

    signal.signal(signal.SIGALRM, ring)
    jobs = [(name, order) for name in CASES for order in SortOrder]
    kept = {name: elements_of(x) for name, x in CASES.items()}
    seconds = {job: min(_timed(*job) for _ in range(2)) for job in jobs}
    while signals < wanted:
        job = random.choice(jobs)
        x = CASES[job[0]].copy()
        start = time.perf_counter()
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, seconds[job]), pause)
            _sort(x, *job)
        except Rung:
            interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        longest = max(longest, time.perf_counter() - start)
        then = x.copy()
        lost += not np.array_equal(elements_of(then), kept[job[0]])
        time.sleep(1e-4)
        late += x.tobytes() != then.tobytes()
    done: list[int] = []
    shared_pool().run(done.append, 100)
    assert sorted(done) == list(range(100))
    told = {"signals": signals, "interrupted calls": interrupted, "lost": lost, "late": late}
    return {**told, "longest call": f"{longest:.3f} s", "threads": threading.active_count()}


def _timed(name: str, order: SortOrder) -> float:
    x = CASES[name].copy()
    start = time.perf_counter()
    _sort(x, name, order)
    return time.perf_counter() - start


def _sort(x: Array, name: str, order: SortOrder) -> None:
    if name.startswith("columns"):
        gpusort.sort_inplace(x, axis=0, descending=order is SortOrder.DESCENDING, target=TARGET)
    else:
        rows = x if x.ndim == 2 else x.reshape(1, -1)
        sort_rows(rows, rows, order, TARGET.policy)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(_SECONDS, exit=True)
    os.environ["GPUSORT_THREADS"] = random.choice("234")
    background.in_caller = True
    for what, value in storm(int(sys.argv[1]), float(sys.argv[2])).items():
        print(f"{what}: {value}")
