"""Threads that read kernels while others do, on Python 3.11: it counts the depths of all syntax trees together."""

from __future__ import annotations

import gc
import time

from gpusort.kernel.source import parsed
from tests.reference import run_in_threads


class Garbage:
    """Lets other threads go on when it is collected, in the midst of whatever allocates: of `ast.parse`, too."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0.0005)


def test_threads_parse_side_by_side() -> None:
    """Without the lock 3.11.7 raises a SystemError in each of such runs."""
    lines = [f"    y{i} = [a + {i} for a in range(x) if (a, {i}) and {{'k': [1, (2, 3)]}}]" for i in range(10)]
    before = gc.get_threshold()

    def parse(number: int) -> None:
        depth = 5 + 25 * number
        text = "\n".join(["x = " + "(" * depth + "1" + ",)" * depth, "def f(x):", *lines])
        for _ in range(30):
            for _ in range(3):
                Garbage()
            assert len(parsed(text).body) == 2

    gc.set_threshold(60, 2, 2)
    try:
        run_in_threads(parse, 3)
    finally:
        gc.set_threshold(*before)
        gc.collect()
