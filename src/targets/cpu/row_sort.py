"""Short rows, many at a time: NumPy's sort between two cheap turns, then what it loses put back. Never loads Numba.

NumPy sorts ascending. Descending, integers are sorted inverted and floats negated.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...types.dtypes import elements_of, key_for
from ...types.indices import SortOrder
from ..base import HostArray
from .ranks import Elements, words_of
from .special import restore_nans, restore_zeros

_SIGN, _INFINITY = np.uint16(0x8000), np.uint16(0x7C00)  # of float16
_SHORT = 1 << 10  # elements that are looked up in tables
_COUNTED = 16  # a row of bytes this long


def sort_chunk(source: HostArray, results: HostArray, order: SortOrder) -> None:
    """Sorts each row of a two-dimensional array, on this thread. `results` may lie where `source` does."""
    if source.dtype.kind == "f" and np.may_share_memory(source, results):
        source = source.copy()  # zeros and NaNs are looked up in it at the end
    match source.dtype.kind, source.dtype.itemsize:
        case "f", 2:
            _sort_halves(source.view(np.uint16), results.view(np.uint16), order)
        case "f", _:
            _sort_floats(source, results, order)
        case (("M" | "m"), _):
            _sort_times(source.view(np.int64), results.view(np.int64), order)
        case "b", _:
            _sort_integers(source.view(np.uint8), results.view(np.uint8), order)
        case _:
            _sort_integers(source, results, order)


def _sort_integers(source: Elements, results: Elements, order: SortOrder) -> None:
    match order:
        case SortOrder.ASCENDING:
            results[...] = source
        case SortOrder.DESCENDING:
            np.invert(source, out=results)
    if results.itemsize == 1 and results.shape[-1] >= _COUNTED:
        results.sort(axis=-1, kind="stable")  # counts, where the other kind compares
    else:
        results.sort(axis=-1)
    if order is SortOrder.DESCENDING:
        np.invert(results, out=results)


def _sort_times(source: Elements, results: Elements, order: SortOrder) -> None:
    """NaT, the least integer, becomes the greatest one: by counting down from it, or inverted."""
    match order:
        case SortOrder.ASCENDING:
            np.subtract(source, 1, out=results)
            results.sort(axis=-1)
            np.add(results, 1, out=results)
        case SortOrder.DESCENDING:
            np.invert(source, out=results)
            results.sort(axis=-1)
            np.invert(results, out=results)


def _sort_halves(source: Elements, results: Elements, order: SortOrder) -> None:
    """float16 by its words: NumPy has vector code for 16-bit integers on more processors."""
    if source.size < _SHORT:
        sequence, places = half_tables(order)
        np.take(places, source, out=results, mode="clip")
        results.sort(axis=-1)
        results[...] = sequence[results]
        return
    key = key_for(np.float16)
    words = words_of(key, _turned(source) if order is SortOrder.DESCENDING else source)
    words.sort(axis=-1)
    halves = elements_of(key, words)
    results[...] = _turned(halves) if order is SortOrder.DESCENDING else halves


def _turned(bits: Elements) -> Elements:
    """Each number's negative; NaNs as they are."""
    signs = ((bits & ~_SIGN) <= _INFINITY).view(np.uint8).astype(np.uint16)
    signs <<= 15
    signs ^= bits
    return signs


@cache
def half_tables(order: SortOrder) -> tuple[Elements, Elements]:
    """The bits of all float16 in order, and the place of each in it."""
    key = key_for(np.float16)
    words = np.arange(1 << 16, dtype=np.uint32)
    sequence = elements_of(key, words)
    if order is SortOrder.DESCENDING:
        sequence[: key.last + 1] = sequence[key.last :: -1].copy()
    places = np.empty_like(sequence)
    places[sequence] = words
    return sequence, places


def _sort_floats(source: Elements, results: Elements, order: SortOrder) -> None:
    match order:
        case SortOrder.ASCENDING:
            results[...] = source
        case SortOrder.DESCENDING:
            np.negative(source, out=results)
    results.sort(axis=-1)
    if len(results) == 1:
        row = results[0]
        found = row.searchsorted(row.dtype.type(0))
        zeros, nans = found < row.size and row[found] == 0, row[-1] != row[-1]
    else:
        zeros, nans = (results == 0).any(), np.isnan(results[:, -1]).any()
    if zeros:
        restore_zeros(source, results, order)
    if order is SortOrder.DESCENDING:
        np.negative(results, out=results)
    if nans:
        restore_nans(source, results)
