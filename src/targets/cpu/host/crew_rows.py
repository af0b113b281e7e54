"""Sorts and argsorts many rows by threads that wait in compiled code: each is copied as words, and these sorted by
NumPy's sort as a function of C's where they lie.

Elements become words that compare as integers, so no zero and no NaN is to be put right afterwards: see key_words.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....types.indices import SortOrder
from ...addresses import address_of
from ...base import HostArray
from ..background import background
from ..crew import crew, threads_of_crew
from ..loops import Kernel, compiled, inside, text_of
from .key_words import Places, lines_of_bits, place_of_constants, turned, turned_back
from .numpy_pointer import sort_address
from .packed_argsort import rank_and_pack, unpack

# For elements of so many bytes, floats or not: what sorts rows by the two that follow it, the loop that makes words of
# elements, and the one that makes of these what is wanted.
_Loops: TypeAlias = Callable[[int, bool], Iterator[Kernel]]

_SHORTEST = 1 << 6  # elements
_MANY = 8  # rows for each thread
_INDEX_BITS, _UNSIGNED = 32, np.dtype(np.uint64)

# Rows become words where they are to be sorted, and these what is wanted.
_SORT_ROWS = """
    for row in range(start, stop):
        near = source + row * length * itemsize
        far = results + row * length * width
        made = native(before, 0, length, near, length, far, length, bits, count, more)
        done = native(sort, far, length, 0)
        made = native(after, 0, length, far, length, far, length, first, second)
"""
_NUMBERS = (
    "start, stop, before, sort, after, source, itemsize, results, width, length, bits, count, more, first, second"
)


def sort_rows_by_crew(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Sorts each row of a packed array into results that lie apart: floats that tie in the order of their bits. False,
    and nothing done, where other ways are faster or the crew is busy."""
    if source.itemsize < 4:
        return False
    more = 0, *place_of_constants(source.dtype, order)
    return _by_crew(_sorting, source, results, np.dtype(f"i{source.itemsize}"), order, more, policy)


def argsort_rows_by_crew(source: HostArray, places: Places, policy: HostSortPolicy) -> bool:
    """Where each row's elements come from, in order: an element and its place in a row make a word. False, and nothing
    done, where other ways are faster or the crew is busy."""
    if source.itemsize > 4 or source.shape[-1] > LARGEST_U32:
        return False
    more = _INDEX_BITS, (1 << _INDEX_BITS) - 1, 0
    return _by_crew(_argsorting, source, places, _UNSIGNED, SortOrder.ASCENDING, more, policy)


def _by_crew(
    loops: _Loops, source: HostArray, results: HostArray, word: np.dtype[np.generic], order: SortOrder,
    more: tuple[int, int, int], policy: HostSortPolicy,
) -> bool:  # fmt: skip
    (rows, length), dtype, threads = source.shape, source.dtype, threads_of_crew(source.nbytes, policy)
    if not threads or length < _SHORTEST or rows < _MANY * threads or not sort_address(word):
        return False
    kind = dtype.itemsize, dtype.kind == "f"
    if not background.has((loops, *kind), source.nbytes):
        return False
    sort, before, after = loops(*kind)
    lie = address_of(source), source.itemsize, address_of(results), results.itemsize, length
    numbers = before.address, sort_address(word), after.address, *lie, *place_of_constants(dtype, order), *more
    return crew().run(sort, rows, numbers, threads)


def _sorting(size: int, is_float: bool) -> Iterator[Kernel]:
    yield _sort_rows()
    yield _turn(size, is_float, True)
    yield _turn(size, is_float, False)


def _argsorting(size: int, is_float: bool) -> Iterator[Kernel]:
    yield _sort_rows()
    yield rank_and_pack(size, is_float)
    yield unpack()


@cache
def _sort_rows() -> Kernel:
    """(start, stop, ...): sorts rows start to stop."""
    return compiled("sort_rows", ", ".join(f"{name}: i8" for name in _NUMBERS.split(", ")), _SORT_ROWS)


@cache
def _turn(size: int, is_float: bool, to_words: bool) -> Kernel:
    """(start, stop, source, results, bits): makes words of the elements start to stop, or elements of words."""
    word, turn = f"i{size}", turned if to_words else turned_back
    takes = f"start: i8, stop: i8, source: {word}[], results: {word}[], bits: {word}[]"
    moves = inside(
        "for index in range(start, stop):",
        ("results[index] = source[index]", *turn(word, "results[index]", is_float)),
    )
    return compiled("to_words" if to_words else "to_elements", takes, text_of((*lines_of_bits(is_float), *moves)))
