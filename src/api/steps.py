"""A call as steps on a device: arrays that lie in any way are packed, kernels run on rows, results are put back.

All elements are moved by kernels of ours, so all steps take addresses, and go to one stream.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

import attrs

from ..algos.copy import Strided, copy_strided
from ..arrays.kinds import lies_packed, packed_strides
from ..kernel.launch import Schedule
from ..operations.base import Work
from ..targets.base import Prepared, Target, prepared_by
from ..types.errors import CapabilityError
from ..types.scalars import UNSIGNED
from ..types.specs import Spec
from .overlap import bounds


@attrs.frozen
class Run:
    """One run of a schedule: its arrays, and which elements of each, all of them if there is but one run."""

    schedule: Schedule
    prepared: Prepared
    arrays: tuple[int, ...]
    slices: tuple[tuple[int, int] | None, ...]  # first and count


class Way(Enum):
    """How results come to where they belong."""

    APART = "apart"  # they lie apart from all that is read
    BEHIND = "behind"  # they may lie where something is read: they get there when all is done
    IN_PLACE = "in place"  # the one result takes the place of the one input


@attrs.frozen
class Place:
    """Some memory: one of what a call is handed, or a temporary, and how many bytes behind its beginning."""

    number: int
    offset: int = 0


@attrs.frozen
class Lines:
    """An array, or what is to be one, and how it lies."""

    place: Place  # of the first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    itemsize: int

    @classmethod
    def packed(cls, place: Place, shape: tuple[int, ...], itemsize: int) -> Lines:
        return cls(place, shape, packed_strides(shape, itemsize), itemsize)

    @classmethod
    def of(cls, number: int, spec: Spec, axes: tuple[int, ...]) -> Lines:
        """With the axes of a row last."""
        order = [*(axis for axis in range(len(spec.shape)) if axis not in axes), *axes]
        shape, strides = (tuple(line[axis] for axis in order) for line in (spec.shape, spec.all_strides))
        return cls(Place(number), shape, strides, spec.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize

    @property
    def is_packed(self) -> bool:
        return lies_packed(self.shape, self.strides, self.itemsize)

    def bounds(self) -> tuple[int, int]:
        """Where its bytes begin and end, from the first element on."""
        return bounds(0, self.strides, self.shape, self.itemsize)

    def in_memory(self) -> tuple[Place, Strided]:
        """The memory from its first byte on, and where the elements lie there."""
        (low, high), size = self.bounds(), self.itemsize
        place = Place(self.place.number, self.place.offset + low)
        return place, Strided(-low // size, tuple(stride // size for stride in self.strides), (high - low) // size)


class Steps:
    """All that is done in one call, in order. Raises CapabilityError for what kernels cannot move."""

    def __init__(self, target: Target, given: int) -> None:
        """`given`: so many arrays that the call is handed come before the temporaries."""
        self.steps: list[tuple[Schedule, Prepared, tuple[Place, ...]]] = []
        self.temporaries: list[int] = []  # their bytes
        self._target, self._given = target, given

    def temporary(self, shape: tuple[int, ...], itemsize: int) -> Lines:
        self.temporaries.append(math.prod(shape) * itemsize)
        return Lines.packed(Place(self._given + len(self.temporaries) - 1), shape, itemsize)

    def move(self, source: Lines, to: Lines) -> None:
        """The elements of an array to another of as many, in the same order; one of the two is packed, or both have one
        shape."""
        if source.shape != to.shape:
            to = Lines.packed(to.place, source.shape, to.itemsize)
        element = UNSIGNED.get(source.itemsize)
        if element is None or any(stride % source.itemsize for stride in (*source.strides, *to.strides)):
            raise CapabilityError("x: elements that are no words, or that are not aligned, are not moved by kernels")
        (source_place, given), (target_place, goal) = source.in_memory(), to.in_memory()
        schedule = copy_strided(element, source.shape, given, goal)
        self.steps.append((schedule, prepared_by(self._target, schedule), (source_place, target_place)))

    def run(self, run: Run, arrays: Sequence[Lines]) -> None:
        """`arrays` are packed, or else read as they lie."""
        places = [
            Place(lines.place.number, lines.place.offset + (0 if part is None else part[0] * lines.itemsize))
            for lines, part in zip(arrays, run.slices, strict=True)
        ]
        self.steps.append((run.schedule, run.prepared, tuple(places)))


def steps_of(
    target: Target, inputs: Sequence[Lines], outs: Sequence[Lines], works: Sequence[tuple[Work, tuple[Run, ...]]],
    way: Way, as_it_lies: bool,
) -> Steps:  # fmt: skip
    """All runs of all works, between what has to be moved. `inputs` and `outs` are laid out in rows."""
    steps = Steps(target, len(inputs) + len(outs))
    results = [
        steps.temporary(out.shape, out.itemsize) if way is Way.BEHIND or not out.is_packed else out for out in outs
    ]
    rows = [*inputs, *results]
    if way is Way.IN_PLACE and results[0] is not outs[0]:
        steps.move(inputs[0], results[0])
    for work, runs in works:
        for to, source in work.copies:
            steps.move(rows[source], rows[to])
        for run in runs:
            for number in run.arrays:
                if not (rows[number].is_packed or as_it_lies):
                    packed = steps.temporary(rows[number].shape, rows[number].itemsize)
                    steps.move(rows[number], packed)
                    rows[number] = packed
            steps.run(run, [rows[number] for number in run.arrays])
    for result, out in zip(results, outs, strict=True):
        if result is not out:
            steps.move(result, out)
    return steps
