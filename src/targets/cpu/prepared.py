"""Prepared schedules: kernels compiled, and everything that does not depend on addresses looked up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, cast

import attrs
import numpy as np

from ...kernel.launch import Buffer, Role, Schedule, Step
from ...types.layout import Type
from ..base import HostArray
from ..binding import Work, work_of
from .compiler.loading import Kernel
from .pool import shared_pool
from .stopping import Flag, run_stoppable
from .writer import asks, memory_type

# Waking a thread takes about as long as this many elements: below, the caller works alone.
_WORTH_SHARING = 1 << 16
_PIECES_PER_THREAD = 4


@attrs.frozen(eq=False)
class Ready:
    """A launch with its kernel and its parameters."""

    kernel: Kernel
    groups: int
    invocations: int
    values: tuple[int | float, ...]
    asks: bool  # whether it looks, as it runs, if it is to stop
    types: tuple[np.dtype[np.generic], ...]  # as which it takes each of its arrays

    @classmethod
    def of(cls, kernel: Kernel, step: Step) -> Ready:
        program = step.program
        return cls(
            kernel,
            step.groups,
            step.groups * program.group_size,
            tuple(_number(p.type, value) for p, value in zip(program.parameters, step.values, strict=True)),
            asks(program),
            tuple(memory_type(memory.type).dtype for memory in program.storage),
        )

    def run(self, arrays: Sequence[HostArray], stop: Flag | None) -> None:
        """On this thread, or in pieces of some workgroups each on all of them. A kernel that asks has a flag to ask."""
        views = [
            array if array.dtype is dtype else array.view(dtype)
            for array, dtype in zip(arrays, self.types, strict=True)
        ]
        groups, kernel = self.groups, self.kernel
        places = [number for view in views for number in (view.__array_interface__["data"][0], view.size)]
        asked = [stop.address] if self.asks and stop is not None else []
        arguments = (groups, *asked, *places, *self.values)
        if groups < 2 or not self._is_worth_sharing(views):
            if groups:
                kernel(0, groups, *arguments)
            return
        pool = shared_pool()
        pieces = min(groups, pool.threads * _PIECES_PER_THREAD)

        def piece(number: int) -> None:
            kernel(groups * number // pieces, groups * (number + 1) // pieces, *arguments)

        pool.run(piece, pieces)

    def _is_worth_sharing(self, views: Sequence[HostArray]) -> bool:
        work = max(self.invocations, sum([view.nbytes for view in views]) // 4)
        return work >= _WORTH_SHARING and shared_pool().threads > 1


def _number(type: Type, value: int | float | bool) -> int | float:
    """A parameter as C's types take it."""
    return int(value) if not type.is_float else float(value)


def run_launches(launches: Iterable[tuple[Ready, Sequence[HostArray]]], *, asks: bool) -> None:
    """One after the other. Where one of them asks whether to stop, all run on a thread that can be told to."""
    if asks:
        run_stoppable(partial(_run_until, launches))
    else:
        _run_until(launches, None)


def _run_until(launches: Iterable[tuple[Ready, Sequence[HostArray]]], stop: Flag | None) -> None:
    for ready, arrays in launches:
        if stop is not None and stop.is_set():
            return
        ready.run(arrays, stop)


class Makes(Protocol):
    """What checks and compiles a schedule's launches."""

    def ready(self, work: Work) -> tuple[Ready, ...]: ...


@attrs.frozen(eq=False)
class _Made:
    """What was made of kernels that were read once."""

    work: Work
    launches: tuple[tuple[Ready, tuple[int, ...]], ...]  # and which arrays each takes: those given, then scratch
    scratch: tuple[Callable[[], HostArray], ...]
    asks: bool  # whether any of the launches does


class CpuPrepared:
    """A schedule that runs on NumPy arrays, whichever they are. Safe to use from several threads."""

    def __init__(self, target: Makes, schedule: Schedule, given: tuple[Buffer[object], ...]) -> None:
        self._target, self._schedule, self._given = target, schedule, given
        self._made: _Made | None = None

    def run(self, memories: Sequence[object], /) -> None:
        made = self._made
        if made is None or made.work is not work_of(self._schedule):  # or what its kernels took from outside changed
            made = self._made = self._make()
        arrays = [_flat(buffer, memory) for buffer, memory in zip(self._given, memories, strict=True)]
        arrays += [make() for make in made.scratch]
        launches = ((ready, [arrays[place] for place in places]) for ready, places in made.launches)
        run_launches(launches, asks=made.asks)

    def _make(self) -> _Made:
        work = work_of(self._schedule)
        launches = self._target.ready(work)
        scratch = [buffer for buffer in work.buffers if buffer.role is Role.SCRATCH]
        names = [buffer.name for buffer in (*self._given, *scratch)]
        places = [tuple(names.index(buffer.name) for buffer in step.buffers) for step in work.steps]
        asks = any(ready.asks for ready in launches)
        return _Made(work, tuple(zip(launches, places, strict=True)), tuple(map(_maker, scratch)), asks)


def _maker(buffer: Buffer[object]) -> Callable[[], HostArray]:
    count, dtype = buffer.count, buffer.dtype
    return lambda: np.empty(count, dtype)


def _flat(buffer: Buffer[object], memory: object) -> HostArray:
    """A packed array as its buffer's elements."""
    array = cast(HostArray, memory)
    flat = array if array.ndim == 1 else array.reshape(-1)
    seen = flat if flat.dtype is buffer.dtype else flat.view(buffer.dtype)
    return seen if len(seen) == buffer.count else seen[: buffer.count]
