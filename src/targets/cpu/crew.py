"""A thread pool in compiled code (the crew): one call wakes its threads, and they partition and sort a row, or run a
kernel, without the interpreter and its lock.

Threads of the pool come to a job one after the other, some 20 us apart, for each needs the GIL; in a sort of 2^18
elements by 16 threads that is a third of the time. These never come back to Python: they wait at semaphores of the C
library, inside a loop that Python called once, and each that wakes wakes some others.

A job is one call into C, of the thread that asks for the sort. No signal handler runs in the middle of it, so an
interrupt finds it done or not begun. There is one crew, which one caller has at a time; who finds it busy takes the
pool. A forked child has none of the threads, and makes a crew of its own.

All that they share are words of 64 bits in one array; those that different threads change lie in different cache lines.
STATE counts the threads that are at the job, and is CLOSED or more while there is none to join: one atomic addition
says whether a thread is in, and one by the caller that nobody else comes in, and how many are to be waited for. So a
thread that wakes late, when a job is done, leaves again; or it joins the next one."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from textwrap import indent

import numpy as np

from ...algos.host_sort import FEW_THREADS, HostSortPolicy
from ...types import real_threads
from ...types.environment import core_count
from ..addresses import address_of
from ..base import HostArray
from .loops import PIECE, Kernel, compiled, numbers_for, place_of
from .pool import Pool, shared_pool, thread_count

MOST_THREADS = 64  # and parts
MOST_ARGUMENTS = 24
LINE = 8  # words of a cache line, and more than a semaphore's
CLOSED = 1 << 32

STATE, BUSY, NEXT, _MEMBERS, FAILED = range(0, 5 * LINE, LINE)
WAIT, POST, YIELD, ADDRESS = range(5 * LINE, 5 * LINE + 4)  # functions of the C library; where these words lie
_JOB = 6 * LINE  # what the caller's order says:
STEP, THREADS, PARTS, FIRST, LENGTH, FUNCTION, ARGUMENTS = range(_JOB, _JOB + 7)
SEMAPHORES = _JOB + 4 * LINE  # the caller's, where it waits for the last to leave, and one for each thread
# For steps that need such: words that are 0 as a job begins, words of a thread's own, and ends of parts, of which the
# first and the last are there.
CLAIMED = SEMAPHORES + (MOST_THREADS + 1) * LINE
OWN = CLAIMED + MOST_THREADS * LINE
BOUNDS = OWN + (MOST_THREADS + 1) * LINE
WORDS = BOUNDS + MOST_THREADS + 1

_FAN = 4  # threads that each one wakes: so many calls one after the other take about as long as one takes to wake
_PATIENCE = 1 << 13  # looks at whether all have left: some ten microseconds


def _semaphore(number: str) -> str:
    return f"crew[{ADDRESS}] + ({SEMAPHORES} + ({number}) * {LINE}) * 8"


def words(first: int, count: int) -> str:
    return ", ".join(f"crew[{place}]" for place in range(first, first + count))


def as_array(place: int, length: int) -> str:
    """Words of the crew's as an array that a loop takes."""
    return f"crew[{ADDRESS}] + {place * 8}, {length}"


