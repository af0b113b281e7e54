"""The threads of the CPU target under exceptions that strike the caller anywhere: none hangs, none goes on."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import attrs
import pytest

from gpusort.targets.cpu.pool import Pool
from tests.new_process import printed, run_new
from tests.striking import events, places, soon, strike, threads

THREADS = 4
POOL = "targets/cpu"


@attrs.define
class Pieces:
    """Work whose beginnings and ends are seen."""

    seconds: float = 0.0
    begun: list[int] = attrs.field(factory=list[int])
    ended: list[int] = attrs.field(factory=list[int])

    def work(self, piece: int) -> None:
        self.begun.append(piece)
        time.sleep(self.seconds)
        self.ended.append(piece)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool(THREADS)


def works(pool: Pool) -> bool:
    """Whether it does a job. Helpers are given the time to come: each is needed."""
    helpers: set[int] = set()

    def meet(_: int) -> None:
        helpers.add(_thread.get_ident())
        assert soon(lambda: len(helpers) == THREADS)

    pool.run(meet, THREADS)
    return len(helpers) == THREADS


def test_struck_anywhere_a_job_ends_before_its_call_does(pool: Pool) -> None:
    count = 3 * THREADS
    struck = 0
    for place in places(events(lambda: pool.run(Pieces().work, count), POOL), 200):
        pieces = Pieces(seconds=0.0005)
        came = strike(partial(pool.run, pieces.work, count), place, POOL)
        struck += came
        begun, ended = len(pieces.begun), len(pieces.ended)
        assert begun - ended in (0, int(came)), (
            f"a helper is at work, struck at {place}"
        )  # the caller's own is not done
        assert came or sorted(pieces.ended) == list(range(count))
        time.sleep(0.001)
        assert (len(pieces.begun), len(pieces.ended)) == (begun, ended), f"a helper went on, struck at {place}"
    assert struck
    assert works(pool)


def test_struck_anywhere_a_question_is_answered_the_next_time(pool: Pool) -> None:
    for place in places(events(lambda: pool.all_over(20, lambda own: own.start > 0, 20), POOL), 100):
        strike(lambda: pool.all_over(20, lambda own: own.start > 0, 20), place, POOL)
    assert pool.all_over(20, lambda own: own.start < 20, 20)
    assert not pool.all_over(20, lambda own: own.start != 7, 20)


def test_struck_while_threads_start_a_pool_has_enough_and_hardly_more() -> None:
    before = threads()
    pool = Pool(THREADS)
    for place in places(events(lambda: Pool(THREADS).run(Pieces().work, 8), POOL), 60):
        strike(lambda: pool.run(Pieces().work, 8), place, POOL)
    assert works(pool)
    assert threads() - before <= 3 * THREADS


def test_a_piece_may_hand_in_a_job_of_its_own(pool: Pool) -> None:
    done: list[tuple[int, int]] = []
    pool.run(lambda outer: pool.run(lambda inner: done.append((outer, inner)), 5), 8)
    assert sorted(done) == [(outer, inner) for outer in range(8) for inner in range(5)]


@pytest.mark.usefixtures("no_threads")
def test_without_threads_the_caller_works_alone() -> None:
    pieces = Pieces()
    Pool(THREADS).run(pieces.work, 10)
    assert pieces.ended == list(range(10))


# -- signals, in processes of their own -------------------------------------------------------------------

_ROOT = Path(__file__).parent.parent


def in_a_new_process(script: str, *arguments: str) -> str:
    """What a script of the tests prints. It hangs no longer than this waits."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.{script}", *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
@pytest.mark.parametrize("pause", ["0", "0.0003"], ids=["one each", "many each"])
def test_signals_lose_no_element_and_hang_nothing(pause: str) -> None:
    told = dict(line.split(": ") for line in in_a_new_process("signal_storm", "300", pause).splitlines())
    assert int(told["signals"]) >= 300
    assert told["lost"] == told["late"] == "0"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
def test_an_interrupt_while_llvm_is_imported_does_not_break_it() -> None:
    assert in_a_new_process("interrupted_import").splitlines() == ["interrupted", "sorted"]


