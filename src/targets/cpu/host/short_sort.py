"""Sorts short arrays: NumPy's own sort with the least overhead around it.

Sorted by it floats are in our order too, if no NaN is among them, nor -0.0. Mostly that is so, and
these look for it in less time than the sort takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from .key_words import Elements

Sorted: TypeAlias = Callable[[HostArray], HostArray]

FEW = 1024  # elements: of more, a look at all as integers costs less than a count of those that are not zero
_COUNTED, _COUNTED_BOOLS = 48, 160  # elements of a row: NumPy counts bytes where its sort is to be stable
# elements of a row of 32 or 64 bits, and of float16: NumPy's stable sort inserts them before its SIMD sort has begun
INSERTED, INSERTED_HALVES = 6, 32
FEW_IN_ORDER = 640  # the same of a search for zero in a sorted row
_WORDS: dict[int, tuple[np.dtype[np.signedinteger[Any]], int]] = {  # and the least of them
    2: (np.dtype(np.int16), -(1 << 15)), 4: (np.dtype(np.int32), -(1 << 31)), 8: (np.dtype(np.int64), -(1 << 63)),
}  # fmt: skip


def has_minus_zero(source: Elements) -> bool:
    """Whether -0.0 is among floats that lie packed. As an integer it is the least of all; sorted it may be another
    zero."""
    word, least = _WORDS[source.itemsize]
    words = source.view(word)
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


def turning(order: SortOrder, kind: str) -> np.ufunc | None:
    """What is done before and after, to all elements of a kind, where they are to descend."""
    return None if order is SortOrder.ASCENDING else np.negative if kind == "f" else np.invert


def turned_as(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """As what: of bools all bits are turned, for they are of any bytes, and of times too. NaT, the least integer, is
    the greatest one then, and last in this order as well."""
    return np.dtype({"b": np.uint8, "M": np.int64, "m": np.int64}.get(dtype.kind, dtype))


def counted_from(dtype: np.dtype[np.generic]) -> int:
    """The length of rows of bytes from which counting them takes less time than NumPy's other sort, which finds equal
    ones, as bools are, at once."""
    return _COUNTED_BOOLS if dtype.kind == "b" else _COUNTED


def sort_stably(floats: Elements, axis: int, turn: np.ufunc | None) -> None:
    """In place, by NumPy's stable sort; negated where they are to descend, zeros and NaNs still tie."""
    if turn is not None:
        turn(floats, floats)
    floats.sort(axis, "stable")
    if turn is not None:
        turn(floats, floats)


# -- what is done to a short array: all that is known of its signature is bound ------------------------------


def one_row_sorter(
    dtype: np.dtype[np.generic], short: int, is_flat: bool, turn: np.ufunc | None, go_on: Sorted
) -> Sorted:
    """Of arrays of one dimension, or flattened. `go_on` is for more than `short` elements, and for floats among which
    -0.0 or NaN is, whose bits NumPy's sort may lose."""
    copy = cast(Sorted, np.ndarray.flatten if is_flat else np.ndarray.copy)
    zero: HostArray = np.zeros((), dtype)
    counted = counted_from(dtype)

    def sort(x: HostArray) -> HostArray:
        if x.size > short:
            return go_on(x)
        results = copy(x)
        if turn is not None:
            turn(results, results)
        results.sort()
        if turn is not None:
            turn(results, results)
        return results

    def sort_bytes(x: HostArray) -> HostArray:
        size = x.size
        if not counted < size <= short:
            return sort(x)
        results = copy(x)
        if turn is not None:
            turn(results, results)
        results.sort(-1, "stable")
        if turn is not None:
            turn(results, results)
        return results

    def sort_floats(x: HostArray) -> HostArray:
        size = x.size
        if size > short:
            return go_on(x)
        results = copy(x)
        if size <= FEW_IN_ORDER and count_nonzero(results) != size and has_minus_zero(results):
            return go_on(x)
        if turn is not None:
            turn(results, results)
        results.sort()
        if size > FEW_IN_ORDER:  # then zeros are found sooner in what is sorted
            first = int(results.searchsorted(zero))
            if first < size and not results[first] and has_minus_zero(x):
                return go_on(x)
        try:
            greatest = results[-1]  # NaN, where there is one
        except IndexError:
            return results  # without elements
        if greatest != greatest:
            return go_on(x)
        if turn is not None:
            turn(results, results)
        return results

    return sort_floats if dtype.kind == "f" else sort_bytes if dtype.itemsize == 1 else sort


def rows_sorter(
    dtype: np.dtype[np.generic], short: int, long_row: int, axis: int, turn: np.ufunc | None, go_on: Sorted
) -> Sorted:
    """The same along one axis of several. `go_on` is for rows of `long_row` elements, too."""
    inserted = INSERTED_HALVES if dtype == np.float16 else INSERTED if dtype.itemsize > 2 else 0
    counted = counted_from(dtype) if dtype.itemsize == 1 else long_row

    def sort(x: HostArray) -> HostArray:
        length = x.shape[axis]
        if x.size > short or length >= long_row:
            return go_on(x)
        results: HostArray = x.copy("K")
        if turn is not None:
            turn(results, results)
        if inserted < length <= counted:
            results.sort(axis)
        else:
            results.sort(axis, "stable")
        if turn is not None:
            turn(results, results)
        return results

    if dtype.kind != "f":
        return sort

    def sort_floats(x: HostArray) -> HostArray:
        size = x.size
        if size > short or x.shape[axis] >= long_row:
            return go_on(x)
        results: HostArray = x.copy("K")
        if not size:
            return results
        flat = results.ravel("K")  # as it lies: all else would be packed before a look
        if (size > FEW or count_nonzero(flat) != size) and has_minus_zero(flat):
            return go_on(x)
        greatest = flat[flat.argmax()]  # NaN, where there is one
        if greatest != greatest:
            return go_on(x)
        if turn is not None:
            turn(results, results)
        if x.shape[axis] > inserted:
            results.sort(axis)
        else:
            results.sort(axis, "stable")
        if turn is not None:
            turn(results, results)
        return results

    return sort_floats


def short_writer(
    sort: Sorted, is_short: Callable[[HostArray], bool], axis: int, sorts_at_once: bool
) -> Callable[[HostArray, HostArray], bool]:
    """Sorts one short array into another or where it lies: either is written by one call into C. False, and nothing
    done, where it is longer, or where the other is not known to take the result."""

    def write(x: HostArray, out: HostArray) -> bool:
        flags = out.flags
        if not is_short(x) or not (flags.forc and flags.writeable):
            return False
        if out is not x and (out.dtype is not x.dtype or out.shape != x.shape):
            return False
        if not sorts_at_once:
            out[...] = sort(x)
            return True
        if out is not x:
            out[...] = x
        out.sort(axis)
        return True

    return write
