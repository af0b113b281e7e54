"""Many rows that are sorted or argsorted side by side by compiled loops, whichever way they lie.

Short rows go through a sorting network, one a lane of a vector. Longer ones of floats that do not lie side by side in
memory are brought together in blocks, and NumPy sorts these. Both work on words that compare as integers: no zero and
no NaN is to be put right afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from ...base import HostArray
from ..alias import place_of
from ..background import background
from ..crew import loading as loading_crew
from ..crew import share_kernel, threads_of_crew
from ..loops import numbers_for
from ..pool import shared_pool
from .key_words import Elements, Places, constants
from .network_loops import lanes, network, places_network
from .radix_sort import suits_radix
from .strides import Span, padded, ways_beside
from .word_loops import packing

if TYPE_CHECKING:
    from ..compiler.loading import Kernel

_LONGEST = {1: 64, 2: 32, 4: 32, 8: 16}  # rows that lie one after the other: longer ones NumPy sorts as fast
_LONGEST_BESIDE = {1: 64, 2: 64, 4: 64, 8: 32}  # rows that lie side by side
LONGEST_TO_ARGSORT = 32
_BLOCK = 64  # rows at least that are brought together
_TASKS = 1 << 14  # elements at least that a thread takes at a time
_LEAST = 1 << 13  # elements at least of a block: each is a task of Python's


@attrs.frozen
class Lying:
    """Where rows begin, in elements: two ways, each of a length, a stride, and a stride among the results."""

    plan: npt.NDArray[np.int64]
    flat: Elements  # the memory, as words
    out: Elements

    @property
    def side_by_side(self) -> int:
        """How many rows lie so that one block can have them."""
        return int(self.plan[5])

    @classmethod
    def of(cls, x: HostArray, results: HostArray, axis: int) -> Lying | None:
        """None where rows lie in more ways, or elements not at multiples of their size."""
        word, out_word = np.dtype(f"i{x.itemsize}"), np.dtype(f"i{results.itemsize}")
        source, goal = Span.of(x), Span.of(results)
        if source is None or goal is None:
            return None
        outs = [stride // results.itemsize for stride in results.strides]
        ways = ways_beside(x, outs, axis)
        if len(ways) > 2:
            return None
        two = [number for way in padded(ways) for number in (way.length, way.stride, way.out)]
        steps = x.shape[axis], x.strides[axis] // x.itemsize, outs[axis]
        numbers = [source.before, goal.before, *two, *steps]
        return cls(np.array(numbers, np.int64), source.row(x, word), goal.row(results, out_word))


def sort_many_rows(x: HostArray, results: HostArray, axis: int, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Sorts along an axis into `results`, which is the same memory as x in the same layout, or lies apart. False, and
    nothing done, where other ways suit. An exception leaves whole rows as they were, or in order."""
    dtype, axis = x.dtype, axis % x.ndim
    length = x.shape[axis]
    if x.ndim < 2 or length < 2 or x.size < policy.serial_below or not dtype.isnative or results.dtype != dtype:
        return False
    if not (x.flags.aligned and results.flags.aligned):
        return False
    lies_along = abs(x.strides[axis]) == dtype.itemsize
    is_short = length <= (_LONGEST if lies_along else _LONGEST_BESIDE)[dtype.itemsize]
    # Integers NumPy packs as fast: there is nothing to be put right in them.
    if not is_short and (lies_along or dtype.kind != "f" or length >= policy.part_from(dtype)):
        return False
    if not is_short and (x.size < _BLOCK * length or _suits_radix(x, length, policy)):
        return False
    places = 1 << (length - 1).bit_length() if is_short else 0
    is_float = dtype.kind == "f"

    def sort(lying: Lying) -> None:
        if places:
            _by_network(lying, dtype, network(places, dtype.itemsize, is_float), order)
        else:
            _by_blocks(lying, dtype, order, max(_BLOCK, policy.chunk // length // _BLOCK * _BLOCK))

    loading = partial(_loading, sort, dtype, max(2, places), dtype)
    if not background.has(("rows", places, dtype.itemsize, is_float), loading, x.nbytes):
        return False
    lying = Lying.of(x, results, axis)
    if lying is None or (not places and lying.side_by_side * length < _LEAST):
        return False
    sort(lying)
    return True


def _suits_radix(x: HostArray, length: int, policy: HostSortPolicy) -> bool:
    """Whether rows are packed, radix sorted and put back sooner: half as long as blocks make it, of 20,000 floats."""
    return 4 * length >= x.itemsize * policy.radix_rows_from and suits_radix(x.size, length, x.dtype, policy)


def argsort_many_rows(x: HostArray, found: Places, axis: int, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Stable argsorts along an axis, where rows are short. False, and nothing done, where other ways suit."""
    dtype, axis = x.dtype, axis % x.ndim
    length = x.shape[axis]
    if not 1 < length <= LONGEST_TO_ARGSORT or x.ndim < 2 or x.size < policy.serial_below or not dtype.isnative:
        return False
    places, is_float = 1 << (length - 1).bit_length(), dtype.kind == "f"

    def argsort(lying: Lying) -> None:
        _by_network(lying, dtype, places_network(places, dtype.itemsize, is_float), order)

    loading = partial(_loading, argsort, dtype, places, found.dtype)
    if not x.flags.aligned or not background.has(("places", places, dtype.itemsize, is_float), loading, x.nbytes):
        return False
    lying = Lying.of(x, found, axis)
    if lying is None:
        return False
    argsort(lying)
    return True


def _by_network(lying: Lying, dtype: np.dtype[np.generic], kernel: Kernel, order: SortOrder) -> None:
    _, _, n0, _, _, n1, _, _, length, _, _ = lying.plan.tolist()
    together, bits = lanes(dtype.itemsize), constants(dtype, order)
    tasks = n0 * -(-n1 // together)
    numbers = numbers_for((lying.flat, lying.out, lying.plan, bits))
    least = -(-tasks * _TASKS // max(1, n0 * n1 * length))  # tasks
    share_kernel(kernel, tasks, numbers, shared_pool(), threads_of_crew(n0 * n1 * length * dtype.itemsize), least=least)


def _by_blocks(lying: Lying, dtype: np.dtype[np.generic], order: SortOrder, together: int) -> None:
    pack, unpack = (packing(dtype.itemsize, packs) for packs in (True, False))
    bits = constants(dtype, order)
    memory, out, constant = place_of(lying.flat), place_of(lying.out), place_of(bits)
    start, out_start, n0, s0, o0, n1, s1, o1, length, step, out_step = lying.plan.tolist()
    blocks = -(-n1 // together)
    pitch = length + _BLOCK // dtype.itemsize  # so that rows do not fall on each other's places in the caches

    def work(number: int) -> None:
        outer, begin = number // blocks, number % blocks * together
        rows: Elements = np.empty((min(together, n1 - begin), pitch), lying.flat.dtype)
        shape = len(rows), length, pitch
        pack(start + outer * s0 + begin * s1, s1, step, *shape, *memory, *place_of(rows), *constant)
        rows[:, :length].sort(axis=-1)
        unpack(out_start + outer * o0 + begin * o1, o1, out_step, *shape, *out, *place_of(rows), *constant)

    shared_pool().run(work, n0 * blocks)


def _loading(
    work: Callable[[Lying], None], dtype: np.dtype[np.generic], length: int, out: np.dtype[np.generic]
) -> Iterator[object]:
    """Compiles the loops of some work, by doing it with a few rows."""
    lying = Lying.of(np.zeros((2, length), dtype), np.empty((2, length), out), 1)
    assert lying is not None
    work(lying)
    yield None
    yield from loading_crew()
