"""What is told to a device: launches bound to memory, and recorded as one compute pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, cast

import attrs

from .clock import Clock
from .kernel import Kernel

if TYPE_CHECKING:
    import wgpu


class Place(NamedTuple):
    """Where a schedule's buffer lies. A tuple, for many are made in every call."""

    buffer: wgpu.GPUBuffer
    offset: int = 0


@attrs.frozen
class Binding:
    """What a kernel is bound to: the parameters of all launches first, then buffers by their names."""

    kernel: Kernel
    names: tuple[str, ...]
    sizes: tuple[int, ...]  # in bytes, of the parameters too


@attrs.frozen
class Launch:
    """One launch, ready to be recorded."""

    kernel: Kernel
    group: int  # which of the bindings
    offset: int  # of its parameters
    columns: int
    rows: int


Group: TypeAlias = object  # a binding with memory, as those made it who take it
Recorded: TypeAlias = object  # commands that can be submitted once


class Commands(Protocol):
    """Records all launches of a schedule. WebGPU lets each dispatch of a pass see what those before it wrote.

    Errors of wgpu's are raised as it classes them.
    """

    def groups(self, bound: Sequence[tuple[int, Sequence[Place]]]) -> Sequence[Group]:
        """Bindings, by their numbers, with memory, which they hold: for as often as they are wanted."""
        ...

    def encode(self, encoder: wgpu.GPUCommandEncoder, groups: Sequence[Group], clock: Clock | None = None) -> None:
        """One pass in an encoder."""
        ...

    def recorded(self, groups: Sequence[Group]) -> Recorded:
        """The same in an encoder of its own."""
        ...

    def submit(self, recorded: Recorded) -> None: ...


class PublicCommands:
    """By wgpu's public methods."""

    def __init__(self, handle: wgpu.GPUDevice, launches: Sequence[Launch], bindings: Sequence[Binding]) -> None:
        self._handle, self._launches, self._bindings = handle, launches, bindings

    def groups(self, bound: Sequence[tuple[int, Sequence[Place]]]) -> Sequence[wgpu.GPUBindGroup]:
        return [self._group(self._bindings[number], places) for number, places in bound]

    def _group(self, binding: Binding, places: Sequence[Place]) -> wgpu.GPUBindGroup:
        bound = zip(places, binding.sizes, strict=True)
        return self._handle.create_bind_group(
            layout=binding.kernel.layout,
            entries=[
                {"binding": position, "resource": {"buffer": place.buffer, "offset": place.offset, "size": size}}
                for position, (place, size) in enumerate(bound)
            ],
        )

    def encode(self, encoder: wgpu.GPUCommandEncoder, groups: Sequence[Group], clock: Clock | None = None) -> None:
        compute = encoder.begin_compute_pass() if clock is None else clock.begin(encoder)
        current: Kernel | None = None
        for launch in self._launches:
            if launch.kernel is not current:
                current = launch.kernel
                compute.set_pipeline(current.pipeline)
            compute.set_bind_group(0, cast("wgpu.GPUBindGroup", groups[launch.group]), [launch.offset])
            compute.dispatch_workgroups(launch.columns, launch.rows)
        compute.end()
        if clock is not None:
            clock.end(encoder)

    def recorded(self, groups: Sequence[Group]) -> wgpu.GPUCommandBuffer:
        encoder = self._handle.create_command_encoder()
        self.encode(encoder, groups)
        return encoder.finish()

    def submit(self, recorded: Recorded) -> None:
        self._handle.queue.submit([cast("wgpu.GPUCommandBuffer", recorded)])
