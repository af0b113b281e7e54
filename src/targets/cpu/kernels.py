"""Kernels on the CPU: read, checked, compiled by LLVM, and run on NumPy arrays; and prepared schedules of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from ...kernel import ir
from ...kernel.launch import Buffer, Role, Schedule, Step
from ...kernel.passes.safe import Safety
from ..addresses import address_of
from ..base import HostArray, elements_of, given_buffers
from ..binding import Work, host_arrays, work_of
from ..kernel_text import stored_type
from ..needs import kernel_named, require_at_most, require_within
from .compiler.loading import load_kernel
from .crew import share_kernel
from .job import Flag, run_stoppable
from .limits import CAPABILITIES, LIMITS, REGISTER_BYTES, subgroup_size
from .loops import Kernel
from .text import module_text
from .writer import asks

# Waking a thread takes about as long as this many elements: below, the caller works alone.
_WORTH_SHARING = 1 << 16


@attrs.frozen(eq=False)
class Ready:
    kernel: Kernel
    groups: int
    work: int  # elements, of its arrays or by its invocations
    values: tuple[int | float, ...]  # parameters as C's types take them
    asks: bool  # whether it looks, as it runs, if it is to stop
    sizes: tuple[int, ...]  # bytes of an element of each of its arrays, as it takes them

    @classmethod
    def of(cls, kernel: Kernel, step: Step) -> Ready:
        program = step.program
        return cls(
            kernel,
            step.groups,
            max(step.groups * program.group_size, sum(buffer.nbytes for buffer in step.buffers.values()) // 4),
            tuple(float(value) if parameter.type.is_float else int(value) for parameter, value in step.values.items()),
            asks(program),
            tuple(stored_type(memory.type).size for memory in program.storage),
        )

    def run(self, memories: Sequence[tuple[int, int]], stop: Flag | None) -> None:
        """On this thread, or in pieces of some workgroups each on all of them. `memories` are addresses, and numbers of
        bytes. A kernel that asks has a flag to ask."""
        groups, kernel = self.groups, self.kernel
        arguments: list[int | float] = [groups]
        if stop is not None and self.asks:
            arguments.append(stop.address)
        for (address, nbytes), size in zip(memories, self.sizes, strict=True):
            arguments += address, nbytes // size
        arguments += self.values
        if groups:
            share_kernel(kernel, groups, arguments, 4 * self.work if self.work >= _WORTH_SHARING else 0)


@attrs.frozen(eq=False)
class Launches:
    """All of a schedule's launches, one after the other, with kernels that were read once."""

    work: Work
    launches: tuple[tuple[Ready, tuple[int, ...]], ...]  # and which arrays each takes: those given, then scratch
    scratch: tuple[Buffer[object], ...]

    @classmethod
    def of(cls, work: Work, given: Iterable[Buffer[object]]) -> Launches:
        scratch = tuple(buffer for buffer in work.buffers if buffer.role is Role.SCRATCH)
        names = [buffer.name for buffer in (*given, *scratch)]
        places = [tuple(names.index(buffer.name) for buffer in step.buffers.values()) for step in work.steps]
        return cls(work, tuple(zip(ready(work), places, strict=True)), scratch)

    def run(self, given: Iterable[HostArray]) -> None:
        """On packed arrays. Where a launch asks whether to stop, all run on a thread that can be told to."""
        arrays = [*given, *[np.empty(buffer.count, buffer.dtype) for buffer in self.scratch]]
        lying = [(address_of(array), array.nbytes) for array in arrays]

        def run_until(stop: Flag | None) -> None:
            for launch, places in self.launches:
                if stop is not None and stop.is_set():
                    return
                launch.run([lying[place] for place in places], stop)

        if any(launch.asks for launch, _ in self.launches):
            run_stoppable(run_until)
        else:
            run_until(None)


class CpuPrepared:
    """A schedule that runs on NumPy arrays, whichever they are. Safe to use from several threads."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule, self._given = schedule, given_buffers(schedule)
        self._made: Launches | None = None

    def run(self, memories: Sequence[object], /) -> None:
        made, work = self._made, work_of(self._schedule)
        if made is None or made.work is not work:  # or what its kernels took from outside changed
            made = self._made = Launches.of(work, self._given)
        made.run([elements_of(buffer, memory) for buffer, memory in zip(self._given, memories, strict=True)])


_NAME = "target 'cpu'"
_kernels: WeakKeyDictionary[ir.Program, Kernel] = WeakKeyDictionary()  # what was compiled, of programs that are in use
_safety = Safety(subgroup_size, polls=True)


def run(work: Work, arrays: Mapping[str, object]) -> None:
    """All is checked and compiled before anything is written."""
    given = host_arrays(work, arrays)
    # Kernels load elements where these are aligned: others are copied, and what is written is copied back.
    unaligned = {name: array.copy() for name, array in given.items() if not array.flags.aligned}
    buffers = [buffer for buffer in work.buffers if buffer.name in given]
    Launches.of(work, buffers).run([unaligned.get(buffer.name, given[buffer.name]) for buffer in buffers])
    for buffer in buffers:
        if buffer.name in unaligned and buffer.role is not Role.INPUT:
            given[buffer.name][...] = unaligned[buffer.name]


def ready(work: Work) -> tuple[Ready, ...]:
    """Checks and compiles all launches."""
    for step in work.steps:
        _check_limits(step)
    safe = [_safety.safe(step) for step in work.steps]
    return tuple(Ready.of(_kernel(step.program), step) for step in safe)


def _kernel(program: ir.Program) -> Kernel:
    kernel = _kernels.get(program)
    if kernel is None:
        is_serial = program.group_size == 1
        kernel = _kernels[program] = load_kernel(program.name, module_text(program), is_serial=is_serial)
    return kernel


def _check_limits(step: Step) -> None:
    program = step.program
    require_within(step, LIMITS, CAPABILITIES, _NAME)
    own = (memory for memory in program.memories if memory.space is ir.Space.REGISTERS)
    registers = program.group_size * sum(memory.type.size * (memory.length or 0) for memory in own)
    require_at_most(kernel_named(program), "bytes of registers in a workgroup", registers, REGISTER_BYTES, _NAME)
