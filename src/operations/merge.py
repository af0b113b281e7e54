"""Merging two sorted arrays, with or without values."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from ..machine import TargetInfo
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.keys import SortableKey
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
        if self._is_sorted_anew(given, info):
            return self._sorted_anew(given, info)
        key = key_of(self.names[0], given[0], self.key)
        values = self._values(given) if self.with_values else None
        policy = choose_merge(key, first + second, info)
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

    def _joined(self, given: tuple[Spec, ...]) -> tuple[Spec, ...]:
        return tuple(Spec(output.shape, output.dtype) for output in self.outputs(*given))

    def _is_sorted_anew(self, given: tuple[Spec, ...], info: TargetInfo) -> bool:
        """Whether the result is too large for one launch or binding."""
        from ..algos.choice import choose_merge

        joined = self._joined(given)
        count, itemsize = joined[0].size, max(x.dtype.itemsize for x in joined)
        if 0 in (given[0].size, given[len(joined)].size):
            return False
        policy = choose_merge(key_of(self.names[0], given[0], self.key), count, info)
        return not fits_binding(count, itemsize, info) or -(-count // policy.tile) > info.limits.groups

    def _sorted_anew(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        """Sorts the concatenation: a merge cannot be cut into bindings, as only the device knows where cuts fall."""
        joined = self._joined(given)
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
            raise InvalidArgumentError(
                f"values: expected elements of {', '.join(map(str, UNSIGNED))} bytes, found {given[1].dtype}"
            )
        return UNSIGNED[itemsize]


@attrs.frozen
class MergeByKey(Merge):
    """The same of keys, and each key's value."""

    names = "keys", "values", "other_keys", "other_values"
    with_values = True
