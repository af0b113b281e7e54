"""The arrays behind a schedule's buffers: checked, viewed as what a kernel loads, scratch made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from ...kernel.launch import Buffer, Role, Step
from ...types.errors import InvalidArgumentError
from .writer import memory_type

Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.generic]]


@attrs.frozen
class Binding:
    """Arrays by buffer name: the caller's own, but for one that lies unaligned: its copy is handed back."""

    arrays: Mapping[str, Array]
    copies: tuple[tuple[Array, Array], ...]  # the caller's array, ours

    @classmethod
    def of(cls, steps: Sequence[Step], given: Mapping[str, object]) -> Binding:
        arrays: dict[str, Array] = {}
        copies: list[tuple[Array, Array]] = []
        for buffer in {buffer.name: buffer for step in steps for buffer in step.buffers}.values():
            if buffer.role is Role.SCRATCH and buffer.name not in given:
                arrays[buffer.name] = np.empty(buffer.count, buffer.dtype)
                continue
            array = _checked(buffer, given.get(buffer.name))
            if not array.flags.aligned:
                copy = array.copy()
                if buffer.role is not Role.INPUT:
                    copies.append((array, copy))
                array = copy
            elif not array.flags.writeable:
                array = _writeable(array)
            arrays[buffer.name] = array
        return cls(arrays, tuple(copies))

    def views(self, step: Step) -> tuple[Array, ...]:
        """A launch's arrays in the order of its kernel, as arrays of scalars."""
        pairs = zip(step.buffers, step.program.storage, strict=True)
        return tuple(self.arrays[buffer.name].view(memory_type(memory.type).dtype) for buffer, memory in pairs)

    def hand_back(self) -> None:
        for array, copy in self.copies:
            array[...] = copy


def _checked(buffer: Buffer[object], array: object) -> Array:
    """The array a buffer stands for, or an error that says what it should be."""
    wanted = f"arrays[{buffer.name!r}]: expected a contiguous NumPy array of {buffer.count} x {buffer.dtype}"
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(f"{wanted}, found {'nothing' if array is None else type(array).__name__}")
    array = cast("npt.NDArray[np.generic]", array)
    if array.ndim != 1 or array.nbytes != buffer.nbytes or not array.flags.c_contiguous or array.dtype.hasobject:
        found = f"shape {array.shape} of {array.dtype}, strides {array.strides}"
        raise InvalidArgumentError(f"{wanted}, found {found}")
    if buffer.role is not Role.INPUT and not array.flags.writeable:
        raise InvalidArgumentError(f"{wanted} that can be written, found a read-only one")
    return cast(Array, array)


class _Window:
    """Memory as NumPy's array interface describes it; keeps its owner alive."""

    def __init__(self, owner: Array) -> None:
        self.owner = owner
        address, _ = owner.__array_interface__["data"]
        self.__array_interface__ = {**owner.__array_interface__, "data": (address, False)}


def _writeable(array: Array) -> Array:
    """The same memory without the read-only mark: kernels take one kind, and never write an INPUT."""
    return np.asarray(_Window(array)).view(array.dtype)
