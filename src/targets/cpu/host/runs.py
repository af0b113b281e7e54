"""Rows of few different words as runs: how often each word occurs tells what the row is in order.

A handful of words are counted one by one, while a block of the row is in the nearest cache: with the runs to be
written, that takes about the time of a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

import attrs
import numpy as np
import numpy.typing as npt

from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import share_kernel
from ..loops import Kernel, compiled, numbers_for
from ..pool import Pool
from .key_words import Elements, bits_of, elements_in_order, ordered_ranks, ordered_words
from .sample import some_words

HANDFUL, _BLOCK = 16, 1 << 11  # words that are counted one by one; elements of a block
HANDFUL_OF_NUMPY = 4  # more take NumPy as long to count as to sort
_AT_A_GLANCE, _AT_ANOTHER = 32, 128  # elements that are looked at
_WORTH_A_THREAD = 1 << 22  # bytes that are filled, or looked at

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
        _share(count_each(row.itemsize), row.size, pool, row, words, counts, missed)
        return None if missed[0] else cls(words, counts.cumsum())

    def fill(self, results: HostArray, in_place: bool, pool: Pool) -> None:
        """In place by one call, which no signal handler interrupts."""
        words = bits_of(results)
        if in_place:
            fill(words.itemsize).on(0, words.size, words, self.words, self.ends)()
        else:
            _share(fill(words.itemsize), words.size, pool, words, self.words, self.ends)


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

    @property
    def ties(self) -> bool:
        """Whether some compare equal."""
        return len(self.tied) < self.words.size


def few_words(row: Elements, order: SortOrder, most: int = HANDFUL) -> FewWords | None:
    """The words of a row, if a glance tells that they are no more."""
    seen = set(some_words(row, _AT_A_GLANCE))
    if HANDFUL_OF_NUMPY < len(seen) <= most:  # of so many some may not have been among these
        seen |= set(some_words(row, _AT_ANOTHER))
    return FewWords.of(row.dtype, order, frozenset(seen)) if len(seen) <= most else None


def _share(loop: Kernel, length: int, pool: Pool, elements: Elements, *arguments: Elements) -> None:
    """A loop at the rate of memory, which is done sooner than Python's threads come to help."""
    numbers, least = numbers_for(elements, *arguments), _WORTH_A_THREAD // elements.itemsize
    share_kernel(loop, length, numbers, elements.nbytes, pool=pool, least=least)
