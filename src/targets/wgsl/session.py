"""A session on an open device: compiled kernels, pooled buffers, one queue submission for a whole schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from ...compile_log import log_slow
from ...forks import never_released_in_children
from ...kernel import ir
from ...kernel.launch import Buffer, Role, Step
from ...kernel.span import Span
from ...types.errors import CapabilityError, DeviceLostError, GpusortError, InvalidArgumentError
from ...types.layout import Type
from ...types.scalars import U32
from ...types.specs import padded
from ..needs import kernel_named, require_at_most, require_needs
from .commands import Binding, BufferRange, Clock, Commands, Dispatch, Group
from .device import Device
from .errors import translated_errors
from .kernel import PARAMETER_STEP, Kernel, compile_kernel
from .legalize_words import WordBuilder
from .loops import ITERATIONS
from .memory import Bytes, Lease, Pool, Staging, upload
from .native import commands_for
from .runtime import can_wait

if TYPE_CHECKING:
    import wgpu

    from .prepared import WgslPrepared

_PROBES = 64  # invocations of the probe
OVERRUN = ""  # the name of the overrun flag's buffer, which no schedule's buffer has
NO_OVERRUN: Bytes = np.zeros(4, np.uint8)


class PreparedLaunches:
    """Launches with all that does not depend on the buffers: pipelines, bind group layouts, and the parameters of all
    launches in one uniform buffer, selected by dynamic offset. Raises CapabilityError beyond the device's limits."""

    def __init__(self, session: Session, steps: Sequence[Step]) -> None:
        self.buffers = {buffer.name: buffer for step in steps for buffer in step.buffers}
        device = session.device
        self.sizes = {name: padded(buffer.nbytes) for name, buffer in self.buffers.items()}
        for name, size in self.sizes.items():
            if size > device.info.limits.storage_bytes:
                raise CapabilityError(
                    f"array {name!r} has {self.buffers[name].nbytes} bytes; one binding of adapter "
                    f"{device.info.adapter!r} holds at most {device.info.limits.storage_bytes}"
                    f"{device.hint(('max-storage-buffer-binding-size', size), ('max-buffer-size', size))}"
                )
        self.scratch = [name for name, buffer in self.buffers.items() if buffer.role is Role.SCRATCH]
        self.steps = [step for step in steps if step.groups]
        self.kernels = [session.kernel(step.program) for step in self.steps]
        self.bindings: list[Binding] = []
        launches: list[Dispatch] = []
        blocks: list[bytes] = []
        groups: dict[tuple[object, ...], int] = {}
        offset = 0
        for step, kernel in zip(self.steps, self.kernels, strict=True):
            session.require_legal(step, kernel)
            # In two dimensions beyond the limit of one, with few surplus workgroups, which return at once.
            rows = -(-step.groups // device.groups_in_row)
            columns = -(-step.groups // rows)
            names, block = [buffer.name for buffer in step.buffers], kernel.parameters(step, columns)
            key = (id(kernel), *names)
            if key not in groups:
                groups[key] = len(groups)
                flag = {OVERRUN: NO_OVERRUN.nbytes} if kernel.reports_overrun else {}
                sizes = [len(block), *(self.sizes[name] for name in names), *flag.values()]
                self.bindings.append(Binding(kernel, (*names, *flag), tuple(sizes)))
            size = -(-len(block) // PARAMETER_STEP) * PARAMETER_STEP
            blocks.append(block.ljust(size, b"\0"))
            launches.append(Dispatch(kernel, groups[key], offset, columns, rows))
            offset += size
        self.parameters: Bytes = np.frombuffer(b"".join(blocks), np.uint8)
        self.checks_overrun = any(kernel.reports_overrun for kernel in self.kernels)
        self.commands: Commands = commands_for(device.handle, launches, self.bindings)

    def groups(
        self, parameters: BufferRange, memory: Mapping[str, BufferRange], numbers: Iterable[int] | None = None
    ) -> Sequence[Group]:
        """Bind groups of all bindings, or of those with these indices."""
        bindings, numbers = self.bindings, range(len(self.bindings)) if numbers is None else numbers
        return self.commands.groups(
            [(number, [parameters, *[memory[name] for name in bindings[number].names]]) for number in numbers]
        )


class Session:
    """What lives with an open device. Not thread-safe: the target serialises by a lock."""

    def __init__(self, device: Device) -> None:
        self.device = device
        never_released_in_children(self)
        self.pool = Pool(device.handle, device.handle.limits["max-buffer-size"])
        self.holders: WeakSet[WgslPrepared] = WeakSet()  # what was prepared in it
        self._staging = Staging(device.handle)
        # Keyed by identity: programs are memoised, so a launch of the same shape has the same one; equality is slow.
        self._kernels: dict[int, tuple[ir.Program, Kernel]] = {}
        if device.has_subgroups and can_wait():
            self.device = device.with_lanes(1)  # for the probe, which uses them
            self.device = device.with_lanes(self._measured_subgroup_size())

    def give_up(self) -> None:
        """Lets nobody keep the device, for which wgpu has a thread as long as it lives."""
        for holder in list(self.holders):
            holder.forget()

    def kernel(self, program: ir.Program) -> Kernel:
        known = self._kernels.get(id(program))
        if known is None:
            with log_slow("wgsl", f"kernel {program.name!r}"):
                known = self._kernels[id(program)] = (program, compile_kernel(program, self.device))
        return known[1]

    def run(self, ready: PreparedLaunches, arrays: Mapping[str, Bytes], clock: Clock | None = None) -> None:
        """Runs launches on host arrays (bytes by buffer name, all but SCRATCH), and waits for the results."""
        handle, buffers = self.device.handle, ready.buffers
        with self.pool.lease() as lease:
            memory = self.memory(lease, ready, buffers)
            for name, buffer in buffers.items():
                if buffer.role in (Role.INPUT, Role.INOUT) and buffer.nbytes:
                    upload(handle, memory[name].buffer, arrays[name])
            encoder = handle.create_command_encoder()
            if ready.steps:
                ready.commands.encode(encoder, ready.groups(self.parameters(lease, ready), memory), clock)
            if ready.checks_overrun:
                self.require_no_overrun(encoder, memory[OVERRUN])
                encoder = handle.create_command_encoder()
            back = [
                (memory[name].buffer, arrays[name])
                for name, buffer in buffers.items()
                if buffer.role in (Role.OUTPUT, Role.INOUT) and buffer.nbytes
            ]
            self._staging.finish(encoder, back)

    def parameters(self, lease: Lease, ready: PreparedLaunches) -> BufferRange:
        uniform = lease.uniform(ready.parameters.nbytes)
        upload(self.device.handle, uniform, ready.parameters)
        return BufferRange(uniform)

    def memory(self, lease: Lease, ready: PreparedLaunches, names: Iterable[str]) -> dict[str, BufferRange]:
        """Memory for buffers; and a cleared flag, if it is checked, in which kernels report a loop that was cut
        short."""
        found = {name: BufferRange(lease.storage(ready.sizes[name])) for name in names}
        if ready.checks_overrun:
            found[OVERRUN] = BufferRange(lease.storage(NO_OVERRUN.nbytes))
            upload(self.device.handle, found[OVERRUN].buffer, NO_OVERRUN)
        return found

    def require_no_overrun(self, encoder: wgpu.GPUCommandEncoder, region: BufferRange) -> None:
        """Submits the encoder and waits; raises CapabilityError if a loop was cut short. Host arrays are unchanged."""
        overrun = np.zeros_like(NO_OVERRUN)
        self._staging.finish(encoder, [(region.buffer, overrun)])
        if overrun.any():
            raise CapabilityError(
                f"a kernel's loops run for more than {ITERATIONS} iterations in one invocation, which adapter "
                f"{self.device.info.adapter!r} cannot do: divide the work among more invocations"
            )

    def require_legal(self, step: Step, kernel: Kernel) -> None:
        program, device = step.program, self.device
        name, adapter = kernel_named(program), f"adapter {device.info.adapter!r}"
        require_needs(name, program.needs, device.info.limits, device.info.capabilities, adapter)
        require_at_most(name, "workgroups", step.groups, device.info.limits.groups, adapter)
        bound = list(zip(step.buffers, program.storage, kernel.uses, strict=True))
        for buffer, memory, use in bound:
            if use.needs_write and sum(other.name == buffer.name for other, _, _ in bound) > 1:
                raise InvalidArgumentError(
                    f"{name} gets buffer {buffer.name!r} twice and writes "
                    f"to it as {memory.name!r}; WebGPU allows that only of buffers that are read"
                )

    def _measured_subgroup_size(self) -> int:
        """The subgroup size, measured by a probe kernel; 0 if lanes do not follow the order of invocations."""
        program = _lane_probe()
        buffer: Buffer[object] = Buffer(_PROBE_MEMORY, U32, _PROBES, Role.OUTPUT)
        seen = np.zeros(_PROBES, np.uint32)
        step = Step(program, (buffer,), (), 1)
        try:
            with translated_errors("the probe for subgroups"):
                self.run(PreparedLaunches(self, [step]), {_PROBE_MEMORY: seen.view(np.uint8)})
        except DeviceLostError:
            raise
        except GpusortError:
            return 0  # the adapter announces subgroups, and they do not work
        size = int(seen[0] >> 8)
        expected = np.arange(_PROBES, dtype=np.uint32) % max(size, 1) | size << 8
        return size if np.array_equal(seen, expected) else 0


_PROBE_MEMORY = "seen"


def _lane_probe() -> ir.Program:
    """A kernel in which every invocation stores its lane | subgroup size << 8."""
    build = WordBuilder(Span(__file__, 1))
    memory = ir.Memory(_PROBE_MEMORY, ir.Space.STORAGE, Type.U32)
    lane, size = build.builtin(ir.Builtin.LANE), build.builtin(ir.Builtin.SUBGROUP_SIZE)
    build.store(memory, build.builtin(ir.Builtin.LOCAL_ID), lane | size << 8)
    return ir.Program("lane_probe", _PROBES, (), (memory,), (), build.finish(), build.span)
