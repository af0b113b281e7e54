"""Binds NumPy arrays to a schedule's buffers, with poisoned memory, for the simulator and the target "python"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..kernel.launch import Buffer, Role
from .binding import Work, host_arrays

Values: TypeAlias = npt.NDArray[np.generic]
Bytes: TypeAlias = npt.NDArray[np.uint8]

POISON = 0xCD  # fills uninitialised memory, to be recognised in wrong results


def bytes_behind(work: Work, arrays: Mapping[str, object]) -> dict[str, Bytes]:
    """The bytes of every buffer, by name: the caller's arrays, checked, and new memory for scratch. Poisoned unless it
    is an input."""
    given = host_arrays(work, arrays)
    found: dict[str, Bytes] = {}
    for buffer in work.buffers:
        array = given.get(buffer.name)
        data = np.empty(buffer.nbytes, np.uint8) if array is None else array
        if not starts_written(buffer):
            poison(data)
        found[buffer.name] = data.view(np.uint8)
    return found


def starts_written(buffer: Buffer[object]) -> bool:
    """Whether a buffer is initialised when a schedule begins."""
    return buffer.role in (Role.INPUT, Role.INOUT)


def poison(array: Values) -> None:
    array.view(np.uint8).fill(1 if array.dtype.kind == "b" else POISON)
