"""Arrays in wgpu buffers, to sort and reduce on a device of the caller's.

x = gpusort.webgpu.array(buffer, np.float32, (1000, 3))
gpusort.sort(x, axis=0)         # the result is on the same device; nothing is copied through the host
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from .arrays.host import converted
from .arrays.registry import recognised
from .arrays.webgpu import STORAGE, Array, checked_int
from .arrays.webgpu import from_host as _from_host
from .targets.webgpu import opened_device
from .types.dtypes import checked_dtype
from .types.errors import InvalidArgumentError, UnsupportedTypeError
from .types.specs import packed_strides, padded

if TYPE_CHECKING:
    import wgpu

__all__ = ["Array", "array", "asarray", "open_device"]


async def open_device() -> wgpu.GPUDevice:
    """Opens a device with all its limits, on the preferred adapter or the one that GPUSORT_WGSL_ADAPTER names.

    In a page it is the browser's. Raises TargetUnavailableError.
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
    """An array of a `dtype` over a buffer's elements from byte `offset` on, in C order; without a `shape` of all of
    them, in one dimension.

    The buffer needs usage STORAGE. `device` is only needed for a buffer that does not know its device.
    """
    size, usage, made_by = (getattr(buffer, name, None) for name in ("size", "usage", "_device"))
    if not isinstance(size, int) or not isinstance(usage, int):
        raise UnsupportedTypeError(f"buffer: expected a wgpu.GPUBuffer, found {type(buffer).__name__}")
    found = device if device is not None else cast("wgpu.GPUDevice | None", made_by)
    if found is None:
        raise InvalidArgumentError("device: expected the buffer's device, as the buffer does not know it; found None")
    _require_device(found)
    if made_by not in (None, found):
        raise InvalidArgumentError("device: expected the one that the buffer was made by, found another")
    if not usage & STORAGE:
        raise InvalidArgumentError("buffer: expected one that was created with usage STORAGE")
    kind, offset = checked_dtype(dtype), checked_int("offset", offset, "an int")
    if kind.names is not None or kind.kind not in "biufmM" or kind.itemsize > 8 or not kind.isnative:
        raise UnsupportedTypeError(f"dtype: expected one of numbers, bools or times of up to 8 bytes, found {kind}")
    if offset < 0 or offset % kind.itemsize:
        raise InvalidArgumentError(
            f"offset: expected a multiple of the {kind.itemsize} bytes of {kind}, found {offset}"
        )
    wanted = (max(0, size - offset) // kind.itemsize,) if shape is None else _lengths(shape)
    made = Array(buffer, found, kind, wanted, packed_strides(wanted, kind.itemsize), offset)
    if any(length < 0 for length in wanted) or padded(offset + made.nbytes) > size:
        raise InvalidArgumentError(
            f"shape: expected one whose elements, in whole words of 4 bytes, fit in the {size} bytes of the buffer "
            f"from {offset} on, found {wanted} of {kind}"
        )
    return made


def asarray(values: npt.ArrayLike, device: wgpu.GPUDevice) -> Array:
    """Copies `values`, an array of NumPy's or what makes one, to a new buffer on a device."""
    _require_device(device)
    _, host = recognised("values", converted("values", values))
    host = cast("np.ndarray[Any, np.dtype[np.generic]]", np.asarray(host))
    if host.dtype.hasobject:
        raise UnsupportedTypeError(f"values: elements of dtype {host.dtype} are Python's objects, no buffer takes them")
    return _from_host(device, host)


def _require_device(device: object) -> None:
    if not hasattr(device, "create_buffer"):
        hint = "; await it" if hasattr(device, "__await__") else ""
        raise UnsupportedTypeError(f"device: expected a wgpu.GPUDevice, found {type(device).__name__}{hint}")


def _lengths(shape: object) -> tuple[int, ...]:
    numbers = tuple(cast("Iterable[object]", shape)) if isinstance(shape, Iterable) else (shape,)
    return tuple([checked_int("shape", number, "an int or a sequence of ints") for number in numbers])
