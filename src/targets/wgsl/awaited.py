"""Async device requests and read-backs, for pages, where nothing may block. With wgpu they complete at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...forks import mark_opened
from .device import choose_adapter, device_request, preferred_adapter
from .errors import translated_errors
from .runtime import IN_BROWSER, one_opening

if TYPE_CHECKING:
    import wgpu

    from . import browser


async def opened() -> wgpu.GPUDevice:
    """A device of the preferred adapter with all its limits. In a page, concurrent callers share one."""
    mark_opened("wgsl")
    if not IN_BROWSER:
        adapter = choose_adapter()
        features, limits = device_request(adapter)
        return adapter.request_device_sync(required_features=features, required_limits=limits)
    from .browser import gpu

    with one_opening():
        found = preferred_adapter(cast("list[wgpu.GPUAdapter]", await gpu.enumerate_adapters_async()))
        features, limits = device_request(found)
        adapter_there = cast("browser.GPUAdapter", found)
        device = await adapter_there.request_device_async(
            required_features=features, required_limits=cast("dict[str, int]", limits)
        )
    return cast("wgpu.GPUDevice", device)


async def read(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, first: int, size: int) -> memoryview:
    """Reads `size` bytes of a buffer from byte `first` on, after all submitted work."""
    if not IN_BROWSER:
        return device.queue.read_buffer(buffer, first, size)
    queue = cast("browser.GPUQueue", device.queue)
    with translated_errors("target 'wgsl'"):
        return await queue.read_buffer_async(buffer, first, size)
