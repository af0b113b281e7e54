"""The compiled loops of a crew: what its threads do from their start on, and how a caller leads them through a job.

All that they share are words of 64 bits in one array; those that different threads change lie in different cache lines.
STATE counts the threads that are at the job, and is CLOSED or more while there is none to join: one atomic addition
says whether a thread is in, and one by the caller that nobody else comes in, and how many are to be waited for. So a
thread that wakes late, when a job is done, leaves again; or it joins the next one, where it is as welcome as any.
"""

from __future__ import annotations

from functools import cache
from textwrap import indent

from .loops import Loop, compiled
from .partition_loops import COUNTERS

MOST_THREADS = 64  # and parts
LINE = 8  # words of a cache line, and more than a semaphore's
CLOSED = 1 << 32

STATE, BUSY, _NEXT, _MEMBERS = range(0, 4 * LINE, LINE)
WAIT, POST, YIELD, ADDRESS = range(4 * LINE, 4 * LINE + 4)  # functions of the C library; where these words lie
_JOB = 5 * LINE  # what the caller's order says
_PART, _SORT, _RESULTS, _SIZE, _THREADS = range(_JOB, _JOB + 5)
_ARRAYS, _PARTS, _PASSES, _BLOCK, _JOB_END = _JOB + 5, _JOB + 13, _JOB + 14, _JOB + 15, _JOB + 16
SEMAPHORES = 8 * LINE  # the caller's, where it waits for the last to leave, and one for each thread
_CLAIMED = SEMAPHORES + (MOST_THREADS + 1) * LINE
_MISSED = _CLAIMED + MOST_THREADS * COUNTERS
_BOUNDS = _MISSED + (MOST_THREADS + 1) * COUNTERS
WORDS = _BOUNDS + MOST_THREADS + 1

_FAN = 4  # threads that each one wakes: so many calls one after the other take about as long as one takes to wake
_PATIENCE = 1 << 13  # looks at whether all have left: some ten microseconds


def _semaphore(number: str) -> str:
    return f"crew[{ADDRESS}] + ({SEMAPHORES} + ({number}) * {LINE}) * 8"


def _share_of(place: int, length: int) -> str:
    """Words of the crew as an array that the partition takes."""
    return f"crew[{ADDRESS}] + {place * 8}, {length}"


_ARGUMENTS = ", ".join(
    [
        *(f"crew[{place}]" for place in range(_ARRAYS, _ARRAYS + 8)),
        _share_of(_CLAIMED, MOST_THREADS * COUNTERS),
        _share_of(_BOUNDS, MOST_THREADS + 1),
        _share_of(_MISSED, (MOST_THREADS + 1) * COUNTERS),
        *(f"crew[{place}]" for place in (_PARTS, _PASSES, _BLOCK)),
    ]
)
# A thread's share of a job, by its number.
_TAKE_PART = f"""
for child in range(number * {_FAN} + 1, min(number * {_FAN} + {_FAN + 1}, crew[{_THREADS}])):
    woken = native(crew[{POST}], {_semaphore("child")})
while True:
    parted = native(crew[{_PART}], {_ARGUMENTS}, number)
    if crew[{_MISSED} + number * {COUNTERS}] == 0:
        break
    waited = native(crew[{YIELD}])
while True:
    mine = fetch_add(crew, {_NEXT}, 1)
    if mine >= crew[{_PARTS}]:
        break
    begun = crew[{_BOUNDS} + mine]
    count = crew[{_BOUNDS + 1} + mine] - begun
    sorted_ = native(crew[{_SORT}], crew[{_RESULTS}] + begun * crew[{_SIZE}], count, 0)
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
        for place in range({_JOB}, {_JOB_END}):
            crew[place] = order[place - {_JOB - 1}]
        for place in range({_CLAIMED}, {_CLAIMED} + crew[{_PARTS}] * {COUNTERS}):
            crew[place] = 0
        crew[{_BOUNDS}] = 0
        crew[{_BOUNDS} + crew[{_PARTS}]] = crew[{_ARRAYS + 1}]
        crew[{_NEXT}] = 0
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
        order[0] = 1
    free = fetch_add(crew, {BUSY}, -1)
"""


@cache
def serve() -> Loop:
    """(crew): all that a thread of the crew does. Comes back only where there are too many."""
    return compiled("serve", "crew: i8[]", _SERVE)


@cache
def lead() -> Loop:
    """(crew, order): a job, of which the order says what from its second word on, and in its first afterwards whether
    it was done: not where another caller has the crew."""
    return compiled("lead", "crew: i8[], order: i8[]", _LEAD)
