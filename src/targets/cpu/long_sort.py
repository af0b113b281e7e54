"""One long row: parted about pivots by all threads, then its parts sorted by NumPy side by side.

NumPy's vectorised sort runs without the GIL. A single pass of partition is cheap beside it, so each thread gets a part
of its own to sort. Input that NumPy sorts quickly, or that is in order, is seen first.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ...types.dtypes import FloatBits
from ...types.indices import SortOrder
from ..base import HostArray
from .policy import SortPolicy
from .pool import Pool
from .row_sort import special_ranks

Elements: TypeAlias = npt.NDArray[Any]
_BLOCK = 1 << 15  # elements checked for order at a time: they stay in the cache


def sort_long(source: HostArray, results: HostArray, order: SortOrder, policy: SortPolicy, pool: Pool) -> None:
    """Sorts a one-dimensional array of 32- or 64-bit elements. `results` may lie where `source` does."""
    match source.dtype.kind:
        case "f":
            _sort_floats(source, results, order, policy, pool)
        case "M" | "m":
            numbers, sorted_ = source.view(np.int64), results.view(np.int64)
            sort_numbers(numbers, sorted_, policy, pool)
            if order is SortOrder.DESCENDING:
                _reverse(sorted_, pool)
            else:
                missing = int(np.searchsorted(sorted_, np.iinfo(np.int64).min, side="right"))
                if missing:
                    sorted_[: sorted_.size - missing] = sorted_[missing:]
                    sorted_[sorted_.size - missing :] = np.iinfo(np.int64).min
        case _:
            sort_numbers(source, results, policy, pool)
            if order is SortOrder.DESCENDING:
                _reverse(results, pool)


def _sort_floats(source: Elements, results: Elements, order: SortOrder, policy: SortPolicy, pool: Pool) -> None:
    bits = FloatBits.of(source.dtype)
    special = _survey(source, bits, pool)
    nans = _nans(source, special.nans, bits)
    sort_numbers(source, results, policy, pool)
    numbers = results[: results.size - nans.size]
    first, last = (int(np.searchsorted(numbers, 0, side=side)) for side in ("left", "right"))
    minus_zeros, plus_zeros = numbers[first : first + special.minus_zeros], numbers[first + special.minus_zeros : last]
    minus_zeros[...], plus_zeros[...] = -0.0, 0.0
    if order is SortOrder.DESCENDING:
        _reverse(numbers, pool)
    results[numbers.size :].view(bits.word)[...] = nans


@attrs.frozen
class _Special:
    """What NumPy's sort of floats does not keep apart."""

    nans: int
    minus_zeros: int


