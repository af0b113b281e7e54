"""Executes the steps of a call: on NumPy's arrays, which NumPy packs and unpacks and kernels take as they are; or on a
device, where packing and unpacking are kernels too, and all go to one stream, in one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from ..algos.copy import Strided, copy_strided
from ..algos.sizes import LARGEST_U32
from ..arrays.host import copy_elements
from ..arrays.kinds import Device
from ..forks import never_released_in_children
from ..kernel.launch import Schedule
from ..machine import Limits
from ..operations.base import Operation
from ..operations.monoids import ByMonoid
from ..targets.base import ChecksMonoids, LaunchesAtOnce, Prepared, Target, in_one_run, prepared_by
from ..types.dtypes import native
from ..types.elements import dtype_of
from ..types.scalars import UNSIGNED
from ..types.specs import HostArray, Shape, Spec, bounds, merged_axes, order_of_axes, packed_strides
from .key_laws import key_check, sampled
from .plan import most_scratch
from .steps import Launch, Lines, Move, Steps

Step: TypeAlias = Callable[[list[HostArray]], object]
Look: TypeAlias = Callable[[list[HostArray]], HostArray]
Run: TypeAlias = Callable[[tuple[Any, ...], int], None]  # on what kernels take of arrays, and on a stream


class HostCall:
    """The steps of a call, prepared for host arrays."""

    def __init__(self, target: Target, device: Device[HostArray], steps: Steps, keeps_scratch: bool) -> None:
        self._makers = [device.empty(made.spec.shape, made.spec.dtype, None) for made in steps.temporaries]
        self._kept = [make() for make in self._makers] if keeps_scratch else None
        self.schedules = tuple(step.schedule for step in steps.steps if isinstance(step, Launch))
        prepared = iter(_prepared(target, self.schedules, keeps_scratch))
        made = sum(made.spec.nbytes for made in steps.temporaries)
        self.scratch_bytes = made + most_scratch(self.schedules)  # of a schedule it is free once that has run
        self._steps = [
            _mover(step) if isinstance(step, Move) else _launcher(next(prepared), step.arrays) for step in steps.steps
        ]

    def __call__(self, given: Sequence[HostArray], stream: int) -> None:
        arrays = [*given, *(self._kept or [make() for make in self._makers])]
        for step in self._steps:
            step(arrays)

    @property
    def launch(self) -> Run:
        return self


def _prepared(target: Target, schedules: Sequence[Schedule], keeps_scratch: bool) -> list[Prepared]:
    """Each schedule prepared, and once where runs share one: by identity, as a caller's monoid may have no hash."""
    apart = {id(schedule): schedule for schedule in schedules}
    made = {number: prepared_by(target, schedule, keeps_scratch) for number, schedule in apart.items()}
    return [made[id(schedule)] for schedule in schedules]


def _mover(move: Move) -> Step:
    source, to, shape = _look(move.source), _look(move.to), move.source.spec.shape

    def copy(arrays: list[HostArray]) -> None:
        target = to(arrays)
        copy_elements(source(arrays), target if target.shape == shape else target.reshape(shape))

    return copy


def _launcher(prepared: Prepared, arrays: Sequence[Lines]) -> Step:
    run, looks = prepared.run, [_look(lines, as_it_lies=not lines.is_packed) for lines in arrays]
    return lambda arrays: run([look(arrays) for look in looks])


