"""What NumPy's own sort makes of our order, and batches of short rows that are sorted by it.

NumPy sorts ascending. Descending, integers are sorted inverted and floats negated. Floats are in our order then but for
ties: for a zero it may return any zero, and for a NaN any NaN. Each row has as many of a kind as its source, so they
are overwritten with those of the source. Mostly there is little to write, no -0.0, and NaNs of one kind: a look for
them takes less time than the sort.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from ....types.dtypes import FloatBits
from ....types.indices import SortOrder
from ...base import HostArray
from .float_ties import FloatTies, fill_zeros, has_minus_zero, is_ordered_by_numpy
from .key_words import Elements, Places, bits_of, elements_in_order, numbers_of, ordered_ranks, ordered_words
from .numpy_speed import numpy_sorts_slowly, radix_sorts_sooner

_COUNTED, _COUNTED_BOOLS = 48, 160  # elements of a row: NumPy counts bytes where its sort is to be stable
_BY_RADIX = 96  # the same of 2 bytes, which it sorts by their digits then
NEVER = 1 << 62
# elements of a row of 32 or 64 bits: NumPy's stable sort inserts them before its SIMD sort has begun
INSERTED = 6


def turning(order: SortOrder, kind: str) -> np.ufunc | None:
    """The ufunc to apply before and after a sort in descending order, by the kind of the dtype; None if ascending."""
    return None if order is SortOrder.ASCENDING else np.negative if kind == "f" else np.invert


def turned_as(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The dtype to apply it to. Bools (which may be any byte) and times have all bits inverted; NaT, the least integer,
    becomes the greatest, and so is last in this order as well."""
    seen = {"b": np.uint8, "M": np.int64, "m": np.int64}.get(dtype.kind)
    return dtype if seen is None else np.dtype(seen).newbyteorder(dtype.byteorder)


def counted_from(dtype: np.dtype[np.generic]) -> int:
    """The length from which NumPy's stable sort of rows of bytes, or of integers of 2, is faster than its other one.
    (That is fast on many equal elements, such as bools.)"""
    match dtype.kind, dtype.itemsize:
        case "b", _:
            return _COUNTED_BOOLS
        case _, 1:
            return _COUNTED
        case _, 2 if radix_sorts_sooner():
            return _BY_RADIX
        case _:
            return NEVER


_SHORT_OF_BYTES = 32  # elements of a row
SHORT_STABLE = 6  # the same: NumPy's stable sort takes less time than putting ties back


def sort_chunk(source: HostArray, results: HostArray, order: SortOrder, stable: bool = False) -> None:
    """Sorts each row of a two-dimensional array, on this thread. `results` is `source` itself, or lies apart. In place,
    one call into C sorts it or writes it: an interrupt finds the elements as they were, or in order. Floats that tie
    keep their order where it is asked for."""
    match source.dtype.kind, source.dtype.itemsize:
        case "f", 2 if numpy_sorts_slowly(2, "f") and not _keeps_ties(source, stable):
            if stable and results is source:
                source = source.copy()
            _sort_halves(source, results, order)
            if stable:
                restore_ties(source, results, order, stable)
        case "f", _:
            _sort_floats(source, results, order, stable)
        case (("M" | "m"), _):
            _sort_integers(*_seen_as(np.int64, source, results), order, is_time=True)
        case "b", _:
            _sort_integers(*_seen_as(np.uint8, source, results), order, counted_from(source.dtype))
        case _:
            _sort_integers(source, results, order, counted_from(source.dtype))


def sort_row(source: HostArray, results: HostArray, order: SortOrder, stable: bool = False) -> None:
    """The same of an array of one dimension."""
    row = source[np.newaxis]
    sort_chunk(row, row if results is source else results[np.newaxis], order, stable)


def _seen_as(dtype: npt.DTypeLike, source: Elements, results: Elements) -> tuple[Elements, Elements]:
    """The same memories; one array where they are one."""
    seen: Elements = source.view(dtype)
    return seen, seen if results is source else results.view(dtype)


def _room(source: Elements, results: Elements) -> Elements | None:
    """Where to work on what is to be sorted: in the results, or, in place, in new memory."""
    return None if results is source else results


def _sort_integers(
    source: Elements, results: Elements, order: SortOrder, counted: int = NEVER, *, is_time: bool = False
) -> None:
    """Inverted where they are to descend. NaT, the least integer, becomes the greatest by that, or by counting down."""
    words = results
    if order is SortOrder.DESCENDING:
        words = np.invert(source, out=_room(source, results))
    elif is_time:
        words = np.subtract(source, 1, out=_room(source, results))
    elif results is not source:
        results[...] = source
    length = words.shape[-1]
    takes_numpys_stable = length >= counted if words.itemsize <= 2 else length <= INSERTED
    words.sort(axis=-1, kind="stable" if takes_numpys_stable else None)
    if order is SortOrder.DESCENDING:
        np.invert(words, out=results)
    elif is_time:
        np.add(words, 1, out=results)


def _sort_halves(source: Elements, results: Elements, order: SortOrder) -> None:
    """float16 by its words: NumPy has vector code for 16-bit integers on more processors, and sorts them by radix."""
    words = ordered_words(source, order)
    words.sort(axis=-1, kind="stable" if words.shape[-1] >= counted_from(words.dtype) else None)
    results[...] = elements_in_order(words, source.dtype, order)


