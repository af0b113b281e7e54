"""A call as steps: arrays that lie in any way are packed, kernels run on rows, results are put back.

Here it is said what is done, for all memories alike; how, by host_call.py and stream_call.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

import attrs

from ..arrays.kinds import DType, Shape
from ..kernel.launch import Schedule
from ..operations.base import Output, Work
from ..targets.base import Prepared
from ..types.dtypes import native
from ..types.specs import Spec, bounds, lies_packed, packed_strides


@attrs.frozen
class Run:
    """One run of a schedule: its arrays, and which elements of each, all of them if there is but one run."""

    schedule: Schedule
    prepared: Prepared
    arrays: tuple[int, ...]
    slices: tuple[tuple[int, int] | None, ...]  # first and count


Works: TypeAlias = Sequence[tuple[Work, tuple[Run, ...]]]


class Way(Enum):
    """How results come to where they belong."""

    APART = "apart"  # they lie apart from all that is read
    BEHIND = "behind"  # they may lie where something is read: they get there when all is done
    IN_PLACE = "in place"  # the one result takes the place of the one input


@attrs.frozen
class Lines:
    """An array, or what is to be one, and how it lies."""

    number: int  # of what a call is handed; temporaries come behind it
    shape: Shape
    strides: Shape  # in bytes
    dtype: DType
    is_packed: bool  # whether kernels take it as it lies
    axes: tuple[int, ...] | None = None  # the order in which those of what is handed over stand here
    origin: int = 0  # its address, as far as alignment goes
    first: int | None = None  # of a part of a packed array: which of the array's elements is its first

    @classmethod
    def of(cls, number: int, spec: Spec, axes: tuple[int, ...], origin: int = 0) -> Lines:
        """With the axes of a row last."""
        order = (*(axis for axis in range(len(spec.shape)) if axis not in axes), *axes)
        shape, strides = (tuple(line[axis] for axis in order) for line in (spec.shape, spec.all_strides))
        is_packed = spec.is_plain and lies_packed(shape, strides, spec.dtype.itemsize)
        return cls(number, shape, strides, spec.dtype, is_packed, order, origin)

    def part(self, first: int, shape: Shape) -> Lines:
        """So many neighbours, of a packed array of one dimension."""
        return attrs.evolve(self, shape=shape, origin=self.origin + first * self.dtype.itemsize, first=first)

    @property
    def bounds(self) -> tuple[int, int]:
        """Where its bytes begin and end, from the first element on."""
        return bounds(self.shape, self.strides, self.dtype.itemsize)

    def lies_like(self, other: Lines) -> bool:
        return (self.shape, self.strides, self.dtype) == (other.shape, other.strides, other.dtype)


@attrs.frozen
class Move:
    """The elements of an array to another of its shape; or of as many elements, in the same order, that is packed."""

    source: Lines
    to: Lines


@attrs.frozen
class Launch:
    """A run on arrays that are packed, or read as they lie."""

    run: Run
    arrays: tuple[Lines, ...]


@attrs.frozen
class Steps:
    """All that is done in one call, in order."""

    given: int  # so many arrays that the call is handed
    temporaries: list[Lines] = attrs.field(factory=list[Lines])
    steps: list[Move | Launch] = attrs.field(factory=list[Move | Launch])

    def temporary(self, shape: Shape, dtype: DType) -> Lines:
        dtype, number = native(dtype), self.given + len(self.temporaries)
        made = Lines(number, shape, packed_strides(shape, dtype.itemsize), dtype, is_packed=True)
        self.temporaries.append(made)
        return made

    def move(self, source: Lines, to: Lines) -> None:
        self.steps.append(Move(source, to))


def steps_of(
    inputs: Sequence[Lines], raw: Sequence[Lines], outs: Sequence[Lines], between: Sequence[Output], works: Works,
    way: Way,
) -> Steps:  # fmt: skip
    """All runs of all works, and what has to be moved for them. `inputs` and `outs` are laid out in rows, `raw` are the
    inputs as they lie. `between` is what one work leaves for another."""
    steps = Steps(len(inputs) + len(outs))
    results = [steps.temporary(out.shape, out.dtype) if way is Way.BEHIND or not out.is_packed else out for out in outs]
    rows = [*inputs, *results, *(steps.temporary(output.shape, output.dtype) for output in between)]
    if way is Way.IN_PLACE and results[0] is not outs[0]:
        steps.move(inputs[0], results[0])
    for work, runs in works:
        for copied in work.copies:
            source, to = rows[copied.source], rows[copied.to]
            steps.move(source, to if copied.first is None else to.part(copied.first, source.shape))
        for run in runs:
            taken: list[Lines] = []
            for number in run.arrays:
                if work.as_it_lies and number < len(raw):
                    taken.append(raw[number])
                    continue
                if not rows[number].is_packed:
                    packed = steps.temporary(rows[number].shape, rows[number].dtype)
                    steps.move(rows[number], packed)
                    rows[number] = packed
                taken.append(rows[number])
            steps.steps.append(Launch(run, tuple(taken)))
    for result, out in zip(results, outs, strict=True):
        if result is not out:
            steps.move(result, out)
    return steps
