"""Makes plans: a fast path of the target on host arrays where it has one, or else schedules of kernels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from typing import Any, cast

import numpy as np

from ..arrays.host import HOST
from ..arrays.kinds import Located
from ..operations.base import Operation, Output
from ..targets.base import HasNative, HasRoom, IsForFew, IsFunction, Native, Target, WritesInto, WritesShort
from ..targets.registry import target as target_of
from ..types.bounded import Bounded
from ..types.specs import HostArray, Spec, strides_like
from .plan import Arrays, Cost, Plan, as_tuple, one_or_all, placed_together, require_fitting, results_of, specs_of

_MOST_SHAPES = 256


def plan_for(operation: Operation, kind: Located[Any], specs: tuple[Spec, ...], target: Target) -> Plan:
    """Chooses and makes the plan of an operation for arrays of a kind and these specs on a target."""
    if not kind.is_host:
        return _by_kernels(kind, operation, specs, target)
    if operation.is_the_hosts(specs[0]):
        target = target_of("cpu")
    return HostPlan(kind, operation, target, target.native(operation, specs) if isinstance(target, HasNative) else None)


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


class HostPlan(Plan):
    """A plan for NumPy's arrays of any shape and layout, as their signatures leave these out: a fast path of the target
    where it has one, for all arrays or for small ones; else a plan of kernels for each shape."""

    def __init__(
        self, kind: Located[HostArray], operation: Operation, target: Target, native: Native | None
    ) -> None:  # fmt: skip
        self.kind, self.operation, self.target, self._native = kind, operation, target, native
        way: object = native
        self._few = way if isinstance(way, IsForFew) else None
        self._into = way.into if isinstance(way, WritesInto) else None
        self.into_short = way.into_short if isinstance(way, WritesShort) else None
        self._plans: Bounded[Hashable, Plan | None] = Bounded(_MOST_SHAPES)  # None: the fast path takes such arrays
        self._fitting: Bounded[Hashable, bool] = Bounded(_MOST_SHAPES)

    @property
    def function(self) -> Callable[..., object]:
        native, few, plans, call = self._native, self._few, self._plans, self.__call__
        if native is None:
            return call
        are_two = len(self.operation.names) == 2
        if not isinstance(native, IsFunction):
            fits = native

            def run_fitting(x: Any, y: Any) -> object:
                return cast(object, fits(x, y)) if plans.get((x.shape, y.shape), self) is None else call(x, y)

            return run_fitting if are_two else call
        if few is None:
            return native.function
        run, most = native.function, few.most

        def run_few(*arrays: Any) -> object:
            return run(*arrays) if sum([array.size for array in arrays]) <= most else call(*arrays)

        def run_on_two(x: Any, y: Any) -> object:
            return run(x, y) if x.size + y.size <= most else call(x, y)

        return run_on_two if are_two else run_few

    def __call__(self, *arrays: Any) -> object:
        plan = self._plan(arrays)
        return cast(Native, self._native)(*arrays) if plan is None else plan(*arrays)

    def _plan(self, arrays: Arrays) -> Plan | None:
        """The plan for arrays of these shapes; None for the fast path, if that takes them."""
        few = self._few
        is_fast = self._native is not None and (few is None or self._are_few(arrays) or few.suits(arrays))
        if is_fast:
            key: Hashable = tuple([array.shape for array in arrays])
        else:  # with the signature all there is to know; an operation of a caller's monoid may have no hash
            key = tuple([(array.shape, array.strides, array.flags.aligned) for array in arrays])
        try:
            return self._plans[key]
        except KeyError:
            specs = specs_of(self.kind, self.operation, arrays)
            self.operation.outputs(*specs)  # shapes are no part of the signature: what does not fit is refused here
            is_answered = self.operation.answer(*specs) is not None
            plan = None if is_fast and not is_answered else _by_kernels(self.kind, self.operation, specs, self.target)
            self._plans[key] = plan
            return plan

    def _are_few(self, arrays: Sequence[HostArray] | tuple[Spec, ...]) -> bool:
        return self._few is not None and sum([array.size for array in arrays]) <= self._few.most

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        if self._native is None or self._few is not None:
            plan = self._plan(arrays)
            if plan is not None:
                plan.into(arrays, outs)
                return
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
        plan = self._plan(arrays)
        if plan is not None:
            return plan.new_outputs(arrays)
        return new_host_arrays(self.operation.outputs(*specs_of(self.kind, self.operation, arrays)), arrays[0])

    def reserved(self, specs: tuple[Spec, ...]) -> Plan:
        if self._native is not None and (self._few is None or self._are_few(specs)):
            return self
        return _by_kernels(self.kind, self.operation, specs, self.target, keeps_scratch=True)


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
