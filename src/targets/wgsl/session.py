"""An open device at work: kernels compiled once, memory pooled, one submission for a whole schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
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
from .device import Device, translated
from .kernel import PARAMETER_STEP, Kernel, compiled
from .memory import Bytes, Pool, Staging, Taken, padded, upload
from .overrun import ITERATIONS

if TYPE_CHECKING:
    import wgpu

_PROBES = 64
_OVERRUN = ""  # beside the names of a schedule's buffers
_NO_OVERRUN: Bytes = np.zeros(4, np.uint8)


@attrs.frozen
class _Dispatch:
    """One launch, ready to be encoded."""

    kernel: Kernel
    groups: wgpu.GPUBindGroup
    offset: int  # of its parameters
    columns: int
    rows: int


class Session:
    """Not safe to use from two threads at once: the target holds a lock."""

    def __init__(self, device: Device) -> None:
        self.device = device
        never_released_in_children(self)
        self._pool = Pool(device.handle, device.handle.limits["max-buffer-size"])
        self._staging = Staging(device.handle)
        # By identity: a launch of the same shape brings the same Program, and a Program is large to compare.
        self._kernels: dict[int, tuple[ir.Program, Kernel]] = {}
        if device.has_subgroups:
            self.device = device.with_lanes(self._measured_lanes())

    def kernel(self, program: ir.Program, *, probing: bool = False) -> Kernel:
        known = self._kernels.get(id(program))
        if known is None:
            with told("wgsl", f"kernel {program.name!r}"):
                known = self._kernels[id(program)] = (program, compiled(program, self.device, probing=probing))
        return known[1]

    def run(
        self, steps: Sequence[Step], arrays: Mapping[str, Bytes], *, probing: bool = False, clock: Clock | None = None
    ) -> None:
        """Runs the steps in order. `arrays` holds the bytes of every buffer that is not SCRATCH."""
        handle = self.device.handle
        buffers = {buffer.name: buffer for step in steps for buffer in step.buffers}
        for buffer in buffers.values():
            self._require_bindable(buffer)
        steps = [step for step in steps if step.groups]
        kernels = [self.kernel(step.program, probing=probing) for step in steps]
        for step, kernel in zip(steps, kernels, strict=True):
            self._require_legal(step, kernel)
        with self._pool.taken() as taken:
            memory = {name: taken.storage(padded(buffer.nbytes)) for name, buffer in buffers.items()}
            for name, buffer in buffers.items():
                if buffer.role in (Role.INPUT, Role.INOUT) and buffer.nbytes:
                    upload(handle, memory[name], arrays[name])
            watched = any(kernel.tells_overrun for kernel in kernels)
            if watched:
                memory[_OVERRUN] = taken.storage(_NO_OVERRUN.nbytes)
                upload(handle, memory[_OVERRUN], _NO_OVERRUN)
            encoder = handle.create_command_encoder()
            if steps:
                self._encode(encoder, self._dispatches(taken, steps, kernels, memory), clock)
            if watched:
                self._require_no_overrun(encoder, memory[_OVERRUN])
                encoder = handle.create_command_encoder()
            back = [
                (memory[name], arrays[name])
                for name, buffer in buffers.items()
                if buffer.role in (Role.OUTPUT, Role.INOUT) and buffer.nbytes
            ]
            self._staging.finish(encoder, back)

    def _dispatches(
        self,
        taken: Taken,
        steps: Sequence[Step],
        kernels: Sequence[Kernel],
        memory: Mapping[str, wgpu.GPUBuffer],
    ) -> list[_Dispatch]:
        """Binds every launch, its parameters in one uniform buffer for all of them."""
        blocks: list[bytes] = []
        shapes: list[tuple[int, int, int]] = []
        offset = 0
        for step, kernel in zip(steps, kernels, strict=True):
            columns, rows = self._shape(step.groups)
            block = kernel.parameters(step, columns)
            size = -(-len(block) // PARAMETER_STEP) * PARAMETER_STEP
            blocks.append(block.ljust(size, b"\0"))
            shapes.append((offset, columns, rows))
            offset += size
        uniform = taken.uniform(offset)
        upload(self.device.handle, uniform, np.frombuffer(b"".join(blocks), np.uint8))
        made: dict[tuple[object, ...], wgpu.GPUBindGroup] = {}
        dispatches: list[_Dispatch] = []
        for step, kernel, (start, columns, rows) in zip(steps, kernels, shapes, strict=True):
            key = (id(kernel), *(buffer.name for buffer in step.buffers))
            group = made.get(key)
            if group is None:
                group = made[key] = self._bind(step, kernel, uniform, memory)
            dispatches.append(_Dispatch(kernel, group, start, columns, rows))
        return dispatches

    def _shape(self, groups: int) -> tuple[int, int]:
        """A launch as columns and rows of workgroups, as even as they come; the surplus leaves at once."""
        rows = -(-groups // self.device.groups_in_row)
        return -(-groups // rows), rows

    def _bind(
        self, step: Step, kernel: Kernel, uniform: wgpu.GPUBuffer, memory: Mapping[str, wgpu.GPUBuffer]
    ) -> wgpu.GPUBindGroup:
        bound = [(uniform, kernel.parameter_bytes)]
        bound += [(memory[buffer.name], padded(buffer.nbytes)) for buffer in step.buffers]
        if kernel.tells_overrun:
            bound.append((memory[_OVERRUN], _NO_OVERRUN.nbytes))
        return self.device.handle.create_bind_group(
            layout=kernel.layout,
            entries=[
                {"binding": binding, "resource": {"buffer": buffer, "offset": 0, "size": size}}
                for binding, (buffer, size) in enumerate(bound)
            ],
        )

    @staticmethod
    def _encode(encoder: wgpu.GPUCommandEncoder, dispatches: Sequence[_Dispatch], clock: Clock | None) -> None:
        """One pass: WebGPU lets each dispatch see what those before it wrote."""
        compute = encoder.begin_compute_pass() if clock is None else clock.begin(encoder)
        current: Kernel | None = None
        for dispatch in dispatches:
            if dispatch.kernel is not current:
                current = dispatch.kernel
                compute.set_pipeline(current.pipeline)
            compute.set_bind_group(0, dispatch.groups, [dispatch.offset])
            compute.dispatch_workgroups(dispatch.columns, dispatch.rows)
        compute.end()
        if clock is not None:
            clock.end(encoder)

    def _require_no_overrun(self, encoder: wgpu.GPUCommandEncoder, memory: wgpu.GPUBuffer) -> None:
        """Runs what is encoded, and refuses the result where a loop was cut short; the arrays are as they
        were."""
        overrun = np.zeros_like(_NO_OVERRUN)
        self._staging.finish(encoder, [(memory, overrun)])
        if overrun.any():
            raise CapabilityError(
                f"a kernel goes round its loops more than {ITERATIONS} times in one invocation, which adapter "
                f"{self.device.adapter!r} cannot: cut the work into more invocations"
            )

    # -- what is refused ----------------------------------------------------------------------------------

    def _require_bindable(self, buffer: Buffer[object]) -> None:
        most = self.device.limits.storage_bytes
        if padded(buffer.nbytes) > most:
            raise CapabilityError(
                f"array {buffer.name!r} has {buffer.nbytes} bytes; one binding of adapter "
                f"{self.device.adapter!r} holds at most {most}"
            )

    def _require_legal(self, step: Step, kernel: Kernel) -> None:
        program, device = step.program, self.device
        name, adapter = f"{program.span}: kernel {program.name!r}", f"adapter {device.adapter!r}"
        require_needs(name, program.needs, device.limits, device.capabilities, adapter)
        if step.groups > self.device.limits.groups:
            raise CapabilityError(
                f"{program.span}: kernel {program.name!r} asks for {step.groups} workgroups, "
                f"adapter {self.device.adapter!r} has {self.device.limits.groups}"
            )
        bound = list(zip(step.buffers, program.storage, kernel.uses, strict=True))
        for buffer, memory, use in bound:
            if not use.needs_write:
                continue
            if buffer.role is Role.INPUT:
                raise InvalidArgumentError(
                    f"{program.span}: kernel {program.name!r} writes to {memory.name!r}, to which the INPUT "
                    f"buffer {buffer.name!r} is bound"
                )
            if sum(other.name == buffer.name for other, _, _ in bound) > 1:
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
                self.run([step], {_PROBE_MEMORY: seen.view(np.uint8)}, probing=True)
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
