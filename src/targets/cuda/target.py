"""The CUDA target: kernels compiled by NVVM, loaded and launched by cupy, on device arrays in place."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np

from ...compile_log import log_slow
from ...forks import never_released_in_children, require_own_process
from ...kernel import ir
from ...kernel.launch import Buffer, Role, Schedule, Step
from ...kernel.passes.safe import Safety
from ...machine import TargetInfo
from ...types.layout import Type
from ...types.libraries import cupy
from ..base import InTurn, OnStream, arrays_by_name, given_buffers
from ..binding import Work, host_arrays, is_lasting, work_of
from ..needs import require_within
from ..registry import Reduced, reduce_to_name
from .arrays import Binding, checked_arrays, common_device
from .card import NAME, capability_of, describe, device_errors, require_card
from .compile import compile_machine_code, entry_name, text_of
from .pinned import PinnedMemory
from .plan import Plan, PreparedLaunch
from .room import CudaRoom, cuda_room, free_bytes
from .text import WARP
from .transfers import Transfers

if TYPE_CHECKING:
    from cupy.cuda.function import Function

_MAX_DYNAMIC_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: to allow more than 48 KiB


class CudaTarget:
    """Runs schedules on NVIDIA cards: on the card that holds the arrays, in the caller's stream."""

    def __init__(self) -> None:
        require_card()
        never_released_in_children(self)
        self._lock = RLock()
        self._transfers, self._pinned = Transfers(), PinnedMemory()
        self._safety = Safety(lambda group_size: WARP, trusts_own=True)
        self._functions: weakref.WeakKeyDictionary[ir.Program, dict[int, Function]] = weakref.WeakKeyDictionary()
        self._plans: weakref.WeakKeyDictionary[Work, dict[int, Plan]] = weakref.WeakKeyDictionary()
        self._info = cache(describe)

    def __reduce__(self) -> Reduced:
        return reduce_to_name(NAME)

    @property
    def info(self) -> TargetInfo:
        """The current card's."""
        require_own_process(NAME)
        return self._info(cupy.cuda.runtime.getDevice())

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        """Launches on cupy's current stream; synchronises only if an array is on the host."""
        require_own_process(NAME)
        work = work_of(schedule)
        found = checked_arrays(work, arrays)
        device = common_device(tuple(found.values()))
        with cupy.cuda.Device(device), device_errors():
            plan, stream = self._plan(work, device), cupy.cuda.get_current_stream()
            are_on_host = any(array.host is not None for array in found.values())
            try:
                binding = Binding(plan.buffers, found, stream, self._transfers)
                plan.launch(binding.addresses, stream.ptr)
                binding.finish()
                if are_on_host:
                    stream.synchronize()
            except BaseException:
                if are_on_host:  # the caller may free the arrays: no copy may be in flight
                    stream.synchronize()
                raise

    def free_bytes(self) -> int:
        """Bytes that can be allocated on the current card."""
        require_own_process(NAME)
        return free_bytes()

    def room(self, nbytes: int, /) -> AbstractContextManager[CudaRoom]:
        """Device memory for out-of-core work on host arrays that do not fit on the card."""
        return cuda_room(nbytes, self._transfers, self._pinned)

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> CudaPrepared:
        """Runs the schedule on device addresses or arrays; compiled for a device when first run there."""
        return CudaPrepared(self, schedule, given_buffers(schedule))

    def plan_for(self, schedule: Schedule, device: int) -> Plan:
        """The schedule's plan for a device, which must be the current one."""
        require_own_process(NAME)
        with device_errors():
            return self._plan(work_of(schedule), device)

    def device_seconds(self, schedule: Schedule, arrays: Mapping[str, object]) -> float:
        """Runs a schedule on device copies of host arrays; returns the launches' time between two CUDA events."""
        require_own_process(NAME)
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        with device_errors():
            work = work_of(schedule)
            shared = self._plan(work, cupy.cuda.runtime.getDevice())
            plan, scratch = Plan(shared.buffers, shared.launches, often=1), cupy.cuda.alloc(shared.scratch_bytes)
            given, host = given_buffers(schedule), host_arrays(work, arrays)
            on_card = [cupy.asarray(host[buffer.name]) for buffer in given]
            start = [array.copy() for array in on_card]
            # The first run launches kernels, the second captures a graph, the third is warm. Each from the given data.
            for _ in range(3):
                for array, before in zip(on_card, start, strict=True):
                    cupy.copyto(array, before)
                begin.record()
                plan.run_at([array.data.ptr for array in on_card], scratch.ptr, cupy.cuda.get_current_stream().ptr)
                end.record()
            end.synchronize()
            for buffer, array in zip(given, on_card, strict=True):
                if buffer.role is not Role.INPUT:
                    np.copyto(host[buffer.name], array.get())
        return cupy.cuda.get_elapsed_time(begin, end) / 1e3

    def _plan(self, work: Work, device: int) -> Plan:
        """Checks and compiles all kernels, before anything is launched. Cached as long as the work lives."""
        plans = self._plans.setdefault(work, {})
        if device not in plans:
            plans[device] = self._prepared(work, device)
        return plans[device]

    def _prepared(self, work: Work, device: int) -> Plan:
        steps = [self._safety.safe(step) for step in work.steps]
        buffers = tuple(sorted(work.buffers, key=lambda buffer: buffer.role is Role.SCRATCH))
        indices = {buffer.name: index for index, buffer in enumerate(buffers)}
        info = self._info(device)
        for step in steps:
            nbytes = text_of(step.program).workgroup_bytes
            require_within(step, info.limits, info.capabilities, "target 'cuda'", nbytes)
        # Launches of no workgroups are dropped: cupy would launch one.
        return Plan(buffers, tuple(self._prepared_launch(step, indices, device) for step in steps if step.groups))

    def _prepared_launch(self, step: Step, indices: Mapping[str, int], device: int) -> PreparedLaunch:
        program, text = step.program, text_of(step.program)
        lengths = [np.uint32(step.length_of(memory)) for memory in text.lengths]
        return PreparedLaunch(
            self._function(program, device),
            step.groups,
            program.group_size,
            tuple(indices[buffer.name] for buffer in step.buffers.values()),
            (*lengths, *(_scalar(parameter.type, value) for parameter, value in step.values.items())),
            text.dynamic_bytes,
        )

    def _function(self, program: ir.Program, device: int) -> Function:
        """The kernel, compiled, and loaded as a module into the current card's context."""
        with self._lock:
            loaded = self._functions.setdefault(program, {})
            if device not in loaded:
                with log_slow("cuda", f"kernel {program.name!r}"):
                    code = compile_machine_code(program, capability_of(device))
                module = cupy.cuda.function.Module()
                module.load(code)
                function = module.get_function(entry_name(program))
                if nbytes := text_of(program).dynamic_bytes:
                    cupy.cuda.driver.funcSetAttribute(function.ptr, _MAX_DYNAMIC_BYTES, nbytes)
                loaded[device] = function
            return loaded[device]


