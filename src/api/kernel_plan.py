"""Plans that run kernels on arrays of one kind, shape and layout: lists of steps (pack, launch, unpack), made once for
each case of aliasing between outputs and inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from itertools import count, repeat
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from ..arrays.kinds import Device, Located
from ..kernel.launch import Schedule
from ..operations.base import Operation, Output, Works
from ..targets.base import HasRoom, Target
from ..types.bounded import Bounded
from ..types.specs import Spec, comes_to_host, order_of_axes, overlapping, strides_in_order
from .plan import Arrays, Cost, Plan, cost_of, one_or_all, require_fitting, require_same_device, results_of
from .step_calls import HostCall, Run, StreamCall, law_check
from .steps import Lines, Way, runs_of, steps_of

_BYTE = np.dtype(np.uint8)
_MOST_WAYS = 64

Axes: TypeAlias = tuple[int, ...]
Call: TypeAlias = HostCall | StreamCall  # the steps of a call, prepared for arrays at any addresses


@attrs.define(eq=False)
class _Into:
    """Calls that write to `out` arrays of one layout."""

    outs: tuple[Lines, ...]
    # of an output and an input by their numbers: their addresses' differences between which they overlap
    overlaps: tuple[tuple[int, int, int, int], ...]
    is_like: bool  # whether the one result lies as the one input does
    calls: dict[Way, Run]


class KernelPlan(Plan):
    def __init__(
        self, kind: Located[Any], operation: Operation, specs: tuple[Spec, ...], target: Target,
        keeps_scratch: bool = False,
    ) -> None:  # fmt: skip
        self.kind, self.operation, self.specs, self.target = kind, operation, specs, target
        self._keeps_scratch = keeps_scratch
        self.outputs = operation.outputs(*specs)
        self._run_as, self._run_on, self._axes = _in_order_of_strides(kind, operation, specs)
        self._works = self._run_as.works(self._run_on, target.info)
        as_it_lies = any(work.as_it_lies for work in self._works)
        self._row_axes = tuple(() if as_it_lies else output.axes for output in self.outputs)
        self._finishes = any(
            output.is_scalar and output.shape == () if kind.is_host else comes_to_host(output.dtype, specs)
            for output in self.outputs
        )
        self._check = law_check(operation, specs[0], target) if kind.is_host else None
        self._ways: Bounded[Hashable, _Into] = Bounded(_MOST_WAYS)
        # Known with the first arrays:
        self._device: Device[Any] | None = None
        self._inputs: tuple[Lines, ...] = ()
        self._new: Call | None = None
        self.run = self._in_scope

    def _in_scope(self, *arrays: Any) -> object:
        """A call with the arrays' device and stream made current: the first one, and whenever they are not."""
        with self.kind.scope(arrays[0]):
            self.make_ready(arrays)
            return self.run(*arrays)

    def _fastest(self, device: Device[Any], call: Call) -> Callable[..., object]:
        """What a warm call runs. One array, for whose result nothing but one launch is needed, has a closure of its
        own, as each Python call saved is 0.1 of the 5 us that a call costs the host."""
        makers, current_stream, handle, in_scope = self._makers, device.stream, device.handle, self._in_scope
        launch = call.launch
        if isinstance(call, StreamCall) and len(self.specs) == len(makers) == 1 and not self._finishes:
            make = makers[0]

            def run_one(x: Any) -> object:
                stream = current_stream()
                if stream is None:
                    return in_scope(x)
                out = make()
                launch((handle(x), handle(out)), stream)
                return out

            return run_one

        check, finished = self._check, self._finished if self._finishes else one_or_all

        def run(*arrays: Any) -> object:
            stream = current_stream()
            if stream is None:
                return in_scope(*arrays)
            if check is not None:
                check(arrays[0])
            outs = [make() for make in makers]
            launch((*map(handle, arrays), *map(handle, outs)), stream)
            return finished(outs)

        return run

    def into(self, arrays: Arrays, outs: Arrays) -> None:
        device = self._device
        if device is None or (stream := device.stream()) is None:
            with self.kind.scope(arrays[0]):
                self.make_ready(arrays)
                self.into(arrays, outs)
            return
        if self._check is not None:
            self._check(arrays[0])
        known = tuple([(self.kind.layout(out), self.kind.is_read_only(out)) for out in outs])
        into = self._ways.get(known) or self._into(known, device, arrays, outs)
        address, handle = device.address, device.handle
        addresses = *map(address, arrays), *map(address, outs)
        way = _way(addresses, into)
        launch = into.calls.get(way)
        if launch is None:
            is_new = way is Way.APART and into.outs == self._outs
            call = cast(Call, self._new) if is_new else self._call(device, into.outs, way)
            launch = into.calls[way] = call.launch
        launch(addresses if handle is address else (*map(handle, arrays), *map(handle, outs)), stream)

    def new_outputs(self, arrays: Arrays) -> list[Any]:
        return [make() for make in self._makers]

    @cached_property
    def device_bytes(self) -> int:
        """Device memory, in bytes, of the largest run, where host arrays are copied to the device."""
        return max((sum(b.nbytes for b in schedule.buffers) for schedule in self._schedules), default=0)

    def cost(self) -> Cost:
        if self._new is not None:
            return cost_of(self._new.schedules, self._new.scratch_bytes)
        return cost_of(self._schedules)

    def make_ready(self, arrays: Arrays) -> None:
        if self._device is not None:
            return
        device = self.kind.placed(arrays[0])
        require_same_device(device, self.operation.names, arrays)
        rows = map(self.operation.axes, self.specs)
        self._inputs = tuple(map(Lines.of, count(), self.specs, rows, repeat(self._axes)))
        results: list[Spec] = []
        for x in self.outputs:
            order = self._order(x)
            strides = None if order is None else strides_in_order(x.shape, x.dtype.itemsize, order)
            results.append(Spec(x.shape, x.dtype, self.specs[0].memory, strides))
        self._makers = tuple(device.empty(*self._held(spec), spec.strides) for spec in results)
        self._outs = self._lines(results)
        self._new = self._call(device, self._outs, Way.APART)
        if isinstance(self._new, StreamCall):
            self.copied_inputs = self._new.copied
        self.run = self._fastest(device, self._new)
        self._device = device

    def _held(self, spec: Spec) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
        """Shape and dtype of the array that holds an output: bytes on a device, if it comes from there to the host."""
        if not comes_to_host(spec.dtype, self.specs):
            return spec.shape, spec.dtype
        return (spec.nbytes,), _BYTE

    @cached_property
    def _schedules(self) -> list[Schedule]:
        return [schedule for work in self._works for schedule, _ in runs_of(work)]

    @cached_property
    def _works_in_place(self) -> Works | None:
        """In-place works; None for host arrays, of which an interrupt between two launches would lose elements, unless
        they are sent to a device, and back, once."""
        is_sent = self.kind.is_host and isinstance(self.target, HasRoom)
        if len(self.specs) > 1 or (self.kind.is_host and not is_sent):
            return None
        works = self._run_as.works_in_place(self._run_on, self.target.info)
        return None if works is None or (is_sent and len(works) > 1) else works

    def _order(self, output: Output) -> Axes | None:
        """The order of a result's axes in memory: that of the input's, or of those of them that are left."""
        if self._axes is None or len(output.shape) == len(self._axes):
            return self._axes
        kept = [axis for axis in self._axes if axis not in self.operation.axes(self.specs[0])]
        return tuple(sorted(kept).index(axis) for axis in kept)

    def _lines(self, results: Sequence[Spec]) -> tuple[Lines, ...]:
        """Outputs, with the axes of a row last."""
        orders = map(self._order, self.outputs)
        return tuple(map(Lines.of, count(len(self.specs)), results, self._row_axes, orders))

    def _call(self, device: Device[Any], outs: Sequence[Lines], way: Way) -> Call:
        works = self._works_in_place if way is Way.IN_PLACE else self._works
        if works is None:
            works, way = self._works, Way.BEHIND
        steps = steps_of(self._inputs, outs, works, way)
        if self.kind.is_host:
            return HostCall(self.target, device, steps, self._keeps_scratch)
        return StreamCall(self.target, device.alignment, device.scratch, steps, self._keeps_scratch)

    def _into(self, known: Hashable, device: Device[Any], arrays: Arrays, outs: Arrays) -> _Into:
        """Checks `out` arrays and caches how to write to any of their layout."""
        require_fitting(self.kind, outs, self.outputs)
        require_same_device(device, (self.operation.names[0], *["out"] * len(outs)), (arrays[0], *outs))
        specs = [self.kind.spec("out", out) for out in outs]
        lines = self._lines(specs)
        is_like = len(self._inputs) == len(lines) == 1 and self._inputs[0].spec == lines[0].spec
        overlaps = tuple(
            (out.number, x.number, *overlapping(out.bounds, x.bounds)) for out in lines for x in self._inputs
        )
        into = _Into(lines, overlaps, is_like, {})
        self._ways[known] = into
        return into

    def _finished(self, outs: list[Any]) -> object:
        """Converts results: to NumPy's scalars on the host; states of several fields on a device to NumPy's arrays."""
        if not self.kind.is_host:
            to_host = cast("Device[Any]", self._device).to_host
            outs = [
                to_host(out).view(x.dtype).reshape(x.shape) if comes_to_host(x.dtype, self.specs) else out
                for out, x in zip(outs, self.outputs, strict=True)
            ]
        return results_of(outs, self.outputs)


def _in_order_of_strides(
    kind: Located[Any], operation: Operation, specs: tuple[Spec, ...]
) -> tuple[Operation, tuple[Spec, ...], Axes | None]:
    """The operation on a permuted array as the packed one that it is a view of, with its axes in their order in memory:
    kernels then run on rows as they lie. As it was, and None, where there is no such array."""
    x = specs[0]
    if kind.has_strides and x.strides is not None and len(specs) == 1:
        axes = order_of_axes(x.shape, x.strides)
        permuted = operation.permuted(axes) if axes != (*range(len(axes)),) else None
        if permuted is not None:
            return permuted, (x.permuted(axes),), axes
    return operation, specs, None


def _way(addresses: Sequence[int], into: _Into) -> Way:
    for out, given, low, high in into.overlaps:
        if low < addresses[out] - addresses[given] < high:
            is_same = into.is_like and addresses[0] == addresses[1]
            return Way.IN_PLACE if is_same else Way.BEHIND
    return Way.APART
