"""Fast paths for rows whose elements at five positions suggest that a sort is not needed: rows of a few different
values, which are counted, and rows that are in order or reversed, which are copied or numbered.

How often each word occurs tells what the row is in order. A handful of words are counted one by one, while a block of
the row is in the nearest cache: with the runs to be written, that takes about the time of a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...base import HostArray
from ...counts import count_nonzero
from ..background import background
from ..crew import share
from ..loops import Kernel, compiled
from ..pool import ALONE, Pool, shared_pool
from .copies import copy_shared
from .key_words import HALF, Elements, Places, bits_of, elements_in_order, numbers_of, ordered_ranks, ordered_words
from .numpy_sort import restore_ties
from .radix_sort import goes_by_radix, suits_radix
from .sample import is_monotonic, some_words

LEAST_AT_SIGHT = 1 << 12  # elements: to sort fewer takes no longer than to check whether they are in order
_SEEN = 5  # elements that are looked at first
_DIFFERENT = 3  # with fewer different values among these, the row may have few in all
_MOST_HALVES, _LOOKED = 1 << 13, 1 << 14  # elements: of more, which are a run or equal, NumPy takes longer
HANDFUL, _BLOCK = 16, 1 << 11  # words that are counted one by one; elements of a block
HANDFUL_OF_NUMPY = 4  # more take NumPy as long to count as to sort
_AT_A_GLANCE, _AT_ANOTHER = 32, 128  # elements that are looked at
_WORTH_A_THREAD = 1 << 22  # bytes that are filled, or looked at: it is done before Python's threads come to help

# Of a block each value has a count as wide as a word, so that vectors are counted by one subtraction.
_EACH = """
    counts = stack(i8, {most})
    for which in range(len(values)):
        counts[which] = 0
    for begin in range(start, stop, {block}):
        if load_acquire(missed, 0) != 0:
            break
        end = min(begin + {block}, stop)
        left = end - begin
        for which in range(len(values)):
            value = values[which]
            found = {word}(0)
            for index in range(begin, end):
                found += {word}(words[index] == value)
            counts[which] = counts[which] + i8(found)
            left -= i8(found)
        if left != 0:
            before = atomic_or(missed, 0, 1)
            break
    for which in range(len(values)):
        before = fetch_add(totals, which, counts[which])
"""
_FILL = """
    at = 0
    past = len(ends)
    while True:
        if at >= past:
            break
        middle = (at + past) >> 1
        if ends[middle] <= start:
            at = middle + 1
        else:
            past = middle
    index = start
    while True:
        if index >= stop:
            break
        end = min(ends[at], stop)
        value = sequence[at]
        for k in range(index, end):
            results[k] = value
        index = end
        at += 1