def _sort_floats(source: Elements, results: Elements, order: SortOrder, stable: bool) -> None:
    """Negated where they are to descend. Short rows that are to keep their ties are NumPy's to sort stably."""
    ascends, in_place, keeps_ties = order is SortOrder.ASCENDING, results is source, _keeps_ties(source, stable)
    if in_place and ascends and (keeps_ties or is_ordered_by_numpy(source)):
        source.sort(axis=-1, kind="stable" if keeps_ties else None)
        return
    floats: Elements = np.empty_like(source) if in_place else results  # ties are looked up in the source
    if ascends:
        floats[...] = source
    else:
        np.negative(source, out=floats)
    floats.sort(axis=-1, kind="stable" if keeps_ties else None)
    if not ascends:
        np.negative(floats, out=floats)
    if not keeps_ties:
        restore_ties(source, floats, order, stable)
    if in_place:
        results[...] = floats


def _keeps_ties(source: Elements, stable: bool) -> bool:
    """Whether rows are so short that NumPy's stable sort takes less time than putting ties back."""
    return stable and source.shape[-1] <= SHORT_STABLE


def argsort_plainly(source: HostArray, places: Places, order: SortOrder) -> None:
    """By NumPy alone, row by row."""
    if order is SortOrder.ASCENDING and source.dtype != np.float16:
        places[...] = places_in_rows(source)
    else:
        places[...] = places_in_rows(ordered_ranks(source, order))


def places_in_rows(source: Elements) -> Places:
    """NumPy's own stable argsort. Of bytes it looks at all 256, however short a row is: not at those of wider words."""
    if source.itemsize <= 2 and source.shape[1] <= _SHORT_OF_BYTES and source.dtype.kind in "biu":
        source = numbers_of(source).astype(np.int32)
    found: Places = source.argsort(axis=1, kind="stable")
    return found


_BLOCK = 1 << 15  # elements


def _among(words: Elements, is_nan: bool) -> npt.NDArray[np.bool_]:
    """Which of some floats are NaN, or zero, by their bits: no setting of the processor takes a subnormal for zero."""
    bits, of = FloatBits.of(np.dtype(f"f{words.itemsize}")), words.dtype.type
    magnitudes = words & of(bits.magnitude)
    found: npt.NDArray[np.bool_] = magnitudes > of(bits.infinity) if is_nan else magnitudes == 0
    return found


def restore_ties(source: Elements, results: Elements, order: SortOrder, stable: bool) -> None:
    """Writes the zeros and NaNs of sorted rows: as they come in the source's rows, or in the order of their words."""
    last = results[..., -1]
    has_nans = bool((last != last).any())
    span = _zeros_among(results, order)
    if span is not None:
        words = bits_of(source)
        if len(results) == 1 and not stable:
            _write_zeros(words, results[0, span], order)
        elif has_minus_zero(source):  # without -0.0 all are alike
            _write(words, bits_of(results), span.start, order, stable)
    if has_nans and not FloatTies.of(source.dtype).puts_usual_nans_back(source, results, stable):
        _write(bits_of(source), bits_of(results), None, order, stable)


def _zeros_among(results: Elements, order: SortOrder) -> slice | None:
    """The span of the zeros of a sorted row, or, if there are several rows, of all elements. None if there are no
    zeros."""
    if len(results) > 1:
        return slice(0, None) if (results == 0).any() else None
    row, ascends = results[0], order is SortOrder.ASCENDING
    value, places = row.item, range(row.size)  # NaNs, which are last, come before nothing
    first = bisect_left(places, True, key=lambda at: not (value(at) < 0 if ascends else value(at) > 0))
    end = bisect_left(places, True, key=lambda at: not (value(at) <= 0 if ascends else value(at) >= 0))
    return slice(first, end) if first < end else None


def _write_zeros(words: Elements, zeros: Elements, order: SortOrder) -> None:
    """All zeros of a row, in the order of their words: one kind need but be counted, block by block in the cache."""
    row, negative = words[0], words.dtype.type(1 << (8 * words.itemsize - 1))
    blocks = (row[start : start + _BLOCK] for start in range(0, row.size, _BLOCK))
    negatives = sum([int(np.count_nonzero(block == negative)) for block in blocks])
    if negatives:
        fill_zeros(zeros, negatives, order)


def _write(words: Elements, sorted_: Elements, first: int | None, order: SortOrder, stable: bool) -> None:
    """All zeros, or all NaNs if there is no `first`, in one call: in a single row from there on, or at its end."""
    several = len(words) > 1
    are_such = _among(words, first is None)
    found = words[are_such]
    if not stable and (found != found[0]).any():
        in_order = ordered_words(found.view(f"f{words.itemsize}"), order)
        if several:
            found = found[np.lexsort((in_order, are_such.nonzero()[0]))]
        else:
            in_order.sort()
            found = bits_of(elements_in_order(in_order, np.dtype(f"f{words.itemsize}"), order))
    if several:
        sorted_[_among(sorted_, first is None)] = found
    else:
        start = sorted_.size - found.size if first is None else first
        sorted_[0, start : start + found.size] = found
