"""Rows sorted as words: each is copied as integers in the order of its elements, these are sorted by NumPy's sort as a
function of C's where they lie, and turned back. No zero and no NaN is to be put right afterwards: see key_words.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import attrs
import numpy as np

from ....types.indices import SortOrder
from ...addresses import address_of
from ...base import HostArray
from ..background import background
from ..loops import Kernel, compiled, inside, text_of
from .key_words import lines_of_bits, place_of_constants, turned, turned_back
from .numpy_pointer import sort_address
from .numpy_speed import numpy_sorts_slowly

_SHORTEST = 1 << 5  # elements of a row: shorter ones take NumPy as long
_FEW = 1 << 14  # elements in all, which NumPy's own operations turn in some microseconds more
_AT_ONCE = 1 << 20  # elements that are sorted in one call, which no interrupt ends

# Rows become words where they are to be sorted, and these what is wanted.
_SORT_ROWS = """
    for row in range(start, stop):
        near = source + row * length * itemsize
        far = results + row * length * width
        made = native(before, 0, length, near, length, far, length, bits, count, more)
        done = native(sort, far, length, 0)
        made = native(after, 0, length, far, length, first, second)
"""
_NUMBERS = (
    "start, stop, before, sort, after, source, itemsize, results, width, length, bits, count, more, first, second"
)


@attrs.frozen(eq=False)
class RowLoops:
    """How rows of elements of so many bytes, floats or not, become what is wanted, by way of words. `before` makes a
    word of each element, and `after` makes of the words, where they lie, what is wanted. At the end of the numbers is
    `more`: what `before` takes besides the constants of the order, and what `after` takes, by default these again."""

    word: np.dtype[np.generic]
    before: Callable[[int, bool], Kernel]
    after: Callable[[int, bool], Kernel]
    more: tuple[int, int, int] | None = None

    def load(self, size: int, is_float: bool) -> Iterator[Kernel]:
        yield _sort_rows()
        yield self.before(size, is_float)
        yield self.after(size, is_float)

    def are_there(self, dtype: np.dtype[np.generic], nbytes: int, *, is_little: bool = False) -> bool:
        """Whether rows of so many bytes should take them now; else they are being loaded, or NumPy's sort is not to be
        called so."""
        if not sort_address(self.word):
            return False
        return background.has((self.load, dtype.itemsize, dtype.kind == "f"), nbytes, is_little=is_little)

    def of(self, source: HostArray, results: HostArray, order: SortOrder) -> tuple[Kernel, list[int]]:
        """The loop over packed rows, and the numbers that it takes behind the first and the last row."""
        sort, before, after = self.load(source.itemsize, source.dtype.kind == "f")
        lie = address_of(source), source.itemsize, address_of(results), results.itemsize, source.shape[-1]
        bits = place_of_constants(source.dtype, order)
        more = self.more or (0, *bits)
        return sort, [before.address, sort_address(self.word), after.address, *lie, *bits, *more]


def can_sort_as_words(source: HostArray) -> bool:
    """Whether rows of floats, along the last axis, should be sorted so on this thread, once they are packed: not where
    they are short, nor by a sort of NumPy's that is slow and trusts what it has seen, as callers can reach the
    results."""
    loops, size = SORTING.get(source.itemsize), source.size
    if loops is None or not size or source.shape[-1] < _SHORTEST or numpy_sorts_slowly(source.itemsize):
        return False
    return loops.are_there(source.dtype, source.nbytes, is_little=size < _FEW)


def sort_as_words(source: HostArray, results: HostArray, order: SortOrder) -> None:
    """Sorts such rows, packed, into results that lie apart, and are packed, too: floats that tie in the order of
    their bits."""
    rows, length = source.size // source.shape[-1], source.shape[-1]
    step = max(1, _AT_ONCE // length)
    sort, numbers = SORTING[source.itemsize].of(source, results, order)
    for start in range(0, rows, step):
        sort(start, min(start + step, rows), *numbers)


@cache
def _sort_rows() -> Kernel:
    """(start, stop, ...): sorts rows start to stop."""
    return compiled("sort_rows", ", ".join(f"{name}: i8" for name in _NUMBERS.split(", ")), _SORT_ROWS)


@cache
def _to_words(size: int, is_float: bool) -> Kernel:
    """(start, stop, source, results, bits): makes words of the elements start to stop."""
    word = f"i{size}"
    takes = f"start: i8, stop: i8, source: {word}[], results: {word}[], bits: {word}[]"
    return compiled(
        "to_words", takes, _each(is_float, "results[index] = source[index]", *turned(word, "results[index]", is_float))
    )


@cache
def _to_elements(size: int, is_float: bool) -> Kernel:
    """(start, stop, words, bits): makes elements of words where they lie. (Of two arrays that may be one, LLVM makes a
    loop that takes them one by one.)"""
    word = f"i{size}"
    takes = f"start: i8, stop: i8, words: {word}[], bits: {word}[]"
    return compiled("to_elements", takes, _each(is_float, *turned_back(word, "words[index]", is_float)))


def _each(is_float: bool, *steps: str) -> str:
    return text_of((*lines_of_bits(is_float), *inside("for index in range(start, stop):", steps)))


# By the bytes of an element: the words are as wide.
SORTING = {size: RowLoops(np.dtype(f"i{size}"), _to_words, _to_elements) for size in (4, 8)}
