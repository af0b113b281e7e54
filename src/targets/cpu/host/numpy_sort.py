"""Sorts batches of short rows by NumPy: a cheap transform before and after, then -0.0 and NaN bits restored.

NumPy sorts ascending. Descending, integers are sorted inverted and floats negated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ...base import HostArray
from .key_words import Elements, Places, bits_of, elements_in_order, numbers_of, ordered_ranks, ordered_words
from .numpy_speed import numpy_sorts_slowly
from .short_sort import INSERTED, counted_from, is_ordered_by_numpy
from .ties import restore_ties

_SHORT_OF_BYTES = 32  # elements of a row
SHORT_STABLE = 6  # the same: NumPy's stable sort takes less time than putting ties back


def sort_chunk(source: HostArray, results: HostArray, order: SortOrder, stable: bool = False) -> None:
    """Sorts each row of a two-dimensional array, on this thread. `results` is `source` itself, or lies apart.

    In place, one call into C sorts it or writes it: an interrupt finds the elements as they were, or in order. Floats
    that tie keep their order where it is asked for.
    """
    match source.dtype.kind, source.dtype.itemsize:
        case "f", 2 if numpy_sorts_slowly(2, "f") and not _keeps_ties(source, stable):
            if stable and results is source:
                source = source.copy()
            _sort_halves(*_seen_as(np.uint16, source, results), order)
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
    source: Elements, results: Elements, order: SortOrder, counted: int = 0, *, is_time: bool = False
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
    takes_numpys_stable = length >= counted if words.itemsize == 1 else words.itemsize > 2 and length <= INSERTED
    words.sort(axis=-1, kind="stable" if takes_numpys_stable else None)
    if order is SortOrder.DESCENDING:
        np.invert(words, out=results)
    elif is_time:
        np.add(words, 1, out=results)


def _sort_halves(source: Elements, results: Elements, order: SortOrder) -> None:
    """float16 by its words: NumPy has vector code for 16-bit integers on more processors."""
    key = key_for(np.float16)
    words = ordered_words(key, source, order)
    words.sort(axis=-1)
    results[...] = elements_in_order(key, words, order)


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
        places[...] = places_in_rows(ordered_ranks(key_for(source.dtype), bits_of(source), order))


def places_in_rows(source: Elements) -> Places:
    """NumPy's own stable argsort. Of bytes it looks at all 256, however short a row is: not at those of wider words."""
    if source.itemsize <= 2 and source.shape[1] <= _SHORT_OF_BYTES and source.dtype.kind in "biu":
        source = numbers_of(source).astype(np.int32)
    found: Places = source.argsort(axis=1, kind="stable")
    return found
