"""Sorts many rows by threads that wait in compiled code: each is copied as words, and these sorted where they lie.

Elements become words that compare as integers, so no zero and no NaN is to be put right afterwards: see word_loops.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...base import HostArray
from ..alias import address_of, place_of
from ..background import background
from ..crew import loading, run_by_crew, threads_of_crew
from ..loops import Loop, compiled, inside, text_of
from .key_words import constants
from .numpy_pointer import sort_address
from .word_loops import lines_of_bits, turned, turned_back

_SHORTEST = 1 << 6  # elements
_MANY = 8  # rows for each thread

_SORT_ROWS = """
    for row in range(start, stop):
        begin = row * length
        end = begin + length
        made = native(to_words, begin, end, source, size, results, size, bits, count)
        done = native(sort, results + begin * itemsize, length, 0)
        made = native(to_elements, begin, end, results, size, results, size, bits, count)
"""
_NUMBERS = (
    "start", "stop", "to_words", "to_elements", "sort", "source", "results", "size", "bits", "count", "length",
    "itemsize",
)  # fmt: skip


def threads_for_rows(source: HostArray, policy: HostSortPolicy) -> int:
    """How many threads of the crew sort the rows of a packed array; 0 where other ways suit."""
    (rows, length), dtype = source.shape, source.dtype
    threads = threads_of_crew(source.nbytes, policy)
    if (
        length < _SHORTEST
        or rows < _MANY * threads
        or dtype.itemsize < 4
        or not (threads and sort_address(_word(dtype)))
    ):
        return 0
    return threads if background.has(("crew rows", dtype), partial(_loading, dtype), source.nbytes) else 0


def sort_rows_by_crew(source: HostArray, results: HostArray, order: SortOrder, threads: int) -> bool:
    """Sorts each row of a packed array into results that lie apart: floats that tie in the order of their bits. False,
    and nothing done, where the crew is busy."""
    dtype, bits = source.dtype, constants(source.dtype, order)
    addresses = address_of(source), address_of(results), source.size, *place_of(bits)
    numbers = *_functions(dtype), *addresses, source.shape[1], dtype.itemsize
    return run_by_crew(_sort_rows().kernel, source.shape[0], numbers, threads)


def _word(dtype: np.dtype[np.generic]) -> np.dtype[np.signedinteger]:
    return np.dtype(f"i{dtype.itemsize}")


@cache
def _functions(dtype: np.dtype[np.generic]) -> tuple[int, int, int]:
    """Where the code lies that makes words, elements of these again, and sorts."""
    kinds = dtype.itemsize, dtype.kind == "f"
    return _turn(*kinds, True).kernel.address, _turn(*kinds, False).kernel.address, sort_address(_word(dtype))


@cache
def _sort_rows() -> Loop:
    """(start, stop, ...): sorts rows start to stop."""
    return compiled("sort_rows", ", ".join(f"{name}: i8" for name in _NUMBERS), _SORT_ROWS)


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


def _loading(dtype: np.dtype[np.generic]) -> Iterator[object]:
    yield from loading()
    yield _sort_rows()
    yield _functions(dtype)
