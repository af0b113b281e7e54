"""What the front asks of an array, whatever library it is from.

An ArrayKind knows one library: how to tell which plan suits an array (`signature`), what there is to know of it
(`spec`), how to make another (`empty`), and what a target works on (`memory`). That is all an array needs that is
packed: its elements one behind the other in C order. For all else there is a Space: one kind of memory, and one class
of arrays in it (NumPy's on the host, cupy's on a CUDA device, our own on WebGPU), as which an ArrayKind shows its own
(`view`) without a copy, and takes results back (`given_back`). Spaces move axes, pack, and copy.

Both are stateless: there is one object of each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeAlias, TypeVar

import attrs
import numpy as np

from ..types.errors import UnsupportedTypeError
from ..types.specs import Spec

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
DType: TypeAlias = np.dtype[np.generic]
A = TypeVar("A")  # a library's arrays
V = TypeVar("V")  # the arrays of a space


class Space(ABC, Generic[V]):
    """One kind of memory, and what is done to arrays in it. Work is done on the current device and stream."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: DType) -> V:
        """A new packed array, which holds anything."""

    @abstractmethod
    def last(self, array: V, axes: Sequence[int]) -> V:
        """A view with these axes last, in the order given."""

    @abstractmethod
    def is_packed(self, array: V) -> bool:
        """Whether a target can work on it as it lies: C order, aligned, native byte order."""

    @abstractmethod
    def packed(self, array: V) -> V:
        """A packed copy."""

    @abstractmethod
    def assign(self, target: V, source: V) -> None:
        """Copies the elements of an array of the same shape; to another dtype where they differ."""

    @abstractmethod
    def part(self, array: V, first: int, count: int) -> V:
        """So many elements of a packed array, from one on, in one dimension: a view."""

    @abstractmethod
    def reshaped(self, array: V, shape: tuple[int, ...]) -> V:
        """A view of a packed array in another shape."""

    @abstractmethod
    def take(self, array: V, indices: V, axes: Sequence[int]) -> V:
        """A new array of the elements at these indices along an axis, or of the flattened array along all."""

    @abstractmethod
    def extent(self, array: V) -> tuple[int, tuple[int, ...]]:
        """The address of the first element, and the strides in bytes."""

    @abstractmethod
    def span(self, array: V) -> V:
        """The memory from the first element of an array to its last, in one dimension: a view."""

    @abstractmethod
    def from_host(self, array: HostArray) -> V:
        """A copy of a NumPy array."""

    @abstractmethod
    def to_host(self, array: V) -> HostArray:
        """The elements of a packed array, in the host's memory."""


@attrs.frozen
class Streamed(Generic[A]):
    """How memory and streams of one device are come by at the least cost: functions that were looked up once."""

    stream: Callable[[], int | None]  # what work on an array goes to; None while its device is not the current one
    device: Callable[[A], int]
    address: Callable[[A], int]
    # makes what makes arrays of a shape and a dtype, with strides in bytes, or packed
    empty: Callable[[tuple[int, ...], DType, tuple[int, ...] | None], Callable[[], A]]
    scratch: Callable[[int], tuple[object, int]]  # so many bytes, which live as long as the object, and their address


class ArrayKind(ABC, Generic[A, V]):
    """One library's arrays."""

    space: Space[V]
    is_host: bool = False  # whether views are NumPy arrays
    finishes: bool = False  # whether what is made is another array before it is `finished`

    @abstractmethod
    def signature(self, array: A) -> Hashable:
        """All that a plan depends on: two arrays with equal signatures have the same spec, but for a packed host array,
        of which the shape may be left out; and both are packed, or neither, and lie on the same device."""

    @abstractmethod
    def spec(self, name: str, array: A) -> Spec:
        """Shape, dtype and memory. Raises UnsupportedTypeError, by the argument's name, for what cannot be used."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: DType, like: A) -> A:
        """A new array of this library, packed, which holds anything: on the device and stream of another, within whose
        scope it is made. Where a library's arrays cannot be written it is one of the space, until it is `finished`.
        """

    @abstractmethod
    def empty_like(self, like: A) -> A:
        """The same of another's shape and dtype, with its order of axes where the library keeps that."""

    @abstractmethod
    def memory(self, array: A) -> object:
        """What a Prepared takes for a packed array: an array of the space, or an address."""

    @abstractmethod
    def is_packed(self, array: A) -> bool: ...

    @abstractmethod
    def is_read_only(self, array: A) -> bool: ...

    @abstractmethod
    def view(self, array: A) -> V:
        """The same memory as an array of the space."""

    @abstractmethod
    def given_back(self, values: V, like: A) -> object:
        """An array of the space as one of this library, beside another: the same memory."""

    def finished(self, made: A, like: A) -> object:
        """What `empty` or `empty_like` made as the caller gets it: results are in it, or under way on the stream."""
        return made

    def scalar(self, array: A) -> object:
        """What a reduction to one value gives back for an array of no dimensions: NumPy has scalars for it."""
        return array

    def device(self, array: A) -> object | None:
        """The caller's own device, if the target is to be opened on that one."""
        return None

    def recording(self, encoder: object) -> AbstractContextManager[object]:
        """Within it, work is not done, but recorded into a caller's encoder."""
        raise UnsupportedTypeError("encode: expected arrays on a device of WebGPU; others have no encoder")

    def scope(self, array: A) -> AbstractContextManager[object] | None:
        """Within it, work goes to the device and the stream of this array. None where that is so already."""
        return None

    def are_apart(self, arrays: Sequence[A], others: Sequence[A]) -> bool:
        """Whether arrays, which are what a target works on, lie in other memory than others do, as far as that is told
        at a glance."""
        return False

    def streamed(self, like: A) -> Streamed[A] | None:
        """For arrays with the signature of this one. None where each call needs its `scope`."""
        return None


Kind: TypeAlias = ArrayKind[Any, Any]


def packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """In C order."""
    strides: list[int] = []
    for length in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(length, 1)
    return tuple(reversed(strides))


def lies_packed(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements lie one behind the other in C order, wherever the first one is."""
    lines = zip(shape, strides, packed_strides(shape, itemsize), strict=True)
    return all(length == 1 or stride == wanted for length, stride, wanted in lines)
