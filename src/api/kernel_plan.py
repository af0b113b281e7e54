"""Schedules made ready for arrays of one kind, shape and layout.

They run on packed arrays directly, or else on rows that are laid out, packed and put back here: the one place where
that is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..arrays.kinds import Kind, Streamed
from ..kernel.launch import Role, Schedule
from ..operations.base import Operation, Work, rows_of
from ..targets.base import ChecksMonoids, Prepared, Target, prepared_by
from ..types.dtypes import native
from ..types.specs import Spec
from .laws import try_laws
from .on_stream import StreamPlan
from .overlap import Overlap, overlap
from .plan import Arrays, Cost, Plan, answered, as_tuple, cost_of, one_or_all, require_fitting
from .steps import Lines, Run, Steps, Way, steps_of

_BYTE = np.dtype(np.uint8)

Works: TypeAlias = "tuple[tuple[Work, tuple[Run, ...]], ...]"


class KernelPlan(Plan):
    """Schedules, made ready for arrays of these specs."""

    def __init__(self, kind: Kind, operation: Operation, specs: tuple[Spec, ...], target: Target) -> None:
        self.kind, self.operation, self.specs, self.target = kind, operation, specs, target
        self.keeps_scratch = False
        self.outputs = operation.outputs(*specs)
        self.is_answered = operation.answer(*specs) is not None
        self.works = () if self.is_answered else operation.works(specs, target.info, in_place=False) or ()
        self.as_it_lies = any(work.as_it_lies for work in self.works)
        self.row_axes = tuple(() if self.as_it_lies else output.axes for output in self.outputs)
        self.is_direct = not self.is_answered and self._is_direct()
        self._is_ready = False
        self._checks = kind.is_host and operation.checked_monoid is not None and isinstance(target, ChecksMonoids)
        self._on_stream: StreamPlan | None = None

    @cached_property
    def runs(self) -> Works:
        return tuple((work, self._runs(work)) for work in self.works)

    @cached_property
    def works_in_place(self) -> Works | None:
        """Where host memory is an array's only one, an interrupt between two launches would lose elements."""
        if self.kind.is_host or len(self.specs) > 1 or self.is_answered:
            return None
        works = self.operation.works(self.specs, self.target.info, in_place=True)
        return None if works is None else tuple((work, self._runs(work)) for work in works)

    def __call__(self, *arrays: Any) -> object:
        on_stream = self._on_stream
        if on_stream is not None and (stream := on_stream.streamed.stream()) is not None:
            return on_stream(arrays, stream)
        if self.is_answered:
            return answered(self.kind, self.operation, arrays)
        self._check(arrays)
        with self.kind.scope(arrays[0]) or nullcontext():
            self.make_ready(arrays)
            if self._on_stream is not None and (stream := self._on_stream.streamed.stream()) is not None:
                return self._on_stream(arrays, stream)
            return self._directly(arrays) if self.is_direct else self._made(arrays)

    def into(self, arrays: Arrays, outs: Arrays) -> object:
        if self._is_into(arrays, outs):
            return one_or_all(list(outs))
        require_fitting(self.kind, outs, self.outputs)
        if not self.is_answered:
            self._check(arrays)
            with self.kind.scope(arrays[0]) or nullcontext():
                self.make_ready(arrays)
                if not self._is_into(arrays, outs):
                    self._run_into(arrays, outs)
        return one_or_all(list(outs))

    def _is_into(self, arrays: Arrays, outs: Arrays) -> bool:
        """Done, if it can be, in the short way."""
        on_stream = self._on_stream
        if on_stream is None or (stream := on_stream.streamed.stream()) is None:
            return False
        return on_stream.into(arrays, outs, stream)

    def make_ready(self, arrays: Arrays) -> None:
        """Within their scope. Where arrays are on a device with streams, later calls take the short way."""
        if not (self._is_ready or self.is_answered or self.kind.is_host):
            streamed = self.kind.streamed(arrays[0])
            if streamed is not None and self._can_be_moved(streamed, arrays):
                inputs = [
                    Lines.of(number, spec, () if self.as_it_lies else self.operation.axes(number, spec))
                    for number, spec in enumerate(self.specs)
                ]
                plan = StreamPlan(
                    self.kind, streamed, inputs, self.outputs, self.row_axes, arrays[0], self._steps, self.keeps_scratch
                )
                self._on_stream = plan if plan.new is not None else None
        self._is_ready = True

    def _can_be_moved(self, streamed: Streamed[Any], arrays: Arrays) -> bool:
        """Whether kernels read and write all elements where they are."""
        return all(output.dtype.names is None for output in self.outputs) and not any(
            streamed.address(array) % spec.dtype.itemsize for array, spec in zip(arrays, self.specs, strict=True)
        )

    def _steps(self, inputs: Sequence[Lines], outs: Sequence[Lines], way: Way) -> Steps | None:
        works = self.works_in_place if way is Way.IN_PLACE else self.runs
        if works is None:
            return None
        return steps_of(self.target, inputs, outs, works, way, self.as_it_lies)

    def reserved(self, specs: tuple[Spec, ...]) -> Plan:
        plan = KernelPlan(self.kind, self.operation, specs, self.target)
        plan.keeps_scratch = True
        return plan

    def cost(self, specs: tuple[Spec, ...]) -> Cost:
        if self._on_stream is not None and self._on_stream.new is not None:
            return cost_of(self._on_stream.new.schedules, self._on_stream.new.scratch_bytes)
        return cost_of([run.schedule for _, runs in self.runs for run in runs])

    # -- packed arrays ------------------------------------------------------------------------------------

    def _is_direct(self) -> bool:
        """Whether all arrays can be handed to kernels as they are, all rows at once."""
        last = all(
            (not axes or axes[-1] == len(output.shape) - 1) and (not output.is_like or self.specs[0].strides is None)
            for output, axes in zip(self.outputs, self.row_axes, strict=True)
        )
        return (
            last
            and all(self._lies_in_rows(number, spec) for number, spec in enumerate(self.specs))
            and all(not work.copies and work.rows <= work.together for work in self.works)
            and (self.kind.is_host or all(output.dtype.names is None for output in self.outputs))
        )

    def _lies_in_rows(self, number: int, spec: Spec) -> bool:
        """Whether an input's rows lie one behind the other."""
        axes, ndim = self.operation.axes(number, spec), len(spec.shape)
        if self.as_it_lies:
            return spec.strides is None or not self.kind.is_host
        return spec.strides is None and axes == tuple(range(ndim - len(axes), ndim))

    def _directly(self, arrays: Arrays) -> object:
        kind, like = self.kind, arrays[0]
        outs = [kind.empty(output.shape, output.dtype, like) for output in self.outputs]
        memories = [*map(kind.memory, arrays), *map(kind.memory, outs)]
        for _, runs in self.runs:
            for run in runs:
                run.prepared.run([memories[number] for number in run.arrays])
        return self._handed_over(outs, like)

    def _handed_over(self, outs: list[Any], like: Any) -> object:
        kind = self.kind
        made = [kind.finished(out, like) for out in outs]
        made = [
            kind.scalar(out) if output.is_scalar and output.shape == () else out
            for out, output in zip(made, self.outputs, strict=True)
        ]
        return one_or_all(made)

    # -- all others ---------------------------------------------------------------------------------------

    def _made(self, arrays: Arrays) -> object:
        kind, like = self.kind, arrays[0]
        if not kind.is_host and any(output.dtype.names is not None for output in self.outputs):
            return self._structs(arrays)
        outs = [
            kind.empty_like(like) if output.is_like else kind.empty(output.shape, output.dtype, like)
            for output in self.outputs
        ]
        self._run_on(self._rows(arrays), [kind.view(out) for out in outs], self.runs)
        return self._handed_over(outs, like)

    def _structs(self, arrays: Arrays) -> object:
        """States of several fields: devices' libraries have no dtype for them, so they come as NumPy's."""
        (output,), space = self.outputs, self.kind.space
        spec = Spec(output.shape, output.dtype)
        results = space.empty((spec.size * output.dtype.itemsize,), _BYTE)
        self._execute([*self._rows(arrays), results], self.runs, output.dtype.itemsize)
        return space.to_host(results).view(output.dtype).reshape(output.shape)[()]

    def _run_into(self, arrays: Arrays, outs: Arrays) -> None:
        kind = self.kind
        goals = [kind.view(out) for out in outs]
        how = {overlap(kind.space, kind.view(array), goal) for array in arrays for goal in goals}
        if how == {Overlap.APART}:
            self._run_on(self._rows(arrays), goals, self.runs)
        elif how == {Overlap.SAME} and self.works_in_place is not None and self._is_in_rows(goals[0]):
            self._execute([None, self._laid_out(goals[0], self.row_axes[0])], self.works_in_place)
        else:  # until it is sorted, all of it stays as it is
            for goal, values in zip(goals, as_tuple(self._new_views(arrays)), strict=True):
                kind.space.assign(goal, values)

    def _new_views(self, arrays: Arrays) -> tuple[Any, ...]:
        space = self.kind.space
        made = [space.empty(output.shape, output.dtype) for output in self.outputs]
        self._run_on(self._rows(arrays), made, self.runs)
        return tuple(made)

    def _is_in_rows(self, view: Any) -> bool:
        return self.kind.space.is_packed(self._laid_out(view, self.row_axes[0]))

    def _laid_out(self, view: Any, axes: tuple[int, ...]) -> Any:
        """A view with the axes of a row last."""
        ndim = len(view.shape)
        return view if axes == tuple(range(ndim - len(axes), ndim)) else self.kind.space.last(view, axes)

    def _rows(self, arrays: Arrays) -> list[Any]:
        """Inputs as kernels take them: packed rows, or as they lie."""
        space, rows = self.kind.space, list[Any]()
        for number, (array, spec) in enumerate(zip(arrays, self.specs, strict=True)):
            view = self.kind.view(array)
            if self.as_it_lies:
                rows.append(space.span(view))
                continue
            laid = self._laid_out(view, self.operation.axes(number, spec))
            rows.append(laid if space.is_packed(laid) else space.packed(laid))
        return rows

    def _run_on(self, rows: list[Any], goals: Sequence[Any], runs: Works) -> None:
        """Rows into views of any layout."""
        space = self.kind.space
        laid = [self._laid_out(goal, axes) for goal, axes in zip(goals, self.row_axes, strict=True)]
        works = [
            goal if space.is_packed(goal) else space.empty(goal.shape, native(output.dtype))
            for goal, output in zip(laid, self.outputs, strict=True)
        ]
        self._execute([*rows, *works], runs)
        for goal, work in zip(laid, works, strict=True):
            if goal is not work:
                space.assign(goal, work)

    def _execute(self, arrays: list[Any], works: Works, unit: int = 1) -> None:
        """Every run of every work, on packed rows. `unit`: of an output that is bytes, how many make an element."""
        space = self.kind.space
        for work, runs in works:
            for to, source in work.copies:
                space.assign(arrays[to], space.reshaped(arrays[source], arrays[to].shape))
            for run in runs:
                memories: list[Any] = []
                for number, part in zip(run.arrays, run.slices, strict=True):
                    scale = unit if number >= len(self.specs) else 1
                    array = arrays[number]
                    memories.append(array if part is None else space.part(array, part[0] * scale, part[1] * scale))
                run.prepared.run(memories)

    def _runs(self, work: Work) -> tuple[Run, ...]:
        made: dict[int, tuple[Schedule, Prepared, tuple[str, ...]]] = {}
        runs: list[Run] = []
        for first in range(0, work.rows, max(1, work.together)):
            count = min(work.together, work.rows - first)
            if count not in made:
                schedule = work.schedule(count)
                names = tuple(buffer.name for buffer in schedule.buffers if buffer.role is not Role.SCRATCH)
                made[count] = schedule, prepared_by(self.target, schedule, self.keeps_scratch), names
            schedule, prepared, names = made[count]
            parts = [work.parts[name] for name in names]
            slices = [None if count == work.rows else (first * part.each, count * part.each) for part in parts]
            runs.append(Run(schedule, prepared, tuple(part.array for part in parts), tuple(slices)))
        return tuple(runs)

    def _check(self, arrays: Arrays) -> None:
        """Where the target looks for mistakes, it looks at the monoid first, on some elements of all the array."""
        monoid, target = self.operation.checked_monoid, self.target
        if not self._checks or monoid is None or not isinstance(target, ChecksMonoids):
            return
        axes = self.operation.axes(0, self.specs[0])
        rows = self._laid_out(self.kind.view(arrays[0]), axes)
        try_laws(target, self.operation, monoid, rows, rows_of(self.specs[0], axes)[1])
