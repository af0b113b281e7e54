"""The fast path of sorts along one axis: packs strided arrays, and leaves short ones to NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.dtypes import native
from ....types.indices import SortOrder
from ....types.specs import Shape, Spec
from ...base import HostArray
from ...counts import count_nonzero
from ..pool import shared_pool
from .at_sight import sorted_at_sight
from .few_of_a_row import FEW_TIMES_OF_A_ROW, MOST_HALVES, Sorted, sorter_of_few
from .float_ties import FloatTies
from .numpy_sort import lengths_sorted_stably, sort_row, sort_stably, sorted_by_words, turned_as, turning
from .numpy_speed import radix_sorts_sooner
from .partition_sort import part_from
from .radix_sort import suits_radix
from .row_networks import least_for_networks, longest_of_few
from .signed_bits import SignedBits
from .sort import sort_rows
from .strides import with_last

SHORT = 1 << 10  # elements: below, NumPy's sort alone
_FEW_TIMES = 1 << 8  # the same of times
_LEAST_AT_SIGHT = 1 << 12  # elements: fewer are sorted before it is clear whether they are in order
_NEVER = 1 << 62
_LEAST_BY_RADIX = 4  # bytes of an element
_FEW_STABLE, _SHORT_STABLE = 2048, 6  # elements in all, or of rows, that are given to NumPy's stable sort
_SHORT_TIMES = 32  # times in a row


class SortPath:
    """Along one axis, or of the flattened array. All that can be decided beforehand is."""

    def __init__(
        self, policy: HostSortPolicy, given: Spec, axis: int | None, order: SortOrder, stable: bool
    ) -> None:  # fmt: skip
        dtype, has_rows = given.dtype, len(given.shape) > 1 and axis is not None
        self._policy, self._dtype, self._axis, self._has_rows = policy, dtype, axis, has_rows
        self._along = -1 if axis is None else axis  # of what is flattened, if need be
        self._order, self._turn, self._stable = order, turning(order, dtype.kind), stable
        is_half = dtype.kind == "f" and dtype.itemsize == 2
        is_time = dtype.kind in "Mm" and order is SortOrder.ASCENDING
        goes_by_bits = dtype.isnative and (is_time or (dtype.kind == "f" and not stable))
        # A row as signed integers; several as words, where NumPy sorts these sooner.
        self._sorts_bits = goes_by_bits and not has_rows
        self._as_words = goes_by_bits and has_rows and (is_time or (is_half and radix_sorts_sooner()))
        self._bits = SignedBits.of(native(dtype))
        self._lengths_of_bits = lengths_sorted_stably(self._bits.word)
        # More needs threads, or a radix sort, for which rows are long.
        by_radix = dtype.itemsize >= _LEAST_BY_RADIX and not has_rows
        self._short = max(SHORT, min(policy.serial_below, policy.radix_from) if by_radix else policy.serial_below)
        if is_half:
            self._short = max(SHORT, min(_LEAST_AT_SIGHT, policy.serial_below)) if self._sorts_bits else SHORT
        elif self._as_words:
            self._short = _FEW_TIMES
        self._long_row = policy.radix_from if has_rows else _NEVER
        # Of rows so short networks sort so many sooner.
        by_network = has_rows and dtype.isnative and not is_half and not (stable and dtype.kind == "f")
        self._network = longest_of_few(dtype.itemsize) if by_network and dtype.kind not in "Mm" else 0
        self._network_from = least_for_networks(policy)
        self._stable_lengths = lengths_sorted_stably(dtype)
        self._looks = dtype.isnative and dtype.itemsize > 1
        self.function = self._sorter(self._sorted, self._short)
        if not (has_rows or axis is None or self._turn is not None):
            by_bits = self._by_bits if self._sorts_bits else None
            self.function = sorter_of_few(dtype, self._short, stable, self.function, by_bits)
        # Longer ones are NumPy's alone as well where it sorts fast, which is measured once: until threads share them.
        self._shares = by_radix and dtype.isnative
        self._by_numpy: Sorted = self._sorted_long
        if by_radix or (is_half and self._sorts_bits):
            longer = self._sorted_row if dtype.isnative else self._sorted_long
            self._by_numpy = self._sorter(longer, policy.serial_below if dtype.kind in "fMm" else _NEVER)
        self.into_short = None if axis is None else self._writer(self.function)

    def _sorted(self, x: HostArray) -> HostArray:
        if self._axis is None:
            x = x.ravel()
        seen = self._at_sight(x)
        if seen is not None:
            return seen
        size, dtype, policy = x.size, self._dtype, self._policy
        is_one_threads = size < policy.serial_below or (
            self._shares and size < part_from(dtype, policy, shared_pool().threads)
        )
        if is_one_threads and not suits_radix(size, size, dtype, policy):
            return self._by_numpy(x)
        return self._sorted_long(x)

    def _sorted_row(self, x: HostArray) -> HostArray:
        """By this thread, with zeros and NaNs put back."""
        results = new_array(x.shape, x.dtype)
        sort_row(x, results, self._order, self._stable)
        return results

    def _sorted_long(self, x: HostArray) -> HostArray:
        if x.shape[self._along] == 1:
            return x.copy("K")
        if self._suits_numpy(x):
            return self._by_numpy_alone(x)
        if self._suits_words(x):
            return self._by_words(x)
        results = new_array(x.shape, x.dtype) if x.flags.c_contiguous else np.empty_like(x)
        self._sort_along(x, results)
        return results

    def into(self, arrays: Sequence[HostArray], outs: Sequence[HostArray]) -> None:
        x, results = arrays[0], outs[0]
        if self.into_short is not None and self.into_short(x, results):
            return
        if self._axis is None or (x.size <= self._short and x.shape[self._axis] < self._long_row):
            results[...] = self.function(x)
        elif self._suits_numpy(x):
            results[...] = self._by_numpy_alone(x)
        elif (seen := self._at_sight(x)) is not None:
            results[...] = seen
        elif self._suits_words(x):
            results[...] = self._by_words(x)
        else:
            self._sort_along(x, x if _are_one(x, results) else results)

    def _at_sight(self, x: HostArray) -> HostArray | None:
        if not self._looks or x.ndim != 1 or x.size < _LEAST_AT_SIGHT:
            return None
        return sorted_at_sight(x, self._order, self._policy, self._stable)

    def _suits_numpy(self, x: HostArray) -> bool:
        """Whether floats that keep their ties are few, or rows short: NumPy's stable sort then takes less time than
        putting ties back, and than making times integers."""
        length, are_short = x.shape[self._along], x.size < self._policy.serial_below
        if self._dtype.kind in "Mm":
            return self._as_words and are_short and length <= _SHORT_TIMES
        if not self._stable or self._dtype.kind != "f":
            return False
        return x.size <= _FEW_STABLE or (are_short and length <= _SHORT_STABLE)

    def _suits_words(self, x: HostArray) -> bool:
        """Whether there is nothing faster than NumPy's sort of rows' words: of times, where it has vector code for
        integers, and of float16, where it sorts these by radix."""
        return self._as_words and x.size < self._policy.serial_below

    def _by_numpy_alone(self, x: HostArray) -> HostArray:
        results = x.copy("K")
        if self._dtype.kind == "f":
            sort_stably(results, self._along, self._order)
        else:
            results.sort(self._along)
        return results

    def _sort_along(self, x: HostArray, results: HostArray) -> None:
        if x.ndim > 1:
            axes, in_place = with_last(x, self._along), results is x
            x = x.transpose(axes)
            results = x if in_place else results.transpose(axes)
        sort_rows(x, results, self._order, self._policy, self._stable)

    # -- short arrays ----------------------------------------------------------------------------------------

    def _sorter(self, go_on: Sorted, short: int) -> Sorted:
        """Sorts up to `short` elements into a new array. `go_on` does what is longer, and floats whose bits NumPy may
        lose, unless they are sorted by these."""
        dtype, turn, has_rows, long_row = self._dtype, self._turn, self._has_rows, self._long_row
        axis, stable, network, network_from = self._along, self._stable, self._network, self._network_from
        copy = cast(Sorted, np.ndarray.flatten if self._axis is None else np.ndarray.copy)
        stable_lengths = self._stable_lengths
        seen = None if turn is None or turned_as(dtype) == dtype else turned_as(dtype)

        def sort(x: HostArray) -> HostArray:
            length = x.shape[axis] if has_rows else x.size
            if x.size > short or length >= long_row or (length <= network and x.size >= network_from):
                return go_on(x)
            results = x.copy("K") if has_rows else copy(x)
            numbers = results if seen is None else results.view(seen)
            if turn is not None:
                turn(numbers, numbers)
            if length in stable_lengths:
                numbers.sort(axis, "stable")
            else:
                numbers.sort(axis)
            if turn is not None:
                turn(numbers, numbers)
            return results

        by_bits, sorts_bits = self._by_bits, self._sorts_bits

        def sort_times(x: HostArray) -> HostArray:
            size = x.size
            if size > short:
                return go_on(x)
            results = copy(x)
            if size > FEW_TIMES_OF_A_ROW:
                return by_bits(results)
            results.sort()
            return results

        if dtype.kind != "f":
            return sort_times if sorts_bits else sort
        ties = FloatTies.of(dtype)
        few, tied = ties.few, go_on if stable or not dtype.isnative else self._by_words
        most_plain = MOST_HALVES if dtype.itemsize == 2 and sorts_bits else _NEVER

        def sort_floats(x: HostArray) -> HostArray:
            size = x.size
            length = x.shape[axis] if has_rows else size
            if size > short or length >= long_row or (length <= network and size >= network_from):
                return go_on(x)
            results = x.copy("K") if has_rows else copy(x)
            if length < 2 or not size:
                return results
            if length > most_plain:
                return by_bits(results)
            flat = results.ravel("K") if has_rows else results  # as it lies: all else would be packed before a look
            if (size > few or count_nonzero(flat) != size) and ties.has_minus_zero(flat):
                return by_bits(results) if sorts_bits else tied(x)
            if turn is not None:
                turn(results, results)
            if length in stable_lengths:
                results.sort(axis, "stable")
            else:
                results.sort(axis)
            greatest = flat.item(-1)
            has_nan = ties.has_nan(flat) if has_rows else greatest != greatest
            if turn is not None:
                turn(results, results)
            if not has_nan or ties.puts_nans_back(x, results, stable):
                return results
            return by_bits(copy(x)) if sorts_bits else tied(x)

        return sort_floats

    def _by_bits(self, row: HostArray) -> HostArray:
        """A packed row, which is not kept, sorted as integers."""
        bits, size = self._bits, row.size
        words: HostArray = row.view(bits.word)
        if size in self._lengths_of_bits:
            words.sort(kind="stable")
        else:
            words.sort()
        found = bits.put_in_order(words, self._order) if size else words
        return row if found is words else found.view(self._dtype)

    def _by_words(self, x: HostArray) -> HostArray:
        return sorted_by_words(x.reshape(-1) if self._axis is None else x, self._along, self._order)

    def _writer(self, sort: Sorted) -> Callable[[HostArray, HostArray], bool]:
        """Sorts into another array or where it lies: either is written by one call into C. False, and nothing done,
        where the array is longer, or the other one not known to take the result."""
        short, long_row, axis = self._short, self._long_row, self._along
        stable_lengths = self._stable_lengths
        sorts_at_once = self._turn is None and self._dtype.kind != "f"  # it is whole all the time

        def write(x: HostArray, out: HostArray) -> bool:
            length = x.shape[axis]
            if x.size > short or length >= long_row:
                return False
            flags = out.flags
            if not (flags.writeable and (flags.forc or _has_own_places(out.shape, out.strides, out.dtype))):
                return False
            if out is not x and ((out.dtype is not x.dtype and out.dtype != x.dtype) or out.shape != x.shape):
                return False
            if not sorts_at_once and length > 1:
                out[...] = sort(x)
                return True
            if out is not x:
                out[...] = x
            if length in stable_lengths:
                out.sort(axis, "stable")
            else:
                out.sort(axis)
            return True

        return write


@lru_cache(maxsize=256)
def _has_own_places(shape: Shape, strides: Shape, dtype: np.dtype[np.generic]) -> bool:
    """Whether no element is another one, too."""
    return not Spec(shape, dtype, strides=strides).may_share_elements


def _are_one(x: HostArray, results: HostArray) -> bool:
    """Whether both are the same elements in the same layout."""
    if x is results:
        return True
    return x.strides == results.strides and x.__array_interface__["data"] == results.__array_interface__["data"]
