"""NumPy arrays as the buffers of a schedule, for the targets that define what a kernel means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ..kernel.launch import Buffer, Role
from ..types.errors import InvalidArgumentError

Values: TypeAlias = npt.NDArray[np.generic]
Bytes: TypeAlias = npt.NDArray[np.uint8]

POISON = 0xCD  # what memory holds before it is written: easily seen in a wrong result


def bytes_behind(buffer: Buffer[object], arrays: Mapping[str, object]) -> Bytes:
    """The array of a buffer's name, or new memory where it is only scratch. Poisoned where it is no input."""
    array = arrays.get(buffer.name)
    if array is None and buffer.role is Role.SCRATCH:
        array = np.empty(buffer.nbytes, np.uint8)
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(f"arrays[{buffer.name!r}]: expected a NumPy array, found {type(array).__name__}")
    data = cast(Values, array)
    if data.ndim != 1 or not data.flags.c_contiguous or data.nbytes != buffer.nbytes:
        raise InvalidArgumentError(
            f"arrays[{buffer.name!r}]: expected a contiguous array of one dimension and "
            f"{buffer.nbytes} bytes, found shape {data.shape} of {data.dtype}"
        )
    if buffer.role is not Role.INPUT and not data.flags.writeable:
        raise InvalidArgumentError(f"arrays[{buffer.name!r}]: expected a writable array, as {buffer.role} is")
    if not starts_written(buffer):
        poison(data)
    return data.view(np.uint8)


def starts_written(buffer: Buffer[object]) -> bool:
    """Whether a buffer holds something when a schedule begins."""
    return buffer.role in (Role.INPUT, Role.INOUT)


def poison(array: Values) -> None:
    """Fill an array with bits that mean nothing."""
    array.view(np.uint8).fill(1 if array.dtype.kind == "b" else POISON)
