"""Command recording with less host overhead: calls wgpu-native's C functions through wgpu-py's cffi bindings.

wgpu-py's methods open an error scope for each call and build a struct for many, which for a sort of a million elements
takes longer than the sort. Here structs are built once, and one error scope spans a recording. This uses private names
of wgpu-py: unless all exist and the C signatures are the expected ones, the public API is used instead.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from .c_names import BACKEND
from .commands import Binding, BufferRange, Clock, Commands, Dispatch, Group, Recorded
from .runtime import wgpu

_RAW = "_internal"  # the attribute of wgpu-py's objects that holds wgpu-native's handle
_WHAT = "gpusort"  # the name of our error scopes

_DEVICE, _QUEUE, _ENCODER, _PASS, _BUFFER, _GROUP = (
    f"struct WGPU{name}Impl *"
    for name in ("Device", "Queue", "CommandEncoder", "ComputePassEncoder", "CommandBuffer", "BindGroup")
)
_SIGNATURES = {
    "wgpuCommandEncoderBeginComputePass": f"{_PASS}(*)({_ENCODER}, WGPUComputePassDescriptor *)",
    "wgpuCommandEncoderFinish": f"{_BUFFER}(*)({_ENCODER}, WGPUCommandBufferDescriptor *)",
    "wgpuCommandEncoderRelease": f"void(*)({_ENCODER})",
    "wgpuCommandBufferRelease": f"void(*)({_BUFFER})",
    "wgpuComputePassEncoderDispatchWorkgroups": f"void(*)({_PASS}, uint32_t, uint32_t, uint32_t)",
    "wgpuComputePassEncoderEnd": f"void(*)({_PASS})",
    "wgpuComputePassEncoderRelease": f"void(*)({_PASS})",
    "wgpuComputePassEncoderSetBindGroup": f"void(*)({_PASS}, uint32_t, {_GROUP}, size_t, uint32_t *)",
    "wgpuComputePassEncoderSetPipeline": f"void(*)({_PASS}, struct WGPUComputePipelineImpl *)",
    "wgpuDeviceCreateBindGroup": f"{_GROUP}(*)({_DEVICE}, WGPUBindGroupDescriptor *)",
    "wgpuDeviceCreateCommandEncoder": f"{_ENCODER}(*)({_DEVICE}, WGPUCommandEncoderDescriptor *)",
    "wgpuBindGroupRelease": f"void(*)({_GROUP})",
    "wgpuQueueSubmit": f"void(*)({_QUEUE}, size_t, {_BUFFER} *)",
}


class _Native:
    """The library, with the descriptors that all calls share."""

    def __init__(self, lib: Any, ffi: Any, errors: Any) -> None:
        """cffi's library, of which _SIGNATURES says what is called, and its FFI; wgpu-py's error handler, which has
        error scopes of each thread."""
        self.lib, self.ffi, self.errors = lib, ffi, errors
        self.encoder = ffi.new("WGPUCommandEncoderDescriptor *")
        self.compute = ffi.new("WGPUComputePassDescriptor *")
        self.buffer = ffi.new("WGPUCommandBufferDescriptor *")


def commands_for(handle: wgpu.GPUDevice, launches: Sequence[Dispatch], bindings: Sequence[Binding]) -> Commands:
    """NativeCommands where they are possible, else those of the public API."""
    native = _native(type(handle).__module__)
    if native is None or not hasattr(handle, _RAW):
        return Commands(handle, launches, bindings)
    return NativeCommands(native, handle, launches, bindings)


@lru_cache(maxsize=4)
def _native(backend: str) -> _Native | None:
    module = sys.modules.get(backend) if backend == BACKEND else None
    parts: tuple[Any, ...] = tuple(getattr(module, name, None) for name in ("lib", "ffi", "error_handler"))
    lib, ffi, errors = parts
    if lib is None or ffi is None or not (hasattr(errors, "capture") and hasattr(errors, "release")):
        return None
    if any(not hasattr(lib, name) or ffi.typeof(getattr(lib, name)).cname != _SIGNATURES[name] for name in _SIGNATURES):
        return None
    return _Native(lib, ffi, errors)


def _raw(owner: object) -> object:
    return getattr(owner, _RAW)


class _raising:
    """An error scope: raises the first error of the block as wgpu-py would."""

    __slots__ = ("_errors",)

    def __init__(self, native: _Native) -> None:
        self._errors = native.errors

    def __enter__(self) -> None:
        self._errors.capture(_WHAT)

    def __exit__(self, _class: object, error: BaseException | None, _traceback: object) -> None:
        found = self._errors.release(_WHAT)
        if error is None and found is not None:
            kind, message = found
            raise getattr(wgpu, f"GPU{kind}Error", wgpu.GPUError)(message)


class _Owned:
    """A wgpu-native handle, released by the garbage collector."""

    __slots__ = ("_native", "_release", "raw")

    def __init__(self, raw: object, native: _Native, release: Any) -> None:
        self._native, self._release, self.raw = native, release, raw

    def __del__(self) -> None:
        if hasattr(self, "raw"):  # absent if __init__ was interrupted
            self._release(self.raw)


class NativeCommands(Commands):
    """Recording by wgpu-native's functions. Not thread-safe, like all of a session."""

    def __init__(
        self, native: _Native, handle: wgpu.GPUDevice, launches: Sequence[Dispatch], bindings: Sequence[Binding]
    ) -> None:
        super().__init__(handle, launches, bindings)
        self._native = native
        self._device, self._queue = _raw(handle), _raw(handle.queue)
        self._descriptors = [self._descriptor(binding) for binding in bindings]
        self._dispatches: list[tuple[object | None, int, object, int, int]] = []
        current = None
        for launch in launches:
            pipeline = None if launch.kernel is current else _raw(launch.kernel.pipeline)
            offsets = native.ffi.new("uint32_t[]", [launch.offset])
            self._dispatches.append((pipeline, launch.group, offsets, launch.columns, launch.rows))
            current = launch.kernel

    def _descriptor(self, binding: Binding) -> tuple[object, object, list[Any]]:
        """A bind group descriptor, the memory of its entries, and the entries, whose buffers are filled in later."""
        ffi = self._native.ffi
        entries = ffi.new("WGPUBindGroupEntry[]", len(binding.sizes))
        for position, size in enumerate(binding.sizes):
            entries[position].binding, entries[position].size = position, size
        descriptor = ffi.new("WGPUBindGroupDescriptor *")
        descriptor.layout, descriptor.entries = _raw(binding.kernel.layout), entries
        descriptor.entryCount = len(binding.sizes)
        return descriptor, entries, [entries[position] for position in range(len(binding.sizes))]

    def groups(self, bound: Sequence[tuple[int, Sequence[BufferRange]]]) -> Sequence[Group]:
        native = self._native
        create, release = native.lib.wgpuDeviceCreateBindGroup, native.lib.wgpuBindGroupRelease
        groups: list[Group] = []
        with _raising(native):
            for number, ranges in bound:
                descriptor, _, entries = self._descriptors[number]
                for entry, region in zip(entries, ranges, strict=True):
                    entry.buffer, entry.offset = getattr(region.buffer, _RAW), region.offset
                groups.append(_Owned(create(self._device, descriptor), native, release))
        return groups

    def encode(self, encoder: wgpu.GPUCommandEncoder, groups: Sequence[Group], clock: Clock | None = None) -> None:
        if clock is not None:
            compute = clock.begin(encoder)
            self._launch(_raw(compute), groups)
            compute.end()
            clock.end(encoder)
            return
        with _raising(self._native):
            self._encode(_raw(encoder), groups)

    def recorded(self, groups: Sequence[Group]) -> Recorded:
        native = self._native
        lib = native.lib
        with _raising(native):
            encoder = lib.wgpuDeviceCreateCommandEncoder(self._device, native.encoder)
            try:
                self._encode(encoder, groups)
                made = lib.wgpuCommandEncoderFinish(encoder, native.buffer)
                return _Owned(made, native, lib.wgpuCommandBufferRelease)
            finally:
                lib.wgpuCommandEncoderRelease(encoder)

    def submit(self, recorded: Recorded) -> None:
        with _raising(self._native):
            self._native.lib.wgpuQueueSubmit(self._queue, 1, (cast(_Owned, recorded).raw,))

    def _encode(self, encoder: object, groups: Sequence[Group]) -> None:
        lib = self._native.lib
        compute = lib.wgpuCommandEncoderBeginComputePass(encoder, self._native.compute)
        try:
            self._launch(compute, groups)
            lib.wgpuComputePassEncoderEnd(compute)
        finally:
            lib.wgpuComputePassEncoderRelease(compute)

    def _launch(self, compute: object, groups: Sequence[Group]) -> None:
        lib = self._native.lib
        set_pipeline, set_group = lib.wgpuComputePassEncoderSetPipeline, lib.wgpuComputePassEncoderSetBindGroup
        dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        raw = [cast(_Owned, group).raw for group in groups]
        for pipeline, group, offsets, columns, rows in self._dispatches:
            if pipeline is not None:
                set_pipeline(compute, pipeline)
            set_group(compute, 0, raw[group], 1, offsets)
            dispatch(compute, columns, rows, 1)
