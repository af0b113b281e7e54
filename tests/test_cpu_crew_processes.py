"""Threads in compiled code as processes end, fork and are struck by signals."""

from __future__ import annotations

import sys
import time

import pytest

from tests.new_process import IN_A_CHILD, printed

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the pool's threads sort")

_START = (
    IN_A_CHILD
    + """
import random
import signal
import threading
import numpy as np
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.loops import Kernel
from gpusort.targets.cpu import crew as crews
from gpusort.targets.cpu.host import partition_sort
from gpusort.targets.cpu.host.partition_sort import sort_by_crew
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.types.indices import SortOrder
from tests.test_cpu_crew import POLICY
background.in_caller = True
crews.core_count = lambda: 64
x = np.random.default_rng(1).integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
expected = np.sort(x)
jobs = []
partition_sort.sort_by_crew = lambda *given: jobs.append(sort_by_crew(*given)) or jobs[-1]

def threads():
    return len(os.listdir("/proc/self/task"))

def works():
    result = np.empty_like(x)
    sort_rows(x[None], result[None], SortOrder.ASCENDING, POLICY)
    return bool((result == expected).all())
"""
)


def ran(code: str) -> str:
    return printed(_START + code, sorts=True, GPUSORT_THREADS="8")


def test_a_process_ends_while_its_threads_wait() -> None:
    start = time.monotonic()
    assert ran("print(all(works() for _ in range(20)), jobs == 20 * [True])") == "True True"
    assert time.monotonic() - start < 100


def test_a_forked_child_has_a_crew_of_its_own() -> None:
    code = """
def fails():
    before = len(jobs)
    return not (works() and works() and jobs[before:] == [True, True] and crews.crews["crew"]._started == 7)
print(works(), child(fails, 100), works(), child(fails, 100), jobs == [True, True])
"""
    assert ran(code) == "True 0 True 0 True"


def test_a_child_works_that_was_forked_in_the_midst_of_a_job() -> None:
    code = """
ends, over = [], []
def sorts():
    while not over:
        ends.append(works())
thread = threading.Thread(target=sorts)
thread.start()
while len(ends) < 3:
    time.sleep(0.001)
ended = [child(lambda: not (works() and works()), 100) for _ in range(30)]
over.append(True)
thread.join()
print(set(ended), set(ends), any(jobs))
"""
    assert ran(code) == "{0} {True} True"


def test_signals_lose_no_element_and_hang_nothing() -> None:
    code = """
class Rung(BaseException):
    pass

def ring(*_):
    global signals
    if inside:
        signals += 1
        raise Rung

signals, inside, lost, late, whole = 0, False, 0, 0, 0
signal.signal(signal.SIGALRM, ring)
start = time.perf_counter()
assert works()
seconds = time.perf_counter() - start
start = time.perf_counter()
assert works()
seconds = min(seconds, time.perf_counter() - start)
while signals < 200:
    row = x.copy()
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, seconds))
        inside = True
        sort_rows(row[None], row[None], SortOrder.ASCENDING, POLICY)
        inside = False
    except Rung:
        inside = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    then = row.copy()
    whole += bool((row == expected).all())
    lost += not (np.sort(then) == expected).all()
    time.sleep(1e-4)
    late += not (row == then).all()
print(lost, late, whole > 0, works(), any(jobs), threads() < 70)
"""
    assert ran(code) == "0 0 True True True True"


def test_threads_that_an_interrupt_left_uncounted_do_no_harm() -> None:
    """They wait with the others; beyond the most that there may be, they go."""
    code = """
crew = crews.Crew()
for _ in range(100):
    crew._started = 0
    crews.crews["crew"] = crew
    assert works()
until = time.monotonic() + 60
while threads() > 66 and time.monotonic() < until:
    time.sleep(0.01)
print(threads() <= 66, works(), jobs[-1])
"""
    assert ran(code) == "True True True"


def test_an_endless_kernel_is_interrupted() -> None:
    """One that looks whether it is to stop; a launch behind it is not begun."""
    code = """
from gpusort.targets.cpu import kernels
from tests.endless_cases import run
kernels._WORTH_SHARING = 0
crews.threads_of_crew = lambda nbytes: 8
runs = []
run_by_crew = crews.Crew.run
crews.Crew.run = lambda *given: runs.append(True) or run_by_crew(*given)
array = np.zeros(20_000 * 8 + 2, np.uint32)
run("cpu", "spinning", False, array)
done = bool(array[-1])
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    run("cpu", "spinning", True, array)
except KeyboardInterrupt:
    print("interrupted", done, array[-1], len(runs) > 1, works())
"""
    assert ran(code) == "interrupted True 0 True True"
