"""Many short rows that are sorted or argsorted side by side by sorting networks, one row a lane of a vector, whichever
way they lie. They work on words that compare as integers: no zero and no NaN is to be put right afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...base import HostArray
from ..alias import place_of
from ..background import background
from ..crew import share_kernel, threads_of_crew
from ..pool import shared_pool
from .key_words import Places, constants
from .network_loops import lanes, network, places_network
from .strides import Span, padded, ways_beside

if TYPE_CHECKING:
    from ..compiler.loading import Kernel

_LONGEST = {1: 64, 2: 32, 4: 32, 8: 16}  # rows that lie one after the other: longer ones NumPy sorts as fast
_LONGEST_BESIDE = {1: 64, 2: 64, 4: 64, 8: 32}  # rows that lie side by side
LONGEST_TO_ARGSORT = 32
_TASKS = 1 << 14  # elements at least that a thread takes at a time


def sort_short_rows(x: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Sorts along the last axis into `results`, which is x itself, or lies apart. False, and nothing done, where other
    ways suit. An exception leaves whole rows as they were, or in order."""
    longest = (_LONGEST if abs(x.strides[-1]) == x.itemsize else _LONGEST_BESIDE)[x.itemsize]
    return results.dtype == x.dtype and _by_network(network, x, results, longest, order, policy)


def argsort_short_rows(x: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Stable argsorts along the last axis. False, and nothing done, where other ways suit."""
    return _by_network(places_network, x, places, LONGEST_TO_ARGSORT, order, policy)


def _by_network(
    of: Callable[[int, int, bool], Kernel], x: HostArray, results: HostArray, longest: int, order: SortOrder,
    policy: HostSortPolicy,
) -> bool:  # fmt: skip
    dtype, length = x.dtype, x.shape[-1]
    if not 1 < length <= longest or x.ndim < 2 or x.size < policy.serial_below or not dtype.isnative:
        return False
    if not (x.flags.aligned and results.flags.aligned):
        return False
    kind = 1 << (length - 1).bit_length(), dtype.itemsize, dtype.kind == "f"
    if not background.has((of, *kind), partial(_loading, of, *kind), x.nbytes):
        return False
    source, goal = Span.of(x), Span.of(results)
    if source is None or goal is None:
        return False
    outs = [stride // results.itemsize for stride in results.strides]
    ways = ways_beside(x, outs, x.ndim - 1)
    if len(ways) > 2:
        return False
    outer, near = padded(ways)
    two = [number for way in (outer, near) for number in (way.length, way.stride, way.out)]
    plan = np.array([source.before, goal.before, *two, length, x.strides[-1] // x.itemsize, outs[-1]], np.int64)
    tasks = outer.length * -(-near.length // lanes(dtype.itemsize))
    numbers = (*source.place(x), *goal.place(results), *place_of(plan), *place_of(constants(dtype, order)))
    least = -(-tasks * _TASKS // max(1, x.size))  # tasks
    share_kernel(of(*kind), tasks, numbers, shared_pool(), threads_of_crew(x.nbytes), least=least)
    return True


def _loading(of: Callable[[int, int, bool], Kernel], length: int, size: int, is_float: bool) -> Iterator[object]:
    yield of(length, size, is_float)
