"""Sorts by threads that wait in compiled code: they partition a row and sort its parts by NumPy's sort as a function of
C's, in one call."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ..alias import address_of, place_of
from ..crew import Crew, crew, threads_of_crew
from ..crew_loops import (
    ARGUMENTS,
    BOUNDS,
    CLAIMED,
    FAILED,
    FUNCTION,
    MOST_THREADS,
    NEXT,
    OWN,
    PARTS,
    YIELD,
    as_array,
    words,
)  # fmt: skip
from ..loops import Loop, compiled
from .key_words import Elements
from .numpy_pointer import sort_address
from .partition_loops import COUNTERS, part_in_turn

_SORT, _RESULTS, _SIZE, _ARRAYS = range(ARGUMENTS, ARGUMENTS + 4)
_PASSES, _BLOCK = range(_ARRAYS + 8, _ARRAYS + 10)
_SORT_PARTS = f"""
    while True:
        parted = native(crew[{FUNCTION}], {words(_ARRAYS, 8)}, {as_array(CLAIMED, MOST_THREADS * COUNTERS)},
            {as_array(BOUNDS, MOST_THREADS + 1)}, {as_array(OWN, (MOST_THREADS + 1) * COUNTERS)},
            crew[{PARTS}], crew[{_PASSES}], crew[{_BLOCK}], number)
        if crew[{OWN} + number * {COUNTERS}] == 0:
            break
        waited = native(crew[{YIELD}])
    while True:
        mine = fetch_add(crew, {NEXT}, 1)
        if mine >= crew[{PARTS}]:
            break
        begun = crew[{BOUNDS} + mine]
        count = crew[{BOUNDS + 1} + mine] - begun
        if native(crew[{_SORT}], crew[{_RESULTS}] + begun * crew[{_SIZE}], count, 0) != 0:
            failed = fetch_add(crew, {FAILED}, 1)
"""


@attrs.frozen(eq=False)
class PartedRow:
    """A row, the pivots between its parts, and the memories to part it into: to and fro between `first` and `second`,
    at last to `results`."""

    source: Elements
    first: Elements
    second: Elements
    results: Elements
    pivots: Elements


@cache
def sort_parts() -> Loop:
    """(crew, number): a thread's share: it partitions, then sorts parts, as long as there are any."""
    return compiled("sort_parts", "crew: i8[], number: i8", _SORT_PARTS)


def loading_sorts(dtype: np.dtype[np.generic]) -> Iterator[object]:
    """Compiles and finds all that is needed to sort elements of a dtype."""
    yield part_in_turn(dtype)
    if sort_address(dtype):
        yield sort_parts()


@cache
def _functions(dtype: np.dtype[np.generic]) -> tuple[int, int]:
    """Where the partition's code lies, and NumPy's sort."""
    return part_in_turn(dtype).kernel.address, sort_address(dtype)


def threads_to_sort(dtype: np.dtype[np.generic], nbytes: int, policy: HostSortPolicy) -> int:
    """How many threads of the crew sort so many bytes; 0 where it is none of theirs."""
    threads = threads_of_crew(nbytes, policy)
    return threads if threads and sort_address(np.dtype(np.int64) if dtype.kind in "Mm" else dtype) else 0


def sort_by_crew(row: PartedRow, block: int, threads: int, threads_of: Crew | None = None) -> bool:
    """Whether the process's crew, or another, has sorted a row: else nothing is done, as it is busy."""
    parts = row.pivots.size + 1
    part, sort = _functions(row.pivots.dtype)
    arrays = [number for array in (row.source, row.first, row.second, row.pivots) for number in place_of(array)]
    arguments = sort, address_of(row.results), row.pivots.itemsize, *arrays, parts.bit_length() - 1, block
    return (threads_of or crew()).does(sort_parts, threads, parts, row.source.size, part, arguments)
