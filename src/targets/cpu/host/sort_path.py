"""The fast path of sorts along one axis: packs strided arrays, and leaves short ones to NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import TypeAlias, cast

import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ....types.specs import Shape, Spec
from ...addresses import address_of
from ...base import HostArray
from ...counts import count_nonzero
from ..pool import shared_pool
from .at_sight import LEAST_AT_SIGHT, sorted_at_sight
from .copies import with_last
from .key_words import numbers_as
from .numpy_sort import (
    NETWORK,
    are_words_sooner,
    keep_ties,
    lengths_sorted_stably,
    needs_own_memory,
    sort_by_numpy,
    sorted_by_words,
    turning,
)
from .numpy_speed import sorts_halves_fast
from .partition_sort import part_from
from .radix_sort import suits_radix
from .row_networks import least_for_networks, longest_of_few, longest_of_many
from .sample import different_of
from .signed_bits import SignedBits
from .sort import is_worth_sharing, lie_well, sort_rows

Sorted: TypeAlias = Callable[[HostArray], HostArray]

SHORT = 1 << 10  # elements: below, NumPy's sort alone
# The same of float16, of times, and of those in rows: more are sorted as integers.
_FEW_HALVES, _FEW_TIMES, _FEW_TIMES_OF_ROWS = 1 << 8, 1 << 7, 1 << 9
# In fewer a NaN is looked for everywhere, not in the ends of rows alone: among float16 NumPy looks one by one.
_FEW_COMPARED, _MOST_COMPARED = 1 << 6, 1 << 13
_FAST_HALVES = 1 << 7  # elements of a row of float16
_NEVER = 1 << 62
_NEAR = 1 << 5  # bytes between elements of which a line of the cache holds two
_SEEN, _ALIKE = 12, 2  # elements that are looked at, and how many may differ there
_LEAST_BY_RADIX = 4  # bytes of an element
# Elements in all, or of rows, that are given to NumPy's stable sort: of arrays by turns, as one whose branches are
# foreseen takes it a third of the time; the same of rows that are so long at most.
_FEW_STABLE, _SHORT_STABLE = 1 << 9, 6
_FEW_OF_ROWS, _ROW = 1 << 11, 32
_SHORT_TIMES = 32  # times of a row
_FEW_MERGED = 64  # of more it is sooner to sort their integers first


class SortPath:
    """Along one axis, or of the flattened array. All that can be decided beforehand is."""

    def __init__(self, policy: HostSortPolicy, given: Spec, axis: int | None, order: SortOrder, stable: bool) -> None:
        dtype, has_rows = given.dtype, len(given.shape) > 1 and axis is not None
        self._ndim = len(given.shape)
        self._policy, self._dtype, self._axis, self._has_rows = policy, dtype, axis, has_rows
        self._along = -1 if axis is None else axis  # of what is flattened, if need be
        self._order, self._turn, self._keeps_ties = order, turning(order, dtype.kind), stable and dtype.kind == "f"
        is_half = dtype.kind == "f" and dtype.itemsize == 2
        is_time = dtype.kind in "Mm" and order is SortOrder.ASCENDING
        self._as_integers: Sorted | None = None
        if self._keeps_ties:
            self._as_integers = self._keeping_ties
        elif is_time or dtype.kind == "f":
            self._as_integers = partial(sorted_by_words, axis=self._along, order=order) if has_rows else self._by_bits
        # How many NumPy sorts as they are, in rows that are not short. Of float16 its vector code leaves rows out of
        # order that are longer than its network takes.
        self._most_plain = _NEVER
        if is_time:
            self._most_plain = _FEW_TIMES_OF_ROWS if has_rows else _FEW_TIMES
        elif is_half:
            self._most_plain = NETWORK if has_rows else _FEW_HALVES
        self._bits = SignedBits.of(dtype)
        self._lengths_of_bits = lengths_sorted_stably(self._bits.word)
        # More needs a look, threads, or a radix sort, for which rows are long.
        self._looks = dtype.itemsize > 1
        longer = policy.serial_below
        if self._looks and not has_rows and (is_half or dtype.itemsize >= _LEAST_BY_RADIX):
            longer = min(longer, LEAST_AT_SIGHT if is_half else policy.radix_from)
        self._short = max(SHORT, longer)
        self._long_row = policy.radix_from if has_rows else _NEVER
        # Of rows so short networks sort so many sooner.
        self._network = longest_of_few(dtype.itemsize) if has_rows and dtype.kind not in "Mm" else 0
        self._network_from = least_for_networks(policy)
        self._stable_lengths = lengths_sorted_stably(dtype)
        self._plain = self._sorter(self._sorted_long, _NEVER)
        self.function = self._sorter(self._keeping_ties if self._keeps_ties else self._sorted, self._short)
        self.into_short = None if axis is None else self._writer(self.function)

    def _sorted(self, x: HostArray) -> HostArray:
        if self._axis is None:
            x = x.ravel()
        elif x.shape[self._along] == 1:
            return x.copy("K")
        elif self._is_one_row(x):
            return self._of_one_row.function(x.reshape(-1)).reshape(x.shape)
        seen = self._at_sight(x)
        if seen is not None:
            return seen
        return self._plain(x) if self._suits_numpy(x) else self._sorted_long(x)

    def _suits_numpy(self, x: HostArray) -> bool:
        """Whether NumPy's sort on this thread takes the least time: of what is not worth sharing out, or rows of few
        different values, unless it goes by radix. Of times it takes too long."""
        size, dtype, policy, shared_from = x.size, self._dtype, self._policy, self._policy.serial_below
        if size >= shared_from and self._looks:
            if not self._has_rows:
                shared_from = max(shared_from, part_from(dtype, policy, shared_pool().threads))
            elif dtype.kind not in "Mm":
                length, apart = x.shape[self._along], abs(x.strides[self._along])
                if length > longest_of_many(dtype, apart):  # else networks sort them
                    is_alone = shared_pool().threads == 1 or not is_worth_sharing(x.swapaxes(self._along, -1))
                    is_alone &= apart <= _NEAR or lie_well(length, apart)
                    return is_alone or different_of(x, _SEEN) <= _ALIKE
        return size < shared_from and not suits_radix(size, size, dtype, policy)

    def _is_one_row(self, x: HostArray) -> bool:
        """Such as a column of a table: whichever way it lies, flattening it copies nothing."""
        return self._has_rows and x.shape[self._along] == x.size

    @cached_property
    def _of_one_row(self) -> SortPath:
        return SortPath(self._policy, Spec((0,), self._dtype), 0, self._order, self._keeps_ties)

    def _sorted_long(self, x: HostArray) -> HostArray:
        results = new_array(x.shape, x.dtype) if x.flags.c_contiguous else np.empty_like(x)
        self._sort_along(x, results)
        return results

    def into(self, arrays: Sequence[HostArray], outs: Sequence[HostArray]) -> None:
        x, results = arrays[0], outs[0]
        if self._is_one_row(x):
            row = x.reshape(-1)
            self._of_one_row.into((row,), (row if results is x else results.reshape(-1),))
        elif self._axis is None or self._keeps_ties or x.size < self._policy.serial_below:
            results[...] = self.function(x)
        elif (seen := self._at_sight(x)) is not None:
            results[...] = seen
        else:
            is_one = x.strides == results.strides and address_of(x) == address_of(results)
            self._sort_along(x, x if is_one else results)  # the same elements in the same layout

    def _at_sight(self, x: HostArray) -> HostArray | None:
        if not self._looks or x.ndim != 1 or x.size < LEAST_AT_SIGHT:
            return None
        return sorted_at_sight(x, self._order, self._policy)

    def _keeping_ties(self, x: HostArray) -> HostArray:
        """Floats, with those that tie in the order they came in: where they are few, or rows short, NumPy's stable sort
        takes less time than putting ties back."""
        if self._axis is None:
            x = x.ravel()
        length = x.shape[self._along]
        if length == 1:
            return x.copy("K")
        is_short = x.size < self._policy.serial_below and length <= _SHORT_STABLE
        if is_short or x.size <= (_FEW_OF_ROWS if length <= _ROW else _FEW_STABLE):
            results = x.copy("K")
            sort_by_numpy(results, self._along, self._order)
            return results
        results = self._unstable.function(x)
        keep_ties(x.swapaxes(self._along, -1), results.swapaxes(self._along, -1))
        return results

    @cached_property
    def _unstable(self) -> SortPath:
        given = Spec((0,) * (self._ndim if self._has_rows else 1), self._dtype)
        return SortPath(self._policy, given, self._along, self._order, stable=False)

    def _sort_along(self, x: HostArray, results: HostArray) -> None:
        if x.ndim > 1:
            axes, in_place = with_last(x, self._along), results is x
            x = x.transpose(axes)
            results = x if in_place else results.transpose(axes)
        sort_rows(x, results, self._order, self._policy)

    # -- short arrays ----------------------------------------------------------------------------------------

    def _sorter(self, go_on: Sorted, most: int) -> Sorted:
        """Sorts up to `most` elements into a new array. `go_on` does what is longer, and floats whose bits NumPy may
        lose, unless they are sorted as integers."""
        dtype, turn, has_rows, long_row, policy = self._dtype, self._turn, self._has_rows, self._long_row, self._policy
        axis, network, network_from = self._along, self._network, self._network_from
        copy = cast(Sorted, np.ndarray.flatten if self._axis is None else np.ndarray.copy)
        stable_lengths, as_integers = self._stable_lengths, self._as_integers or go_on
        most_plain, are_integers_sooner = self._most_plain, self._are_integers_sooner
        seen = None if turn is None or dtype.kind not in "bMm" else numbers_as(dtype)
        stable_from = 0 if has_rows else stable_lengths.start or _NEVER
        ties = self._bits if dtype.kind == "f" else None
        few = ties.few if ties else 0
        few_compared = _FEW_COMPARED if dtype.itemsize == 2 else _MOST_COMPARED
        may_be_words, order = dtype.kind == "f" and not self._keeps_ties, self._order
        last_of = tuple([-1 if number == axis % self._ndim else slice(None) for number in range(self._ndim)])

        def sort(x: HostArray) -> HostArray:
            size = length = x.size
            if not 0 < size <= most:
                return go_on(x)
            if has_rows:
                length = x.shape[axis]
                # so short that a copy or a network, or so long that a radix sort does it sooner
                if length == 1 or (length <= network and size >= network_from):
                    return go_on(x)
                if length >= long_row and suits_radix(size, length, dtype, policy):
                    return go_on(x)
                if may_be_words and are_words_sooner(x, axis):
                    return sorted_by_words(x, axis, order)
                results = flat = x.copy("K")
            else:
                results = flat = copy(x)
            if size > most_plain and are_integers_sooner(size, length):
                return as_integers(results)
            if ties:
                if has_rows:
                    flat = results.ravel("K")  # as it lies: all else would be packed before a look
                if (size > few or count_nonzero(flat) != size) and ties.has_minus_zero(flat):
                    return as_integers(results)
            numbers = results if seen is None else results.view(seen)
            if turn is not None:
                turn(numbers, numbers)
            if size < stable_from:
                numbers.sort()
            elif length in stable_lengths:
                numbers.sort(axis, "stable")
            else:
                numbers.sort(axis)
            if turn is not None:
                turn(numbers, numbers)
            if ties:
                if length == size:
                    has_nan = (last := flat.item(-1)) != last
                elif size > few_compared:
                    has_nan = ties.has_nan(results[last_of])
                else:
                    has_nan = (greatest := flat.item(flat.argmax())) != greatest
                if has_nan and not ties.puts_nans_back(x, results):
                    return as_integers(x.copy("K") if has_rows else copy(x))
            return results

        return sort

    def _are_integers_sooner(self, size: int, length: int) -> bool:
        """Whether NumPy sorts times, or float16, sooner as integers: more than `_most_plain` in all."""
        if self._dtype.kind != "f":
            return length > (_SHORT_TIMES if self._has_rows else 0)
        most, fast = (SHORT, _FAST_HALVES) if self._has_rows else (_FEW_HALVES, NETWORK)
        return length > NETWORK or (size > most and (length > fast or not sorts_halves_fast()))

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

    def _writer(self, sort: Sorted) -> Callable[[HostArray, HostArray], bool]:
        """Sorts into another array or where it lies, by calls into C that leave all elements there. False, and nothing
        done, where the array is longer, or the other one not known to take the result."""
        short, long_row, axis, stable_lengths = self._short, self._long_row, self._along, self._stable_lengths
        is_time, numbers_dtype = self._dtype.kind in "Mm", numbers_as(self._dtype)
        if is_time:  # which NumPy has no vector code for, but merges in loops that end whatever is written
            stable_lengths = range(_NEVER)
        # Whether NumPy may sort them where they are wanted: asked when it is first to be known, as that takes a while.
        at_once = None if self._turn is None and self._dtype.kind != "f" else False

        def write(x: HostArray, out: HostArray) -> bool:
            nonlocal at_once
            length = x.shape[axis]
            if x.size > short or length >= long_row:
                return False
            flags = out.flags
            if not (flags.writeable and (flags.forc or _has_own_places(out.shape, out.strides, out.dtype))):
                return False
            if out is not x and ((out.dtype is not x.dtype and out.dtype != x.dtype) or out.shape != x.shape):
                return False
            if at_once is None:
                at_once = not needs_own_memory(numbers_dtype)
            # NumPy's copy to a row that overlaps is wrong where one of the two takes longer steps than the other.
            if not at_once or (out is not x and out.strides != x.strides):
                out[...] = sort(x)
                return True
            if out is not x:
                out[...] = x
            if is_time and length > _FEW_MERGED:
                out.view(numbers_dtype).sort(axis)  # which has NaT first
            out.sort(axis, "stable" if length in stable_lengths else None)
            return True

        return write


@lru_cache(maxsize=256)
def _has_own_places(shape: Shape, strides: Shape, dtype: np.dtype[np.generic]) -> bool:
    """Whether no element is another one, too."""
    return not Spec(shape, dtype, strides=strides).may_share_elements