"""


@cache
def count_each(size: int) -> Kernel:
    """(start, stop, words, values, totals, missed): adds how often each of a handful of values occurs from start to
    stop. Sets `missed` in the first block with a word that is none of them, and ends where it is set."""
    word = f"u{size}"
    takes = f"start: i8, stop: i8, words: {word}[], values: {word}[], totals: i8[], missed: i8[]"
    return compiled("count_each", takes, _EACH.format(word=word, most=HANDFUL, block=_BLOCK))


@cache
def fill(size: int) -> Kernel:
    """(start, stop, results, sequence, ends): writes the elements start to stop: sequence[k] as far as ends[k]."""
    takes = f"start: i8, stop: i8, results: u{size}[], sequence: u{size}[], ends: i8[]"
    return compiled("fill", takes, _FILL)


def counting_each(size: int) -> Iterator[object]:
    """Compiles what counts words of so many bytes one by one."""
    yield count_each(size)
    yield fill(size)


Counts = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Runs:
    """What a row of few different words is in order: each word in turn, as far as its end."""

    words: Elements
    ends: Counts

    @classmethod
    def counted(cls, packed: Elements, words: Elements, pool: Pool) -> Runs | None:
        """Of a row of these words. None if there are others."""
        row = bits_of(packed)
        counts, missed = np.zeros(words.size, np.int64), np.zeros(1, np.int64)
        least = _WORTH_A_THREAD // row.itemsize
        share(count_each(row.itemsize), row.size, pool, row, words, counts, missed, least=least)
        return None if missed[0] else cls(words, counts.cumsum())

    def fill(self, results: HostArray, in_place: bool, pool: Pool) -> None:
        """In place by one call, which no signal handler interrupts."""
        words, pool = bits_of(results), ALONE if in_place else pool
        least = _WORTH_A_THREAD // words.itemsize
        share(fill(words.itemsize), words.size, pool, words, self.words, self.ends, least=least)


@attrs.frozen(eq=False)
class FewWords:
    """The different words of a row in order, and the same by rank, as arrays of no dimension: the fastest operand of
    NumPy's comparisons."""

    words: Elements
    tied: list[list[Elements]]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, dtype: np.dtype[np.generic], order: SortOrder, seen: frozenset[int]) -> FewWords:
        ranked = np.sort(ordered_words(np.array([*seen], f"u{dtype.itemsize}").view(dtype), order))
        elements, tied = elements_in_order(ranked, dtype, order), dict[int, list[Elements]]()
        for rank, word in zip(ordered_ranks(elements, order).tolist(), bits_of(elements), strict=True):
            tied.setdefault(rank, []).append(np.array(word))
        return cls(bits_of(elements), [*tied.values()])


def few_words(row: Elements, order: SortOrder, most: int = HANDFUL) -> FewWords | None:
    """The words of a row, if a glance tells that they are no more."""
    seen = set(some_words(row, _AT_A_GLANCE))
    if HANDFUL_OF_NUMPY < len(seen) <= most:  # of so many some may not have been among these
        seen |= set(some_words(row, _AT_ANOTHER))
    return FewWords.of(row.dtype, order, frozenset(seen)) if len(seen) <= most else None


# -- at sight ------------------------------------------------------------------------------------------------


def sorted_at_sight(row: Elements, order: SortOrder, policy: HostSortPolicy) -> Elements | None:
    """The sorted row, if it has few different values, or is in order or reversed. None otherwise, mostly after a look
    at five elements."""
    item, size, found = numbers_of(row).item, row.size, None
    are_counted = _are_counted_sooner(row, policy)
    a, e = item(0), item(-1)
    if a == e and not are_counted:
        return None
    b, c, d = item(size >> 2), item(size >> 1), item(3 * size >> 2)
    different, is_nan = len({a, b, c, d, e}), a != a  # which is not its own equal
    if different < _SEEN or is_nan:
        if are_counted or is_nan:
            found = _counted(row, order, policy)
        elif different < _DIFFERENT:
            return None
    seems_in_order = a != e and (a <= b <= c <= d <= e or a >= b >= c >= d >= e)
    if found is None and seems_in_order:
        found = _of_neighbours(row, order)
    return found


def _are_counted_sooner(row: Elements, policy: HostSortPolicy) -> bool:
    """Whether counting few different values is faster than NumPy's sort: for long rows, or where that has no vector
    code."""
    if row.nbytes >= policy.few_bytes_from or row.dtype == HALF:
        return True
    if row.itemsize == 2:
        return goes_by_radix(2, policy)
    return suits_radix(row.size, row.size, row.dtype, policy)


def _counted(row: Elements, order: SortOrder, policy: HostSortPolicy) -> Elements | None:
    """Sorts a row of few different values by counting each. No compiler is loaded for a short row, unless NumPy sorts
    it slowly."""
    size, is_short = row.itemsize, row.nbytes < policy.few_bytes_from
    if is_short:
        found = _of_few(row, order)
        if found is not None or not suits_radix(row.size, row.size, row.dtype, policy):
            return found
    if not background.has((counting_each, size), row.nbytes):
        return None if is_short else _of_few(row, order)
    few, pool = few_words(row, order), shared_pool()
    if few is None:
        return None
    packed = np.ascontiguousarray(row)
    runs = Runs.counted(packed, few.words, pool)
    if runs is None:
        return None
    results = new_array(row.shape, row.dtype) if packed is row else packed
    if packed is row or few.words.size > 1:
        runs.fill(results, False, pool)
    return results


