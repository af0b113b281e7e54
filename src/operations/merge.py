"""Two sorted arrays made one."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..algos.choice import choose_merge
from ..algos.merge import merge
from ..algos.sizes import LARGEST_U32
from ..kernel.launch import Schedule
from ..machine import TargetInfo
from ..types.errors import CapabilityError, InvalidArgumentError
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.scalars import UNSIGNED
from ..types.specs import Spec
from .argsort import SortPairs
from .base import HostArray, Operation, Output, Part, Work, key_of

_KEYS = ("first", "second", "results")
_VALUES = ("first_values", "second_values", "moved")


@attrs.frozen
class Merge(Operation):
    """Keys of both arrays in order, of equals those of the first array first; with values, also each key's value."""

    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    with_values: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return ("keys", "values", "other_keys", "other_values") if self.with_values else ("x", "y")

    def axes(self, number: int, given: Spec) -> tuple[int, ...]:
        return (0,)

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
            SortPairs(self.order, self.key).outputs(*given[:2])
            SortPairs(self.order, self.key).outputs(*given[2:])
            self._values(given)
        key_of(self.names[0], given[0], self.key)
        shape = (given[0].size + given[each].size,)
        return tuple(Output(shape, spec.dtype, (0,)) for spec in given[:each])

    def answer(self, *given: Spec) -> tuple[HostArray, ...] | None:
        results = self.outputs(*given)
        return None if results[0].shape[0] else tuple(np.empty(0, result.dtype) for result in results)

    def works(self, given: tuple[Spec, ...], info: TargetInfo, in_place: bool) -> tuple[Work, ...] | None:
        each = 2 if self.with_values else 1
        first, second = given[0].size, given[each].size
        results = tuple(range(2 * each, 3 * each))
        if not first or not second:
            source = each if second else 0
            copies = tuple((result, source + number) for number, result in enumerate(results))
            return (Work(1, 1, lambda count: Schedule((), ()), {}, copies),)
        key = key_of(self.names[0], given[0], self.key)
        values = self._values(given) if self.with_values else None
        policy = choose_merge(key, first + second, info)
        most = min(info.limits.storage_bytes // max(spec.dtype.itemsize for spec in given), LARGEST_U32)
        if first + second > most or -(-(first + second) // policy.tile) > info.limits.groups:
            raise CapabilityError(
                f"{self.names[0]}: {first + second} elements are more than target {info.name!r} merges: at most "
                f"{min(most, info.limits.groups * policy.tile)}; sort{'_by_key' * self.with_values} takes more, "
                "both one behind the other"
            )
        sizes = (first, second, first + second)
        parts: dict[str, Part] = {}
        for carried, names in enumerate((_KEYS, _VALUES)[:each]):
            for number, (name, size) in enumerate(zip(names, sizes, strict=True)):
                parts[name] = Part(number * each + carried, size)
        return (Work(1, 1, lambda count: merge(key, first, second, self.order, policy, values), parts),)

    def _values(self, given: tuple[Spec, ...]) -> object:
        itemsize = given[1].dtype.itemsize
        if itemsize not in UNSIGNED:
            raise InvalidArgumentError(
                f"values: expected elements of {', '.join(map(str, UNSIGNED))} bytes, found {given[1].dtype}"
            )
        return UNSIGNED[itemsize]
