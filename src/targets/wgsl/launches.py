"""A schedule's launches on an open device, with all that lives and dies with it: pipelines, parameters, scratch, and
bind groups for the arrays of the last calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

import numpy as np

from ...kernel.launch import Buffer, Role, Step
from ...types.errors import CapabilityError
from ...types.specs import padded
from ..base import HostArray
from ..needs import kernel_named, require_limits, require_needs
from .commands import Binding, BufferRange, Clock, Commands, Dispatch, Group, Recorded
from .device import Device
from .kernel import PARAMETER_STEP
from .loops import ITERATIONS
from .memory import Bytes, Lease, upload
from .native import commands_for
from .ranges import Copy, OnWebGpu, buffer_ranges, copies_of
from .runtime import wgpu

if TYPE_CHECKING:
    from .session import Session

_MOST_BOUND = 6  # calls in a row write to one recycled buffer after another, of which there are five at most
# The names of buffers that no schedule's buffer has: all launches' parameters, and the flag of loops cut short.
_PARAMETERS, _OVERRUN = " parameters", ""
_NO_OVERRUN: Bytes = np.zeros(4, np.uint8)


class _Bound:
    """Bind groups for a call's arrays and scratch, cached for the next call on the same ones. Bind groups keep memory
    alive, also what nobody else holds any more: so they are let go of with the first array."""

    def __init__(
        self, groups: Sequence[Group], given: Iterable[BufferRange], scratch: Mapping[str, BufferRange],
        copies: Sequence[Copy],
    ) -> None:  # fmt: skip
        self.groups, self.scratch, self.copies = groups, scratch, copies
        self.is_repeated = False  # whether an earlier call was on the same ones
        self.next: Recorded | None = None  # a command buffer recorded ahead for the next run
        mine = ref(self)

        def dropped(_: object) -> None:
            bound = mine()
            if bound is not None:
                bound.groups, bound.next = (), None

        self.is_cached = not copies  # which are the lease's
        try:
            self._given = [(ref(region.buffer, dropped), region.offset) for region in given]
        except TypeError:  # a page's own buffer, as Pyodide shows it, takes no weak reference
            self.is_cached, self._given = False, []

    def is_of(self, memories: Sequence[OnWebGpu], scratch: Mapping[str, BufferRange]) -> bool:
        """Whether these are the buffers and offsets that were checked and bound."""
        for memory, (buffer, offset) in zip(memories, self._given, strict=True):
            if memory.buffer is not buffer() or memory.offset != offset:
                return False
        return scratch is self.scratch or scratch == self.scratch


class PreparedLaunches:
    """The parameters of all launches are in one uniform buffer, selected by dynamic offset. Raises CapabilityError
    beyond the device's limits."""

    def __init__(
        self, session: Session, steps: Sequence[Step], given: Sequence[Buffer[Any]] = (), keeps_scratch: bool = False
    ) -> None:
        """`given` are the buffers that runs on the device pass memories for, in order."""
        self.session = session
        self._given, self._keeps_scratch = given, keeps_scratch
        self._buffers = {buffer.name: buffer for step in steps for buffer in step.buffers.values()}
        device = session.device
        self._sizes = {name: padded(buffer.nbytes) for name, buffer in self._buffers.items()}
        for name, size in self._sizes.items():
            if size > device.info.limits.storage_bytes:
                raise CapabilityError(
                    f"array {name!r} has {self._buffers[name].nbytes} bytes; one binding of adapter "
                    f"{device.info.adapter!r} holds at most {device.info.limits.storage_bytes}"
                    f"{device.hint('storage_bytes', size)}"
                )
        self._scratch = [name for name, buffer in self._buffers.items() if buffer.role is Role.SCRATCH]
        self.steps = [step for step in steps if step.groups]
        kernels = [session.kernel(step.program) for step in self.steps]
        launches: list[Dispatch] = []
        numbers: dict[Binding, int] = {}
        parameters = bytearray()
        for step, kernel in zip(self.steps, kernels, strict=True):
            _require_legal(step, device)
            # In two dimensions beyond the limit of one, with few surplus workgroups, which return at once.
            rows = -(-step.groups // device.groups_in_row)
            columns = -(-step.groups // rows)
            names, block = [buffer.name for buffer in step.buffers.values()], kernel.parameters(step, columns)
            flag = {_OVERRUN: _NO_OVERRUN.nbytes} if kernel.reports_overrun else {}
            sizes = (len(block), *(self._sizes[name] for name in names), *flag.values())
            number = numbers.setdefault(Binding(kernel, (_PARAMETERS, *names, *flag), sizes), len(numbers))
            launches.append(Dispatch(kernel, number, len(parameters), columns, rows))
            parameters += block.ljust(-(-len(block) // PARAMETER_STEP) * PARAMETER_STEP, b"\0")
        self.bindings = list(numbers)
        self._parameters: Bytes = np.frombuffer(parameters, np.uint8)
        self._reports_overrun = any(kernel.reports_overrun for kernel in kernels)
        self.checks_overrun = self._reports_overrun and not keeps_scratch  # in each run, which waits for it
        self.commands: Commands = commands_for(device.handle, launches, self.bindings)
        self.bounds: list[_Bound] = []  # the last ones

    def run(self, arrays: Mapping[str, HostArray], clock: Clock | None = None) -> None:
        """Runs them on host arrays (by buffer name, all but SCRATCH), and waits for the results."""
        handle, given = self.session.device.handle, {name: array.view(np.uint8) for name, array in arrays.items()}
        with self.session.pool.lease() as lease:
            memory = self._memory(lease, self._buffers)
            for name, buffer in self._buffers.items():
                if buffer.role in (Role.INPUT, Role.INOUT) and buffer.nbytes:
                    upload(handle, memory[name].buffer, given[name])
            encoder = handle.create_command_encoder()
            if self.steps:
                memory[_PARAMETERS] = self._uploaded(lease)
                self.commands.encode(encoder, self._groups(memory), clock)
            if self._reports_overrun:
                self._require_no_overrun(encoder, memory)
                encoder = handle.create_command_encoder()
            back = [
                (memory[name].buffer, given[name])
                for name, buffer in self._buffers.items()
                if buffer.role in (Role.OUTPUT, Role.INOUT) and buffer.nbytes
            ]
            self.session.staging.finish(encoder, back)

    def run_on_device(self, memories: Sequence[object]) -> None:
        if not self.steps:
            return
        commands, device = self.commands, self.session.device.handle
        with self.session.pool.lease() as lease:
            bound = self._bound_to(memories, lease)
            if not bound.copies and not self.checks_overrun:
                recorded, bound.next = bound.next, None
                commands.submit(commands.recorded(bound.groups) if recorded is None else recorded)
                if bound.is_repeated:  # record the next command buffer while the device works
                    bound.next = commands.recorded(bound.groups)
                return
            encoder = device.create_command_encoder()
            self._encode(encoder, bound)
            if self._reports_overrun:
                self._require_no_overrun(encoder, bound.scratch)
            else:
                device.queue.submit([encoder.finish()])

    def record(self, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], lease: Lease | None = None) -> None:
        """Records all launches into an encoder: one shared with other schedules, where scratch is the lease's until it
        ends, or without a lease the caller's."""
        bound = self._bound_to(memories, lease)
        if self.steps:
            self._encode(encoder, bound)

    def _encode(self, encoder: wgpu.GPUCommandEncoder, bound: _Bound) -> None:
        for copy in bound.copies:
            copy.made(encoder)
        self.commands.encode(encoder, bound.groups)
        for copy in bound.copies:
            copy.put_back(encoder)

    def _bound_to(self, memories: Sequence[object], lease: Lease | None) -> _Bound:
        """Bind groups for these arrays; those that were destroyed raise GPUError. Scratch is of the lease; without one,
        or if they keep it, their own. With a lease, what has to be copied is; else it is the caller who submits, and
        what has to be copied raises InvalidArgumentError."""
        arrays, device = cast("Sequence[OnWebGpu]", memories), self.session.device
        if lease is None or self._keeps_scratch:
            scratch = self._own_scratch
        else:
            scratch = {_PARAMETERS: self._own_parameters, **self._memory(lease, self._scratch)}
        ranges = buffer_ranges(device, self._given, arrays)
        for bound in self.bounds:
            if bound.is_of(arrays, scratch):
                # wgpu-native aborts the process if a submission uses a destroyed buffer. Making a bind group of it is a
                # plain error, so a few are made just to check.
                self._groups({**scratch, **ranges}, self._covering)
                bound.is_repeated = True
                return bound
        copies = copies_of(device, self._given, ranges, lease)
        memory = {**scratch, **ranges, **{copy.buffer.name: copy.own for copy in copies}}
        bound = _Bound(self._groups(memory), ranges.values(), scratch, copies)
        if bound.is_cached:
            self.bounds = [bound, *self.bounds[: _MOST_BOUND - 1]]
        return bound

    def _groups(self, memory: Mapping[str, BufferRange], numbers: Iterable[int] | None = None) -> Sequence[Group]:
        """Bind groups of all bindings, or of those with these indices."""
        numbers = range(len(self.bindings)) if numbers is None else numbers
        return self.commands.groups(
            [(number, [memory[name] for name in self.bindings[number].names]) for number in numbers]
        )

    @cached_property
    def _covering(self) -> Sequence[int]:
        """A few bindings that together hold all of the caller's buffers (greedy set cover)."""
        names = [set(binding.names) for binding in self.bindings]
        left = {buffer.name for buffer in self._given} & set[str]().union(*names)
        numbers: list[int] = []
        while left:
            numbers.append(max(range(len(names)), key=lambda number: len(names[number] & left)))
            left -= names[numbers[-1]]
        return numbers

    @cached_property
    def _own_parameters(self) -> BufferRange:
        return self._uploaded(self.session.pool.lease())

    @cached_property
    def _own_scratch(self) -> Mapping[str, BufferRange]:
        return {_PARAMETERS: self._own_parameters, **self._memory(self.session.pool.lease(), self._scratch)}

    def _uploaded(self, lease: Lease) -> BufferRange:
        """The parameters of all launches."""
        uniform = lease.uniform(self._parameters.nbytes)
        upload(self.session.device.handle, uniform, self._parameters)
        return BufferRange(uniform)

    def _memory(self, lease: Lease, names: Iterable[str]) -> dict[str, BufferRange]:
        """Memory for buffers; and a flag in which kernels report a loop that was cut short, if they do."""
        found = {name: BufferRange(lease.storage(self._sizes[name])) for name in names}
        if self._reports_overrun:
            found[_OVERRUN] = BufferRange(lease.storage(_NO_OVERRUN.nbytes))
        return found

    def _require_no_overrun(self, encoder: wgpu.GPUCommandEncoder, memory: Mapping[str, BufferRange]) -> None:
        """Submits the encoder and waits; raises CapabilityError if a loop was cut short. Host arrays are unchanged."""
        flag, overrun = memory[_OVERRUN].buffer, np.zeros_like(_NO_OVERRUN)
        upload(self.session.device.handle, flag, _NO_OVERRUN)  # before what is submitted behind it
        self.session.staging.finish(encoder, [(flag, overrun)])
        if overrun.any():
            raise CapabilityError(
                f"a kernel's loops run for more than {ITERATIONS} iterations in one invocation, which adapter "
                f"{self.session.device.info.adapter!r} cannot do: divide the work among more invocations"
            )


def _require_legal(step: Step, device: Device) -> None:
    name, adapter = kernel_named(step.program), f"adapter {device.info.adapter!r}"
    require_needs(name, step.program.needs, device.info.limits, device.info.capabilities, adapter)
    require_limits(name, device.info.limits, adapter, groups=step.groups)
