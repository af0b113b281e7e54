"""Exceptions that strike anywhere: a trace function raises at the n-th bytecode that gpusort runs in this thread.

A signal's handler raises at fewer places (between some bytecodes), so what survives this survives Ctrl-C.
"""

from __future__ import annotations

import dis
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

import gpusort

Array: TypeAlias = npt.NDArray[Any]
Trace: TypeAlias = Callable[[FrameType, str, object], "Trace | None"]

_SOURCES = str(Path(gpusort.__file__).resolve().parent)
_NEVER = sys.maxsize
# Bytecodes that are in no `try` or `with`, whatever is around them. Signals come where they have led to.
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs, dis.EXTENDED_ARG)) if sys.version_info >= (3, 12) else frozenset[int]()
STRIKES = "GPUSORT_TEST_STRIKES"  # how many places are tried in each case, or "all"
SEED = "GPUSORT_TEST_SEED"  # which


@cache
def _real_path(file: str) -> str:
    """Asked for every call that is traced."""
    return os.path.realpath(file)


class Struck(BaseException):
    """What strikes: nothing that anybody catches by its name."""


@attrs.define
class _Striker:
    """Counts what runs below a folder of gpusort's, and raises at one count, or soon behind."""

    at: int
    below: str
    seen: int = 0

    def enter(self, frame: FrameType, event: str, argument: object) -> Trace | None:
        if not _real_path(frame.f_code.co_filename).startswith(self.below):
            return None
        frame.f_trace_opcodes = True
        return self.step(frame, event, argument)

    def step(self, frame: FrameType, event: str, argument: object) -> Trace:
        self.seen += 1
        if self.seen >= self.at and frame.f_code.co_code[frame.f_lasti] not in _JUMPS:
            self.at = _NEVER
            raise Struck
        return self.step


def events(call: Callable[[], object], below: str = "") -> int:
    """At how many places a call can be struck."""
    below = os.path.join(_SOURCES, below)
    traced(call, _Striker(_NEVER, below).enter)  # from Python 3.12 on, bytecodes are seen from the second call on
    striker = _Striker(_NEVER, below)
    traced(call, striker.enter)
    return striker.seen


def strike(call: Callable[[], object], at: int, below: str = "") -> bool:
    """Calls with a strike at one of them. Whether it came through: not where the call went another way this time."""
    try:
        traced(call, _Striker(at, os.path.join(_SOURCES, below)).enter)
    except Struck:
        return True
    return False


def traced(call: Callable[[], object], trace: Trace) -> None:
    """In a generator, which has an exception state of its own: a strike at the bytecode that ends a handler, where no
    signal comes, would leave this thread in it for good, and its exception as the context of all later ones."""

    def steps() -> Iterator[None]:
        before = sys.gettrace()  # a measurement of coverage, or a debugger
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(before)
        yield

    next(steps())


def places(count: int, most: int) -> Iterator[int]:
    """Some of the places from 1 to count, or all of them, as the environment says."""
    asked = os.environ.get(STRIKES, str(most))
    if asked == "all" or count <= int(asked):
        return iter(range(1, count + 1))
    return iter(sorted(random.Random(int(os.environ.get(SEED, "1"))).sample(range(1, count + 1), int(asked))))


def elements_of(array: Array) -> Array:
    """The bits of all elements, in order: the same as long as none is lost."""
    packed = np.ascontiguousarray(array).reshape(-1)
    return np.sort(packed.view(f"u{packed.itemsize}"))


def threads() -> int:
    frames: Callable[[], dict[int, FrameType]] = getattr(sys, "_current_frames")  # noqa: B009  # documented, if private
    return len(frames())


def soon(holds: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether something is true, or becomes so."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True