@attrs.frozen(eq=False)
class CudaPrepared:
    """A prepared schedule: runs asynchronously on device arrays, on cupy's current stream or the caller's."""

    target: CudaTarget
    schedule: Schedule
    buffers: tuple[Buffer[object], ...]

    def run(self, memories: Sequence[object], /) -> None:
        """Takes addresses or cupy arrays on the current device, or only NumPy arrays, which are copied."""
        if memories and isinstance(memories[0], np.ndarray):
            self.target.run(self.schedule, arrays_by_name(self.buffers, memories))
            return
        with device_errors():
            self.plan().run([m if isinstance(m, int) else cast("cupy.ndarray", m).data.ptr for m in memories])

    def on_stream(self) -> OnStream:
        """For addresses, scratch and a stream of the caller's."""
        plan = self.plan()
        return plan if is_lasting(self.schedule) else _Revalidated([plan], self)

    def plan(self) -> Plan:
        """The plan for the current device."""
        return self.target.plan_for(self.schedule, cupy.cuda.runtime.getDevice())


@attrs.frozen(eq=False)
class _Revalidated(InTurn):
    """A schedule whose kernels captured mutable Python state: each run checks whether they have to be read again."""

    prepared: CudaPrepared

    def run_at(self, given: Sequence[int], scratch: int, stream: int, /) -> None:
        self.prepared.plan().run_at(given, scratch, stream)


def _scalar(type: Type, value: int | float | bool) -> np.generic:
    """A kernel parameter as a NumPy scalar of its exact type: cupy passes its bytes."""
    return cast("np.generic", np.asarray(value, type.dtype)[()])
