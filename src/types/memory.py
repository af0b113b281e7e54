"""A kernel's arrays, by address space: Storage, Workgroup, Registers. Under CPython they check every access."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from .checks import checked_count
from .elements import bytes_held, decode, dtype_of, encode, mismatch, scalar_reader
from .errors import InvalidArgumentError, OutOfBoundsError, UninitializedReadError, outside
from .scalars import U32, Scalar

E = TypeVar("E")
_NO_INDICES = (Scalar, bool)  # but for U32


class Array(Generic[E]):
    """The base of all memories: typed elements, indexed from 0 by U32 or compile-time int."""

    __slots__ = ("_scalar", "element", "items", "written")

    def __init__(self, element: type[E], items: np.ndarray[tuple[int], np.dtype[np.generic]]) -> None:
        self.element = element
        self.items = items
        self._scalar = scalar_reader(element, items.dtype)
        self.written: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None

    @property
    def kind(self) -> object:
        """The element's class, without its static type."""
        return self.element

    @property
    def length(self) -> U32:
        """The number of elements."""
        return U32(len(self.items))

    def __getitem__(self, index: U32 | int) -> E:
        i = self._checked(index)
        if self.written is not None and not self.written[i]:
            raise UninitializedReadError(f"element {i} is read before anything is written to it")
        return self._scalar(self.items.item(i)) if self._scalar else decode(self.element, self.items[i])

    def __setitem__(self, index: U32 | int, value: E) -> None:
        i = self._checked(index)
        if type(value) is not self.element or not isinstance(value, Scalar):
            wrong = mismatch(self.element, value)
            if wrong is not None:
                raise TypeError(wrong)
        self.items[i] = encode(value)
        if self.written is not None:
            self.written[i] = True

    def _checked(self, index: U32 | int) -> int:
        if isinstance(index, _NO_INDICES) and not isinstance(index, U32):
            raise TypeError(f"expected a U32 index, found {index!r}, e.g. `U32(i)`")
        try:
            i = operator.index(index)
        except TypeError as error:
            raise TypeError(f"expected one U32 index, found {index!r}, e.g. `data[i]`") from error
        if not 0 <= i < len(self.items):
            raise OutOfBoundsError(f"{outside(i, 'an array')} of {len(self.items)} elements")
        return i


class _Shared(Array[E]):
    """Memory shared by invocations. It has relaxed atomics on U32 elements, which return the old value."""

    __slots__ = ()

    def atomic_add(self: _Shared[U32], index: U32 | int, value: U32) -> U32:
        return self._update(index, lambda old: old + value)

    def atomic_min(self: _Shared[U32], index: U32 | int, value: U32) -> U32:
        return self._update(index, lambda old: old if old < value else value)

    def atomic_max(self: _Shared[U32], index: U32 | int, value: U32) -> U32:
        return self._update(index, lambda old: old if old > value else value)

    def atomic_and(self: _Shared[U32], index: U32 | int, value: U32) -> U32:
        return self._update(index, lambda old: old & value)

    def atomic_or(self: _Shared[U32], index: U32 | int, value: U32) -> U32:
        return self._update(index, lambda old: old | value)

    def atomic_xor(self: _Shared[U32], index: U32 | int, value: U32) -> U32:
        return self._update(index, lambda old: old ^ value)

    def atomic_exchange(self: _Shared[U32], index: U32 | int, value: U32) -> U32:
        return self._update(index, lambda old: value)

    def atomic_load(self: _Shared[U32], index: U32 | int) -> U32:
        return self[index]

    def atomic_store(self: _Shared[U32], index: U32 | int, value: U32) -> None:
        self[index] = U32(0) | value  # a Python number becomes a literal

    def _update(self: _Shared[U32], index: U32 | int, change: Callable[[U32], U32]) -> U32:
        old = self[index]
        self[index] = U32(0) | change(old)
        return old


class Storage(_Shared[E]):
    """Global memory: a buffer shared by all invocations of a launch, which outlives it."""

    __slots__ = ()


class Workgroup(_Shared[E]):
    """Workgroup (shared, local) memory: a kernel's parameter, whose length the launch gives; uninitialised."""

    __slots__ = ()

    def __init__(self, element: type[E], length: int) -> None:
        length = checked_count("Workgroup: length", length, 1)
        super().__init__(element, np.zeros(length, dtype_of(element)))
        self.written = np.zeros(length, np.bool_)


MOST_REGISTER_BYTES = 8192  # of an array, as in WebGPU, where a scalar takes four at least


class Registers(Array[E]):
    """A small private array of an invocation: `mine: Registers[U32] = Registers(U32, 8)`; uninitialised."""

    __slots__ = ()

    def __init__(self, element: type[E], length: int) -> None:
        length = checked_count("Registers: length", length, 1)
        most = MOST_REGISTER_BYTES // bytes_held(element)
        if length > most:
            raise InvalidArgumentError(f"Registers: expected at most {most} of this class in an array, found {length}")
        super().__init__(element, np.zeros(length, dtype_of(element)))
        self.written = np.zeros(length, np.bool_)
