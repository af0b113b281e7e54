"""What a page awaits, because nothing in it may block. Elsewhere it is done at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...forks import opens
from .device import asked_of, choose_adapter, strongest, translated
from .where import IN_BROWSER, one_opening

if TYPE_CHECKING:
    import wgpu

    from . import browser


async def opened() -> wgpu.GPUDevice:
    """A device of the strongest adapter, with all it allows. In a page, those who wait for one together share it."""
    opens("wgsl")
    if not IN_BROWSER:
        adapter = choose_adapter()
        features, limits = asked_of(adapter)
        return adapter.request_device_sync(required_features=features, required_limits=limits)
    from .browser import gpu

    with one_opening():
        found = strongest(cast("list[wgpu.GPUAdapter]", await gpu.enumerate_adapters_async()))
        features, limits = asked_of(found)
        adapter_there = cast("browser.GPUAdapter", found)
        device = await adapter_there.request_device_async(
            required_features=features, required_limits=cast("dict[str, int]", limits)
        )
    return cast("wgpu.GPUDevice", device)


async def read(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, first: int, size: int) -> memoryview:
    """So many bytes of a buffer, from one on, once all that was submitted is done."""
    if not IN_BROWSER:
        return device.queue.read_buffer(buffer, first, size)
    queue = cast("browser.GPUQueue", device.queue)
    with translated("target 'wgsl'"):
        return await queue.read_buffer_async(buffer, first, size)
