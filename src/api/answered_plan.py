"""Plans whose results follow from the shapes alone: of arrays without elements."""

from __future__ import annotations

from typing import Any

from ..arrays.kinds import Located
from ..machine import TargetInfo
from ..operations.base import Copy, Operation, Output, Works, copying
from ..targets.base import Target
from ..types.specs import Spec, comes_to_host
from .plan import Arrays, Cost, Plan, require_fitting, require_same_device, results_of


class _Copied(Operation):
    """An array as it is."""

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (Output(given[0].shape, given[0].dtype, ()),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        return Works((copying(Copy(1, 0)),))


class AnsweredPlan(Plan):
    def __init__(self, kind: Located[Any], operation: Operation, specs: tuple[Spec, ...], target: Target) -> None:
        self.kind, self.operation, self._specs, self._target = kind, operation, specs, target
        self._outputs = operation.outputs(*specs)
        # On a device: which results have elements, and those as prepared calls copy them, and by which plan.
        self._filled = [] if kind.is_host else [n for n, output in enumerate(self._outputs) if 0 not in output.shape]
        self._copies: list[tuple[Any, Plan]] = []

    def run(self, *arrays: Any) -> object:
        return results_of(self.new_outputs(arrays), self._outputs)

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        require_fitting(self.kind, outs, self._outputs)
        if self.kind.is_host:
            for out, found in zip(outs, self.new_outputs(arrays), strict=True):
                out[...] = found
            return
        if self._filled and not self._copies:
            from .kernel_plan import KernelPlan

            found = self.new_outputs(arrays)
            self._copies = [
                (found[n], KernelPlan(self.kind, _Copied(), (self.kind.spec("out", found[n]),), self._target))
                for n in self._filled
            ]
        for number, (held, plan) in zip(self._filled, self._copies, strict=True):
            plan.into((held,), (outs[number],))

    def new_outputs(self, arrays: Arrays) -> list[Any]:
        with self.kind.scope(arrays[0]):
            device, found = self.kind.placed(arrays[0]), self.operation.answer(*self._specs)
            require_same_device(device, self.operation.names, arrays)
            return [x if comes_to_host(x.dtype, self._specs) else device.from_host(x) for x in found or ()]

    def cost(self) -> Cost:
        return Cost(len(self._filled), 0, 0)
