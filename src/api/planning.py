"""Which plan suits a call. Three ways: a target's own function on host arrays; schedules of kernels; the permutation
first, then elements taken by it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from typing import Any

import attrs

from ..arrays.host import NUMPY
from ..arrays.kinds import Kind
from ..operations.base import Operation
from ..targets.base import HasNative, IsFunction, Native, Target
from ..targets.registry import target as target_of
from ..types.specs import Spec
from .kernel_plan import KernelPlan
from .overlap import Overlap, overlap
from .plan import Arrays, Plan, answered, as_tuple, one_or_all, require_fitting, specs_of


def plan_for(operation: Operation, kind: Kind, specs: tuple[Spec, ...], target: Target) -> Plan:
    """The way that suits arrays of a kind, on a target."""
    if kind.is_host and operation.is_the_hosts(specs[0]):
        target = target_of("cpu")
    if kind.is_host and isinstance(target, HasNative):
        native = target.native(operation, specs)
        if native is not None:
            return (NumPyPlan if kind is NUMPY else NativePlan)(kind, operation, native)
    if kind.is_host:
        return ShapedPlan(kind, operation, target)
    return _kernel_plan(kind, operation, specs, target)


def _kernel_plan(kind: Kind, operation: Operation, specs: tuple[Spec, ...], target: Target) -> Plan:
    other = operation.instead(specs, target.info)
    if other is None:
        return KernelPlan(kind, operation, specs, target)
    return IndexedPlan(kind, operation, _kernel_plan(kind, other, specs[:1], target))


@attrs.frozen(eq=False)
class NativePlan(Plan):
    """A function of the target's own, for arrays of any shape that it has seen a signature of."""

    kind: Kind
    operation: Operation
    native: Native

    def __call__(self, x: Any, /, *others: Any) -> object:
        kind, arrays = self.kind, (x, *others)
        views = [kind.view(array) for array in arrays]
        if not views[0].size:
            return answered(kind, self.operation, arrays)
        return one_or_all([kind.given_back(values, x) for values in as_tuple(self.native(*views))])

    def into(self, arrays: Arrays, outs: Arrays) -> object:
        kind = self.kind
        outputs = self.operation.outputs(*specs_of(kind, self.operation, arrays))
        require_fitting(kind, outs, outputs)
        views, goals = [kind.view(array) for array in arrays], [kind.view(out) for out in outs]
        if any(overlap(kind.space, view, goal) is Overlap.PARTLY for view in views for goal in goals):
            for goal, values in zip(goals, as_tuple(self.native(*views)), strict=True):
                kind.space.assign(goal, values)
        elif views[0].size:
            self.native.into(views, goals)
        return one_or_all(list(outs))


@attrs.frozen(eq=False)
class NumPyPlan(NativePlan):
    """The same of NumPy's own arrays, which are what the function takes and gives."""

    _run: Callable[..., object] = attrs.field(init=False)  # a method is called sooner than an object

    def __attrs_post_init__(self) -> None:
        native = self.native
        object.__setattr__(self, "_run", native.function if isinstance(native, IsFunction) else native.__call__)

    def __call__(self, x: Any, /, *others: Any) -> object:
        if not x.size:
            return answered(self.kind, self.operation, (x, *others))
        return self._run(x, *others) if others else self._run(x)


class ShapedPlan(Plan):
    """Of host arrays, whose signatures leave out their shapes: a plan for each."""

    def __init__(self, kind: Kind, operation: Operation, target: Target) -> None:
        self.kind, self.operation = kind, operation
        self._target = target
        self._plans: dict[Hashable, Plan] = {}

    def _plan(self, arrays: Arrays) -> Plan:
        views = [self.kind.view(array) for array in arrays]
        key = tuple([(view.shape, view.strides) for view in views])  # with the signature all there is to know
        plan = self._plans.get(key)
        if plan is None:
            specs = specs_of(self.kind, self.operation, arrays)
            self.operation.outputs(*specs)
            if len(self._plans) >= 256:
                self._plans.clear()
            plan = self._plans[key] = _kernel_plan(self.kind, self.operation, specs, self._target)
        return plan

    def reserved(self, specs: tuple[Spec, ...]) -> Plan:
        return _kernel_plan(self.kind, self.operation, specs, self._target).reserved(specs)

    def __call__(self, *arrays: Any) -> object:
        return self._plan(arrays)(*arrays)

    def into(self, arrays: Arrays, outs: Arrays) -> object:
        return self._plan(arrays).into(arrays, outs)


@attrs.frozen(eq=False)
class IndexedPlan(Plan):
    """Elements taken in the order of a permutation, which is found first."""

    kind: Kind
    operation: Operation
    permutation: Plan

    def __call__(self, *arrays: Any) -> object:
        kind, space = self.kind, self.kind.space
        with kind.scope(arrays[0]) or nullcontext():
            specs = specs_of(kind, self.operation, arrays)
            indices = kind.view(self.permutation(arrays[0]))
            axes, outputs = self.operation.axes(0, specs[0]), self.operation.outputs(*specs)
            found = [
                kind.given_back(self._shaped(space.take(kind.view(array), indices, axes), output.shape), array)
                for array, output in zip(arrays, outputs, strict=True)
            ]
        scalars = [output.is_scalar and output.shape == () for output in outputs]
        return one_or_all([kind.scalar(x) if is_one else x for x, is_one in zip(found, scalars, strict=True)])

    def _shaped(self, found: Any, shape: tuple[int, ...]) -> Any:
        """Where an axis went, it is left with a length of one."""
        if found.shape == shape:
            return found
        space = self.kind.space
        return space.reshaped(found if space.is_packed(found) else space.packed(found), shape)

    def into(self, arrays: Arrays, outs: Arrays) -> object:
        kind, space = self.kind, self.kind.space
        require_fitting(kind, outs, self.operation.outputs(*specs_of(kind, self.operation, arrays)))
        with kind.scope(arrays[0]) or nullcontext():
            found = as_tuple(self(*arrays))
            for out, values in zip(outs, found, strict=True):
                space.assign(kind.view(out), kind.view(values))
        return one_or_all(list(outs))
