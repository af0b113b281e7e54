"""What the front asks of an array, whatever library it is from.

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
    """Memory and streams where an array lies: functions that were looked up once, for calls of some microseconds."""

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
    keeps_order: bool = True  # whether what is made like an array has its order of axes


class ArrayKind(ABC, Generic[A]):
    """One library's arrays."""

    is_host: bool = False

    @abstractmethod
    def signature(self, array: A) -> Hashable:
        """All that a plan depends on: two arrays with equal signatures have the same spec and lie on the same device.
        Those of the host may leave out their shape and layout."""

    def layout(self, array: A) -> object:
        """What is equal for two arrays of one signature if their specs are."""
        return self.spec("x", array) if self.is_host else self.signature(array)

    @abstractmethod
    def spec(self, name: str, array: A) -> Spec:
        """Shape, dtype and memory. Raises UnsupportedTypeError, by the argument's name, for what cannot be used."""

    def is_read_only(self, array: A) -> bool:
        return False

    def device(self, array: A) -> object | None:
        """The caller's own device, if the target is to be opened on that one."""
        return None

    def recording(self, encoder: object) -> AbstractContextManager[object]:
        """Within it, work is not done, but recorded into a caller's encoder."""
        raise UnsupportedTypeError("encode: expected arrays on a device of WebGPU; others have no encoder")

    def scope(self, array: A) -> AbstractContextManager[object] | None:
        """Within it, work goes to the device and the stream of this array. None where that is so already."""
        return None


class Located(ArrayKind[A]):
    """Arrays that plans work on."""

    @abstractmethod
    def placed(self, like: A) -> Device[A]:
        """Where arrays with the signature of this one lie."""


class Viewed(ArrayKind[A], Generic[A, B]):
    """Arrays that are seen as those of another library."""

    base: Located[B]
    copies: bool = False  # whether what is given back is another's memory, so that it cannot be written anew

    @abstractmethod
    def view(self, array: A) -> B:
        """The same memory."""

    @abstractmethod
    def given_back(self, values: B, like: A) -> object:
        """A result as one of this library, beside another: the same memory, unless it `copies`."""


class Deferred(ArrayKind[A]):
    """Arrays of which nothing is computed yet. Calls with them have no plan: they make another array of their kind."""

    @abstractmethod
    def deferred(self, operation: object, target: object, arrays: tuple[A, ...]) -> object:
        """What an operation makes of them."""


Kind: TypeAlias = ArrayKind[Any]


def is_viewed(kind: Kind) -> TypeGuard[Viewed[Any, Any]]:
    return isinstance(kind, Viewed)


def is_deferred(kind: Kind) -> TypeGuard[Deferred[Any]]:
    return isinstance(kind, Deferred)
