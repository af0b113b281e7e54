"""Sorts and argsorts many rows by threads that wait in compiled code: each is copied as words, and these sorted by
NumPy's sort as a function of C's where they lie.

Elements become words that compare as integers, so no zero and no NaN is to be put right afterwards: see key_words.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....types.indices import SortOrder
from ...addresses import address_of
from ...base import HostArray
from ..background import background, in_turn
from ..crew import crew, threads_of_crew
from ..loops import Kernel, compiled, inside, place_of, text_of
from .key_words import Elements, Places, constants, lines_of_bits, turned, turned_back
from .numpy_pointer import sort_address
from .packed_argsort import rank_and_pack, unpack

_Loading: TypeAlias = Callable[[], Kernel]

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


def sorting_threads(source: HostArray, policy: HostSortPolicy) -> int:
    """The number of the crew's threads that sort an array's rows; 0 if other ways are faster."""
    word = np.dtype(f"i{source.itemsize}")
    return _threads(source, word, policy, "sort", _turns(source.dtype)) if source.itemsize >= 4 else 0


def sort_rows_by_crew(source: HostArray, results: HostArray, order: SortOrder, threads: int) -> bool:
    """Sorts each row of a packed array into results that lie apart: floats that tie in the order of their bits. False,
    and nothing done, where the crew is busy."""
    bits = constants(source.dtype, order)
    before, after = (turn() for turn in _turns(source.dtype))
    more = 0, *place_of(bits)
    return _by_crew(source, results, np.dtype(f"i{source.itemsize}"), (before, after), bits, more, threads)


def argsort_rows_by_crew(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Where each row's elements come from, in order: an element and its place in a row make a word. False, and nothing
    done, where other ways are faster or the crew is busy."""
    if source.itemsize > 4 or source.shape[-1] > LARGEST_U32:
        return False
    loops = partial(rank_and_pack, source.itemsize, source.dtype.kind == "f"), unpack
    threads, bits = _threads(source, _UNSIGNED, policy, "argsort", loops), constants(source.dtype, order)
    more = _INDEX_BITS, (1 << _INDEX_BITS) - 1, 0
    return threads > 0 and _by_crew(source, places, _UNSIGNED, (loops[0](), loops[1]()), bits, more, threads)


def _threads(
    source: HostArray, word: np.dtype[np.generic], policy: HostSortPolicy, name: str, loops: tuple[_Loading, ...]
) -> int:
    length, dtype = source.shape[-1], source.dtype
    rows = source.size // length
    threads = threads_of_crew(source.nbytes, policy)
    if not threads or length < _SHORTEST or rows < _MANY * threads or not sort_address(word):
        return 0
    is_loaded = background.has((name, "rows", dtype), in_turn(_sort_rows, *loops), source.nbytes)
    return threads if is_loaded else 0


def _by_crew(
    source: HostArray, results: HostArray, word: np.dtype[np.generic], kernels: tuple[Kernel, Kernel],
    bits: Elements, more: tuple[int, int, int], threads: int,
) -> bool:  # fmt: skip
    rows, length = source.shape
    lie = address_of(source), source.itemsize, address_of(results), results.itemsize, length
    numbers = kernels[0].address, sort_address(word), kernels[1].address, *lie, *place_of(bits), *more
    return crew().run(_sort_rows(), rows, numbers, threads)


@cache
def _sort_rows() -> Kernel:
    """(start, stop, ...): sorts rows start to stop."""
    return compiled("sort_rows", ", ".join(f"{name}: i8" for name in _NUMBERS.split(", ")), _SORT_ROWS)


def _turns(dtype: np.dtype[np.generic]) -> tuple[_Loading, _Loading]:
    """What makes words of elements, and elements of these again."""
    kind = dtype.itemsize, dtype.kind == "f"
    return partial(_turn, *kind, True), partial(_turn, *kind, False)


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
