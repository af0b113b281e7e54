"""The interface to array libraries: what plans need to know of an array, whatever library it is from.

An ArrayKind knows one library: how to tell which plan suits an array (`signature`) and what there is to know of it
(`spec`). Plans work on the arrays of a few libraries only: NumPy's on the host, cupy's and torch's on a CUDA device,
our own on WebGPU. These are Located: they say how memory is come by where an array lies, and what a kernel is handed.
All others are Viewed: seen as one of those without a copy, and so are the results given back; or Deferred, and have no
memory yet.

Kinds are stateless: there is one object of each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeAlias, TypeGuard, TypeVar

import attrs
import numpy as np

from ..types.errors import UnsupportedTypeError
from ..types.specs import Spec

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
DType: TypeAlias = np.dtype[np.generic]
Shape: TypeAlias = tuple[int, ...]
A = TypeVar("A")  # a library's arrays
B = TypeVar("B")  # those as which it is seen


@attrs.frozen
class Device(Generic[A]):
    """Memory and streams of one device, as functions that were looked up once, for calls that take microseconds."""

    stream: Callable[[], int | None]  # what work on an array goes to; None while its device is not the current one
    device: Callable[[A], object]  # which one an array lies on
    handle: Callable[[A], Any]  # what kernels take: an address, to which bytes can be added; on the host the array
    address: Callable[[A], Any]  # of the first element; those of one memory can be compared
    # makes what makes arrays of a shape and a dtype, with strides in bytes, or packed
    empty: Callable[[Shape, DType, Shape | None], Callable[[], A]]
    scratch: Callable[[Sequence[int]], tuple[object, list[Any]]]  # pieces of so many bytes: who holds them, and handles
    from_host: Callable[[HostArray], A]
    to_host: Callable[[A], HostArray]
    alignment: int  # in bytes, of where a kernel's memory may begin


class ArrayKind(ABC, Generic[A]):
    """One array library, in one kind of memory."""

    is_host: bool = False

    @abstractmethod
    def signature(self, array: A) -> Hashable:
        """The array's part of a plan's cache key: equal signatures mean equal specs on the same device. Host arrays may
        leave out shape and layout."""

    def layout(self, array: A) -> object:
        """A key that is equal for two arrays of one signature exactly if their specs are equal."""
        return self.spec("x", array) if self.is_host else self.signature(array)

    @abstractmethod
    def spec(self, name: str, array: A) -> Spec:
        """Shape, dtype, strides and memory. Raises UnsupportedTypeError, with the argument's name, if unsupported."""

    def is_read_only(self, array: A) -> bool:
        return False

    def device(self, array: A) -> object | None:
        """The caller's own device, where the target must run on it; None for the target's choice."""
        return None

    def recording(self, encoder: object) -> AbstractContextManager[object]:
        """A context in which calls are recorded into the caller's command encoder and not run."""
        raise UnsupportedTypeError("encode: expected arrays on a device of WebGPU; others have no encoder")

    def scope(self, array: A) -> AbstractContextManager[object] | None:
        """A context that makes the array's device and stream current; None if they are."""
        return None


class Located(ArrayKind[A]):
    """Arrays that plans work on directly."""

    has_strides: bool = True  # whether a result's axes may be in another order in memory

    @abstractmethod
    def placed(self, like: A) -> Device[A]:
        """The device of arrays with this one's signature."""


class Viewed(ArrayKind[A], Generic[A, B]):
    """Arrays that plans use through a zero-copy view as another library's."""

    base: Located[B]
    copies: bool = False  # whether what is given back is another's memory, so that it cannot be written anew

    @abstractmethod
    def view(self, array: A) -> B:
        """A zero-copy view."""

    @abstractmethod
    def given_back(self, values: B, like: A) -> object:
        """Converts a result to this library, zero-copy unless the kind `copies`; `like` is the caller's array."""


class Deferred(ArrayKind[A]):
    """Lazy arrays, such as dask's. Calls with them make no plan, but another lazy array."""

    @abstractmethod
    def deferred(self, operation: object, target: object, arrays: tuple[A, ...]) -> object:
        """The lazy result of an operation."""


Kind: TypeAlias = ArrayKind[Any]


def is_viewed(kind: Kind) -> TypeGuard[Viewed[Any, Any]]:
    return isinstance(kind, Viewed)


def is_deferred(kind: Kind) -> TypeGuard[Deferred[Any]]:
    return isinstance(kind, Deferred)