_TAKE_PART = f"""
for child in range(number * {_FAN} + 1, min(number * {_FAN} + {_FAN + 1}, crew[{THREADS}])):
    woken = native(crew[{POST}], {_semaphore("child")})
taken = native(crew[{STEP}], {as_array(0, WORDS)}, number)
"""
_SERVE = f"""
    number = fetch_add(crew, {_MEMBERS}, 1) + 1
    while True:
        if number > {MOST_THREADS}:
            break
        if native(crew[{WAIT}], {_semaphore("number")}) == 0:
            if fetch_add(crew, {STATE}, 1) < {CLOSED}:
{indent(_TAKE_PART.strip(), 16 * " ")}
            if fetch_add(crew, {STATE}, -1) == {CLOSED + 1}:
                told = native(crew[{POST}], {_semaphore("0")})
"""
_LEAD = f"""
    number = 0
    order[0] = 0
    if fetch_add(crew, {BUSY}, 1) == 0:
        for place in range({_JOB}, {ARGUMENTS + MOST_ARGUMENTS}):
            crew[place] = order[place - {_JOB - 1}]
        for place in range({CLAIMED}, {OWN}):
            crew[place] = 0
        crew[{BOUNDS}] = 0
        crew[{BOUNDS} + crew[{PARTS}]] = crew[{LENGTH}]
        crew[{NEXT}] = 0
        crew[{FAILED}] = 0
        opened = fetch_add(crew, {STATE}, -{CLOSED})
{indent(_TAKE_PART.strip(), 8 * " ")}
        closed = fetch_add(crew, {STATE}, {CLOSED})
        looks = 0
        while True:
            if load_acquire(crew, {STATE}) == {CLOSED}:
                break
            looks += 1
            if looks >= {_PATIENCE}:
                left = native(crew[{WAIT}], {_semaphore("0")})
        order[0] = 1 + crew[{FAILED}]
    free = fetch_add(crew, {BUSY}, -1)
"""
# Arguments that a function does not take are left where it does not look, as all systems of 64 bits here have it.
_TAKE_SLICES = f"""
    threads = u8(crew[{THREADS}])
    for turn in range(crew[{THREADS}]):
        owner = u8(number + turn) % threads
        first = i8(u8(crew[{PARTS}]) * owner // threads)
        past = i8(u8(crew[{PARTS}]) * (owner + 1) // threads)
        while True:
            mine = first + fetch_add(crew, {CLAIMED} + i8(owner) * {LINE}, 1)
            if mine >= past:
                break
            start = crew[{FIRST}] + i8(u8(crew[{LENGTH}] * mine) // u8(crew[{PARTS}]))
            stop = crew[{FIRST}] + i8(u8(crew[{LENGTH}] * (mine + 1)) // u8(crew[{PARTS}]))
            if native(crew[{FUNCTION}], start, stop, {words(ARGUMENTS, MOST_ARGUMENTS)}) != 0:
                failed = fetch_add(crew, {FAILED}, 1)
"""


@cache
def serve() -> Kernel:
    """(crew): all that a thread of the crew does. Comes back only where there are too many."""
    return compiled("serve", "crew: i8[]", _SERVE)


@cache
def lead() -> Kernel:
    """(crew, order): a job, of which the order says what from its second word on, and in its first afterwards whether
    it was done: 0 where another caller has the crew, and more than 1 where a function had no memory."""
    return compiled("lead", "crew: i8[], order: i8[]", _LEAD)


@cache
def take_slices() -> Kernel:
    """(crew, number): a thread's share of a loop over something: its own slices, which are the same ones in every job
    over the same array and lie in the caches of its core, and then others' that nobody has begun."""
    return compiled("take_slices", "crew: i8[], number: i8", _TAKE_SLICES)


_WORD = 8  # bytes
_WORD_MASK = (1 << 64) - 1
# Loops over memory: a thread wakes in the time that it takes one to go over some 100 KiB. A job takes milliseconds: as
# long as an interrupt waits.
_LOOPS = HostSortPolicy(crew_bytes_from=1 << 19, crew_bytes_below=1 << 62, crew_thread_bytes=1 << 16)
_JOB_BYTES = 1 << 26
_WORTH_FEW = 1 << 20  # bytes that few threads are worth waking for
_SHORT_ROW = 128  # elements: what is done with each grows with them
LEAST_TASK = 1 << 14  # elements of rows, at least, that a thread takes at a time
_CAN_WAIT = sys.platform == "linux" and sys.maxsize > 1 << 32


