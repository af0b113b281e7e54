"""An adapter from wgpu-py's API, as far as gpusort uses it, to the browser's WebGPU, for Pyodide.

The browser returns promises: methods that end in `_async` await them. Synchronous methods suspend Python until the
promise resolves, where the browser can do so; the page's event loop keeps running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from ...types.errors import TargetUnavailableError
from ...types.libraries import ffi, js
from .defaults import DEFAULT_LIMITS
from .javascript import (
    HOW_TO_WAIT,
    Answer,
    Owner,
    SharedOpening,
    camel,
    can_wait,
    described,
    owned,
    require_waiting,
    waited,
)  # fmt: skip

__all__ = ["GPUAdapter", "GPUDevice", "GPUError", "GPUOutOfMemoryError", "GPUValidationError", "gpu"]

_LIMITS = (*DEFAULT_LIMITS, "max-bind-groups", "min-storage-buffer-offset-alignment")
_MAP_READ, _COPY_DST, _READ = 1, 8, 1  # WebGPU fixes the numbers of these flags
_MAPPED_AT = 8  # bytes: the alignment of a mapped range's offset


Pipeline: TypeAlias = Owner["js.GPUComputePipeline"]


class GPUError(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class GPUValidationError(GPUError): ...


class GPUOutOfMemoryError(GPUError, MemoryError): ...


class GPUInternalError(GPUError): ...


_KINDS: Mapping[str, type[GPUError]] = {
    kind.__name__: kind for kind in (GPUValidationError, GPUOutOfMemoryError, GPUInternalError)
}


class Errors:
    """The uncaptured errors and the loss of one device, which come as events: collected, and raised by the next call
    that waits. Error scopes that the page pushes itself are not disturbed."""

    def __init__(self, device: js.GPUDevice) -> None:
        lost: list[str] = []
        refused: list[GPUError] = []

        # The device keeps its callbacks alive, so they refer to these lists only.
        def is_lost(info: js.GPUDeviceLostInfo) -> None:
            lost.append(info.message or info.reason)

        def is_refused(event: js.GPUUncapturedErrorEvent) -> None:
            refused.append(_KINDS.get(event.error.constructor.name, GPUError)(event.error.message))

        device.lost.then(ffi.create_once_callable(is_lost))
        device.addEventListener("uncapturederror", ffi.create_proxy(is_refused))
        self._lost, self._refused = lost, refused

    def forget(self) -> None:
        self._refused.clear()

    def require_none(self) -> None:
        """Raises the first error since the last call."""
        first, gone = [*self._refused[:1]], [*self._lost]
        self.forget()
        if gone:
            raise GPUValidationError(f"Parent device is lost: {gone[0]}")
        for error in first:
            raise error


class GPUAdapterInfo(dict[str, "str | int"]):
    """Adapter information; browsers may withhold most of it."""

    def __init__(self, info: js.GPUAdapterInfo) -> None:
        words = [info.vendor, info.architecture, info.device or info.description]
        super().__init__(
            vendor=info.vendor, architecture=info.architecture, description=info.description, backend_type="WebGPU",
            device=" ".join(filter(None, words)) or "the browser's GPU",
            adapter_type="CPU" if getattr(info, "isFallbackAdapter", False) else "Unknown",
            subgroup_min_size=int(getattr(info, "subgroupMinSize", 0)),
            subgroup_max_size=int(getattr(info, "subgroupMaxSize", 0)),
        )  # fmt: skip

    @property
    def device(self) -> str:
        return str(self["device"])

    @property
    def description(self) -> str:
        return str(self["description"])


def _limits(of: js.GPUAdapter | js.GPUDevice) -> dict[str, int]:
    return {name: int(getattr(of.limits, camel(name))) for name in _LIMITS}


class GPUAdapter(Owner["js.GPUAdapter"]):
    _device: Answer[js.GPUDevice, GPUDevice] | None = None  # once requested

    def __init__(self, js: js.GPUAdapter) -> None:
        super().__init__(js)
        self.features, self.limits, self.info = set(js.features), _limits(js), GPUAdapterInfo(js.info)

    async def request_device_async(self, **asked: object) -> GPUDevice:
        """Requests a device. WebGPU allows one for an adapter: later calls return the same."""
        if self._device is None:
            self._device = Answer(self.js.requestDevice(described(asked)), GPUDevice)
        return await self._device.awaited()

    def request_device_sync(self, **asked: object) -> GPUDevice:
        return waited(self.request_device_async(**asked))


class GPU:
    """The browser's `navigator.gpu`, which offers one adapter at most."""

    async def enumerate_adapters_async(self) -> list[GPUAdapter]:
        return [] if getattr(js.navigator, "gpu", None) is None else await openings.answer().awaited()

    def enumerate_adapters_sync(self) -> list[GPUAdapter]:
        if not can_wait():
            raise TargetUnavailableError(f"target 'wgsl': Python cannot wait for the browser's GPU here; {HOW_TO_WAIT}")
        return waited(self.enumerate_adapters_async())


def _asked_for_adapter() -> Answer[js.GPUAdapter | None, list[GPUAdapter]]:
    promise = js.navigator.gpu.requestAdapter(described({"power_preference": "high-performance"}))
    return Answer(promise, lambda found: [GPUAdapter(found)] if found else [])  # null is falsy, and not None everywhere


