"""Plans whose results follow from the shapes alone: of arrays without elements."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..arrays.kinds import Located
from ..operations.base import Operation
from ..targets.base import Target
from ..types.bounded import Bounded
from ..types.specs import Spec, comes_to_host
from .plan import Arrays, Cost, Plan, require_fitting, require_same_device, results_of

if TYPE_CHECKING:
    from .step_calls import StreamCall

_MOST_LAYOUTS = 64  # of results


class AnsweredPlan(Plan):
    def __init__(self, kind: Located[Any], operation: Operation, specs: tuple[Spec, ...], target: Target) -> None:
        self.kind, self.operation, self.target, self._specs = kind, operation, target, specs
        self._outputs = operation.outputs(*specs)
        self._held: list[Any] = []  # on a device, the results as calls that were prepared copy them
        self._copies: Bounded[Hashable, StreamCall] = Bounded(_MOST_LAYOUTS)

    def run(self, *arrays: Any) -> object:
        return results_of(self.new_outputs(arrays), self._outputs)

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        require_fitting(self.kind, outs, self._outputs)
        if self.kind.is_host:
            for out, found in zip(outs, self.new_outputs(arrays), strict=True):
                out[...] = found
        elif self._filled:
            with self.kind.scope(arrays[0]):
                self._copy(arrays, outs)

    def new_outputs(self, arrays: Arrays) -> list[Any]:
        with self.kind.scope(arrays[0]):
            device, found = self.kind.placed(arrays[0]), self.operation.answer(*self._specs)
            require_same_device(device, self.operation.names, arrays)
            return [x if comes_to_host(x.dtype, self._specs) else device.from_host(x) for x in found or ()]

    def cost(self) -> Cost:
        return Cost(0 if self.kind.is_host else len(self._filled), 0, 0)

    @cached_property
    def _filled(self) -> list[int]:
        """Which results have elements."""
        return [number for number, output in enumerate(self._outputs) if 0 not in output.shape]

    def _copy(self, arrays: Arrays, outs: Arrays) -> None:
        device, known = self.kind.placed(arrays[0]), tuple([self.kind.layout(out) for out in outs])
        copies = self._copies.get(known)
        if copies is None:
            from .step_calls import StreamCall
            from .steps import Lines, Steps

            self._held, steps = self._held or self.new_outputs(arrays), Steps(2 * len(outs))
            for number in self._filled:
                source, to = (self.kind.spec("out", x[number]) for x in (self._held, outs))
                steps.move(Lines.of(number, source, ()), Lines.of(len(outs) + number, to, ()))
            copies = StreamCall(self.target, device.alignment, device.scratch, steps, keeps_scratch=False)
            self._copies[known] = copies
        copies([*map(device.handle, (*self._held, *outs))], device.stream() or 0)
