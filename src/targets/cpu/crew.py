"""A crew of threads that wait in compiled code: one call wakes them all, and they partition and sort a row without the
interpreter.

Threads of the pool come to a job one after the other, some 20 us apart, for each needs the GIL; in a sort of 2^18
elements by 16 threads that is a third of the time. These never come back to Python: they sleep at semaphores of the C
library, inside a loop that Python called once, and each that wakes wakes some others.

A job is one call into C, of the thread that asks for the sort. No signal handler runs in the middle of it, so an
interrupt finds it done or not begun. There is one crew, which one caller has at a time; who finds it busy takes the
pool. A forked child has none of the threads, and makes a crew of its own.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...algos.host_sort import HostSortPolicy
from ...types.environment import core_count
from ..base import HostArray
from . import crew_loops as loops
from .alias import address_of, place_of
from .crew_loops import LINE, MOST_ARGUMENTS, MOST_THREADS, lead, serve, take_slices
from .loops import PIECE, Loop, numbers_for
from .pool import Pool, thread_count

if TYPE_CHECKING:
    from .compiler.loading import Kernel

_WORD = 8  # bytes
_WORD_MASK = (1 << 64) - 1
# Loops over memory: a thread wakes in the time that it takes one to go over some 100 KiB.
_LOOPS = HostSortPolicy(crew_bytes_from=1 << 19, crew_thread_bytes=1 << 16)
_CAN_WAIT = sys.platform == "linux" and sys.maxsize > 1 << 32


class Crew:
    """The threads of a process: started as they are wanted, and there until it ends."""

    def __init__(self) -> None:
        self.memory = np.zeros(loops.WORDS, np.int64)
        self._started = 0
        library, address = ctypes.CDLL(None), address_of(self.memory)
        self.memory[loops.STATE], self.memory[loops.ADDRESS] = loops.CLOSED, address
        for place, name in (loops.WAIT, "sem_wait"), (loops.POST, "sem_post"), (loops.YIELD, "sched_yield"):
            self.memory[place] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        for number in range(MOST_THREADS + 1):
            library.sem_init(ctypes.c_void_p(address + (loops.SEMAPHORES + number * LINE) * _WORD), 0, 0)
        self._lead = lead().on(self.memory)

    def run(self, kernel: Kernel, length: int, arguments: Sequence[int], threads: int) -> bool:
        """Calls kernel(start, stop, *arguments) with slices that together are 0 to `length`, by so many threads, the
        caller among them. False, and nothing done, if another caller has them."""
        parts = max(1, min(MOST_THREADS, 4 * threads, length))
        return self.does(take_slices, min(threads, parts), parts, length, kernel.address, arguments)

    def does(
        self, step: Callable[[], Loop], threads: int, parts: int, length: int, function: int, arguments: Sequence[int]
    ) -> bool:
        """A job of any step of each thread's. Where the system gives fewer threads, those that are there do it."""
        while self._started < threads - 1:  # an interrupt may leave a thread that is not counted
            try:
                _thread.start_new_thread(self._serve, ())
            except (RuntimeError, MemoryError):
                break
            self._started += 1
        words = [0, step().kernel.address, threads, parts, length, function, *(word & _WORD_MASK for word in arguments)]
        order = np.array(words + [0] * (MOST_ARGUMENTS - len(arguments)), np.uint64)
        self._lead(*place_of(order))
        if order[0] > 1:
            raise MemoryError("no memory for a loop's arrays")
        return bool(order[0])

    def _serve(self) -> None:
        threading.current_thread().name = "gpusort-cpu-crew"
        serve()(self.memory)  # this frame holds the code and the memory for as long as the process is there


def load_crew() -> Iterator[object]:
    """Compiles all that the crew needs to share loops out."""
    if _CAN_WAIT:
        yield from (loop() for loop in (serve, lead, take_slices))


class _Crews:
    """The process's crew, once it is made."""

    def __init__(self) -> None:
        self.made: dict[str, Crew] = {}

    def forget(self) -> None:
        """In a forked child, where the threads do not exist."""
        self.made = {}


crews = _Crews()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=crews.forget)


def threads_of_crew(nbytes: int, policy: HostSortPolicy = _LOOPS) -> int:
    """The number of the crew's threads for a loop over so many bytes; 0 if it should not use them."""
    return min(MOST_THREADS, policy.crew_for(nbytes, thread_count(), core_count())) if _CAN_WAIT else 0


def share(loop: Loop, length: int, pool: Pool, *arguments: HostArray | int) -> None:
    """Calls loop(start, stop, *arguments) with slices that together are 0 to `length`, by the crew if that pays, else
    by the pool. The size of the first array decides."""
    nbytes = next(array.nbytes for array in arguments if isinstance(array, np.ndarray))
    share_kernel(loop.kernel, length, numbers_for(arguments), pool, threads_of_crew(nbytes), least=PIECE)


def share_kernel(
    kernel: Kernel, length: int, numbers: Sequence[int], pool: Pool, threads: int, *, least: int = 1
) -> None:
    """The same for a kernel, by this many threads of the crew; by the pool if it is 0 or the crew is busy."""
    if not (threads and run_by_crew(kernel, length, numbers, threads)):
        pool.over(length, lambda own: kernel(own.start, own.stop, *numbers), least=least)


def run_by_crew(kernel: Kernel, length: int, numbers: Sequence[int], threads: int) -> bool:
    """Whether the crew has called it, with no more numbers than MOST_ARGUMENTS: else nothing is done, as it is busy."""
    return crew().run(kernel, length, numbers, threads)


def crew() -> Crew:
    return crews.made.get("crew") or crews.made.setdefault("crew", Crew())
