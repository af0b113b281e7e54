"""Translates CUDA runtime and driver errors into gpusort's own exceptions."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ...forks import opened_before_fork
from ...types.errors import DeviceLostError, DeviceMemoryError

NOT_INITIALISED = 3  # CUDA_ERROR_NOT_INITIALIZED: what every call returns in a forked child of a process that used CUDA
_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
# Sticky errors: the CUDA context is unusable until the process ends.
_LOST = frozenset({46, _NO_CONTEXT, 214, 219, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999})


@contextmanager
def device_errors() -> Generator[None]:
    """Raises DeviceMemoryError on out of memory, DeviceLostError once the context is lost; lets other errors pass."""
    import cupy

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
    import cupy

    if not isinstance(error, cupy.cuda.driver.CUDADriverError) or error.status != _NO_CONTEXT:
        return False
    runtime = cupy.cuda.runtime
    runtime.setDevice(runtime.getDevice())
    return True
