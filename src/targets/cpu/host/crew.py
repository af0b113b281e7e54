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
import threading
from collections.abc import Iterator
from functools import cache

import attrs
import numpy as np

from ..alias import address_of, place_of
from .crew_loops import ADDRESS, CLOSED, LINE, MOST_THREADS, POST, SEMAPHORES, STATE, WAIT, WORDS, YIELD, lead, serve
from .key_words import Elements
from .numpy_pointer import sort_address
from .partition_loops import part_in_turn

_WORD = 8  # bytes


@attrs.frozen(eq=False)
class PartedRow:
    """A row, the pivots between its parts, and the memories to part it into: to and fro between `first` and `second`,
    at last to `results`."""

    source: Elements
    first: Elements
    second: Elements
    results: Elements
    pivots: Elements


class Crew:
    """The threads of a process: started as they are wanted, and there until it ends."""

    def __init__(self) -> None:
        self._memory = np.zeros(WORDS, np.int64)
        self._started = 0
        library, address = ctypes.CDLL(None), address_of(self._memory)
        self._memory[STATE], self._memory[ADDRESS] = CLOSED, address
        for place, name in (WAIT, "sem_wait"), (POST, "sem_post"), (YIELD, "sched_yield"):
            self._memory[place] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        for number in range(MOST_THREADS + 1):
            library.sem_init(ctypes.c_void_p(address + (SEMAPHORES + number * LINE) * _WORD), 0, 0)
        self._lead = lead().on(self._memory)

    def sort(self, row: PartedRow, block: int, threads: int) -> bool:
        """Sorts a row by so many threads, the caller among them. False, and nothing done, if another caller has them.

        Where the system gives fewer threads, those that are there do it.
        """
        while self._started < threads - 1:  # an interrupt may leave a thread that is not counted
            try:
                _thread.start_new_thread(self._serve, ())
            except (RuntimeError, MemoryError):
                break
            self._started += 1
        parts = row.pivots.size + 1
        arrays = [number for array in (row.source, row.first, row.second, row.pivots) for number in place_of(array)]
        job = [*_functions(row.pivots.dtype), address_of(row.results), row.pivots.itemsize, threads]
        order = np.array([0, *job, *arrays, parts, parts.bit_length() - 1, block], np.int64)
        self._lead(*place_of(order))
        return bool(order[0])

    def _serve(self) -> None:
        threading.current_thread().name = "gpusort-cpu-crew"
        serve()(self._memory)  # this frame holds the code and the memory for as long as the process is there


def loading(dtype: np.dtype[np.generic]) -> Iterator[object]:
    """Compiles and finds all that the crew needs for rows of a dtype."""
    yield part_in_turn(dtype)
    yield serve()
    yield lead()
    yield sort_address(dtype)


@cache
def _functions(dtype: np.dtype[np.generic]) -> tuple[int, int]:
    """Where the partition's code lies, and NumPy's sort."""
    return part_in_turn(dtype).kernel.address, sort_address(dtype)


class _Crews:
    """The process's crew, once it is made."""

    def __init__(self) -> None:
        self.made: dict[str, Crew] = {}

    def forget(self) -> None:
        """In a forked child, where the threads do not exist."""
        self.made = {}


_crews = _Crews()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crews.forget)


def sort_by_crew(row: PartedRow, block: int, threads: int) -> bool:
    """Whether the crew has sorted a row: else nothing is done, as there is none for such elements, or it is busy."""
    if max(row.pivots.size + 1, threads) > MOST_THREADS or not sort_address(row.pivots.dtype):
        return False
    crew = _crews.made.get("crew") or _crews.made.setdefault("crew", Crew())
    return crew.sort(row, block, threads)
