"""Arrays in wgpu's buffers, for sorting and reducing on a device that the caller has opened.

x = gpusort.webgpu.array(buffer, np.float32, (1000, 3))
gpusort.sort(x, axis=0)         # an array of the same device; nothing travels through the host
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from .arrays.buffers import STORAGE
from .arrays.webgpu import Array, padded
from .arrays.webgpu import from_host as _from_host
from .targets.registry import opened_device
from .types.errors import InvalidArgumentError, UnsupportedTypeError
from .types.specs import packed_strides

if TYPE_CHECKING:
    import wgpu

__all__ = ["Array", "array", "asarray", "open_device"]


async def open_device() -> wgpu.GPUDevice:
    """A device of the strongest adapter, or of the one that GPUSORT_WGSL_ADAPTER names, with all that it allows.

    In a page it is the browser's, for which nothing there waits. Raises TargetUnavailableError where there is none.
    """
    return await opened_device()


def array(
    buffer: wgpu.GPUBuffer,
    dtype: npt.DTypeLike,
    shape: int | Sequence[int] | None = None,
    *,
    offset: int = 0,
    device: wgpu.GPUDevice | None = None,
) -> Array:
    """The elements that lie in a buffer, from a byte on, in C order: all that it has room for, unless a shape is given.

    The buffer needs usage STORAGE. It belongs to the device that made it; `device` is for a buffer that does not say.
    """
    size, usage, made_by = (getattr(buffer, name, None) for name in ("size", "usage", "_device"))
    if not isinstance(size, int) or not isinstance(usage, int):
        raise UnsupportedTypeError(f"buffer: expected a wgpu.GPUBuffer, found {type(buffer).__name__}")
    found = device if device is not None else cast("wgpu.GPUDevice | None", made_by)
    if found is None:
        raise InvalidArgumentError("device: expected the device of the buffer, which does not say it")
    if not usage & STORAGE:
        raise InvalidArgumentError("buffer: expected one that was created with usage STORAGE")
    kind = np.dtype(dtype)
    if kind.names is not None or kind.kind not in "biufmM" or kind.itemsize > 8 or not kind.isnative:
        raise UnsupportedTypeError(f"dtype: expected one of numbers, bools or times of up to 8 bytes, found {kind}")
    if offset < 0 or offset % kind.itemsize:
        raise InvalidArgumentError(
            f"offset: expected a multiple of the {kind.itemsize} bytes of {kind}, found {offset}"
        )
    if shape is None:
        shape = (max(0, size - offset) // kind.itemsize,)
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    made = Array(buffer, found, kind, wanted, packed_strides(wanted, kind.itemsize), offset)
    if any(length < 0 for length in wanted) or padded(offset + made.nbytes) > size:
        raise InvalidArgumentError(
            f"shape: expected one whose elements, in whole words of 4 bytes, fit in the {size} bytes of the buffer "
            f"from {offset} on, found {wanted} of {kind}"
        )
    return made


def asarray(values: npt.ArrayLike, device: wgpu.GPUDevice) -> Array:
    """A copy of a NumPy array in a new buffer of a device."""
    return _from_host(device, cast("np.ndarray[Any, np.dtype[np.generic]]", np.asarray(values)))
