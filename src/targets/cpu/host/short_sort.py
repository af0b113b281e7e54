"""Sorts short arrays: NumPy's own sort with the least overhead around it.

Sorted by it floats are in our order too, but for -0.0, and for NaNs whose bits differ. Mostly there are none, and these
look for them in less time than the sort takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from .key_words import Elements, bits_of

Sorted: TypeAlias = Callable[[HostArray], HostArray]

# Elements: of more, a look at all as integers costs less than a count of those that are not zero; of float16 and in
# another byte order NumPy counts one by one.
FEW, _FEW_ONE_BY_ONE = 640, 128
_COUNTED, _COUNTED_BOOLS = 48, 160  # elements of a row: NumPy counts bytes where its sort is to be stable
# elements of a row of 32 or 64 bits, and of float16: NumPy's stable sort inserts them before its SIMD sort has begun
INSERTED, _INSERTED_HALVES = 6, 32
_NEVER = 1 << 62
_WORDS: dict[int, tuple[np.dtype[np.signedinteger[Any]], int]] = {  # and the least of them
    2: (np.dtype(np.int16), -(1 << 15)), 4: (np.dtype(np.int32), -(1 << 31)), 8: (np.dtype(np.int64), -(1 << 63)),
}  # fmt: skip


def has_minus_zero(source: Elements) -> bool:
    """Whether -0.0 is among packed floats. As an integer it is the least of all; after a sort it may have become
    another zero."""
    word, least = _WORDS[source.itemsize]
    words = source.view(word if source.dtype.isnative else word.newbyteorder())
    return bool(words.item(words.argmin()) == least)


def is_ordered_by_numpy(source: Elements) -> bool:
    """Whether NumPy orders floats as we do: there is no NaN, and no -0.0."""
    size = source.size
    if not size:
        return True
    if (size > FEW or count_nonzero(source) != size) and has_minus_zero(source):
        return False
    greatest = source.item(source.argmax())  # NaN, where there is one
    return bool(greatest == greatest)


def puts_nans_back(source: Elements, results: Elements) -> bool:
    """Whether all NaNs, of which there are some, have the same bits; then the results' NaNs have these."""
    found = bits_of(source)[source != source]
    if count_nonzero(found != found[0]):
        return False
    if results is not source:
        bits_of(results)[results != results] = found[0]
    return True


def are_ties_alike(source: Elements) -> bool:
    """Whether packed floats that tie have the same bits, so that any stable order is theirs by their bits too. -0.0 is
    taken to have 0.0 beside it."""
    if is_ordered_by_numpy(source):
        return True
    return not has_minus_zero(source) and puts_nans_back(source, source)


def turning(order: SortOrder, kind: str) -> np.ufunc | None:
    """The ufunc to apply before and after a sort in descending order, by the kind of the dtype; None if ascending."""
    return None if order is SortOrder.ASCENDING else np.negative if kind == "f" else np.invert


