"""In a program whose threads gevent or eventlet has replaced by coroutines, gpusort's threads are still threads."""

from __future__ import annotations

import pytest

from tests.new_process import printed

# A stand-in for both: a coroutine that has no turn while others wait in compiled code.
_PATCH = """
import _thread, queue, threading

ident = _thread.get_ident

class Refused:
    def __init__(self, *given):
        raise AssertionError("waits by the other library's means")

def patch():
    _thread.start_new_thread = threading._start_new_thread = lambda function, given, named=None: 0
    queue.SimpleQueue = Refused
"""
_CALLS = """
import numpy as np
import gpusort
from gpusort.targets.cpu.job import run_stoppable
from gpusort.types.monoids import Maximum

def works():
    x = np.random.default_rng(1).permutation(1 << 20).astype(np.uint32)
    assert (gpusort.sort(x) == np.arange(1 << 20)).all()
    assert (gpusort.argsort(x) == np.argsort(x)).all()
    assert gpusort.reduce(x, Maximum(gpusort.key_for("u4"))) == (1 << 20) - 1
    seen = []
    run_stoppable(lambda _: seen.append(ident()))
    assert seen != [ident()]  # nobody worked in the caller's thread
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_threads_are_threads(when: str) -> None:
    parts = [_PATCH, "patch()\n", _CALLS] if when == "before" else [_PATCH, _CALLS, "patch()\n"]
    assert printed("".join([*parts, "works()"]), timeout=100, GPUSORT_THREADS="2") == ""
