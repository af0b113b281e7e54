"""Prepared schedules: kernels compiled, and everything that does not depend on addresses looked up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, cast

import attrs
import numpy as np

from ...kernel.launch import Buffer, Role, Schedule, Step
from ...types.layout import Type
from ..base import HostArray
from ..binding import Work, work_of
from ..kernel_text import stored_type
from .alias import address_of
from .compiler.loading import Kernel
from .crew import run_by_crew, threads_of_crew
from .crew_loops import MOST_ARGUMENTS
from .pool import shared_pool
from .stopping import Flag, run_stoppable
from .writer import asks

Bytes: TypeAlias = tuple[int, int]  # an address, and how many there are

# Waking a thread takes about as long as this many elements: below, the caller works alone.
_WORTH_SHARING = 1 << 16


@attrs.frozen(eq=False)
class Ready:
    """A launch with its kernel and its parameters."""

    kernel: Kernel
    groups: int
    work: int  # elements, of its arrays or by its invocations
    values: tuple[int | float, ...]
    asks: bool  # whether it looks, as it runs, if it is to stop
    sizes: tuple[int, ...]  # bytes of an element of each of its arrays, as it takes them

    @classmethod
    def of(cls, kernel: Kernel, step: Step) -> Ready:
        program = step.program
        return cls(
            kernel,
            step.groups,
            max(step.groups * program.group_size, sum(buffer.nbytes for buffer in step.buffers) // 4),
            tuple(_number(p.type, value) for p, value in zip(program.parameters, step.values, strict=True)),
            asks(program),
            tuple(stored_type(memory.type).size for memory in program.storage),
        )

    def run(self, memories: Sequence[Bytes], stop: Flag | None) -> None:
        """On this thread, or in pieces of some workgroups each on all of them. A kernel that asks has a flag to ask."""
        groups, kernel = self.groups, self.kernel
        arguments: list[int | float] = [groups]
        if stop is not None and self.asks:
            arguments.append(stop.address)
        for (address, nbytes), size in zip(memories, self.sizes, strict=True):
            arguments += address, nbytes // size
        arguments += self.values
        if groups < 2 or self.work < _WORTH_SHARING or shared_pool().threads < 2:
            if groups:
                kernel(0, groups, *arguments)
            return
        words = [word for word in arguments if isinstance(word, int)]
        waiting = threads_of_crew(4 * self.work) if len(words) == len(arguments) <= MOST_ARGUMENTS else 0
        if not (waiting and run_by_crew(kernel, groups, words, waiting)):
            shared_pool().over(groups, lambda own: kernel(own.start, own.stop, *arguments))


def bytes_of(array: HostArray) -> Bytes:
    """Where a packed array lies, and how many bytes long it is."""
    return address_of(array), array.nbytes


def run_launches(launches: Iterable[tuple[Ready, Sequence[Bytes]]], *, asks: bool) -> None:
    """One after the other. Where one of them asks whether to stop, all run on a thread that can be told to."""
    if asks:
        run_stoppable(partial(_run_until, launches))
    else:
        _run_until(launches, None)


def _run_until(launches: Iterable[tuple[Ready, Sequence[Bytes]]], stop: Flag | None) -> None:
    for ready, memories in launches:
        if stop is not None and stop.is_set():
            return
        ready.run(memories, stop)


def _number(type: Type, value: int | float | bool) -> int | float:
    """A parameter as C's types take it."""
    return int(value) if not type.is_float else float(value)


@attrs.frozen(eq=False)
class _Made:
    """What was made of kernels that were read once."""

    work: Work
    launches: tuple[tuple[Ready, tuple[int, ...]], ...]  # and which arrays each takes: those given, then scratch
    scratch: tuple[Callable[[], HostArray], ...]
    asks: bool  # whether any of the launches does


class CpuPrepared:
    """A schedule that runs on NumPy arrays, whichever they are. Safe to use from several threads."""

    def __init__(
        self, ready: Callable[[Work], tuple[Ready, ...]], schedule: Schedule, given: tuple[Buffer[object], ...]
    ) -> None:
        """`ready` checks and compiles the launches."""
        self._ready, self._schedule, self._given = ready, schedule, given
        self._made: _Made | None = None

    def run(self, memories: Sequence[object], /) -> None:
        made = self._made
        if made is None or made.work is not work_of(self._schedule):  # or what its kernels took from outside changed
            made = self._made = self._make()
        arrays = [_flat(buffer, memory) for buffer, memory in zip(self._given, memories, strict=True)]
        arrays += [make() for make in made.scratch]
        lying = [bytes_of(array) for array in arrays]
        launches = ((ready, [lying[place] for place in places]) for ready, places in made.launches)
        run_launches(launches, asks=made.asks)

    def _make(self) -> _Made:
        work = work_of(self._schedule)
        launches = self._ready(work)
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