def test_a_strike_is_what_it_says() -> None:
    """The tests above would pass if nothing struck."""
    pool = Pool(1)
    count = events(lambda: pool.run(Pieces().work, 3), POOL)
    assert count > 20
    for place in range(1, count + 1):  # from Python 3.13 on, a call that follows a strike may show fewer bytecodes
        assert any(strike(lambda: pool.run(Pieces().work, 3), place, POOL) for _ in range(2))
    assert not strike(lambda: pool.run(Pieces().work, 3), count + 1, POOL)


def test_a_lock_that_an_interrupted_import_has_left_is_let_go() -> None:
    """By whoever has another thread import for it: that one would wait for ever."""
    code = """
import _imp
from gpusort.targets.uninterrupted import import_uninterrupted
_imp.acquire_lock()
_imp.acquire_lock()
import_uninterrupted("colorsys")
print(_imp.lock_held())
"""
    assert printed(code) == "False"


@pytest.mark.parametrize("call", ["sort(x)", "sort_inplace(x)", "sort(x, out=x)", "sum(x)", "merge(x, x)"])
def test_a_lock_that_a_calls_own_import_has_left_is_let_go(call: str) -> None:
    """As the call ends: else the next would wait for the thread that loads code, and that one for the lock."""
    code = f"""
import _imp
import numpy as np
import gpusort
from gpusort.api import call

def interrupted(*_):
    _imp.acquire_lock()
    raise KeyboardInterrupt

call.plan_for = interrupted
x = np.arange(3)
try:
    gpusort.{call}
except KeyboardInterrupt:
    print(_imp.lock_held())
"""
    assert printed(code) == "False"


def test_an_interrupt_while_the_package_itself_is_imported_does_not_break_it() -> None:
    """Nor attrs, which does not survive to be imported by halves."""
    code = """
import signal
import sys

import gpusort

class Bell:
    rung = False

    def find_spec(self, name, path=None, target=None):
        if name == "attr._next_gen" and not self.rung:
            self.rung = True
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Bell())
try:
    gpusort.sort([2, 1])
except KeyboardInterrupt:
    print(gpusort.sort([2, 1]).tolist())
"""
    assert printed(code, fresh=True) == "[1, 2]"


_DEEP = """
import sys
from gpusort.external.crew import Crew
from gpusort.types.calls import uninterrupted
from gpusort.targets.cpu.loops import compiled
from gpusort.targets.cpu.pool import Pool

LOOP = compiled("count", "first: i8, last: i8", "    for i in range(first, last):\\n        last = i\\n")

def close_a_crew():
    with Crew(1) as crew:
        crew.submit(int)

CALLS = {
    "pool": lambda: Pool(2).run([].append, 4),
    "crew": close_a_crew,
    "kernel": lambda: LOOP(1, 2),
    "uninterrupted": lambda: uninterrupted(int),
    "always": lambda: uninterrupted(int, always=True),
}
call = CALLS[sys.argv[1]]

def deep(levels):
    return deep(levels - 1) if levels else call()

call()
sys.setrecursionlimit(200)
refused = []
for levels in range(100, 200):
    try:
        deep(levels)
    except RecursionError:
        refused.append(levels)
sys.setrecursionlimit(1000)
call()
print(len(refused) > 3)
"""


@pytest.mark.parametrize("call", ["pool", "crew", "kernel", "uninterrupted", "always"])
def test_near_the_limit_of_recursion_a_call_ends(call: str) -> None:
    """To wait for threads takes calls, which fail there: again and again, if that is told before they are begun."""
    done = run_new(_DEEP, call, timeout=20)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]


_LAST = """
import atexit, sys
begun = []
atexit.register(lambda: print(len(begun)))  # before what the package registers, so that it is called after it
from gpusort.types import real_threads
sys.setswitchinterval(1)
for _ in range(20):
    real_threads.start(begun.append, (None,))
"""


def test_an_interpreter_ends_when_the_threads_it_started_have_begun() -> None:
    """CPython frees what those begin with that have not: one of some thousand processes ended by a fault."""
    assert printed(_LAST) == "20"
