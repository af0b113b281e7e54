"""Threads that run pieces of a kernel side by side. Kernels release the GIL, so Python's own threads do.

No OpenMP and no Numba threading layer: those abort or collapse in forked children, under several callers, or
where other processes share the cores. Here a caller always works too, so a job ends even if no thread helps.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

import attrs

from ...types.environment import whole_number

MOST_THREADS = max(64, 4 * (os.cpu_count() or 1))


class _Job:
    """Pieces 0 to count-1 of one piece of work; whoever is free takes the next."""

    def __init__(self, work: Callable[[int], None], count: int) -> None:
        self._work = work
        self._count = count
        self._next = 0
        self._helping = 0  # pieces that helpers are at
        self._failure: BaseException | None = None
        self._state = threading.Condition(threading.Lock())

    def help(self) -> None:
        """A helper's part: takes pieces until none is left. What a piece raises is kept for the caller."""
        while (piece := self._take(helping=1)) is not None:
            try:
                self._work(piece)
            except BaseException as failure:
                self._fail(failure)
            finally:
                self._done()

    def finish(self) -> None:
        """The caller's part: work, wait for the helpers, raise what went wrong in any piece.

        Ctrl-C may strike anywhere here. The helpers still write to the caller's arrays: it waits for them.
        """
        try:
            while (piece := self._take(helping=0)) is not None:
                self._work(piece)
        except BaseException as failure:
            self._fail(failure)
        while self._helping:
            try:
                with self._state:
                    while self._helping:
                        self._state.wait()
            except KeyboardInterrupt as failure:
                self._fail(failure)
        if self._failure is not None:
            raise self._failure

    def _take(self, *, helping: int) -> int | None:
        with self._state:
            if self._next >= self._count:
                return None
            piece = self._next
            self._next += 1
            self._helping += helping
            return piece

    def _done(self) -> None:
        with self._state:
            self._helping -= 1
            if not self._helping:
                self._state.notify_all()

    def _fail(self, failure: BaseException) -> None:
        with self._state:
            if self._failure is None:
                self._failure = failure
            self._next = self._count  # nobody starts another piece


class Pool:
    """Helpers that sleep until there is a job. Several threads may hand in jobs at once."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._started = 0
        self._starting = threading.Lock()

    def run(self, work: Callable[[int], None], count: int) -> None:
        """Calls work(0) … work(count - 1), in any order, on this thread and its helpers; waits for all."""
        job = _Job(work, count)
        helpers = min(self.threads, count) - 1
        self._start(helpers)
        for _ in range(helpers):
            self._jobs.put(job)
        job.finish()

    def all(self, holds: Callable[[int], bool], count: int) -> bool:
        """Whether holds(0) … holds(count - 1) are all true. Once one is not, no other is asked."""
        failed: list[int] = []

        def ask(number: int) -> None:
            if not failed and not holds(number):
                failed.append(number)

        self.run(ask, count)
        return not failed

    def _start(self, wanted: int) -> None:
        with self._starting:
            while self._started < wanted:
                self._started += 1
                name = f"gpusort-cpu-{self._started}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._jobs.get().help()


def thread_count() -> int:
    """How many threads to use: $GPUSORT_THREADS, though no more than could help; else the cores this process may run
    on."""
    asked = whole_number("GPUSORT_THREADS", 0, least=1, most=MOST_THREADS, what="a number of threads, e.g. 4")
    if asked:
        return asked
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@attrs.define
class _Pools:
    """The process's pools, by their number of threads: one, unless the environment changes its mind."""

    made: dict[int, Pool] = attrs.field(factory=dict[int, Pool])
    making: threading.Lock = attrs.field(factory=threading.Lock)

    def forget(self) -> None:
        """In a forked child the helpers do not exist, nor does a thread that may hold the lock."""
        self.made = {}
        self.making = threading.Lock()


_pools = _Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.forget)


def shared_pool() -> Pool:
    """The process's pool of as many threads as are asked for now."""
    wanted = thread_count()
    with _pools.making:
        pool = _pools.made.get(wanted)
        if pool is None:
            pool = _pools.made[wanted] = Pool(wanted)
        return pool