gpu = GPU()
openings = SharedOpening(_asked_for_adapter)


class GPUDevice(Owner["js.GPUDevice"]):
    """A device. Its errors are asynchronous: the next call that waits raises them."""

    def __init__(self, js: js.GPUDevice) -> None:
        """Wraps a device that was opened here or by the page."""
        super().__init__(js)
        self.features, self.limits, self.adapter_info = set(js.features), _limits(js), GPUAdapterInfo(js.adapterInfo)
        self.queue, self.errors = GPUQueue(js.queue, self), Errors(js)

    def create_buffer(self, **asked: object) -> GPUBuffer:
        return GPUBuffer(self.js.createBuffer(described(asked)), self)

    def create_command_encoder(self) -> GPUCommandEncoder:
        return GPUCommandEncoder(self.js.createCommandEncoder())

    def create_compute_pipeline(self, *, compute: Mapping[str, Owner[js.GPUShaderModule]], **asked: object) -> Pipeline:
        """Compiles asynchronously, off the page's main thread, if Python can wait."""
        whole = described({"compute": compute, **asked})
        if can_wait():
            return Owner(waited(self._compiled(whole, compute["module"])))
        return Owner(self.js.createComputePipeline(whole))

    async def _compiled(self, asked: object, module: Owner[js.GPUShaderModule]) -> js.GPUComputePipeline:
        try:
            return await self.js.createComputePipelineAsync(asked)
        except ffi.JsException as error:
            told = (await module.js.getCompilationInfo()).messages
            lines = [f":{one.lineNum}:{one.linePos} {one.message}" for one in told if one.type == "error"]
            self.errors.forget()  # the same error, also reported as an event
            raise GPUValidationError("\n".join(lines[:1]) or str(error)) from error


class GPUBuffer(Owner["js.GPUBuffer"]):
    def __init__(self, js: js.GPUBuffer, device: GPUDevice) -> None:
        super().__init__(js)
        self._device, self.size, self.usage = device, int(js.size), int(js.usage)

    async def map_async(self, mode: int, offset: int, size: int) -> None:
        try:
            await self.js.mapAsync(mode, offset, size)
        except ffi.JsException as error:
            self._device.errors.require_none()
            raise GPUValidationError(str(error)) from error
        try:
            self._device.errors.require_none()
        except GPUError:
            self.js.unmap()
            raise

    def map_sync(self, mode: int, offset: int, size: int) -> None:
        require_waiting("target 'wgsl'")
        waited(self.map_async(mode, offset, size))

    def read_mapped(self, buffer_offset: int, size: int, *, copy: bool = True) -> memoryview:
        """Always a copy: the mapping is outside of Python's memory."""
        return self.js.getMappedRange(buffer_offset, size).to_memoryview()


class GPUQueue(Owner["js.GPUQueue"]):
    def __init__(self, js: js.GPUQueue, device: GPUDevice) -> None:
        super().__init__(js)
        self._device = device

    def write_buffer(self, buffer: object, buffer_offset: int, data: object) -> None:
        """`data` is a NumPy array or another object with the buffer protocol."""
        packed = np.ascontiguousarray(cast("np.ndarray[Any, Any]", data)).reshape(-1).view(np.uint8)
        self.js.writeBuffer(owned(buffer), buffer_offset, ffi.to_js(packed))

    async def read_buffer_async(self, buffer: object, buffer_offset: int, size: int) -> memoryview:
        whole = -(-size // _MAPPED_AT) * _MAPPED_AT
        copy = self._device.create_buffer(size=whole, usage=_MAP_READ | _COPY_DST)
        encoder = self._device.create_command_encoder()
        encoder.copy_buffer_to_buffer(buffer, buffer_offset, copy, 0, size)
        self.submit([encoder.finish()])
        try:
            await copy.map_async(_READ, 0, whole)
            return copy.read_mapped(0, size)
        finally:
            copy.destroy()

    def read_buffer(self, buffer: object, buffer_offset: int, size: int) -> memoryview:
        require_waiting("to_numpy")
        return waited(self.read_buffer_async(buffer, buffer_offset, size))


class GPUCommandEncoder(Owner["js.GPUCommandEncoder"]):
    def begin_compute_pass(self, **asked: object) -> GPUComputePassEncoder:
        return GPUComputePassEncoder(self.js.beginComputePass(described(asked)))


class GPUComputePassEncoder(Owner["js.GPUComputePassEncoder"]):
    """What each dispatch calls is written out: to look it up takes as long as the call."""

    def set_pipeline(self, pipeline: Pipeline) -> None:
        self.js.setPipeline(pipeline.js)

    def set_bind_group(self, index: int, bind_group: Owner[Any], dynamic_offsets_data: Sequence[int] = ()) -> None:
        self.js.setBindGroup(index, bind_group.js, described(list(dynamic_offsets_data)))

    def dispatch_workgroups(self, workgroup_count_x: int, workgroup_count_y: int = 1) -> None:
        self.js.dispatchWorkgroups(workgroup_count_x, workgroup_count_y)
