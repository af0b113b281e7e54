"""NumPy's own sort as the address of a C function, for compiled code that sorts without the interpreter.

NumPy's C API has a table of functions, the same in all of NumPy 2, and in it an accessor of a dtype's own functions.
The `sort` slot of these takes an address, a count of elements, and an array that sorts of numbers do not look at.
Nothing is called that does not lie in NumPy's own library, and no sort is handed out that does not do what `numpy.sort`
does.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib import import_module

import numpy as np

from .key_words import Elements

_CAPSULE = "_ARRAY_API"
_VERSION, _FUNCTIONS = 0, 365  # places in the table: PyArray_GetNDArrayCVersion, _PyDataType_GetArrFuncs
_NUMPY_2 = 0x02000000
_SORT = 21 + 12  # place among a dtype's functions, PyArray_ArrFuncs: behind its casts and twelve others
_TRIED, _SCATTERED = 1 << 12, 0x9E3779B97F4A7C15  # words, multiples of a number whose bits look random


class _Described(ctypes.Structure):
    """What the loader says of an address: Dl_info."""

    _fields_ = (
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("at", ctypes.c_void_p),
    )  # fmt: skip


@cache
def sort_address(dtype: np.dtype[np.generic]) -> int:
    """The address of `int sort(void *start, intptr_t count, void *)` for a native dtype of numbers; 0 where none is
    known to be right, as on systems other than Linux and in Pythons other than CPython."""
    is_here = sys.platform == "linux" and sys.implementation.name == "cpython"
    if not is_here or not dtype.isnative or dtype.kind not in "iuf":
        return 0
    try:
        address = found_address(dtype)
        return address if address and _sorts(address, dtype) else 0
    except (ImportError, AttributeError, OSError, ValueError):
        return 0


def found_address(dtype: np.dtype[np.generic]) -> int:
    library = import_module("numpy._core._multiarray_umath")
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))(getattr(library, _CAPSULE), None)
    version, functions_of = _word(table, _VERSION), _word(table, _FUNCTIONS)
    file = str(library.__file__)
    if not (is_in(file, version) and is_in(file, functions_of)):
        return 0
    if ctypes.PYFUNCTYPE(ctypes.c_uint)(version)() != _NUMPY_2:
        return 0
    functions: int = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(functions_of)(dtype)
    sort = _word(functions, _SORT)
    return sort if is_in(file, sort) else 0


def _word(address: int, place: int) -> int:
    """One of the addresses that lie there."""
    return ctypes.c_size_t.from_address(address + place * ctypes.sizeof(ctypes.c_size_t)).value


def is_in(file: str, address: int) -> bool:
    """Whether code lies in a library."""
    described = _Described()
    tell = ctypes.CDLL(None).dladdr
    tell.argtypes = (ctypes.c_void_p, ctypes.POINTER(_Described))
    return bool(address and tell(address, ctypes.byref(described)) and described.file == file.encode())


def _sorts(address: int, dtype: np.dtype[np.generic]) -> bool:
    """Whether a function sorts as NumPy does: any numbers, NaNs among them, and equal ones."""
    sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(address)
    words = np.arange(1, _TRIED + 1, dtype=np.uint64) * np.uint64(_SCATTERED)
    for row in (words, words & np.uint64(0x0300030003000300), words // words):
        numbers: Elements = row.view(dtype)
        expected = np.sort(numbers)
        if sort(numbers.ctypes.data, numbers.size, None) or numbers.tobytes() != expected.tobytes():
            return False
    return True
