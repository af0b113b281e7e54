"""Makes plans: a fast path of the target on host arrays where it has one, or else schedules of kernels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import Any, cast

import numpy as np

from ..arrays.host import HOST
from ..arrays.kinds import HostArray, Located
from ..operations.base import Operation, Output
from ..targets.base import HasNative, HasRoom, IsForFew, IsFunction, Native, Target, WritesInto, WritesShort
from ..targets.registry import target as target_of
from ..types.bounded import Bounded
from ..types.specs import Spec, strides_like
from .plan import Arrays, Cost, Plan, as_tuple, one_or_all, placed_together, require_fitting, results_of, specs_of

_MOST_SHAPES = 256


def plan_for(operation: Operation, kind: Located[Any], specs: tuple[Spec, ...], target: Target) -> Plan:
    """Chooses and makes the plan of an operation for arrays of a kind and these specs on a target."""
    if not kind.is_host:
        return _by_kernels(kind, operation, specs, target)
    if operation.is_the_hosts(specs[0]):
        target = target_of("cpu")
    native = target.native(operation, specs) if isinstance(target, HasNative) else None
    if native is None:
        return ShapedPlan(kind, operation, target)
    plan = NativePlan(kind, operation, native)
    if isinstance(native, IsForFew):
        return ShapedPlan(kind, operation, target, (plan, native))
    return plan


def _by_kernels(
    kind: Located[Any], operation: Operation, specs: tuple[Spec, ...], target: Target, keeps_scratch: bool = False
) -> Plan:
    """A plan for these specs alone: of kernels, in pieces if need be, unless there is nothing to compute."""
    if operation.answer(*specs) is not None:
        return AnsweredPlan(kind, operation, specs)
    if kind.is_host and isinstance(target, HasRoom):
        from .in_pieces.plan import PiecesPlan

        return PiecesPlan.of(kind, operation, specs, target, keeps_scratch)
    from .kernel_plan import KernelPlan  # and what launches kernels, which the host's own ways do without

    return KernelPlan(kind, operation, specs, target, keeps_scratch)


class AnsweredPlan(Plan):
    """Results that follow from the shapes alone: of arrays without elements."""

    def __init__(self, kind: Located[Any], operation: Operation, specs: tuple[Spec, ...]) -> None:
        self.kind, self.operation, self.outputs = kind, operation, operation.outputs(*specs)
        self._specs = specs

    def __call__(self, *arrays: Any) -> object:
        if self.kind.is_host:
            return results_of(self._answer(), self.outputs)
        return one_or_all(self.new_outputs(arrays))

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        require_fitting(self.kind, outs, self.outputs)
        if self.kind.is_host:  # elsewhere they were made with what the shapes tell
            for out, found in zip(outs, self._answer(), strict=True):
                out[...] = found

    def new_outputs(self, arrays: Arrays) -> list[Any]:
        with self.kind.scope(arrays[0]) or nullcontext():
            device = placed_together(self.kind, self.operation, arrays)
            return [x if x.dtype.names is not None else device.from_host(x) for x in self._answer()]

    def cost(self) -> Cost:
        return Cost(0, 0, 0)

    def _answer(self) -> tuple[HostArray, ...]:
        found = self.operation.answer(*self._specs)
        assert found is not None, "of arrays without elements"
        return found


class NativePlan(Plan):
    """A fast path of the target on NumPy's arrays: one for all shapes of a dtype and number of dimensions."""

    def __init__(self, kind: Located[HostArray], operation: Operation, native: Native) -> None:
        self.kind, self.operation, self.native = kind, operation, native
        self._fitting: Bounded[Hashable, bool] = Bounded(_MOST_SHAPES)
        self._into = native.into if isinstance(native, WritesInto) else None
        self._into_short = native.into_short if isinstance(native, WritesShort) else None
        own = self._on_two if len(operation.names) == 2 else self.__call__
        self._function = native.function if isinstance(native, IsFunction) else own

    @property
    def function(self) -> Callable[..., object]:
        return self._function

    def _on_two(self, x: Any, y: Any) -> object:
        return self.native(x, y) if (x.shape, y.shape) in self._fitting else self(x, y)

    @property
    def into_short(self) -> Callable[[Any, Any], bool] | None:
        return self._into_short

    def __call__(self, x: Any, /, *others: Any) -> object:
        shapes = (x.shape, *[other.shape for other in others])
        if shapes not in self._fitting:  # no part of the signature: what does not fit is refused here
            specs = specs_of(self.kind, self.operation, (x, *others))
            self.operation.outputs(*specs)
            if self.operation.answer(*specs) is not None:
                return AnsweredPlan(self.kind, self.operation, specs)(x, *others)
            self._fitting[shapes] = True
        return cast(object, self.native(x, *others))

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        given: list[object] = [array.shape for array in arrays]
        is_apart = True
        for out in outs:
            given += [out.shape, out.dtype, out.flags.writeable, out.flags.forc or out.strides]
            for array in arrays:
                if array is not out and is_apart:
                    is_apart = not _overlap_partly(array, out)
        fitting = tuple(given)
        if fitting not in self._fitting:
            require_fitting(self.kind, outs, self.operation.outputs(*specs_of(self.kind, self.operation, arrays)))
            self._fitting[fitting] = True
        if self._into is not None and is_apart:
            self._into(arrays, outs)
        else:
            for out, values in zip(outs, as_tuple(self(*arrays)), strict=True):
                out[...] = values

    def new_outputs(self, arrays: Arrays) -> list[Any]:
        return new_host_arrays(self.operation.outputs(*specs_of(self.kind, self.operation, arrays)), arrays[0])


