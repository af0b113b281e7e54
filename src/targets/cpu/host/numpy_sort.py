"""What NumPy's own sort makes of our order, and batches of short rows that are sorted by it.

NumPy sorts ascending. Descending, integers are sorted inverted and floats negated. Floats are in our order then but for
ties: for a zero it may return any zero, and for a NaN any NaN. A row has as many of a kind as its source, so they are
overwritten with those of the source; of several rows, those that have NaNs of several kinds are sorted as words. Mostly
there is little to write, no -0.0, and NaNs of one kind: a look for them takes less time than the sort.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Literal, cast

import numpy as np

from ....arrays.host import is_packed
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from ..pool import shared_pool
from .copies import copy_alone
from .key_words import HALF, Elements, Places, bits_of, elements_in_order, numbers_of, ordered_ranks, ordered_words
from .numpy_speed import numpy_sorts_slowly, radix_sorts_sooner
from .rows_as_words import can_sort_as_words, sort_as_words
from .signed_bits import SignedBits, are_ties_alike

_SHORT_OF_BYTES = 32  # elements of a row
NETWORK = 512  # elements of 2 bytes that NumPy sorts in registers, where it has vectorised code for them
_MANY_IN_ROWS, _LOOKED_AT, _SOME = 1 << 15, 1 << 14, 1 << 10  # elements of rows; those that are worth a look at some
_ZERO, _SIGN_OF_HALF = np.array(0.0, np.float16), np.array(0x8000, np.uint16)
_NAT = np.iinfo(np.int64).min
_SHARED = 1 << 17  # elements that are turned over
FEW_HALVES, _SHORT_OF_HALVES = 1 << 7, 1 << 5  # elements in all, and of a row, whose places NumPy finds slowly


def turning(order: SortOrder, kind: str) -> np.ufunc | None:
    """The ufunc to apply to numbers before and after a sort in descending order, by the kind of the elements; None if
    ascending. NaT, the least integer, becomes the greatest, and so is last in this order as well."""
    return None if order is SortOrder.ASCENDING else np.negative if kind == "f" else np.invert


def lengths_sorted_stably(dtype: np.dtype[np.generic]) -> range:
    """The lengths of rows that NumPy's stable sort takes less time for: it counts bytes, sorts 16 bits by radix, and
    inserts a few elements before its SIMD sort has begun. (That one is fast on many equal elements, such as bools.)"""
    match dtype.kind, dtype.itemsize:
        case "b", _:
            return range(160, sys.maxsize)
        case (("i" | "u"), 1):
            return range(48, sys.maxsize)
        case (("i" | "u"), 2) if radix_sorts_sooner():
            return range(96 if radix_sorts_sooner(NETWORK >> 1) else NETWORK + 1, sys.maxsize)
        case "f", _:
            return range(5)
        case (("i" | "u"), 4 | 8):
            return range(3)
        case _:
            return range(0)


def needs_own_memory(numbers: np.dtype[np.generic]) -> bool:
    """Whether what another thread writes to such numbers may lead NumPy's sort past their end: it counts digits before
    it places them, and without vector code trusts a loop to end at an element that it has seen. So it is given none
    that the caller can reach."""
    match numbers.itemsize:
        case 1:
            return True
        case 2:
            return radix_sorts_sooner()
        case size:
            return numpy_sorts_slowly(size)


def sort_chunk(source: HostArray, results: HostArray, order: SortOrder) -> None:
    """Sorts a row, or each row of an array, on this thread. `results` is `source` itself, or lies apart. In place, one
    call into C sorts it or writes it: an interrupt finds the elements as they were, or in order. Floats that tie are
    put in the order of their bits."""
    dtype, is_float = source.dtype, source.dtype.kind == "f"
    # NumPy's vector code for float16 leaves many equal elements out of order, and few processors have it. Of rows with
    # -0.0 words take less time than a look for the place of each.
    has_rows = source.size > source.shape[-1]
    if is_float and has_rows and is_packed(source) and is_packed(results) and are_words_sooner(source):
        made = np.empty_like(source) if results is source else results
        sort_as_words(source, made, order)
        if made is not results:
            results[...] = made
        return
    if is_float and (dtype.itemsize == 2 or (has_rows and SignedBits.of(dtype).has_minus_zero(source))):
        results[...] = sorted_by_words(source, -1, order)
        return
    numbers = numbers_of(source)
    kind: Literal["stable"] | None = "stable" if numbers.shape[-1] in lengths_sorted_stably(dtype) else None
    turn: Callable[..., Elements] | None = turning(order, dtype.kind)
    back = turn
    if dtype.kind in "Mm" and turn is None:  # NaT, the least integer, becomes the greatest by counting down
        turn, back = partial(np.add, -1), partial(np.add, 1)
    is_apart = needs_own_memory(numbers.dtype)
    if results is source and turn is None and not is_float and not is_apart:
        numbers.sort(axis=-1, kind=kind)
        return
    # NumPy's negative is wrong of floats with some strides.
    is_apart |= results is source or (is_float and turn is not None and not results.flags.forc)
    words: Elements = np.empty_like(numbers) if is_apart else results.view(numbers.dtype)
    if turn is None or numbers.strides != words.strides:
        words[...] = numbers
        numbers = words
    if turn is not None:
        turn(numbers, words)
    words.sort(axis=-1, kind=kind)
    if back is not None:
        back(words, words)
    if is_float and not has_rows:
        restore_ties(source.reshape(-1), words.reshape(-1), order)
    elif is_float and _end_as_nan(words) and not SignedBits.of(dtype).puts_nans_back(source, words):
        with_nans = np.isnan(words[..., -1])
        words[with_nans] = sorted_by_words(source[with_nans], -1, order)
    if is_apart:
        results[...] = words.view(dtype)


def are_words_sooner(source: Elements, axis: int = -1) -> bool:
    """Whether rows of floats are sorted sooner as words than by NumPy's sort of floats and looks for zeros and NaNs:
    many in 32 bits, if they are packed, and where there seem to be many -0.0 or NaNs, which have to differ if rows are
    to be packed first. (Of integers of 64 bits NumPy's sort takes longer.)"""
    rows: Elements = source.swapaxes(axis, -1)
    if source.size < _LOOKED_AT or not source.flags.forc or not can_sort_as_words(rows):
        return False
    are_packed, some = is_packed(rows), source.ravel("K")[:_SOME]
    if are_packed and source.itemsize == 4 and source.size >= _MANY_IN_ROWS:
        return True
    return not are_ties_alike(some) or (are_packed and SignedBits.of(source.dtype).has_nan(some))


def sorted_by_words(elements: Elements, axis: int, order: SortOrder) -> Elements:
    """Native floats sorted as integers, by the order of all their bits; or times: a new array."""
    rows: Elements = elements.swapaxes(axis, -1)
    if elements.dtype.kind == "f" and can_sort_as_words(rows):
        return _packed_and_sorted(rows, order).swapaxes(axis, -1)
    words = ordered_words(elements, order)
    words.sort(axis, "stable" if words.shape[axis] in lengths_sorted_stably(words.dtype) else None)
    return elements_in_order(words, elements.dtype, order)


def _packed_and_sorted(rows: Elements, order: SortOrder) -> Elements:
    """Rows sorted as words by compiled loops: a new array that lies as they do."""
    made: Elements = new_array(rows.shape, rows.dtype)
    if is_packed(rows):
        sort_as_words(rows, made, order)
        return made
    packed, found = new_array(rows.shape, rows.dtype), np.empty_like(rows)
    copy_alone(rows, packed)
    sort_as_words(packed, made, order)
    copy_alone(made, found)
    return found


def sort_by_numpy(elements: Elements, axis: int, order: SortOrder, kind: Literal["stable"] | None = "stable") -> None:
    """By NumPy alone, where they lie: by its stable sort, or its vectorised one."""
    if order is SortOrder.ASCENDING:
        elements.sort(axis, kind)
        return
    turn, numbers = turning(order, elements.dtype.kind), numbers_of(elements)
    assert turn is not None
    turn(numbers, numbers)  # of negated ones zeros and NaNs still tie
    numbers.sort(axis, kind)
    turn(numbers, numbers)


def ascending(elements: Elements, order: SortOrder) -> Elements:
    """Numbers that ascend as native elements should, with NaN and NaT last, and tie as they do: the same memory where
    they do."""
    numbers, turn = numbers_of(elements), turning(order, elements.dtype.kind)
    if turn is None:
        if elements.dtype.kind not in "Mm" or not numbers.size or numbers.item(numbers.argmin()) != _NAT:
            return numbers
        return numbers - 1  # NaT, the least integer, becomes the greatest
    if numbers.dtype == HALF:  # of which NumPy turns over one after the other
        return (bits_of(numbers) ^ _SIGN_OF_HALF).view(HALF)
    if numbers.size < _SHARED or not numbers.flags.c_contiguous:
        return cast(Elements, turn(numbers))
    turned = new_array(numbers.shape, numbers.dtype)
    given, made = numbers.reshape(-1), turned.reshape(-1)
    shared_pool().over(given.size, lambda own: turn(given[own], made[own]), least=_SHARED)
    return turned


def compared_soon(numbers: Elements) -> Elements:
    """The same numbers, or what ascends and ties as they do: in place of more than a few of float16, whose order NumPy
    finds slowly."""
    if numbers.size > FEW_HALVES and numbers.dtype == HALF and numbers.shape[-1] > _SHORT_OF_HALVES:
        return ordered_ranks(numbers, SortOrder.ASCENDING)
    return numbers


def places_in_order(numbers: Elements, axis: int) -> Places:
    """By NumPy's own stable argsort, along an axis, of numbers that ascend. Of bytes it looks at all 256, however short
    a row is: not at those of wider words. It is given a copy of narrow ones: see needs_own_memory."""
    words = compared_soon(numbers)
    if words.itemsize <= 2 and words.dtype != HALF:
        if words.shape[axis] <= _SHORT_OF_BYTES:
            words = words.astype(np.int32)
        elif words is numbers:
            words = words.copy("K")
    found: Places = words.argsort(axis, "stable")
    return found


def _end_as_nan(results: Elements) -> bool:
    """Whether the last of sorted rows, of any, is NaN."""
    if results.ndim == 1:
        last = results.item(-1)
        return bool(last != last)
    ends = results[..., -1]
    return bool((ends != ends).any())


def restore_ties(source: Elements, results: Elements, order: SortOrder) -> None:
    """Writes the zeros and NaNs of a sorted row, in the order of their words."""
    has_nans = _end_as_nan(results)
    _write_zeros(source, results, order, has_nans=has_nans)
    if has_nans and not SignedBits.of(source.dtype).puts_nans_back(source, results):
        words = ordered_words(source[np.isnan(source)], order)
        words.sort()
        results[results.size - words.size :] = elements_in_order(words, source.dtype, order)


def _write_zeros(source: Elements, results: Elements, order: SortOrder, *, has_nans: bool) -> None:
    """They need but be counted."""
    ascends, numbers = order is SortOrder.ASCENDING, results
    if has_nans and not ascends:  # which come last in this order as well
        numbers = results[: results.size - count_nonzero(np.isnan(results))]
    rising = numbers if ascends else numbers[::-1]
    zeros = rising[rising.searchsorted(_ZERO) : rising.searchsorted(_ZERO, "right")]
    if zeros.size and SignedBits.of(source.dtype).has_minus_zero(source):
        words = bits_of(source)
        minus = count_nonzero(words == words.dtype.type(1 << (8 * words.itemsize - 1)))
        zeros[:minus], zeros[minus:] = -0.0, 0.0


def keep_ties(source: Elements, results: Elements) -> None:
    """Of rows that are sorted, with ties in the order of their words: in the order of the source. By their bits, as a
    setting of the processor may take subnormals for zeros."""
    bits, given, made = SignedBits.of(source.dtype), bits_of(source), bits_of(results)
    if bits.has_minus_zero(results.ravel("K")):
        _put(made, made << 1 == 0, given[given << 1 == 0])
    if _end_as_nan(results) and not bits.puts_nans_back(source, results):
        _put(made, np.isnan(results), given[np.isnan(source)])


def _put(made: Elements, where: Elements, found: Elements) -> None:
    """As many as are wanted: there may be others if another thread has written to the source meanwhile."""
    if count_nonzero(where) == found.size:
        made[where] = found