def turned_as(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The dtype to apply it to. Bools (which may be any byte) and times have all bits inverted; NaT, the least integer,
    becomes the greatest, and so is last in this order as well."""
    seen = {"b": np.uint8, "M": np.int64, "m": np.int64}.get(dtype.kind)
    return dtype if seen is None else np.dtype(seen).newbyteorder(dtype.byteorder)


def counted_from(dtype: np.dtype[np.generic]) -> int:
    """The length from which rows of bytes are counted faster than NumPy sorts them. (NumPy's sort is fast on many equal
    elements, such as bools.)"""
    return _COUNTED_BOOLS if dtype.kind == "b" else _COUNTED


def sort_stably(floats: Elements, axis: int, turn: np.ufunc | None) -> None:
    """Sorts in place by NumPy's stable sort; in descending order with negated elements, of which zeros and NaNs still
    tie."""
    if turn is not None:
        turn(floats, floats)
    floats.sort(axis, "stable")
    if turn is not None:
        turn(floats, floats)


class ShortSort:
    """Sorts short arrays of a dtype, along an axis or flattened. All that can be decided beforehand is."""

    def __init__(
        self, dtype: np.dtype[np.generic], axis: int | None, has_rows: bool, order: SortOrder, short: int, long_row: int
    ) -> None:
        """Of at most `short` elements, and, if there may be several rows, of less than `long_row` in each."""
        self._dtype, self._axis, self._has_rows, self._short = dtype, axis, has_rows, short
        self._long_row = long_row if has_rows else _NEVER
        self._turn, size = turning(order, dtype.kind), dtype.itemsize
        self._stable_from, self._stable_to = 0, 0  # lengths of rows that NumPy's stable sort is faster for
        if size == 1:
            self._stable_from, self._stable_to = counted_from(dtype), _NEVER
        elif dtype.kind == "f" and size == 2:
            self._stable_to = _INSERTED_HALVES
        elif has_rows and size > 2 and dtype.kind in "iuf":
            self._stable_to = INSERTED

    def takes(self, x: HostArray) -> bool:
        """Whether an array is short."""
        return x.size <= self._short and (self._axis is None or x.shape[self._axis] < self._long_row)

    def sorter(self, go_on: Sorted) -> Sorted:
        """Sorts into a new array. `go_on` does what is longer, and floats whose bits NumPy's sort may lose."""
        dtype, turn, has_rows, short, long_row = self._dtype, self._turn, self._has_rows, self._short, self._long_row
        axis = 0 if self._axis is None else self._axis
        copy = cast(Sorted, np.ndarray.flatten if self._axis is None else np.ndarray.copy)
        stable_from, stable_to = self._stable_from, self._stable_to
        seen = None if turn is None or turned_as(dtype) == dtype else turned_as(dtype)
        few = FEW if dtype.itemsize > 2 and dtype.isnative else _FEW_ONE_BY_ONE

        def sort(x: HostArray) -> HostArray:
            length = x.shape[axis] if has_rows else x.size
            if x.size > short or length >= long_row:
                return go_on(x)
            results = x.copy("K") if has_rows else copy(x)
            numbers = results if seen is None else results.view(seen)
            if turn is not None:
                turn(numbers, numbers)
            if stable_from < length <= stable_to:
                numbers.sort(axis, "stable")
            else:
                numbers.sort(axis)
            if turn is not None:
                turn(numbers, numbers)
            return results

        def sort_floats(x: HostArray) -> HostArray:
            size = x.size
            length = x.shape[axis] if has_rows else size
            if size > short or length >= long_row:
                return go_on(x)
            results = x.copy("K") if has_rows else copy(x)
            flat = results.ravel("K") if has_rows else results  # as it lies: all else would be packed before a look
            if (size > few or count_nonzero(flat) != size) and has_minus_zero(flat):
                return go_on(x)
            if not size:
                return results
            if turn is not None:
                turn(results, results)
            if length > stable_to:
                results.sort(axis)
            else:
                results.sort(axis, "stable")
            greatest = flat[flat.argmax() if has_rows else -1]  # NaN, where there is one
            if turn is not None:
                turn(results, results)
            return results if greatest == greatest or puts_nans_back(x, results) else go_on(x)

        return sort_floats if dtype.kind == "f" else sort

    def writer(self, sort: Sorted) -> Callable[[HostArray, HostArray], bool]:
        """Sorts into another array or where it lies: either is written by one call into C. False, and nothing done,
        where the array is longer, or the other one not known to take the result."""
        short, long_row, axis = self._short, self._long_row, 0 if self._axis is None else self._axis
        stable_from, stable_to = self._stable_from, self._stable_to
        sorts_at_once = self._turn is None and self._dtype.kind != "f"  # it is whole all the time
        looks_first = self._turn is None and self._dtype.itemsize > 2 and self._dtype.isnative  # at floats

        def write(x: HostArray, out: HostArray) -> bool:
            length = x.shape[axis]
            if x.size > short or length >= long_row:
                return False
            flags = out.flags
            if not (flags.forc and flags.writeable):
                return False
            if out is not x and ((out.dtype is not x.dtype and out.dtype != x.dtype) or out.shape != x.shape):
                return False
            if not sorts_at_once and not (looks_first and out is x and is_ordered_by_numpy(x.ravel("K"))):
                out[...] = sort(x)
                return True
            if out is not x:
                out[...] = x
            if stable_from < length <= stable_to:
                out.sort(axis, "stable")
            else:
                out.sort(axis)
            return True

        return write
