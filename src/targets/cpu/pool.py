"""The thread pool that runs pieces of a kernel in parallel. Kernels release the GIL, so Python threads do.

No OpenMP and no Numba threading layer: those abort or collapse in forked children, under several callers, or
where other processes share the cores. Here a caller always works too, so a job ends even if no thread helps.

Signals are survived at every bytecode: job.py says how.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic
from typing import cast

from ...types import real_threads
from ...types.environment import core_count, whole_number
from .job import Helper, Job

MOST_THREADS = max(64, 4 * (os.cpu_count() or 1))
_FEW_THREADS = 4  # which share a row nearly as well as they share rows


def share_each_row(rows: int, threads: int, itemsize: int) -> bool:
    """Whether long rows are so few that all threads sort one after the other together, not each thread rows of its own.
    Many threads wait for each other more than they do for the last row; but rows of 8 and 16 bits are counted."""
    return rows < (threads // 2 if threads > _FEW_THREADS and itemsize > 2 else 2 * threads)


def slices(length: int, count: int) -> list[slice]:
    """Cuts 0..length into `count` slices of nearly equal length."""
    return [slice(length * k // count, length * (k + 1) // count) for k in range(count)]


class Pool:
    """A thread pool. Several threads may submit jobs at once; the submitting thread works too. Each job wakes the same
    helpers, whose cores are not idle and whose caches are warm; a shared queue would wake the one that waited
    longest."""

    def __init__(self, threads: int, helpers: list[Helper] | None = None) -> None:
        self.threads = threads
        self._helpers = [] if helpers is None else helpers

    def of_at_most(self, threads: int) -> Pool:
        """A pool of fewer of the same threads: waking one costs microseconds, however little work there is."""
        return self if threads >= self.threads else Pool(threads, self._helpers) if threads > 1 else ALONE

    def run(self, work: Callable[[int], None], count: int) -> None:
        """Calls work(0) … work(count - 1), in any order, on this thread and its helpers; waits for all. An exception,
        in a piece or raised by a signal handler in this thread, ends the job: no other piece is started, and those
        under way are waited for."""
        if count == 1:
            work(0)
            return
        job = Job(work, count)

        def work_too() -> None:
            self._call(job, min(self.threads, count) - 1)
            job.take_pieces()

        job.see_through(work_too)

    def _call(self, job: Job, wanted: int) -> None:
        """Has so many helpers, or as many as the system gives, come to a job: those at another caller's job come last.
        Without a lock: callers that come at once, or that are interrupted, may start a thread too many.
        (`threading.Thread.start` waits by a lock that an interrupt leaks; this starts a thread or does not.)"""
        while len(self._helpers) < wanted:
            helper = Helper()
            if not real_threads.started(helper.serve):
                break
            self._helpers.append(helper)
        if wanted > 0:
            for helper in sorted(self._helpers, key=lambda helper: helper.is_busy)[:wanted]:
                helper.call(job)

    def over(self, length: int, work: Callable[[slice], None], pieces: int | None = None, *, least: int = 1) -> None:
        """Calls `work` with so many slices that together are 0 to `length`; if not told, with several for each thread,
        none shorter than `least`."""
        parts = slices(length, pieces or max(1, min(4 * self.threads, length // least)))
        self.run(lambda number: work(parts[number]), len(parts))

    def all_over(self, length: int, holds: Callable[[slice], bool], pieces: int) -> bool:
        """Whether `holds` is true of all such slices; stops at the first that is false."""
        failed: list[slice] = []

        def ask(own: slice) -> None:
            if not failed and not holds(own):
                failed.append(own)

        self.over(length, ask, pieces)
        return not failed


ALONE = Pool(1)  # this thread, without helpers


def thread_count() -> int:
    """The number of threads: $GPUSORT_THREADS, within limits, or else the cores that this process may run on."""
    return shared_pool().threads


# Asked in calls that take microseconds, and after a sort that has emptied the caches: what was found last is valid for
# a while, if the variable's entry is the same, which is looked up where `os.environ` keeps it, as the system has it.
_NAME = "GPUSORT_THREADS"
_entry_of = cast("Callable[[object], object]", getattr(getattr(os.environ, "_data", None), "get", os.environ.get))
_ENTRY: object = os.environ.encodekey(_NAME) if hasattr(os.environ, "_data") else _NAME
_SECONDS = 1.0  # after which a process's cores are counted again

_pools: dict[int, Pool] = {}  # by their number of threads: one, unless the environment changes its mind
_latest: list[tuple[object, float, Pool]] = [(None, 0.0, ALONE)]  # the entry, until when, the pool


def shared_pool() -> Pool:
    """The process-wide pool of `thread_count()` threads."""
    entry, until, pool = _latest[0]
    return pool if monotonic() < until and _entry_of(_ENTRY) == entry else _asked_anew()


def _asked_anew() -> Pool:
    entry = _entry_of(_ENTRY)
    asked = whole_number(_NAME, 0, least=1, most=MOST_THREADS, what="a number of threads, e.g. 4")
    wanted = asked or core_count()
    pool = _pools.get(wanted) or _pools.setdefault(wanted, Pool(wanted))
    _latest[0] = entry, monotonic() + _SECONDS, pool
    return pool


def forget() -> None:
    """Asks anew; in a forked child, where their threads do not exist."""
    _pools.clear()
    _latest[0] = None, 0.0, ALONE


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
