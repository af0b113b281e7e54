"""The compiled loops of a crew: what its threads do from their start on, how a caller leads them through a job, and
the step by which they share out a loop.

All that they share are words of 64 bits in one array; those that different threads change lie in different cache lines.
STATE counts the threads that are at the job, and is CLOSED or more while there is none to join: one atomic addition
says whether a thread is in, and one by the caller that nobody else comes in, and how many are to be waited for. So a
thread that wakes late, when a job is done, leaves again; or it joins the next one, where it is as welcome as any.
"""

from __future__ import annotations

from functools import cache
from textwrap import indent

from .loops import Loop, compiled

MOST_THREADS = 64  # and parts
MOST_ARGUMENTS = 16
LINE = 8  # words of a cache line, and more than a semaphore's
CLOSED = 1 << 32

STATE, BUSY, NEXT, _MEMBERS, FAILED = range(0, 5 * LINE, LINE)
WAIT, POST, YIELD, ADDRESS = range(5 * LINE, 5 * LINE + 4)  # functions of the C library; where these words lie
_JOB = 6 * LINE  # what the caller's order says:
STEP, THREADS, PARTS, LENGTH, FUNCTION, ARGUMENTS = range(_JOB, _JOB + 6)
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
    """Arguments of a job."""
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
    while True:
        mine = fetch_add(crew, {NEXT}, 1)
        if mine >= crew[{PARTS}]:
            break
        start = i8(u8(crew[{LENGTH}] * mine) // u8(crew[{PARTS}]))
        stop = i8(u8(crew[{LENGTH}] * (mine + 1)) // u8(crew[{PARTS}]))
        if native(crew[{FUNCTION}], start, stop, {words(ARGUMENTS, MOST_ARGUMENTS)}) != 0:
            failed = fetch_add(crew, {FAILED}, 1)
"""


@cache
def serve() -> Loop:
    """(crew): all that a thread of the crew does. Comes back only where there are too many."""
    return compiled("serve", "crew: i8[]", _SERVE)


@cache
def lead() -> Loop:
    """(crew, order): a job, of which the order says what from its second word on, and in its first afterwards whether
    it was done: 0 where another caller has the crew, and more than 1 where a function had no memory."""
    return compiled("lead", "crew: i8[], order: i8[]", _LEAD)


@cache
def take_slices() -> Loop:
    """(crew, number): a thread's share of a loop over something: slices of it, as long as there are any."""
    return compiled("take_slices", "crew: i8[], number: i8", _TAKE_SLICES)
