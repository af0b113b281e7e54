"""Sorts and argsorts many rows by threads that wait in compiled code: each is copied as words, and these sorted by
NumPy's sort as a function of C's where they lie.

Elements become words that compare as integers, so no zero and no NaN is to be put right afterwards: see word_loops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....types.indices import SortOrder
from ...base import HostArray
from ..alias import address_of, place_of
from ..background import background
from ..crew import run_by_crew, threads_of_crew
from ..loops import Loop, compiled, inside, text_of
from .argsort_loops import rank_and_pack, unpack
from .key_words import Elements, Places, constants
from .numpy_pointer import sort_address
from .word_loops import lines_of_bits, turned, turned_back

if TYPE_CHECKING:
    from ..compiler.loading import Kernel

_Loading: TypeAlias = Callable[[], Loop]

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


def argsorting_threads(source: HostArray, policy: HostSortPolicy) -> int:
    """The same for argsorts: an element and its place in a row make a word."""
    kind = source.itemsize, source.dtype.kind == "f"
    fits = source.itemsize <= 4 and source.shape[-1] <= LARGEST_U32
    return _threads(source, _UNSIGNED, policy, "argsort", (partial(rank_and_pack, *kind), unpack)) if fits else 0


def sort_rows_by_crew(source: HostArray, results: HostArray, order: SortOrder, threads: int) -> bool:
    """Sorts each row of a packed array into results that lie apart: floats that tie in the order of their bits. False,
    and nothing done, where the crew is busy."""
    bits = constants(source.dtype, order)
    before, after = (turn().kernel for turn in _turns(source.dtype))
    more = 0, *place_of(bits)
    return _by_crew(source, results, np.dtype(f"i{source.itemsize}"), (before, after), bits, more, threads)


def argsort_rows_by_crew(source: HostArray, places: Places, order: SortOrder, threads: int) -> bool:
    """Where each row's elements come from, in order; the same."""
    kind = source.itemsize, source.dtype.kind == "f"
    kernels, mask = (rank_and_pack(*kind).kernel, unpack().kernel), (1 << _INDEX_BITS) - 1
    bits = constants(source.dtype, order)
    return _by_crew(source, places, _UNSIGNED, kernels, bits, (_INDEX_BITS, mask, 0), threads)


def _threads(
    source: HostArray, word: np.dtype[np.generic], policy: HostSortPolicy, name: str, loops: tuple[_Loading, ...]
) -> int:
    length, dtype = source.shape[-1], source.dtype
    rows = source.size // length
    threads = threads_of_crew(source.nbytes, policy)
    if not threads or length < _SHORTEST or rows < _MANY * threads or not sort_address(word):
        return 0
    is_loaded = background.has((name, "rows", dtype), partial(_loading, loops), source.nbytes)
    return threads if is_loaded else 0


def _by_crew(
    source: HostArray, results: HostArray, word: np.dtype[np.generic], kernels: tuple[Kernel, Kernel],
    bits: Elements, more: tuple[int, int, int], threads: int,
) -> bool:  # fmt: skip
    rows, length = source.shape
    lie = address_of(source), source.itemsize, address_of(results), results.itemsize, length
    numbers = kernels[0].address, sort_address(word), kernels[1].address, *lie, *place_of(bits), *more
    return run_by_crew(_sort_rows().kernel, rows, numbers, threads)


@cache
def _sort_rows() -> Loop:
    """(start, stop, ...): sorts rows start to stop."""
    return compiled("sort_rows", ", ".join(f"{name}: i8" for name in _NUMBERS.split(", ")), _SORT_ROWS)


def _turns(dtype: np.dtype[np.generic]) -> tuple[_Loading, _Loading]:
    """What makes words of elements, and elements of these again."""
    kind = dtype.itemsize, dtype.kind == "f"
    return partial(_turn, *kind, True), partial(_turn, *kind, False)


def _loading(loops: tuple[_Loading, ...]) -> Iterator[object]:
    yield _sort_rows()
    yield from (loop() for loop in loops)


@cache
def _turn(size: int, is_float: bool, to_words: bool) -> Loop:
    """(start, stop, source, results, bits): makes words of the elements start to stop, or elements of words."""
    word, turn = f"i{size}", turned if to_words else turned_back
    takes = f"start: i8, stop: i8, source: {word}[], results: {word}[], bits: {word}[]"
    moves = inside(
        "for index in range(start, stop):",
        ("results[index] = source[index]", *turn(word, "results[index]", is_float)),
    )
    return compiled("to_words" if to_words else "to_elements", takes, text_of((*lines_of_bits(is_float), *moves)))