def _look(lines: Lines, as_it_lies: bool = False) -> Look:
    """The view with the axes of a row last, or the part of it; for kernels that take strides, all that is spanned."""
    number, order, spec = lines.number, cast(Any, lines.axes), lines.spec
    if as_it_lies:
        in_memory = order_of_axes(spec.shape, spec.all_strides)
        if spec.permuted(in_memory).strides is None:
            return _look(Lines(number, spec, tuple([order[axis] for axis in in_memory])))
        size, length = spec.dtype.itemsize, lines.bounds[1] // spec.dtype.itemsize
        return lambda arrays: np.lib.stride_tricks.as_strided(arrays[number], (length,), (size,))
    if lines.first is not None:
        whole, first, end = _look(attrs.evolve(lines, first=None)), lines.first, lines.first + spec.size
        return lambda arrays: whole(arrays).reshape(-1)[first:end]
    is_turned = order is not None and order != tuple(range(len(order)))
    return (lambda arrays: arrays[number].transpose(order)) if is_turned else lambda arrays: arrays[number]


_LITTLE = 1 << 16  # bytes of scratch that a plan may keep
_WORD = 8  # the most bytes that are moved as one


class StreamCall:
    """The steps of a call, prepared for one device."""

    def __init__(
        self, target: Target, alignment: int,
        scratch: Callable[[Sequence[int]], Callable[[], tuple[object, list[Any]]]], steps: Steps, keeps_scratch: bool,
    ) -> None:  # fmt: skip
        """For the current device. `alignment` is that of its memory in bytes; `scratch` makes what allocates
        pieces of given sizes, and returns what owns them and their handles."""
        schedules: list[Schedule] = []
        places: list[tuple[int, int]] = []  # which memory each kernel takes, and from which byte on
        for step in steps.steps:
            if isinstance(step, Move):
                for schedule, taken in _copies(step.source, step.to, alignment, target.info.limits):
                    schedules.append(schedule)
                    places += taken
            else:
                schedules.append(step.schedule)
                places += [(lines.number, lines.offset) for lines in step.arrays]
        self.copied = {step.source.number for step in steps.steps if isinstance(step, Move)}
        self._run = in_one_run(_prepared(target, schedules, keeps_scratch))
        self.schedules = tuple(schedules)
        as_handed = places == [(number, 0) for number in range(steps.given)]
        self._places = None if as_handed else places
        needed = [lines.spec.nbytes for lines in steps.temporaries]
        self._sizes = [*needed, self._run.scratch_bytes] if self._run.scratch_bytes else needed
        self.scratch_bytes = sum(self._sizes) + self._run.own_bytes
        self._new_scratch = scratch(self._sizes)
        self._kept = self._new_scratch() if keeps_scratch and self._sizes else None
        # Until all is on its way scratch is the call's own. What the stream does next may have it: the library gives it
        # out again in that order. A little is left here for the next call: on the default stream, for others end, and
        # their numbers come back.
        self._keeps_little = self._kept is None and self.scratch_bytes <= _LITTLE
        self._free: list[tuple[object, list[Any]]] = []
        never_released_in_children(self)

    @property
    def launch(self) -> Run:
        """The call, or what takes less time: what launches all, if that takes the arrays as they are."""
        if self._places is not None or not isinstance(self._run, LaunchesAtOnce):
            return self
        launch, scratch_at, scratch, free = self._run.launch, self._run.scratch_at, self._scratch, self._free
        if not self._sizes:
            return launch
        if self._kept is not None:
            kept = scratch_at(self._kept[1][-1])

            def launch_with_kept(handles: tuple[Any, ...], stream: int, _: object = self._kept) -> None:
                launch(handles + kept, stream)  # of memory that whoever has this function holds with it

            return launch_with_kept
        keeps_little = self._keeps_little

        def launch_with_scratch(handles: tuple[Any, ...], stream: int) -> None:
            held = scratch(stream)
            launch(handles + scratch_at(held[1][-1]), stream)
            if stream == 0 and keeps_little:
                free.append(held)

        return launch_with_scratch

    def __call__(self, handles: Sequence[Any], stream: int) -> None:
        held: tuple[object, list[Any]] | None = None
        scratch: Any = None
        if self._sizes:
            held = self._kept or self._scratch(stream)
            scratch = held[1][-1]
        if self._places is not None:
            handles = handles if held is None else [*handles, *held[1]]
            handles = [handles[number] + offset if offset else handles[number] for number, offset in self._places]
        self._run.run_at(handles, scratch, stream)
        if held is not None and stream == 0 and self._keeps_little:
            self._free.append(held)

    def _scratch(self, stream: int) -> tuple[object, list[Any]]:
        if stream == 0:
            try:
                return self._free.pop()
            except IndexError:  # there was none yet, or other threads have it
                pass
        return self._new_scratch()


