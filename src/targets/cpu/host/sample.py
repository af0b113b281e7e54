"""A look at a long row before work starts: some input is sorted faster than by sorting it."""

from __future__ import annotations

from functools import lru_cache

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...counts import count_nonzero
from ..loops import PIECE
from ..pool import Pool
from .key_words import Elements, bits_of, numbers_of, ordered_words
from .numpy_sort import restore_ties
from .radix_sort import suits_radix

_FEW = 24
_FLOATS = 1 << 15  # elements: fewer that are alike are sorted sooner than looked at


def sample_of(source: Elements, count: int) -> Elements:
    """About so many elements from all over a row, as they come."""
    step = max(1, source.size // count)
    return source[step // 2 :: step].copy()


@attrs.frozen
class Sample:
    """Some of a row's elements: what a plan is made from. All that is done before must be little."""

    numbers: Elements  # in order, without NaNs
    different: int  # how many numbers there are
    is_mostly_nan: bool

    @classmethod
    def of(cls, source: Elements, policy: HostSortPolicy) -> Sample:
        elements = sample_of(source, policy.sample)
        numbers: Elements = elements[elements == elements] if elements.dtype.kind == "f" else elements.copy()
        numbers.sort()
        different = numbers.size - count_nonzero(numbers[1:] == numbers[:-1])
        return cls(numbers, different, 2 * numbers.size < elements.size)


def is_monotonic(source: Elements, test: np.ufunc, pool: Pool) -> bool:
    """Whether all elements of a row compare so with the next one. A NaN does in no way."""

    def holds(own: slice) -> bool:
        return bool(test(source[own], source[own.start + 1 : own.stop + 1]).all())

    return _seems_monotonic(source, test) and pool.all_over(source.size - 1, holds, -(-source.size // PIECE))


def seems_in_order(source: Elements) -> bool:
    """Whether a few elements of a row are in one order or the other."""
    return _seems_monotonic(source, np.less_equal) or _seems_monotonic(source, np.greater_equal)


def _seems_monotonic(source: Elements, test: np.ufunc) -> bool:
    few = sample_of(source, _FEW)
    return bool(test(few[:-1], few[1:]).all())


def seems_constant(source: Elements, few: int) -> bool:
    """Whether no more than a few differ among some elements of a row, or most are alike: seen at once, before anything
    is sampled."""
    seen = _some(source, _FEW)
    different = set(seen)
    if len(different) <= few:
        return True
    return 2 * len(different) < len(seen) and 3 * max(map(seen.count, different)) >= 2 * len(seen)


def different_of(source: Elements, count: int) -> int:
    """How many differ among about so many elements of a row: quick, for a decision."""
    return len(set(_some(source, count)))


def _some(source: Elements, count: int) -> list[int]:
    """The bits of about so many elements from all over a row."""
    step = max(1, source.size // count)
    found: list[int] = bits_of(source)[step // 2 :: step].tolist()
    return found


def sorted_at_sight(row: Elements, order: SortOrder, policy: HostSortPolicy, stable: bool) -> Elements | None:
    """A new row, of one that holds one word or two, or is in one order or the other and not for threads to work on.
    None, and hardly any time spent, if five of its elements tell that it is neither."""
    item, size, found = numbers_of(row).item, row.size, None
    a, b, c, d, e = item(0), item(size >> 2), item(size >> 1), item(3 * size >> 2), item(-1)
    if a in (c, e) or c == e or a != a:  # a NaN is not its own equal
        if _is_counted_sooner(row, policy):
            found = _of_two_words(np.ascontiguousarray(row), order, stable)
        elif len({a, b, c, d, e}) < 3:
            return None
    seems_in_order = a != e and (a <= b <= c <= d <= e or a >= b >= c >= d >= e)
    if found is None and seems_in_order and size < policy.part_from(row.dtype):
        found = _of_neighbours(row, order, stable)
    return found


def _is_counted_sooner(row: Elements, policy: HostSortPolicy) -> bool:
    """Whether NumPy's sort of a few different elements takes longer: where it has no vector code, or looks at floats
    that tie."""
    is_long_of_floats = row.dtype.kind == "f" and row.size >= _FLOATS
    return row.itemsize == 2 or is_long_of_floats or suits_radix(row.size, row.size, row.dtype, policy)


def _of_two_words(row: Elements, order: SortOrder, stable: bool) -> Elements | None:
    """By counting one of them, and the other if there is such."""
    words, size = bits_of(row), row.size
    are_first = words == words[:1]
    count = count_nonzero(are_first)
    if count == size:
        return _copied(row)
    if different_of(row, _FEW) > 2 or (stable and row.dtype.kind == "f"):
        return None
    other = int(are_first.argmin())
    first, second = words.item(0), words.item(other)
    if count + count_nonzero(words == words[other : other + 1]) != size:
        return None
    if _descend(row.dtype, order, first, second):
        first, second, count = second, first, size - count
    results = new_array(words.shape, words.dtype)
    results[:count], results[count:] = first, second
    return results.view(row.dtype)


@lru_cache(maxsize=64)
def _descend(dtype: np.dtype[np.generic], order: SortOrder, first: int, second: int) -> bool:
    """Whether the elements of these bits are not in order."""
    low, high = ordered_words(np.array([first, second], f"u{dtype.itemsize}").view(dtype), order)
    return bool(low > high)


def _of_neighbours(row: Elements, order: SortOrder, stable: bool) -> Elements | None:
    """By comparing all neighbours. NaT is the least integer and yet last; float16 is compared in more time."""
    numbers, kind = numbers_of(row), row.dtype.kind
    if row.dtype == np.float16 or (kind in "Mm" and np.iinfo(np.int64).min in (numbers[0], numbers[-1])):
        return None
    ascends = is_monotonic(numbers, np.less_equal, Pool(1))
    if not ascends and not is_monotonic(numbers, np.greater_equal, Pool(1)):
        return None
    results = _copied(row if ascends == (order is SortOrder.ASCENDING) else row[::-1])
    if kind == "f":
        restore_ties(row, results, order, stable)
    return results


def _copied(row: Elements) -> Elements:
    results = new_array(row.shape, row.dtype)
    results[...] = row
    return results
