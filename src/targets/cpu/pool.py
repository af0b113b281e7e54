"""The thread pool that runs pieces of a kernel in parallel. Kernels release the GIL, so Python threads do.

No OpenMP and no Numba threading layer: those abort or collapse in forked children, under several callers, or
where other processes share the cores. Here a caller always works too, so a job ends even if no thread helps.

Signals are survived at every bytecode: job.py says how.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

import attrs

from ...types.environment import core_count, whole_number
from .job import Job, WholeJob

MOST_THREADS = max(64, 4 * (os.cpu_count() or 1))

_MOST_FINISHERS = 8  # as many keep the memory busy


def slices(length: int, count: int) -> list[slice]:
    """Cuts 0..length into `count` slices of nearly equal length."""
    return [slice(length * k // count, length * (k + 1) // count) for k in range(count)]


class _Helper:
    """A worker thread, asleep until it gets a job. Signal handlers never run in it."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self.is_busy = False

    def call(self, job: Job) -> None:
        self.is_busy = True  # by the caller: another who calls before the thread is awake takes others
        self._jobs.put(job)

    def serve(self, name: str) -> None:
        threading.current_thread().name = name
        while True:
            self._jobs.get().help()
            self.is_busy = not self._jobs.empty()


class _Crew:
    """Worker threads. Each job wakes the same ones, whose cores are awake and whose caches are warm; a shared queue
    would wake the one that slept longest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._helpers: list[_Helper] = []

    def grow(self, wanted: int) -> int:
        """How many threads there are, of so many that are wanted. Fewer where the system gives no more.

        Without a lock: callers that come at once, or that are interrupted, may start a thread too many.
        (`threading.Thread.start` waits by a lock that an interrupt leaks; this starts a thread or does not.)
        """
        while len(self._helpers) < wanted:
            helper = _Helper()
            try:
                _thread.start_new_thread(helper.serve, (self._name,))
            except (RuntimeError, MemoryError):
                break
            self._helpers.append(helper)
        return min(wanted, len(self._helpers))

    def call(self, job: Job, helpers: int) -> None:
        """Those that are at another caller's job come last."""
        if helpers:
            for helper in sorted(self._helpers, key=_is_busy)[:helpers]:
                helper.call(job)


def _is_busy(helper: _Helper) -> bool:
    return helper.is_busy


class Pool:
    """A thread pool. Several threads may submit jobs at once; the submitting thread works too."""

    def __init__(self, threads: int, crews: tuple[_Crew, _Crew] | None = None) -> None:
        self.threads = threads
        self._most_finishers = min(threads, _MOST_FINISHERS)
        self._crews = crews or (_Crew("gpusort-cpu"), _Crew("gpusort-cpu-finish"))
        self._helpers, self._finishers = self._crews

    def of_at_most(self, threads: int) -> Pool:
        """A pool of fewer of the same threads: waking one costs microseconds, however little work there is."""
        return self if threads >= self.threads else Pool(max(1, threads), self._crews)

    def run(self, work: Callable[[int], None], count: int) -> None:
        """Calls work(0) … work(count - 1), in any order, on this thread and its helpers; waits for all.

        An exception, of a piece or of whatever strikes this thread, ends the job: nobody starts another piece, and
        those that are under way are waited for.
        """
        job = Job(work, count)

        def work_too() -> None:
            self._helpers.call(job, self._helpers.grow(min(self.threads, count) - 1))
            job.take_pieces()

        _see_through(job, work_too)

    def over(self, length: int, work: Callable[[slice], None], pieces: int | None = None, *, least: int = 1) -> None:
        """Calls `work` with so many slices that together are 0 to `length`; if not told, with several for each thread,
        none shorter than `least`."""
        parts = slices(length, pieces or self._pieces(length, least))
        self.run(lambda number: work(parts[number]), len(parts))

    def _pieces(self, length: int, least: int) -> int:
        return max(1, min(4 * self.threads, length // least))

    def finish(self, write: Callable[[int, int], None], length: int) -> None:
        """Calls write(start, stop) for parts that together are 0 to length: for all of them, or for none if something
        strikes before the first has begun.

        They are left to threads that no signal handler runs in; this one waits for them, and raises what struck it at
        the end. Each is to be one call into C that does not fail.
        """
        if self.threads < 2 or sys.is_finalizing() or not self._finishers.grow(self._most_finishers):
            write(0, length)
            return
        parts = slices(length, 4 * self.threads)
        job = WholeJob(lambda number: write(parts[number].start, parts[number].stop), len(parts))

        def wait() -> None:
            self._finishers.call(job, self._finishers.grow(self._most_finishers))
            job.wait()

        _see_through(job, wait)

    def all_over(
        self, length: int, holds: Callable[[slice], bool], pieces: int | None = None, *, least: int = 1
    ) -> bool:
        """Whether `holds` is true of all such slices; stops at the first that is false."""
        parts = slices(length, pieces or self._pieces(length, least))
        return self.all(lambda number: holds(parts[number]), len(parts))

    def all(self, holds: Callable[[int], bool], count: int) -> bool:
        """Whether holds(0) … holds(count - 1) are all true; stops at the first that is false."""
        failed: list[int] = []

        def ask(number: int) -> None:
            if not failed and not holds(number):
                failed.append(number)

        self.run(ask, count)
        return not failed


def _see_through(job: Job, take_part: Callable[[], None]) -> None:
    """Takes part in a job, and leaves it only when nobody is at it any more.

    What strikes as `end` is called, before its own `try`, would skip it: so it is called once more, and twice more for
    what strikes again meanwhile, as where signals come faster than their handler returns.
    """
    try:
        try:
            try:
                try:
                    take_part()
                finally:
                    job.end()
            finally:
                job.end()
        finally:
            job.end()
    finally:
        job.end()
    job.raise_failure()


def thread_count() -> int:
    """The number of threads: $GPUSORT_THREADS, within limits, or else the cores that this process may run on."""
    asked = whole_number("GPUSORT_THREADS", 0, least=1, most=MOST_THREADS, what="a number of threads, e.g. 4")
    return asked or core_count()


@attrs.define
class _Pools:
    """The process's pools, by their number of threads: one, unless the environment changes its mind."""

    made: dict[int, Pool] = attrs.field(factory=dict[int, Pool])

    def forget(self) -> None:
        """Drops all pools in a forked child, where their threads do not exist."""
        self.made = {}


_pools = _Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.forget)


def shared_pool() -> Pool:
    """The process-wide pool of `thread_count()` threads."""
    wanted = thread_count()
    pool = _pools.made.get(wanted)
    return pool if pool is not None else _pools.made.setdefault(wanted, Pool(wanted))
