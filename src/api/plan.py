"""The plan of a call: all that does not depend on where arrays of one kind lie, made once.

Three ways. NativePlan: a target's own function on host arrays. KernelPlan: schedules made ready by a target, on packed
arrays directly, or else on rows that are laid out, packed and put back here: the one place where that is done.
IndexedPlan: the permutation first, then elements taken by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any, TypeAlias

import attrs
import numpy as np

from ..arrays.host import NUMPY
from ..arrays.kinds import Kind
from ..kernel.launch import Role, Schedule, is_buffer
from ..operations.base import HostArray, Operation, Output, Work, rows_of
from ..targets.base import ChecksMonoids, HasNative, Native, Prepared, Target, prepared_by
from ..targets.registry import target as target_of
from ..types.dtypes import native
from ..types.errors import InvalidArgumentError
from ..types.specs import Spec
from .laws import try_laws
from .overlap import Overlap, overlap

Arrays: TypeAlias = Sequence[Any]
_BYTE = np.dtype(np.uint8)


@attrs.frozen
class Cost:
    """What a call asks of the device. None where the host's own way decides as it goes."""

    launches: int
    temporary_bytes: int | None
    bytes_moved: int | None  # by launches, if each reads or writes all that it is handed


class Plan(ABC):
    """What a warm call runs. Safe to use from several threads."""

    kind: Kind
    operation: Operation

    @abstractmethod
    def __call__(self, *arrays: Any) -> object:
        """New outputs: one array, or a tuple of several."""

    @abstractmethod
    def into(self, arrays: Arrays, outs: Arrays) -> object:
        """The same into arrays that are there; those may be inputs, or share memory with them."""

    def reserved(self, specs: tuple[Spec, ...]) -> Plan:
        """The same for arrays of these specs alone, with scratch of its own; not for several threads at once."""
        return self

    def cost(self, specs: tuple[Spec, ...]) -> Cost:
        return Cost(0, None, None)


def plan_for(operation: Operation, kind: Kind, arrays: Arrays, specs: tuple[Spec, ...], target: Target) -> Plan:
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


def _specs(kind: Kind, operation: Operation, arrays: Arrays) -> tuple[Spec, ...]:
    return tuple(kind.spec(name, array) for name, array in zip(operation.names, arrays, strict=True))


def _given(outs: list[Any]) -> object:
    return outs[0] if len(outs) == 1 else tuple(outs)


def require_fitting(kind: Kind, outs: Arrays, outputs: tuple[Output, ...], like: object) -> None:
    """Refuses arrays that results cannot be written to."""
    for out, output in zip(outs, outputs, strict=True):
        spec = kind.spec("out", out)
        if spec.shape != output.shape or spec.dtype != output.dtype:
            raise InvalidArgumentError(
                f"out: expected shape {output.shape} and dtype {output.dtype}, found shape {spec.shape} and dtype "
                f"{spec.dtype}"
            )
        if kind.is_read_only(out):
            raise InvalidArgumentError("out: expected an array that can be written, found a read-only one")


@attrs.frozen(eq=False)
class NativePlan(Plan):
    """A function of the target's own, for arrays of any shape that it has seen a signature of."""

    kind: Kind
    operation: Operation
    native: Native

    def __call__(self, *arrays: Any) -> object:
        kind = self.kind
        views = [kind.view(array) for array in arrays]
        if not views[0].size:
            return _answered(kind, self.operation, arrays)
        found = self.native(*views)
        if isinstance(found, tuple):
            return tuple(kind.given_back(values, arrays[0]) for values in found)
        return kind.given_back(found, arrays[0])

    def into(self, arrays: Arrays, outs: Arrays) -> object:
        kind = self.kind
        outputs = self.operation.outputs(*_specs(kind, self.operation, arrays))
        require_fitting(kind, outs, outputs, arrays[0])
        views, goals = [kind.view(array) for array in arrays], [kind.view(out) for out in outs]
        if any(overlap(kind.space, view, goal) is Overlap.PARTLY for view in views for goal in goals):
            for goal, values in zip(goals, _tuple(self.native(*views)), strict=True):
                kind.space.assign(goal, values)
        elif views[0].size:
            self.native.into(views, goals)
        return _given(list(outs))


@attrs.frozen(eq=False)
class NumPyPlan(NativePlan):
    """The same of NumPy's own arrays, which are what the function takes and gives."""

    def __call__(self, *arrays: Any) -> object:
        return self.native(*arrays) if arrays[0].size else _answered(self.kind, self.operation, arrays)


def _tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _answered(kind: Kind, operation: Operation, arrays: Arrays) -> object:
    """What the shapes alone tell."""
    specs = _specs(kind, operation, arrays)
    outputs, answers = operation.outputs(*specs), operation.answer(*specs)
    assert answers is not None, "of arrays without elements"
    made = [_from_host(kind, found, output, arrays[0]) for found, output in zip(answers, outputs, strict=True)]
    return _given(made)


def _from_host(kind: Kind, found: HostArray, output: Output, like: Any) -> Any:
    if found.dtype.names is not None and not kind.is_host:
        return found
    made = kind.given_back(kind.space.from_host(found), like)
    return kind.scalar(made) if output.is_scalar and found.shape == () else made


