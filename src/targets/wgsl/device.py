"""Adapter selection, device requests, limits and capabilities of the WGSL target, and translation of wgpu's errors."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import attrs

from ...forks import OwnLock, mark_opened
from ...machine import Capability, TargetInfo
from ...types.environment import word
from ...types.errors import GpusortError, TargetUnavailableError
from ...types.params import WIDE_MASK_LANES
from .c_names import read_types_by_their_own_names
from .defaults import DEFAULT_LIMITS, NAMES, limits_of
from .errors import translated_errors
from .runtime import IN_BROWSER, NO_ADAPTER, one_opening, wgpu

if TYPE_CHECKING:
    from . import browser

ADAPTER_VARIABLE = "GPUSORT_WGSL_ADAPTER"
LIMITS_VARIABLE = "GPUSORT_WGSL_LIMITS"
TIMESTAMPS = "timestamp-query"  # the feature that timing kernels needs

_NVIDIA, _AMD, _INTEL, _QUALCOMM = 0x10DE, 0x1002, 0x8086, 0x5143
# The smallest and largest subgroup size, by vendor, where the compiler chooses. (wgpu-py has placeholders for both.)
_SMALLEST = {_AMD: 32, _INTEL: 8}
_LARGEST = {_AMD: 64, _INTEL: 32}
_LEAST_LANES, _MOST_LANES = "subgroup_min_size", "subgroup_max_size"  # known of a browser's adapter
_BY_POWER = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU")
_BY_BACKEND = ("Metal", "D3D12", "Vulkan")
_OPENGL = "OpenGL"  # offers few storage buffers: taken only if asked for
# Software rasterisers that do not report themselves as a CPU.
_SOFTWARE = ("llvmpipe", "softpipe", "swiftshader", "basic render")
_SUBGROUPS = ("subgroups", "subgroup")  # the standard's name, and wgpu-native's
_WORD = 4
_LLVMPIPE_REGISTERS = 1024  # bytes in an array, beyond which llvmpipe compiles for minutes
_NO_LAYER = "NODEVICE_SELECT"
# wgpu-native aborts the process where two threads look for adapters at once, of which EGL lets one: as where an opening
# goes on that was interrupted, and the next call opens anew.
_enumerating = OwnLock()


@attrs.frozen
class Device:
    handle: wgpu.GPUDevice
    info: TargetInfo
    groups_in_row: int  # the most workgroups in one dimension of a dispatch
    has_subgroups: bool  # whether the feature is enabled
    most_lanes: int  # of a subgroup
    cuts_loops: bool  # see loops.py; a storage buffer tells of loops that were cut short
    alignment: int  # in bytes, of a storage binding's offset
    is_callers: bool = False  # opened by the caller, not by us

    def hint(self, limit: str, asked: int) -> str:
        """The end of an error message: the limits with which the caller should open the device, if it is his."""
        names = NAMES.get(limit, ()) if self.is_callers else ()
        spare = self.cuts_loops and limit == "storage_buffers"
        limits = ", ".join(f"{name!r}: {asked + spare}" for name in names)
        return f"; open the device with required_limits={{{limits}}}" if limits else ""

    def with_lanes(self, measured: int) -> Device:
        """The same with subgroups, if the measured subgroup size is plausible."""
        told = self.handle.adapter_info
        vendor = int(told.get("vendor_id", 0))
        smallest = min(measured, int(told.get(_LEAST_LANES, _SMALLEST.get(vendor, measured))))
        largest = max(measured, int(told.get(_MOST_LANES, _LARGEST.get(vendor, measured))))
        if not 1 <= measured <= largest <= WIDE_MASK_LANES or vendor == _QUALCOMM:
            return self
        limits = attrs.evolve(self.info.limits, subgroup_size=smallest, most_subgroup_size=largest)
        capabilities = self.info.capabilities | {Capability.SUBGROUPS}
        return attrs.evolve(self, info=attrs.evolve(self.info, limits=limits, capabilities=capabilities))


def choose_adapter() -> wgpu.GPUAdapter:
    """The preferred adapter: discrete before integrated GPUs before software, or the one that GPUSORT_WGSL_ADAPTER
    names. Raises TargetUnavailableError."""
    with _enumerating.held, _quietly():
        if not IN_BROWSER:
            read_types_by_their_own_names()
        return preferred_adapter(wgpu.gpu.enumerate_adapters_sync())


def preferred_adapter(found: Sequence[wgpu.GPUAdapter]) -> wgpu.GPUAdapter:
    if not found:
        raise TargetUnavailableError(f"target 'wgsl' finds no adapter: {NO_ADAPTER}")
    wanted = word(ADAPTER_VARIABLE).lower()
    fitting = [adapter for adapter in found if wanted in _described(adapter).lower()]
    if not fitting:
        raise TargetUnavailableError(
            f"{ADAPTER_VARIABLE}={word(ADAPTER_VARIABLE)!r} fits no adapter; there are: {_listed(found)}"
        )
    is_asked_for = _OPENGL.lower() in wanted
    usable = [adapter for adapter in fitting if is_asked_for or not _backend(adapter.info).startswith(_OPENGL)]
    if not usable:
        raise TargetUnavailableError(
            f"target 'wgsl' finds OpenGL alone: {_listed(fitting)}; it needs a Vulkan, Metal or Direct3D 12 driver "
            f"(on Debian: apt install mesa-vulkan-drivers), or {ADAPTER_VARIABLE}={_OPENGL} to take it all the same"
        )
    return min(usable, key=_rank)


def open_device() -> Device:
    """Requests a device with all of the adapter's limits, or WebGPU's default ones if GPUSORT_WGSL_LIMITS says so."""
    return _described_device(_requested())


def _requested() -> wgpu.GPUDevice:
    mark_opened("wgsl")
    with _failures_told():
        adapter = choose_adapter()
        asked = device_request(adapter)
        return adapter.request_device_sync(**asked)


@contextmanager
def _failures_told() -> Generator[None]:
    """Where an adapter has no device for us, or the system no memory or thread for it, there is no such target."""
    try:
        yield
    except GpusortError:
        raise
    except (RuntimeError, OSError, MemoryError, wgpu.GPUError) as error:
        raise TargetUnavailableError(f"target 'wgsl' cannot open a device: {str(error) or 'out of memory'}") from error


async def opened() -> wgpu.GPUDevice:
    """The same for pages, where nothing may block: there concurrent callers share a device."""
    if not IN_BROWSER:
        return _requested()
    from .browser import gpu

    mark_opened("wgsl")
    with one_opening(), _failures_told():
        found = cast("list[wgpu.GPUAdapter]", await gpu.enumerate_adapters_async())
        adapter = preferred_adapter(found)
        device = await cast("browser.GPUAdapter", adapter).request_device_async(**device_request(adapter))
    return cast("wgpu.GPUDevice", device)


async def read(device: wgpu.GPUDevice, buffer: wgpu.GPUBuffer, first: int, size: int) -> memoryview:
    """Reads `size` bytes of a buffer from byte `first` on, after all submitted work. In a page it does not block."""
    with translated_errors("reading a buffer"):
        if not IN_BROWSER:
            return device.queue.read_buffer(buffer, first, size)
        return await cast("browser.GPUQueue", device.queue).read_buffer_async(buffer, first, size)


def device_request(adapter: wgpu.GPUAdapter) -> dict[str, Any]:
    """The features and limits to request a device with, as arguments."""
    said = word(LIMITS_VARIABLE)
    if said not in ("", "defaults"):
        raise TargetUnavailableError(f"{LIMITS_VARIABLE}: expected 'defaults' or nothing, found {said!r}")
    if said:
        return {"required_features": [], "required_limits": dict(DEFAULT_LIMITS)}
    subgroups = [name for name in _SUBGROUPS if name in adapter.features][:1]
    limits = {name: adapter.limits[name] for name in DEFAULT_LIMITS}
    return {"required_features": [*subgroups, *({TIMESTAMPS} & adapter.features)], "required_limits": limits}


def device_of_caller(handle: wgpu.GPUDevice) -> Device:
    """A device that the caller has opened, with the features and limits requested then."""
    mark_opened("wgsl")
    return attrs.evolve(_described_device(handle), is_callers=True)


def _described_device(handle: wgpu.GPUDevice) -> Device:
    told, limits = handle.adapter_info, limits_of(handle.limits)
    cuts_loops, in_software = "llvmpipe" in told.device, is_software(told)
    if cuts_loops:
        buffers = max(0, limits.storage_buffers - 1)
        limits = attrs.evolve(limits, storage_buffers=buffers, register_bytes=_LLVMPIPE_REGISTERS)
    progress = told.get("vendor_id") in (_NVIDIA, _AMD) and told.get("adapter_type") in _BY_POWER[:2]
    return Device(
        handle=handle,
        info=TargetInfo(
            name="wgsl",
            adapter=told.device,
            driver=", ".join(filter(None, [_backend(told), "in software" * in_software, told.description])),
            limits=limits,
            capabilities=frozenset({Capability.FORWARD_PROGRESS} if progress else ()),
            is_software=in_software,
        ),
        groups_in_row=handle.limits["max-compute-workgroups-per-dimension"],
        has_subgroups=any(name in handle.features for name in _SUBGROUPS),
        most_lanes=32 if told.get("vendor_id") == _NVIDIA else WIDE_MASK_LANES,
        cuts_loops=cuts_loops,
        alignment=max(_WORD, handle.limits["min-storage-buffer-offset-alignment"]),
    )


def is_software(info: wgpu.GPUAdapterInfo) -> bool:
    """Whether an adapter is a software rasteriser on the CPU."""
    name = info.device.lower()
    return info.get("adapter_type") == "CPU" or any(known in name for known in _SOFTWARE)


def _backend(info: wgpu.GPUAdapterInfo) -> str:
    return str(info.get("backend_type", "WebGPU"))


def _listed(adapters: Sequence[wgpu.GPUAdapter]) -> str:
    return "; ".join(map(_described, adapters))


def _described(adapter: wgpu.GPUAdapter) -> str:
    info = adapter.info
    kinds = (str(info.get(key, "?")) for key in ("backend_type", "adapter_type", "description"))
    return f"{info.device} ({', '.join(kinds)})"


def _rank(adapter: wgpu.GPUAdapter) -> tuple[int, int]:
    power, backend = str(adapter.info.get("adapter_type")), _backend(adapter.info)
    return (
        _BY_POWER.index(power) if power in _BY_POWER else len(_BY_POWER) - 2,
        _BY_BACKEND.index(backend) if backend in _BY_BACKEND else len(_BY_BACKEND),
    )


@contextmanager
def _quietly() -> Generator[None, None, None]:
    """Disables Mesa's device selection layer, which without a display complains on stderr. The Vulkan loader reads the
    variable when wgpu first enumerates adapters."""
    if _NO_LAYER in os.environ or os.environ.get("XDG_RUNTIME_DIR"):
        yield
        return
    os.environ[_NO_LAYER] = "1"
    try:
        yield
    finally:
        del os.environ[_NO_LAYER]
