"""The card: whether there is one, what it has, and its errors as gpusort's own."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from ...forks import mark_opened, opened_before_fork, require_own_process
from ...machine import Capability, Limits, TargetInfo
from ...types.errors import DeviceLostError, DeviceMemoryError, TargetUnavailableError
from ...types.libraries import cupy
from ..uninterrupted import import_uninterrupted, run_uninterrupted
from .compile import INSTALL, ComputeCapability, capability_of_card, require_compiler, version_of
from .text import WARP

NAME = "cuda"
_MOST_BUFFERS = 256  # with a length each they take 4 KiB, which is the limit of kernel parameters


def require_card() -> None:
    """Imports cupy and looks for a card; raises TargetUnavailableError that says what is missing."""
    require_own_process(NAME)
    try:
        import_uninterrupted("cupy")
        # For the first temporary file, which cupy's compilations need, `tempfile` takes a lock that an interrupt would
        # leave held.
        run_uninterrupted(lambda: tempfile.TemporaryDirectory().cleanup())
    except ImportError as error:
        raise TargetUnavailableError(f"target 'cuda': cupy is not installed or does not load: {INSTALL}") from error
    require_compiler()
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status == NOT_INITIALISED:
            raise opened_before_fork(NAME) from error
        raise TargetUnavailableError(f"target 'cuda': no NVIDIA card with a driver for CUDA 13 ({error})") from error
    if count == 0:
        raise TargetUnavailableError("target 'cuda': no NVIDIA card was found")
    mark_opened(NAME)


def describe(device: int) -> TargetInfo:
    card, runtime = cupy.cuda.Device(device), cupy.cuda.runtime
    properties, attributes = runtime.getDeviceProperties(device), card.attributes
    name = properties["name"]
    major, minor = capability_of(device)
    compilers = f"cupy {cupy.__version__}, cuda-bindings {version_of('cuda-bindings')}"
    return TargetInfo(
        name="cuda",
        adapter=name.decode() if isinstance(name, bytes) else str(name),
        driver=(
            f"CUDA driver {_dotted(runtime.driverGetVersion())}, "
            f"runtime {_dotted(runtime.runtimeGetVersion())}, "
            f"compute capability {major}.{minor}, {compilers}"
        ),
        limits=Limits(
            group_size=attributes["MaxThreadsPerBlock"],
            workgroup_bytes=attributes["MaxSharedMemoryPerBlockOptin"],
            groups=attributes["MaxGridDimX"],
            storage_bytes=card.mem_info[1],
            storage_buffers=_MOST_BUFFERS,
            subgroup_size=WARP,
            most_subgroup_size=WARP,
        ),
        capabilities=frozenset({Capability.FLOAT64, Capability.SUBGROUPS, Capability.FORWARD_PROGRESS}),
    )


def capability_of(device: int) -> ComputeCapability:
    capability = capability_of_card(device)
    if capability is None:
        raise TargetUnavailableError(f"target 'cuda': device {device} does not answer")
    return capability


def _dotted(version: int) -> str:
    """CUDA's version number in dotted form: 13020 is 13.2."""
    return f"{version // 1000}.{version % 1000 // 10}"


NOT_INITIALISED = 3  # CUDA_ERROR_NOT_INITIALIZED: what every call returns in a forked child of a process that used CUDA
_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
# Sticky errors: the CUDA context is unusable until the process ends.
_LOST = frozenset({46, _NO_CONTEXT, 214, 219, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999})


@contextmanager
def device_errors() -> Generator[None]:
    """Raises DeviceMemoryError on out of memory, DeviceLostError once the context is lost; lets other errors pass."""
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise DeviceMemoryError(
            f"target 'cuda': the card has too little free memory: {error} Free arrays on the card, work on parts, or "
            "use target='cpu'"
        ) from error
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        if error.status == NOT_INITIALISED:
            raise opened_before_fork("cuda") from error
        if error.status in _LOST:
            raise DeviceLostError(f"target 'cuda': the card stopped working in this process ({error})") from error
        raise


def enters_context(error: BaseException) -> bool:
    """Makes the current device's context this thread's if the driver says that it has none, and says so.

    A new thread has none before its first call of the runtime, and a launch is one of the driver: the first that fails
    so has started nothing and may be tried again.
    """
    if not isinstance(error, cupy.cuda.driver.CUDADriverError) or error.status != _NO_CONTEXT:
        return False
    runtime = cupy.cuda.runtime
    runtime.setDevice(runtime.getDevice())
    return True
