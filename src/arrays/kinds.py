"""The interface to array libraries: what plans need to know of an array, whatever library it is from.

Plans work on the arrays of a few libraries only, which are Located: NumPy's, cupy's, torch's on a card, our own on
WebGPU. All others are Viewed, seen as one of those without a copy, or have no memory yet. There is one object of each
kind, without state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import accumulate
from typing import Any, Generic, TypeAlias, TypeVar, cast

import attrs

from ..types.errors import UnsupportedTypeError
from ..types.specs import DType, HostArray, Shape, Spec

APART = 256  # bytes from one piece of a device's memory to the next: a multiple of that
ALIGNMENT = 8  # bytes, on a CUDA device: a kernel's elements have no more
BEYOND_ALIGNED = ALIGNMENT - 1  # the bits of an address that say whether elements of every size are aligned

M = TypeVar("M")  # what owns memory of a device
A = TypeVar("A")  # a library's arrays
B = TypeVar("B")  # those as which it is seen
IN_SCOPE = nullcontext()


@attrs.frozen
class Device(Generic[A]):
    """Memory and streams of one device, as functions that were looked up once, for calls that take microseconds."""

    stream: Callable[[], int | None]  # what work on an array goes to; None while its device is not the current one
    device: Callable[[A], object]  # which one an array lies on
    handle: Callable[[A], Any]  # what kernels take: an address, to which bytes can be added; on the host the array
    address: Callable[[A], int]  # of the first element
    # makes what makes arrays of a shape and a dtype, with strides in bytes, or packed
    empty: Callable[[Shape, DType, Shape | None], Callable[[], A]]
    # makes what allocates pieces of so many bytes: who holds them, and handles
    scratch: Callable[[Sequence[int]], Callable[[], tuple[object, list[Any]]]]
    from_host: Callable[[HostArray], A]
    to_host: Callable[[A], HostArray]
    alignment: int  # in bytes, of where a kernel's memory may begin


def span(sizes: Iterable[int]) -> int:
    """Bytes of pieces laid out one after another on a device, each aligned."""
    return sum(-(-size // APART) * APART for size in sizes)


def places(first: int, sizes: Sequence[int]) -> list[int]:
    """Addresses of pieces of these sizes, laid out one after another."""
    return list(accumulate((span([size]) for size in sizes), initial=first))[:-1]


def pieces_maker(
    allocate: Callable[[int], M], address: Callable[[M], int], sizes: Sequence[int]
) -> Callable[[], tuple[object, list[int]]]:
    """Makes what allocates pieces of these sizes in one memory: who holds them, and their addresses."""
    nbytes, offsets = span(sizes), places(0, sizes)

    def made() -> tuple[object, list[int]]:
        memory = allocate(nbytes)
        first = address(memory)
        return memory, [first + offset for offset in offsets]

    return made


class ArrayKind(ABC, Generic[A]):
    """One array library, in one kind of memory."""

    is_host: bool = False
    is_located: bool = False  # asked in every call, as these are found faster than an abstract class is
    is_deferred: bool = False  # lazy, such as dask's: calls make no plan, but another lazy array
    copies: bool = False  # whether what is given back is another's memory, so that it cannot be written anew
    read_only: str = "a read-only one"  # the words of errors for an array that may not be written

    @abstractmethod
    def spec(self, name: str, array: A) -> Spec:
        """Shape, dtype, strides and memory. Raises UnsupportedTypeError, with the argument's name, if unsupported."""

    def view(self, array: A, name: str = "x") -> Any:
        """What plans work on: the array itself, or what it is seen as. Raises UnsupportedTypeError, with the argument's
        name, if the array is not supported."""
        return array

    def place(self, array: A) -> Any:
        """What plans write to: a view of an `out`."""
        return self.view(array, "out")

    def result(self, values: Any, like: A) -> object:
        """A result of plans for the caller, whose array `like` is."""
        return values

    def in_places(self, result: Any, like: A) -> object:
        """A result whose elements stand for those of an array, each in its place, which may have a label there."""
        return result

    def is_read_only(self, array: A) -> bool:
        """Whether it may not be written."""
        return False

    def tell_written(self, arrays: Sequence[object]) -> None:
        """Tells the library that a call has written to these arrays, where it asks to know."""
        return

    def recording(self, encoder: object) -> AbstractContextManager[object]:
        """A context in which calls are recorded into the caller's command encoder and not run."""
        raise UnsupportedTypeError("encode: expected arrays on a device of WebGPU; others have no encoder")

    def deferred(self, operation: object, target: object, arrays: tuple[A, ...]) -> object:
        """The lazy result of an operation, where arrays are `is_deferred`."""
        raise NotImplementedError

    def scope(self, array: A) -> AbstractContextManager[object]:
        """A context that makes the array's device and stream current; IN_SCOPE if they are."""
        return IN_SCOPE


class Located(ArrayKind[A]):
    """Arrays that plans work on directly."""

    is_located = True
    has_strides: bool = True  # whether a result's axes may be in another order in memory

    @abstractmethod
    def signature(self, array: A) -> Hashable:
        """The array's part of a plan's cache key: equal signatures mean equal specs on the same device. Host arrays
        leave out shape and layout."""

    def layout(self, array: A) -> object:
        """A key that is equal for two arrays of one signature exactly if their specs are equal."""
        return self.signature(array)

    def device(self, array: A) -> object | None:
        """The caller's own device, where the target must run on it; None for the target's choice."""
        return None

    @abstractmethod
    def placed(self, like: A) -> Device[A]:
        """The device of arrays with this one's signature."""


class Viewed(ArrayKind[A], Generic[A, B]):
    """Arrays that plans use through a zero-copy view as another library's."""

    base: Located[B]

    @abstractmethod
    def view(self, array: A, name: str = "x") -> B:
        """The same array as the other library's."""

    def spec(self, name: str, array: A) -> Spec:
        return self.base.spec(name, self.view(array, name))

    def is_read_only(self, array: A) -> bool:
        return self.base.is_read_only(self.place(array))

    @abstractmethod
    def given_back(self, values: B, like: A) -> object:
        """Converts a result to this library, zero-copy unless the kind `copies`; `like` is the caller's array."""

    def result(self, values: B, like: A) -> object:
        # Structured arrays stay NumPy's, as no other library has such.
        return values if cast(HostArray, values).dtype.names is not None else self.given_back(values, like)


Kind: TypeAlias = ArrayKind[Any]


def scope_of_all(given: Iterable[tuple[Kind, Any]]) -> AbstractContextManager[object]:
    """A context that makes the first array's device and stream current, and keeps work in order with the streams of
    all; IN_SCOPE if they are."""
    scopes = {id(x): kind.scope(x) for kind, x in given}.values()
    within = [scope for scope in scopes if scope is not IN_SCOPE]
    return _within(within) if within else IN_SCOPE


@contextmanager
def _within(scopes: Sequence[AbstractContextManager[object]]) -> Generator[None]:
    with ExitStack() as stack:
        for scope in reversed(scopes):
            stack.enter_context(scope)
        yield
