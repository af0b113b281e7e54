"""Where the elements of NumPy's arrays lie."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import numpy.typing as npt


def _address_told(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


_HEAD = object.__basicsize__  # bytes of an array that are any object's: the address of its elements follows
_word_at = ctypes.c_size_t.from_address


def _address_read(array: npt.NDArray[Any]) -> int:
    return _word_at(id(array) + _HEAD).value


def _can_read_addresses() -> bool:
    """Whether it lies where NumPy has always had it. (`id` is an object's address in CPython alone.)"""
    if sys.implementation.name != "cpython":
        return False
    whole = np.arange(24, dtype=np.int16)
    arrays = (whole, whole[3:], whole[::-2], whole.reshape(4, 6)[1:, 2:], np.array(1.0))
    return all(_address_read(array) == _address_told(array) for array in arrays)


# Read in an eighth of the time, which is some microseconds of a call.
address_of = _address_read if _can_read_addresses() else _address_told


class _Writable:
    """What NumPy makes an array of that may be written, whatever the other one may."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.__array_interface__ = {
            "version": 3, "typestr": array.dtype.str, "shape": array.shape, "strides": array.strides,
            "data": (address_of(array), False),
        }  # fmt: skip
        self.array = array  # which holds the memory


def as_writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers for those of NumPy's functions that copy what is read-only, though they only read."""
    return np.asarray(_Writable(array))
