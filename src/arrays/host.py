"""NumPy arrays, subclasses, and whatever NumPy converts to arrays; copies between layouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import cast

import numpy as np

from ..targets.addresses import address_of
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.specs import DType, HostArray, Memory, Shape, Spec
from .kinds import Device, Located, Viewed
from .recycled import new_array

KINDS = "a NumPy or cupy array, a torch tensor, a nested list, or anything with __cuda_array_interface__ or __dlpack__"


def is_packed(array: HostArray) -> bool:
    """Whether an array is C-contiguous, aligned and in native byte order, so that kernels can use it in place."""
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


USERS = 256  # where NumPy begins to number dtypes of other packages, as ml_dtypes' float8_e5m2, whose kind is "f"
_TILE = 128, 512  # elements, of which caches hold both sides; more one way where there are fewer the other way
_LEAST_TILED = 1 << 18  # bytes
_LEAST_PLANE = 1 << 14  # elements, where one plane after the other is worth Python's part


def copy_elements(source: HostArray, to: HostArray) -> None:
    """Copies to an array of the same shape, in cache-sized tiles where it is a transposition: NumPy runs along one
    layout and would fetch each cache line of the other once for every element in it."""
    if to.nbytes >= _LEAST_TILED and not np.may_share_memory(source, to):
        near, across = _nearest(to), _nearest(source)
        if near != across:
            read, written = (np.moveaxis(array, (across, near), (-2, -1)) for array in (source, to))
            planes = np.ndindex(written.shape[:-2]) if math.prod(written.shape[-2:]) >= _LEAST_PLANE else [()]
            rows, width = _tile(*written.shape[-2:])
            for plane in planes:
                for first in range(0, written.shape[-2], rows):
                    for start in range(0, written.shape[-1], width):
                        tile = *(plane or (...,)), slice(first, first + rows), slice(start, start + width)
                        written[tile] = read[tile]
            return
    to[...] = source


def _tile(rows: int, width: int) -> tuple[int, int]:
    most, wide = _TILE
    area = most * wide
    return max(most, area // max(1, min(wide, width))), max(wide, area // max(1, min(most, rows)))


def _nearest(array: HostArray) -> int:
    """The axis of the smallest stride; -1 if there is none."""
    strides = [(abs(stride), axis) for axis, stride in enumerate(array.strides) if array.shape[axis] > 1]
    return min(strides, default=(0, -1))[1]


def _maker(shape: Shape, dtype: DType, strides: Shape | None) -> Callable[[], HostArray]:
    if strides is None:
        return partial(new_array, shape, dtype)
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    inverse = [order.index(axis) for axis in range(len(shape))]
    turned = tuple(shape[axis] for axis in order)
    return lambda: new_array(turned, dtype).transpose(inverse)


def _itself(array: HostArray) -> HostArray:
    return array


# Kernels of the host have scratch of their own.
HOST: Device[HostArray] = Device(
    stream=lambda: 0, device=lambda _: "host", handle=_itself, address=address_of, empty=_maker,
    scratch=lambda _: lambda: ((), []), from_host=_itself, to_host=_itself, alignment=1,
)  # fmt: skip


class NumPyKind(Located[HostArray]):
    """numpy.ndarray itself. Shape and layout are not part of the signature, as the CPU's fast paths take any."""

    is_host = True

    def spec(self, name: str, array: HostArray) -> Spec:
        strides, dtype = None if is_packed(array) else array.strides, array.dtype
        if dtype.kind in "biufmM" and dtype.num < USERS:  # without metadata, which dtypes that are equal may differ in
            dtype = np.dtype(dtype.str)
        return Spec(array.shape, dtype, Memory.HOST, strides, array.flags.aligned)

    def is_read_only(self, array: HostArray) -> bool:
        return not array.flags.writeable

    def signature(self, array: HostArray) -> Hashable:
        return array.dtype, array.ndim

    def layout(self, array: HostArray) -> object:
        return array.__class__, array.dtype, array.shape, array.strides, array.flags.aligned

    def placed(self, like: HostArray) -> Device[HostArray]:
        return HOST


NUMPY = NumPyKind()


class SubclassKind(Viewed[HostArray, HostArray]):
    """Subclasses of ndarray; results are wrapped by __array_wrap__, as a ufunc's are."""

    is_host, base = True, NUMPY

    def view(self, array: HostArray, name: str = "x") -> HostArray:
        return np.asarray(array)

    def result(self, values: HostArray, like: HostArray) -> object:
        return self.given_back(values, like)  # structured arrays, too

    def given_back(self, values: HostArray, like: HostArray) -> object:
        if not np.ndim(values):  # a scalar, or what a prepared call writes one to
            return values
        made = like.__array_wrap__(values)
        # A np.matrix makes a row of all its elements, as NumPy does, but also of a column of sums, as NumPy does not.
        is_all = values.size == like.size and 1 not in like.shape
        return made if made.shape == values.shape or is_all else values


SUBCLASS = SubclassKind()


def converted(name: str, x: object) -> HostArray:
    """Converts a list, a number or anything else that NumPy makes an array of."""
    try:
        found = cast(HostArray, np.asanyarray(x))
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: expected {KINDS}; NumPy makes no array of it: {error}") from error
    except TypeError as error:
        raise UnsupportedTypeError(f"{name}: expected {KINDS}, found {type(x).__name__} ({error})") from error
    if found.shape == () and found.dtype.kind == "O":  # NumPy has not looked into it: a generator, a set, a dict, None
        is_once_through = hasattr(type(x), "__iter__") and not hasattr(x, "shape")  # which sparse matrices have
        hint = "; make a list of it" if is_once_through else ""
        what = "an integer beyond 64 bits" if isinstance(x, int) else type(x).__name__
        raise UnsupportedTypeError(f"{name}: expected {KINDS}, found {what}{hint}")
    return found
