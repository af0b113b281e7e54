"""An open device at work: kernels compiled once, memory pooled, one submission for a whole schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...compile_log import told
from ...forks import never_released_in_children
from ...kernel import ir
from ...kernel.launch import Buffer, Role, Step
from ...kernel.span import Span
from ...types import ops
from ...types.errors import CapabilityError, DeviceLostError, GpusortError, InvalidArgumentError
from ...types.layout import Type
from ..needs import require_needs
from .clock import Clock
from .commands import Binding, Commands, Group, Launch, Place
from .device import Device, translated
from .kernel import PARAMETER_STEP, Kernel, compiled
from .memory import Bytes, Pool, Staging, Taken, padded, upload
from .native import commands_for
from .overrun import ITERATIONS
from .where import can_wait

if TYPE_CHECKING:
    import wgpu

_PROBES = 64
OVERRUN = ""  # beside the names of a schedule's buffers
NO_OVERRUN: Bytes = np.zeros(4, np.uint8)


class Ready:
    """Launches with all that does not depend on where buffers lie: kernels, and the parameters of all in one block."""

    def __init__(self, session: Session, steps: Sequence[Step], *, probing: bool = False) -> None:
        self.buffers = {buffer.name: buffer for step in steps for buffer in step.buffers}
        for buffer in self.buffers.values():
            session.require_bindable(buffer)
        self.sizes = {name: padded(buffer.nbytes) for name, buffer in self.buffers.items()}
        self.steps = [step for step in steps if step.groups]
        self.kernels = [session.kernel(step.program, probing=probing) for step in self.steps]
        self.bindings: list[Binding] = []
        launches: list[Launch] = []
        blocks: list[bytes] = []
        groups: dict[tuple[object, ...], int] = {}
        offset = 0
        for step, kernel in zip(self.steps, self.kernels, strict=True):
            session.require_legal(step, kernel)
            columns, rows = session.shape(step.groups)
            key = (id(kernel), *(buffer.name for buffer in step.buffers))
            if key not in groups:
                groups[key] = len(groups)
                self.bindings.append(_binding(step, kernel))
            block = kernel.parameters(step, columns)
            size = -(-len(block) // PARAMETER_STEP) * PARAMETER_STEP
            blocks.append(block.ljust(size, b"\0"))
            launches.append(Launch(kernel, groups[key], offset, columns, rows))
            offset += size
        self.parameters: Bytes = np.frombuffer(b"".join(blocks), np.uint8)
        self.is_watched = any(kernel.tells_overrun for kernel in self.kernels)
        self.commands: Commands = commands_for(session.device.handle, launches, self.bindings)

    def groups(
        self, parameters: Place, memory: Mapping[str, Place], numbers: Iterable[int] | None = None
    ) -> Sequence[Group]:
        """Bindings with memory: all of them, unless some are named."""
        bindings = self.bindings
        return self.commands.groups(
            [
                (number, [parameters, *[memory[name] for name in bindings[number].names]])
                for number in (range(len(bindings)) if numbers is None else numbers)
            ]
        )


def _binding(step: Step, kernel: Kernel) -> Binding:
    names = [buffer.name for buffer in step.buffers]
    sizes = [kernel.parameter_bytes, *(padded(buffer.nbytes) for buffer in step.buffers)]
    if kernel.tells_overrun:
        names.append(OVERRUN)
        sizes.append(NO_OVERRUN.nbytes)
    return Binding(kernel, tuple(names), tuple(sizes))


class Session:
    """Not safe to use from two threads at once: the target holds a lock."""

    def __init__(self, device: Device) -> None:
        self.device = device
        never_released_in_children(self)
        self.pool = Pool(device.handle, device.handle.limits["max-buffer-size"])
        self._staging = Staging(device.handle)
        # By identity: a launch of the same shape brings the same Program, and a Program is large to compare.
        self._kernels: dict[int, tuple[ir.Program, Kernel]] = {}
        if device.has_subgroups and can_wait():
            self.device = device.with_lanes(self._measured_lanes())

    def kernel(self, program: ir.Program, *, probing: bool = False) -> Kernel:
        known = self._kernels.get(id(program))
        if known is None:
            with told("wgsl", f"kernel {program.name!r}"):
                known = self._kernels[id(program)] = (program, compiled(program, self.device, probing=probing))
        return known[1]

    def run(self, ready: Ready, arrays: Mapping[str, Bytes], clock: Clock | None = None) -> None:
        """Runs launches on arrays of the host. `arrays` holds the bytes of every buffer that is not SCRATCH."""
        handle, buffers = self.device.handle, ready.buffers
        with self.pool.taken() as taken:
            memory = {name: Place(taken.storage(ready.sizes[name])) for name in buffers}
            for name, buffer in buffers.items():
                if buffer.role in (Role.INPUT, Role.INOUT) and buffer.nbytes:
                    upload(handle, memory[name].buffer, arrays[name])
            if ready.is_watched:
                memory[OVERRUN] = self.overrun(taken)
            encoder = handle.create_command_encoder()
            if ready.steps:
                ready.commands.encode(encoder, ready.groups(self.parameters(taken, ready), memory), clock)
            if ready.is_watched:
                self.require_no_overrun(encoder, memory[OVERRUN])
                encoder = handle.create_command_encoder()
            back = [
                (memory[name].buffer, arrays[name])
                for name, buffer in buffers.items()
                if buffer.role in (Role.OUTPUT, Role.INOUT) and buffer.nbytes
            ]
            self._staging.finish(encoder, back)

    def parameters(self, taken: Taken, ready: Ready) -> Place:
        """Where the parameters of all launches are."""
        uniform = taken.uniform(ready.parameters.nbytes)
        upload(self.device.handle, uniform, ready.parameters)
        return Place(uniform)

    def overrun(self, taken: Taken) -> Place:
        """Where kernels tell of a loop that was cut short."""
        place = Place(taken.storage(NO_OVERRUN.nbytes))
        upload(self.device.handle, place.buffer, NO_OVERRUN)
        return place

    def shape(self, groups: int) -> tuple[int, int]:
        """A launch as columns and rows of workgroups, as even as they come; the surplus leaves at once."""
        rows = -(-groups // self.device.groups_in_row)
        return -(-groups // rows), rows

    def require_no_overrun(self, encoder: wgpu.GPUCommandEncoder, place: Place) -> None:
        """Runs what is encoded, and refuses the result where a loop was cut short; the host's arrays are as they
        were."""
        overrun = np.zeros_like(NO_OVERRUN)
        self._staging.finish(encoder, [(place.buffer, overrun)])
        if overrun.any():
            raise CapabilityError(
                f"a kernel goes round its loops more than {ITERATIONS} times in one invocation, which adapter "
                f"{self.device.adapter!r} cannot: cut the work into more invocations"
            )

    def fetch(self, place: Place, array: Bytes) -> None:
        """Waits, and copies what lies there to an array."""
        self._staging.finish(self.device.handle.create_command_encoder(), [(place.buffer, array)], place.offset)

    # -- what is refused ----------------------------------------------------------------------------------

    def require_bindable(self, buffer: Buffer[object]) -> None:
        device, size = self.device, padded(buffer.nbytes)
        if size > device.limits.storage_bytes:
            raise CapabilityError(
                f"array {buffer.name!r} has {buffer.nbytes} bytes; one binding of adapter "
                f"{device.adapter!r} holds at most {device.limits.storage_bytes}"
                f"{device.hint(('max-storage-buffer-binding-size', size), ('max-buffer-size', size))}"
            )

    def require_legal(self, step: Step, kernel: Kernel) -> None:
        program, device = step.program, self.device
        name, adapter = f"{program.span}: kernel {program.name!r}", f"adapter {device.adapter!r}"
        try:
            require_needs(name, program.needs, device.limits, device.capabilities, adapter)
        except CapabilityError as error:
            if not device.is_callers or device.has_subgroups:
                raise
            raise CapabilityError(f"{error}; open the device with required_features=['subgroup']") from error
        if step.groups > self.device.limits.groups:
            raise CapabilityError(
                f"{program.span}: kernel {program.name!r} asks for {step.groups} workgroups, "
                f"adapter {self.device.adapter!r} has {self.device.limits.groups}"
            )
        bound = list(zip(step.buffers, program.storage, kernel.uses, strict=True))
        for buffer, memory, use in bound:
            if use.needs_write and sum(other.name == buffer.name for other, _, _ in bound) > 1:
                raise InvalidArgumentError(
                    f"{program.span}: kernel {program.name!r} gets buffer {buffer.name!r} twice and writes "
                    f"to it as {memory.name!r}; WebGPU allows that only of buffers that are read"
                )

    # -- subgroups ----------------------------------------------------------------------------------------

    def _measured_lanes(self) -> int:
        """How many lanes a subgroup has when a kernel asks; 0 where they do not follow the invocations in
        order."""
        program = _lane_probe()
        buffer: Buffer[object] = Buffer(_PROBE_MEMORY, _probe_element(), _PROBES, Role.OUTPUT)
        seen = np.zeros(_PROBES, np.uint32)
        step = Step(program, (buffer,), (), 1)
        try:
            with translated("the probe for subgroups"):
                self.run(Ready(self, [step], probing=True), {_PROBE_MEMORY: seen.view(np.uint8)})
        except DeviceLostError:
            raise
        except GpusortError:
            return 0  # the feature is announced and does not work: the adapter is as good without
        size = int(seen[0] >> 8)
        expected = np.arange(_PROBES, dtype=np.uint32) % max(size, 1) | size << 8
        return size if np.array_equal(seen, expected) else 0


_PROBE_MEMORY = "seen"


def _probe_element() -> type[object]:
    from ...types.scalars import U32

    return U32


def _lane_probe() -> ir.Program:
    """A program that tells of every invocation its lane and, eight bits up, its subgroup's size."""
    span = Span(__file__, 1)
    memory = ir.Memory(_PROBE_MEMORY, ir.Space.STORAGE, Type.U32)
    lane, size = (ir.Identity(builtin, span) for builtin in (ir.Builtin.LANE, ir.Builtin.SUBGROUP_SIZE))
    high = ir.Apply(ops.SHL, (size, ir.Const(8, Type.U32, span)), Type.U32, span)
    told = ir.Apply(ops.OR, (lane, high), Type.U32, span)
    store = ir.Store(memory, ir.Identity(ir.Builtin.LOCAL_ID, span), told, span)
    return ir.Program("lane_probe", _PROBES, (), (memory,), (), (store,), span)