class ShapedPlan(Plan):
    """Of host arrays, whose signatures leave out their shapes: a plan for each."""

    def __init__(self, kind: Kind, operation: Operation, target: Target) -> None:
        self.kind, self.operation = kind, operation
        self._target = target
        self._plans: dict[tuple[Spec, ...], Plan] = {}

    def _plan(self, arrays: Arrays) -> Plan:
        specs = _specs(self.kind, self.operation, arrays)
        plan = self._plans.get(specs)
        if plan is None:
            self.operation.outputs(*specs)
            if len(self._plans) >= 256:
                self._plans.clear()
            plan = self._plans[specs] = _kernel_plan(self.kind, self.operation, specs, self._target)
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
            indices = kind.view(self.permutation(arrays[0]))
            axes = self.operation.axes(0, kind.spec("x", arrays[0]))
            found = [kind.given_back(space.take(kind.view(array), indices, axes), array) for array in arrays]
        return _given(found)

    def into(self, arrays: Arrays, outs: Arrays) -> object:
        kind, space = self.kind, self.kind.space
        require_fitting(kind, outs, self.operation.outputs(*_specs(kind, self.operation, arrays)), arrays[0])
        with kind.scope(arrays[0]) or nullcontext():
            found = _tuple(self(*arrays))
            for out, values in zip(outs, found, strict=True):
                space.assign(kind.view(out), kind.view(values))
        return _given(list(outs))


@attrs.frozen
class Run:
    """One run of a schedule: its arrays, and which elements of each, all of them if there is but one run."""

    schedule: Schedule
    prepared: Prepared
    arrays: tuple[int, ...]
    slices: tuple[tuple[int, int] | None, ...]  # first and count


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

    @cached_property
    def runs(self) -> tuple[tuple[Work, tuple[Run, ...]], ...]:
        return tuple((work, self._runs(work)) for work in self.works)

    @cached_property
    def works_in_place(self) -> tuple[tuple[Work, tuple[Run, ...]], ...] | None:
        """Where host memory is an array's only one, an interrupt between two launches would lose elements."""
        if self.kind.is_host or len(self.specs) > 1 or self.is_answered:
            return None
        works = self.operation.works(self.specs, self.target.info, in_place=True)
        return None if works is None else tuple((work, self._runs(work)) for work in works)

    def __call__(self, *arrays: Any) -> object:
        if self.is_answered:
            return _answered(self.kind, self.operation, arrays)
        self._check(arrays)
        scope = self.kind.scope(arrays[0])
        if scope is None:
            return self._directly(arrays) if self.is_direct else self._made(arrays)
        with scope:
            return self._directly(arrays) if self.is_direct else self._made(arrays)

    def into(self, arrays: Arrays, outs: Arrays) -> object:
        require_fitting(self.kind, outs, self.outputs, arrays[0])
        if not self.is_answered:
            self._check(arrays)
            with self.kind.scope(arrays[0]) or nullcontext():
                self._run_into(arrays, outs)
        return _given(list(outs))

    def reserved(self, specs: tuple[Spec, ...]) -> Plan:
        plan = KernelPlan(self.kind, self.operation, specs, self.target)
        plan.keeps_scratch = True
        return plan

    def cost(self, specs: tuple[Spec, ...]) -> Cost:
        runs = [run for _, runs in self.runs for run in runs]
        launches = [launch for run in runs for launch in run.schedule.launches]
        return Cost(
            len(launches),
            max((sum(b.nbytes for b in run.schedule.buffers if b.role is Role.SCRATCH) for run in runs), default=0),
            sum(argument.nbytes for launch in launches for argument in launch.arguments if is_buffer(argument)),
        )

    # -- packed arrays ------------------------------------------------------------------------------------

    def _is_direct(self) -> bool:
        """Whether all arrays can be handed to kernels as they are, all rows at once."""
        last = all(
            (axes == () or axes[-1] == len(output.shape) - 1) and (not output.is_like or self.specs[0].strides is None)
            for output, axes in zip(self.outputs, self.row_axes, strict=True)
        )
        return (
            last
            and all(self._lies_in_rows(number, spec) for number, spec in enumerate(self.specs))
            and all(not work.copies and work.rows <= work.together for work in self.works)
            and all(part.dtype is None for work in self.works for part in work.parts.values())
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
        return _given(made)

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
            for goal, values in zip(goals, _tuple(self._new_views(arrays)), strict=True):
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

    def _run_on(self, rows: list[Any], goals: Sequence[Any], runs: tuple[tuple[Work, tuple[Run, ...]], ...]) -> None:
        """Rows into views of any layout."""
        space = self.kind.space
        laid = [self._laid_out(goal, axes) for goal, axes in zip(goals, self.row_axes, strict=True)]
        written = {part.array: part.dtype for work in self.works for part in work.parts.values() if part.dtype}
        works = [
            goal
            if space.is_packed(goal) and len(rows) + number not in written
            else space.empty(goal.shape, native(written.get(len(rows) + number, output.dtype)))
            for number, (goal, output) in enumerate(zip(laid, self.outputs, strict=True))
        ]
        self._execute([*rows, *works], runs)
        for goal, work in zip(laid, works, strict=True):
            if goal is not work:
                space.assign(goal, work)

    def _execute(self, arrays: list[Any], works: tuple[tuple[Work, tuple[Run, ...]], ...], unit: int = 1) -> None:
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
        monoid = self.operation.checked_monoid
        if monoid is None or not self.kind.is_host or not isinstance(self.target, ChecksMonoids):
            return
        axes = self.operation.axes(0, self.specs[0])
        rows = self._laid_out(self.kind.view(arrays[0]), axes)
        try_laws(self.target, self.operation, monoid, rows, rows_of(self.specs[0], axes)[1])