class Crew:
    """The threads of a process: started as they are wanted, and there until it ends."""

    def __init__(self) -> None:
        self.memory = np.zeros(WORDS, np.int64)
        self._started = 0
        library, address = ctypes.CDLL(None), address_of(self.memory)
        self.memory[STATE], self.memory[ADDRESS] = CLOSED, address
        for place, name in (WAIT, "sem_wait"), (POST, "sem_post"), (YIELD, "sched_yield"):
            self.memory[place] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        for number in range(MOST_THREADS + 1):
            library.sem_init(ctypes.c_void_p(address + (SEMAPHORES + number * LINE) * _WORD), 0, 0)
        self._lead = lead().on(self.memory)

    def run(self, kernel: Kernel, length: int, arguments: Sequence[int], threads: int, first: int = 0) -> bool:
        """Calls kernel(start, stop, *arguments) with slices that together are `length` from `first` on, by so many
        threads, the caller among them; no more arguments than MOST_ARGUMENTS. False, and nothing done, if another
        caller has them."""
        parts = max(1, min(MOST_THREADS, 4 * threads, length))
        return self.does(take_slices, min(threads, parts), parts, length, kernel.address, arguments, first)

    def does(
        self, step: Callable[[], Kernel], threads: int, parts: int, length: int, function: int,
        arguments: Sequence[int], first: int = 0,
    ) -> bool:  # fmt: skip
        """A job of any step of each thread's. Where the system gives fewer threads, those that are there do it."""
        while self._started < threads - 1 and real_threads.started(self._serve):
            self._started += 1  # or an interrupt leaves a thread that is not counted
        words = [0, step().address, threads, parts, first, length, function, *(word & _WORD_MASK for word in arguments)]
        order = np.array(words + [0] * (MOST_ARGUMENTS - len(arguments)), np.uint64)
        self._lead(*place_of(order))
        if order[0] > 1:
            raise MemoryError("no memory for a loop's arrays")
        return bool(order[0])

    def _serve(self) -> None:
        threading.current_thread().name = "gpusort-cpu-crew"
        serve().on(self.memory)()  # this frame holds the code and the memory for as long as the process is there


def load_crew() -> Iterator[object]:
    """Compiles all that the crew needs to share loops out."""
    if _CAN_WAIT:
        yield from (loop() for loop in (serve, lead, take_slices))


crews: dict[str, Crew] = {}  # the process's one, once it is made
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=crews.clear)  # where its threads do not exist


def threads_of_crew(nbytes: int, policy: HostSortPolicy = _LOOPS, least: int = FEW_THREADS) -> int:
    """The number of the crew's threads for a loop over so many bytes; 0 if it should not use them, or they are fewer
    than `least`."""
    if not _CAN_WAIT or nbytes < policy.crew_bytes_from:  # before anything is asked
        return 0
    return min(MOST_THREADS, policy.crew_for(nbytes, thread_count(), core_count(), least))


def is_worth_waking(work: int) -> bool:
    """Whether threads save more than it takes to wake them, of work that takes as long as going over so many bytes: of
    Python's one comes some 50 us late, and each that wants the GIL back waits for it as long."""
    return work >= _WORTH_FEW or thread_count() >= FEW_THREADS


def share(loop: Kernel, length: int, pool: Pool, *arguments: HostArray | int, least: int = PIECE) -> None:
    """`share_kernel` with numbers and arrays. The size of the first array decides."""
    nbytes = next(array.nbytes for array in arguments if isinstance(array, np.ndarray))
    share_kernel(loop, length, numbers_for(*arguments), nbytes, pool=pool, least=least)


def share_kernel(
    kernel: Kernel, length: int, numbers: Sequence[int | float], nbytes: int, *, pool: Pool | None = None,
    least: int = 1,
) -> None:  # fmt: skip
    """Calls kernel(start, stop, *numbers) with slices that together are 0 to `length`, none shorter than `least`: by
    the crew if so many bytes are worth it, else by the pool, or where numbers are not whole or too many for the crew.
    Those of 0 bytes by this thread."""
    helpers = pool or shared_pool() if nbytes and length > 1 else None
    if helpers is None or helpers.threads < 2:
        kernel(0, length, *numbers)
        return
    words = [number for number in numbers if isinstance(number, int)]
    done, threads = 0, threads_of_crew(nbytes) if len(words) == len(numbers) <= MOST_ARGUMENTS else 0
    jobs = max(1, min(nbytes // _JOB_BYTES, length // (4 * threads))) if threads else 0
    for job in range(1, jobs + 1):
        end = length * job // jobs
        if not crew().run(kernel, end - done, words, threads, done):
            break
        done = end
    if done < length:
        helpers.over(length - done, lambda own: kernel(done + own.start, done + own.stop, *numbers), least=least)


def share_rows(kernel: Kernel, rows: int, length: int, numbers: Sequence[int | float], nbytes: int) -> None:
    """The same of rows with work for each of so many elements, in short rows the more the longer they are: few by this
    thread alone."""
    work = rows * length * length if length <= _SHORT_ROW else 2 * nbytes
    is_worth = rows * length > LEAST_TASK and is_worth_waking(work)
    share_kernel(kernel, rows, numbers, nbytes if is_worth else 0, least=-(-LEAST_TASK // length))


def crew() -> Crew:
    return crews.get("crew") or crews.setdefault("crew", Crew())