def _of_few(row: Elements, order: SortOrder) -> Elements | None:
    """Sorts a row of few different values by counting each with NumPy."""
    few, bits = few_words(row, order, HANDFUL_OF_NUMPY), bits_of(row)
    if few is None:
        return None
    words = [*chain.from_iterable(few.tied)]
    counts = [count_nonzero(bits == word) for word in words]
    if sum(counts) != row.size:
        return None
    if len(words) == 1:
        return _copied(row)
    results, start = new_array(row.shape, row.dtype), 0
    filled = bits_of(results)
    for word, count in zip(words, counts, strict=True):
        filled[start : start + count] = word
        start += count
    return results


def _of_neighbours(row: Elements, order: SortOrder) -> Elements | None:
    """Sorts a row that is in order or reversed, which comparing all neighbours shows. Not for NaT, which is the least
    integer but comes last, nor for float16, which NumPy compares slowly."""
    numbers, kind = numbers_of(row), row.dtype.kind
    if row.dtype == HALF or (kind in "Mm" and np.iinfo(np.int64).min in (numbers[0], numbers[-1])):
        return None
    pool = shared_pool()
    ascends = is_monotonic(numbers, np.less_equal, pool)
    if not ascends and not is_monotonic(numbers, np.greater_equal, pool):
        return None
    results = _copied(row if ascends == (order is SortOrder.ASCENDING) else row[::-1])
    if kind == "f":
        restore_ties(row, results, order)
    return results


def places_at_sight(row: Elements) -> Places | None:
    """The argsort of a row that ascends or descends (by NumPy, whose merge sort then finds a single run), or that has
    few different values. None otherwise, mostly after a look at some elements."""
    size, is_half = row.size, row.itemsize == 2  # float16 and 16-bit integers, which NumPy's merge sort compares slowly
    item, half = numbers_of(row).item, size >> 1
    a, b, c, d, e = item(0), item(size >> 2), item(half), item(3 * size >> 2), item(-1)
    is_one, is_run = a == e, False
    if (is_half and size > _MOST_HALVES) or (is_one and size > _LOOKED):
        pass
    elif a <= b <= c <= d <= e:
        is_run = a <= item(1) <= item(2) <= item(3) and c <= item(half + 1) <= item(half + 2) <= item(half + 3)
    elif a >= b >= c >= d >= e and not is_half:
        is_run = a >= item(1) >= item(2) >= item(3) and c >= item(half + 1) >= item(half + 2) >= item(half + 3)
    elif is_half and a != a:
        is_run = b != b and c != c and d != d and e != e
    if is_run:
        return row.argsort(kind="stable")
    return _places_of_few(row) if a != a or len({a, b, c, d, e}) < _DIFFERENT else None


def _places_of_few(row: Elements) -> Places | None:
    """The argsort of a row of few different values: the positions of each."""
    few, bits = few_words(row, SortOrder.ASCENDING, HANDFUL_OF_NUMPY), bits_of(row)
    if few is None:
        return None
    if len(few.tied) == 1:
        return np.arange(row.size) if sum(count_nonzero(bits == word) for word in few.tied[0]) == row.size else None
    found: list[Places] = []
    for first, *others in few.tied:
        are_such = bits == first
        for word in others:
            are_such |= bits == word
        found.append(are_such.nonzero()[0])
    return np.concatenate(found) if sum(map(len, found)) == row.size else None


def _copied(row: Elements) -> Elements:
    results = new_array(row.shape, row.dtype)
    copy_shared(row, results)
    return results
