"""Merging two sorted arrays, with or without values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any, ClassVar, cast

import attrs
import numpy as np
import numpy.typing as npt

from ..machine import TargetInfo
from ..types.dtypes import key_for
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.indices import SortOrder
from ..types.keys import FloatKey, SortableKey
from ..types.scalars import UNSIGNED
from ..types.specs import Spec
from .argsort import SortPairs, different_sizes, require_plain
from .base import Copy, Operation, Output, Part, Works, copying, key_of, single
from .pieces import fits_binding
from .sort import Sort

_KEYS = ("first", "second", "results")
_VALUES = ("first_values", "second_values", "moved")


@attrs.frozen
class Merge(Operation):
    """The elements of both arrays in order, equal ones of the first array first."""

    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    names: ClassVar[tuple[str, ...]] = "x", "y"
    with_values = False

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        each = 2 if self.with_values else 1
        for name, spec in zip(self.names, given, strict=True):
            if len(spec.shape) != 1:
                raise InvalidArgumentError(f"{name}: expected an array of one dimension, found shape {spec.shape}")
        for number in range(each):
            if given[number].dtype != given[each + number].dtype:
                raise InvalidArgumentError(
                    f"{self.names[each + number]}: expected dtype {given[number].dtype}, as {self.names[number]} has, "
                    f"found {given[each + number].dtype}"
                )
        if self.with_values:
            for keys, values in ((0, 1), (2, 3)):
                if given[keys].shape != given[values].shape:
                    raise different_sizes(self.names[values], given[keys].shape, given[values].shape)
            require_plain(self.names[1], given[1])
            self._values(given)
        key_of(self.names[0], given[0], self.key)
        shape = (given[0].size + given[each].size,)
        return tuple(Output(shape, spec.dtype, (0,)) for spec in given[:each])

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.choice import choose_merge
        from ..algos.merge import merge

        each = len(given) // 2
        first, second = given[0].size, given[each].size
        results = tuple(range(2 * each, 3 * each))
        if not first or not second:
            source = each if second else 0
            return Works((copying(*(Copy(result, source + number) for number, result in enumerate(results))),))
        joined = tuple(Spec(output.shape, output.dtype) for output in self.outputs(*given))
        key = key_of(self.names[0], given[0], self.key)
        policy = choose_merge(key, info)
        is_held = fits_binding(first + second, max(x.dtype.itemsize for x in joined), info)
        if not is_held or -(-(first + second) // policy.tile) > info.limits.groups:
            return self._sorted_anew(given, joined, info)
        values = self._values(given) if self.with_values else None
        sizes = (first, second, first + second)
        parts: dict[str, Part] = {}
        for carried, names in enumerate((_KEYS, _VALUES)[:each]):
            for number, (name, size) in enumerate(zip(names, sizes, strict=True)):
                parts[name] = Part(number * each + carried, size)
        return Works((single(merge(key, first, second, self.order, policy, values), parts),))

    @property
    def sort(self) -> Sort | SortPairs:
        """The sort of the concatenated arrays, which gives the same result."""
        return SortPairs(self.order, self.key) if self.with_values else Sort(0, self.order, key=self.key)

    def _sorted_anew(self, given: tuple[Spec, ...], joined: tuple[Spec, ...], info: TargetInfo) -> Works:
        """Sorts the concatenation: a merge cannot be cut into bindings, as only the device knows where cuts fall."""
        each = len(joined)
        results, whole = range(2 * each, 3 * each), range(3 * each, 4 * each)  # what is joined lies between works
        starts = (0, given[0].size)
        copies = [Copy(whole[n % each], n, starts[n // each]) for n in range(2 * each)]
        sort = self.sort.works(joined, info)
        works = copying(*copies), *sort.within((*whole, *results), whole.stop)
        return Works(works, (*(Output(x.shape, x.dtype, (0,)) for x in joined), *sort.between))

    def _values(self, given: tuple[Spec, ...]) -> object:
        itemsize = given[1].dtype.itemsize
        if itemsize not in UNSIGNED:
            raise UnsupportedTypeError(
                f"values: expected elements of {', '.join(map(str, UNSIGNED))} bytes, found {given[1].dtype}; "
                "merge their indices in place of them, and take them by these"
            )
        return UNSIGNED[itemsize]


@attrs.frozen
class MergeByKey(Merge):
    """The same of keys, and each key's value."""

    names = "keys", "values", "other_keys", "other_values"
    title = "merge_by_key"
    with_values = True


def has_ties_in_order(x: npt.NDArray[Any], order: SortOrder) -> bool:
    """Whether the tied floats of a sorted array are in `sort`'s order, which puts -0.0 before 0.0 and NaNs in the order
    of their bits; `np.sort` and stable sorts leave them as they come. Both lie together, so a binary search finds
    them."""
    key = cast("FloatKey[Any, Any]", key_for(x.dtype))
    bits, up = x.view(f"{x.dtype.byteorder}u{x.itemsize}"), order is SortOrder.ASCENDING
    item: Callable[[int], float] = x.item
    numbers = range(x.size)
    if x.size and item(x.size - 1) != item(x.size - 1):
        numbers = range(bisect_left(numbers, True, key=lambda place: bool(item(place) != item(place))))
        if not _ascend(bits[len(numbers) :], key):
            return False

    def mirrored(place: int) -> float:
        return -item(place)

    rising = item if up else mirrored
    zeros = bits[bisect_left(numbers, 0.0, key=rising) : bisect_right(numbers, 0.0, key=rising)]
    negative = np.count_nonzero(zeros)
    return bool(negative == 0 or negative == np.count_nonzero(zeros[:negative] if up else zeros[-negative:]))


def _ascend(nans: npt.NDArray[Any], key: FloatKey[Any, Any]) -> bool:
    """Whether the words of NaNs ascend; these are the same in both orders."""
    of = nans.dtype.newbyteorder("=").type
    words = np.where(nans & of(key.sign), ~nans, nans ^ of(key.sign)) - of(key.lowest)
    return bool((words[1:] >= words[:-1]).all())