def _pieces(length: int, pool: Pool) -> list[slice]:
    """Equal parts of a row, some for each thread."""
    count = 4 * pool.threads
    return [slice(length * k // count, length * (k + 1) // count) for k in range(count)]


def _survey(source: Elements, bits: FloatBits, pool: Pool) -> _Special:
    from .split_kernels import survey

    words, pieces = source.view(bits.word), _pieces(source.size, pool)
    found = np.zeros((len(pieces), 2), np.int64)
    minus_zero = bits.word.type(bits.magnitude + 1)

    def look(piece: int) -> None:
        found[piece] = survey(source[pieces[piece]], words[pieces[piece]], minus_zero)

    pool.run(look, len(pieces))
    nans, minus_zeros = found.sum(axis=0).tolist()
    return _Special(nans, minus_zeros)


def _nans(source: Elements, count: int, bits: FloatBits) -> Elements:
    """The bits of all NaNs, in order."""
    nans = np.empty(count, bits.word)
    if count:
        from .split_kernels import gather_nans

        gather_nans(source, source.view(bits.word), nans)
        nans[...] = special_ranks(nans, bits)
        nans.sort()
        nans[...] = special_ranks(nans, bits)
    return nans


def _reverse(values: Elements, pool: Pool) -> None:
    from .split_kernels import reverse

    pieces = _pieces(values.size // 2, pool)
    pool.run(lambda piece: reverse(values, pieces[piece].start, pieces[piece].stop), len(pieces))


# -- numbers, ascending -----------------------------------------------------------------------------------


def sort_numbers(source: Elements, results: Elements, policy: SortPolicy, pool: Pool) -> None:
    """Sorts as NumPy does, ascending: integers by value, any NaN after all numbers, any zero for another."""
    step = max(1, source.size // policy.sample)
    looked_at = source[step // 2 :: step].copy()
    if _ascends(looked_at) and _ascends(source):
        results[...] = source
        return
    if _ascends(looked_at[::-1]) and _ascends(source[::-1]):
        results[...] = source[::-1]
        return
    pivots = _pivots(looked_at, policy, pool)
    if not pivots.size:
        results[...] = source
        results.sort()
        return
    bounds = _part(source, results, pivots, pool)
    pool.run(lambda part: results[bounds[part] : bounds[part + 1]].sort(), len(bounds) - 1)


def _ascends(values: Elements) -> bool:
    """Stops at the first block that does not. A NaN never ascends."""
    last = values.size - 1
    for start in range(0, last, _BLOCK):
        stop = min(start + _BLOCK, last)
        if not (values[start:stop] <= values[start + 1 : stop + 1]).all():
            return False
    return True


def _pivots(looked_at: Elements, policy: SortPolicy, pool: Pool) -> Elements:
    """What parts elements like these evenly, a part for each thread; nothing where NumPy alone is faster."""
    looked_at.sort()
    numbers = looked_at[looked_at == looked_at]  # without NaNs, which lie in the last part
    threads = min(pool.threads, policy.most_threads)
    parts = 1 << (threads.bit_length() - 1)
    different = int(np.count_nonzero(numbers[1:] != numbers[:-1])) + 1
    if parts == 1 or different <= policy.few or 2 * numbers.size < looked_at.size:
        parts = 1
    at = [numbers.size * part // parts for part in range(1, parts)]
    return np.asarray(numbers[at])


def _part(source: Elements, results: Elements, pivots: Elements, pool: Pool) -> list[int]:
    """Brings elements into `results`, part by part; the bounds of the parts. Each pass halves all parts.

    Passes go to and fro between `results` and another array, and end in `results`. An interrupted caller finds all its
    elements still in place: the array that a pass reads is whole.
    """
    passes = (pivots.size + 1).bit_length() - 1
    in_place = np.may_share_memory(source, results)
    spare = np.empty_like(source) if passes > 1 or in_place else results
    reading = source
    bounds = [0, source.size]
    try:
        for number in range(passes):
            target = results if (passes - number) % 2 else spare
            if number == 0 and in_place and target is results:
                _copy(source, spare, pool)
                reading = spare
            stride = (pivots.size + 1) >> number
            bounds = _halve(reading, target, bounds, pivots[stride // 2 - 1 :: stride], pool)
            reading = target
    except BaseException:
        if in_place and reading is spare:
            results[...] = spare
        raise
    return bounds


def _copy(source: Elements, target: Elements, pool: Pool) -> None:
    pieces = _pieces(source.size, pool)

    def copy(piece: int) -> None:
        target[pieces[piece]] = source[pieces[piece]]

    pool.run(copy, len(pieces))


@attrs.frozen
class _Piece:
    """Some elements of a part, which one thread moves to either side of its pivot."""

    part: int
    elements: slice


def _halve(source: Elements, target: Elements, bounds: list[int], pivots: Elements, pool: Pool) -> list[int]:
    """Parts each part about its pivot; the new bounds."""
    from .split_kernels import count_below, part

    share = max(1, 4 * pool.threads // pivots.size)
    pieces = [
        _Piece(number, slice(start + (stop - start) * k // share, start + (stop - start) * (k + 1) // share))
        for number, (start, stop) in enumerate(pairwise(bounds))
        for k in range(share)
    ]
    below = np.zeros(len(pieces), np.int64)

    def count(number: int) -> None:
        piece = pieces[number]
        below[number] = count_below(source[piece.elements], pivots[piece.part])

    pool.run(count, len(pieces))
    places: list[tuple[slice, slice]] = []
    halved = [0]
    for number, (start, stop) in enumerate(pairwise(bounds)):
        own = range(number * share, (number + 1) * share)
        low, high = start, start + int(below[own.start : own.stop].sum())
        halved += [high, stop]
        for index in own:
            elements = pieces[index].elements
            lows = int(below[index])
            highs = elements.stop - elements.start - lows
            places.append((slice(low, low + lows), slice(high, high + highs)))
            low, high = low + lows, high + highs

    def move(number: int) -> None:
        piece, (lows, highs) = pieces[number], places[number]
        part(source[piece.elements], pivots[piece.part], target[lows], target[highs])

    pool.run(move, len(pieces))
    return halved
