"""Arrays as a kernel sees them, with the address space in the type.

The classes here are what a kernel's annotations name. Under CPython they hold NumPy arrays and check every index,
so that the plain run of a kernel raises where a device would silently read another's memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from .elements import decode, dtype_of, encode, misfit
from .errors import OutOfBoundsError, UninitializedReadError
from .scalars import U32, Scalar

E = TypeVar("E")


class Array(Generic[E]):
    """What all memories share: typed elements, indexed by U32 (or a compile-time int) from 0."""

    __slots__ = ("element", "items", "written")

    def __init__(self, element: type[E], items: np.ndarray[tuple[int], np.dtype[np.generic]]) -> None:
        self.element = element
        self.items = items
        self.written: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None

    @property
    def kind(self) -> object:
        """The element's class, for code that handles arrays of any."""
        return self.element

    @property
    def length(self) -> U32:
        """How many elements there are."""
        return U32(len(self.items))

    def __getitem__(self, index: U32 | int) -> E:
        i = self._checked(index)
        if self.written is not None and not self.written[i]:
            raise UninitializedReadError(f"element {i} is read before anything is written to it")
        return decode(self.element, self.items[i])

    def __setitem__(self, index: U32 | int, value: E) -> None:
        i = self._checked(index)
        if type(value) is not self.element or not isinstance(value, Scalar):
            wrong = misfit(self.element, value)
            if wrong is not None:
                raise TypeError(wrong)
        self.items[i] = encode(value)
        if self.written is not None:
            self.written[i] = True

    def _checked(self, index: U32 | int) -> int:
        if isinstance(index, Scalar | bool) and not isinstance(index, U32):
            raise TypeError(f"expected a U32 index, found {index!r}, e.g. `U32(i)`")
        i = int(index)
        if not 0 <= i < len(self.items):
            raise OutOfBoundsError(f"index {i} is outside an array of {len(self.items)} elements")
        return i


class _Shared(Array[E]):
    """Memory that several invocations see: it has atomics, on U32 elements. Each returns the old value."""

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
    """A buffer that every invocation of a launch sees; it comes from the host and stays after the launch."""

    __slots__ = ()


class Workgroup(_Shared[E]):
    """Memory one workgroup shares. A parameter of the kernel; the launch says how long it is. Starts unwritten."""

    __slots__ = ()

    def __init__(self, element: type[E], length: int) -> None:
        super().__init__(element, np.zeros(length, dtype_of(element)))
        self.written = np.zeros(length, np.bool_)


class Registers(Array[E]):
    """A small array of one invocation: `mine: Registers[U32] = Registers(U32, 8)`. Starts unwritten."""

    __slots__ = ()

    def __init__(self, element: type[E], length: int) -> None:
        super().__init__(element, np.zeros(length, dtype_of(element)))
        self.written = np.zeros(length, np.bool_)