def _copies(
    source: Lines, to: Lines, alignment: int, limits: Limits
) -> Iterator[tuple[Schedule, list[tuple[int, int]]]]:
    """Strided copies, with the memory of each: several where 32-bit indices, or a binding, do not span the arrays."""
    shape, size = source.spec.shape, source.spec.dtype.itemsize
    to_strides = to.spec.all_strides if to.spec.shape == shape else packed_strides(shape, size)  # which it is
    # As bytes, so that neighbours are moved by the word, and elements that are no word or not aligned by smaller ones.
    axes = merged_axes(zip((*shape, size), (*source.spec.all_strides, 1), (*to_strides, 1), strict=True))
    line = axes.pop()[0] if axes and axes[-1][1:] == (1, 1) else 1
    word = math.gcd(_WORD, line, source.origin, to.origin, *[stride for _, *both in axes for stride in both])
    sizes, *all_strides = zip(*axes, (line // word, word, word), strict=True)
    most = min(LARGEST_U32 * word, limits.storage_bytes) - alignment
    for part, firsts in _pieces(sizes, all_strides, word, most):
        lies: list[Strided] = []
        places: list[tuple[int, int]] = []
        for lines, own, first in zip((source, to), all_strides, firsts, strict=True):
            low, high = bounds(part, own, word)
            low -= (lines.origin + first + low) % alignment
            lies.append(Strided(-low // word, tuple([stride // word for stride in own]), (high - low) // word))
            places.append((lines.number, lines.offset + first + low))
        yield copy_strided(UNSIGNED[word], part, *lies, limits=limits), places


def _pieces(
    shape: Shape, all_strides: Sequence[Shape], size: int, most: int
) -> Iterator[tuple[Shape, tuple[int, ...]]]:
    """Halves a shape until no part spans more than `most` bytes in any array: the parts, with the bytes from each
    array's first element to that of the part."""
    if all(high - low <= most for low, high in (bounds(shape, strides, size) for strides in all_strides)):
        yield shape, (0,) * len(all_strides)
        return
    axis = max(range(len(shape)), key=lambda n: (shape[n] - 1) * max(abs(strides[n]) for strides in all_strides))
    half = shape[axis] // 2
    for first, count in ((0, half), (half, shape[axis] - half)):
        for part, firsts in _pieces((*shape[:axis], count, *shape[axis + 1 :]), all_strides, size, most):
            ahead = [first * strides[axis] for strides in all_strides]
            yield part, tuple(map(sum, zip(firsts, ahead, strict=True)))


def law_check(operation: Operation, spec: Spec, target: Target) -> Callable[[HostArray], None] | None:
    """The check of a monoid's laws (identity, associativity), or of a key's (from_word is the inverse), before each
    call, on a sample of the array; None if neither is the caller's own, or the target checks none."""
    if not isinstance(target, ChecksMonoids):
        return None
    if not isinstance(operation, ByMonoid):
        return key_check(operation)
    monoid, axes = operation.of, operation.axes(spec)
    element = dtype_of(monoid.element)
    length = operation.rows(spec)[1]

    def check(array: HostArray) -> None:
        rows = np.moveaxis(array, axes, range(-len(axes), 0))
        places = sampled(rows)
        found = np.array(rows.squeeze().flat[places], native(rows.dtype)).view(element)  # `flat` has at most 32 axes
        target.check_monoid(monoid, found, [int(place) % length for place in places], operation.commutes)

    return check
