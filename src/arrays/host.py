"""NumPy's arrays, of any subclass, and what NumPy makes arrays of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from ..types.dtypes import native
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.specs import Memory, Spec
from .kinds import ArrayKind, DType, HostArray, Space
from .recycled import new_array

KINDS = "a NumPy or cupy array, a torch tensor, a nested list, or anything with __cuda_array_interface__ or __dlpack__"


class HostSpace(Space[HostArray]):
    """The host's memory, in NumPy arrays."""

    def empty(self, shape: tuple[int, ...], dtype: DType) -> HostArray:
        return new_array(shape, dtype)

    def last(self, array: HostArray, axes: Sequence[int]) -> HostArray:
        others = [axis for axis in range(array.ndim) if axis not in axes]
        return array.transpose([*others, *axes])

    def is_packed(self, array: HostArray) -> bool:
        return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative

    def packed(self, array: HostArray) -> HostArray:
        copy: HostArray = new_array(array.shape, native(array.dtype))
        copy[...] = array
        return copy

    def assign(self, target: HostArray, source: HostArray) -> None:
        with np.errstate(over="ignore"):
            target[...] = source

    def part(self, array: HostArray, first: int, count: int) -> HostArray:
        return array.reshape(-1)[first : first + count]

    def reshaped(self, array: HostArray, shape: tuple[int, ...]) -> HostArray:
        return array.reshape(shape)

    def take(self, array: HostArray, indices: HostArray, axes: Sequence[int]) -> HostArray:
        places = cast("npt.NDArray[np.int64]", indices)
        if len(axes) != 1:
            return cast(HostArray, array.reshape(-1)[places])
        return np.take_along_axis(array, places, axes[0])

    def extent(self, array: HostArray) -> tuple[int, tuple[int, ...]]:
        return array.ctypes.data, array.strides

    def span(self, array: HostArray) -> HostArray:
        reach = sum(stride * (length - 1) for stride, length in zip(array.strides, array.shape, strict=True))
        return np.lib.stride_tricks.as_strided(array, (reach // array.itemsize + 1,), (array.itemsize,))

    def from_host(self, array: HostArray) -> HostArray:
        return array.copy()

    def to_host(self, array: HostArray) -> HostArray:
        return array


HOST = HostSpace()


class NumPyKind(ArrayKind[HostArray, HostArray]):
    """NumPy's own class. The shape is no part of a signature: the CPU's own ways take any."""

    space = HOST
    is_host = True

    def signature(self, array: HostArray) -> Hashable:
        return array.dtype, array.ndim, array.flags.num

    def spec(self, name: str, array: HostArray) -> Spec:
        return Spec(
            array.shape, array.dtype, Memory.HOST, None if HOST.is_packed(array) else array.strides, array.flags.aligned
        )

    def empty(self, shape: tuple[int, ...], dtype: DType, like: HostArray) -> HostArray:
        return new_array(shape, dtype)

    def empty_like(self, like: HostArray) -> HostArray:
        return new_array(like.shape, like.dtype) if like.flags.c_contiguous else np.empty_like(like)

    def memory(self, array: HostArray) -> object:
        return array

    def is_packed(self, array: HostArray) -> bool:
        return HOST.is_packed(array)

    def is_read_only(self, array: HostArray) -> bool:
        return not array.flags.writeable

    def view(self, array: HostArray) -> HostArray:
        return array

    def given_back(self, values: HostArray, like: HostArray) -> object:
        return values

    def scalar(self, array: HostArray) -> object:
        return array[()]


class SubclassKind(NumPyKind):
    """A subclass of NumPy's, which makes of results what it makes of a ufunc's."""

    def signature(self, array: HostArray) -> Hashable:
        return type(array), array.dtype, array.shape, array.flags.num

    def empty(self, shape: tuple[int, ...], dtype: DType, like: HostArray) -> HostArray:
        return cast(HostArray, self.given_back(new_array(shape, dtype), like))

    def empty_like(self, like: HostArray) -> HostArray:
        return np.empty_like(like)

    def view(self, array: HostArray) -> HostArray:
        return np.asarray(array)

    def given_back(self, values: HostArray, like: HostArray) -> object:
        return like.__array_wrap__(values) if np.ndim(values) else np.asarray(values)[()]  # or a scalar

    def scalar(self, array: HostArray) -> object:
        return np.asarray(array)[()] if array.ndim == 0 else array


NUMPY, SUBCLASS = NumPyKind(), SubclassKind()


def converted(name: str, x: object) -> HostArray:
    """The array that NumPy makes of a list, a number or whatever knows how to be one."""
    try:
        found = cast(HostArray, np.asanyarray(x))
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: expected {KINDS}; NumPy makes no array of it: {error}") from error
    except TypeError as error:
        raise UnsupportedTypeError(f"{name}: expected {KINDS}, found {type(x).__name__} ({error})") from error
    if found.shape == () and found.dtype.kind == "O":  # NumPy has not looked into it: a generator, a set, a dict, None
        hint = "; make a list of it" if hasattr(type(x), "__iter__") else ""
        raise UnsupportedTypeError(f"{name}: expected {KINDS}, found {type(x).__name__}{hint}")
    return found
