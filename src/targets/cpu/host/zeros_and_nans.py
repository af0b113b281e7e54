"""Zeros and NaNs: NumPy's sort may return any zero for a zero and any NaN for a NaN, so their bits are written again.

Mostly there is little to write: no -0.0, and all NaNs alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ....types.dtypes import ArrayKey, elements_of, key_for
from ....types.indices import SortOrder
from ..pool import Pool, slices
from .key_words import Elements, bits_of, words_of

Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_FEW = 32


def minus_zero(words: Elements) -> np.uint32 | np.uint64:
    return np.uint64(1 << 63) if words.itemsize == 8 else np.uint32(1 << 31)


def restore_zeros(source: Elements, results: Elements, order: SortOrder) -> None:
    """Before rows that were sorted are negated, if they descend: in each as many -0.0 as there should be, then 0.0."""
    words = bits_of(source)
    signed = words.view(f"i{words.itemsize}")
    if signed.min() != np.iinfo(signed.dtype).min:  # which -0.0 is, as an integer
        return
    is_minus: Mask = words == minus_zero(words)
    minus = int(np.count_nonzero(is_minus))
    if len(results) == 1:
        zeros = zeros_among(results[0])
        write_zeros(zeros, minus if order is SortOrder.ASCENDING else zeros.size - minus)
        return
    is_zero: Mask = results == 0
    counts: Counts = np.count_nonzero(is_minus, axis=-1)
    if order is SortOrder.DESCENDING:
        counts = np.count_nonzero(is_zero, axis=-1) - counts
    ends: Counts = is_zero.argmax(axis=-1) + counts
    is_early = np.less(np.arange(int(results.shape[1])), ends[:, np.newaxis])
    np.copyto(results, np.where(is_early, -0.0, 0.0), where=is_zero)


def zeros_among(numbers: Elements) -> Elements:
    """Those of a sorted row."""
    zero = numbers.dtype.type(0)
    return numbers[numbers.searchsorted(zero, side="left") : numbers.searchsorted(zero, side="right")]


def write_zeros(zeros: Elements, minus_zeros: int) -> None:
    """All in one call: in place there are as many of each sign at any time."""
    if minus_zeros in (0, zeros.size):
        zeros[...] = -0.0 if minus_zeros else 0.0
    else:
        zeros[...] = np.repeat(zeros.dtype.type([-0.0, 0.0]), [minus_zeros, zeros.size - minus_zeros])


def restore_nans(source: Elements, results: Elements) -> None:
    """In each sorted row the NaNs of the source's, in the order of their words."""
    words, nans = bits_of(source), _nans_of(results)
    first = _any_nan(source)
    are_alike = np.count_nonzero(words == first) == results[nans].size
    bits_of(results)[nans] = first if are_alike else _nans_by_row(words, source != source, key_for(source.dtype))


def _nans_of(results: Elements) -> tuple[slice, slice] | Mask:
    """Where the NaNs of sorted rows are."""
    if len(results) > 1:
        return np.not_equal(results, results)
    return slice(None), slice(int(results[0].searchsorted(results.dtype.type(np.nan))), None)


def _any_nan(source: Elements) -> Any:
    """The bits of a NaN, of which there is one at least: mostly soon found."""
    few = source.reshape(-1)[:: max(1, source.size // _FEW)]
    seen: Elements = few[few != few]
    return bits_of(seen if seen.size else source[source != source])[0]


def _nans_by_row(words: Elements, is_nan: Mask, key: ArrayKey) -> Elements:
    found = words_of(key, words[is_nan])
    if len(words) == 1:
        found.sort()
    else:
        found = found[np.lexsort((found, np.nonzero(is_nan)[0]))]
    return elements_of(key, found)


def nans_in_order(key: ArrayKey, source: Elements, count: int, sample: Elements, pool: Pool) -> Elements | int:
    """The bits of so many NaNs of a long row, in order, or of all of them, if those are alike."""
    if not count:
        return 0
    words = bits_of(source)
    seen = bits_of(sample)[sample != sample]
    if seen.size and _are_like(source, words, seen[0], pool):
        return int(seen[0])
    from .order_kernels import gather_nans

    found = np.empty(count, words.dtype)
    gather_nans(source, words, found)
    found = words_of(key, found)
    found.sort()
    return elements_of(key, found)


def _are_like(source: Elements, words: Elements, nan: Any, pool: Pool) -> bool:
    """Whether all NaNs of a row have these bits."""
    from .order_kernels import has_other_nans

    pieces = slices(source.size, 4 * pool.threads)

    def are_like(number: int) -> bool:
        return not has_other_nans(source[pieces[number]], words[pieces[number]], nan)

    return pool.all(are_like, len(pieces))