def new_host_arrays(outputs: Sequence[Output], x: HostArray) -> list[Any]:
    """Uninitialised arrays for results; outputs that are `is_like` take the axis order of `x`."""
    like = strides_like(x.shape, x.strides, x.itemsize)
    return [HOST.empty(output.shape, output.dtype, like if output.is_like else None)() for output in outputs]


def _overlap_partly(array: HostArray, out: HostArray) -> bool:
    """Whether two arrays overlap without being the same elements in the same layout."""
    if array is out or not np.may_share_memory(array, out):
        return False
    lies, other = ((x.ctypes.data, x.shape, x.strides) for x in (array, out))
    return lies != other


class ShapedPlan(Plan):
    """Kernel plans for NumPy's arrays, one for each shape, as signatures of host arrays leave the shape out. A fast
    path of the target may serve small arrays."""

    def __init__(
        self, kind: Located[HostArray], operation: Operation, target: Target,
        few: tuple[Plan, IsForFew] | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.operation = kind, operation
        self._target, self._few = target, few
        self._plans: Bounded[Hashable, Plan] = Bounded(_MOST_SHAPES)

    @property
    def function(self) -> Callable[..., object]:
        if self._few is None:
            return self.__call__
        plan, way = self._few
        few, most, call = plan.function, way.most, self.__call__

        def run(*arrays: Any) -> object:
            return few(*arrays) if sum([array.size for array in arrays]) <= most else call(*arrays)

        def run_on_two(x: Any, y: Any) -> object:
            return few(x, y) if x.size + y.size <= most else call(x, y)

        return run_on_two if len(self.operation.names) == 2 else run

    def __call__(self, *arrays: Any) -> object:
        return self._plan(arrays)(*arrays)

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        self._plan(arrays).into(arrays, outs)

    def new_outputs(self, arrays: Arrays) -> list[Any]:
        return self._plan(arrays).new_outputs(arrays)

    def reserved(self, specs: tuple[Spec, ...]) -> Plan:
        few = self._of_few(specs)
        if few is not None:
            return few
        return self._plan_for(specs, keeps_scratch=True)

    def _of_few(self, arrays: Arrays) -> Plan | None:
        if self._few is None:
            return None
        plan, way = self._few
        return plan if sum([array.size for array in arrays]) <= way.most else None

    def _plan(self, arrays: Arrays) -> Plan:
        few = self._of_few(arrays)
        if few is not None:
            return few
        if self._few is not None and self._few[1].suits(arrays):
            return self._few[0]
        # with the signature all there is to know; an operation of a caller's monoid may have no hash
        key = tuple([(array.shape, array.strides, array.flags.aligned) for array in arrays])
        plan = self._plans.get(key)
        if plan is None:
            specs = specs_of(self.kind, self.operation, arrays)
            self.operation.outputs(*specs)
            plan = self._plans[key] = self._plan_for(specs)
        return plan

    def _plan_for(self, specs: tuple[Spec, ...], keeps_scratch: bool = False) -> Plan:
        return _by_kernels(self.kind, self.operation, specs, self._target, keeps_scratch)
