"""Sorts and argsorts many rows by threads that wait in compiled code: see rows_as_words.py."""

from __future__ import annotations

from functools import cache

import numpy as np

from ....algos.host_sort import FEW_THREADS, HostSortPolicy
from ....algos.sizes import LARGEST_U32
from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import crew, threads_of_crew
from ..loops import Kernel, compiled, inside, text_of
from .key_words import Places
from .packed_argsort import rank_and_pack
from .rows_as_words import SORTING, RowLoops

_SHORTEST = 1 << 6  # elements
_INDEX_BITS = 32


def sort_rows_by_crew(source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Sorts each row of a packed array into results that lie apart: floats that tie in the order of their bits. False,
    and nothing done, where other ways are faster or the crew is busy."""
    loops = SORTING.get(source.itemsize)
    return loops is not None and _by_crew(loops, source, results, order, policy)


def argsort_rows_by_crew(source: HostArray, places: Places, policy: HostSortPolicy) -> bool:
    """Where each row's elements come from, in order: an element and its place in a row make a word. False, and nothing
    done, where other ways are faster or the crew is busy."""
    if source.itemsize > 4 or source.shape[-1] > LARGEST_U32:
        return False
    return _by_crew(_ARGSORTING, source, places, SortOrder.ASCENDING, policy)


def _by_crew(loops: RowLoops, source: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    (rows, length), least = source.shape, FEW_THREADS if source.itemsize < 4 else 2
    threads = threads_of_crew(source.size * loops.word.itemsize, policy, least)
    if not threads or length < _SHORTEST or rows < 2 or not loops.are_there(source.dtype, source.nbytes):
        return False
    sort, numbers = loops.of(source, results, order)
    return crew().run(sort, rows, numbers, threads)


@cache
def _to_places(size: int, is_float: bool) -> Kernel:
    """(start, stop, words, mask): leaves the places of sorted words where these lie."""
    step = inside("for index in range(start, stop):", ["words[index] = words[index] & mask"])
    return compiled("to_places", "start: i8, stop: i8, words: u8[], mask: u8", text_of(step))


_ARGSORTING = RowLoops(np.dtype(np.uint64), rank_and_pack, _to_places, (_INDEX_BITS, (1 << _INDEX_BITS) - 1, 0))
