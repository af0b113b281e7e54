"""A call as a list of steps, in any memory: strided arrays are packed into rows, kernels run on rows, results are
copied back; step_calls.py executes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeAlias

import attrs

from ..kernel.launch import Role, Schedule
from ..operations.base import Output, Work, Works
from ..targets.base import given_buffers
from ..types.dtypes import native
from ..types.errors import InvalidArgumentError
from ..types.specs import Spec, bounds

# For each memory of a run: of which array it is, and which part, its first element and how many; None for all of it.
Slices: TypeAlias = Sequence[tuple[int, tuple[int, int] | None]]


def runs_of(work: Work) -> Iterator[tuple[Schedule, Slices]]:
    """The runs of a work in order, of as many rows as one launch takes; runs of as many share a schedule. Raises
    InvalidArgumentError for a part of no buffer, or a buffer without one."""
    for first, count in work.batches:
        schedule = work.schedule(count)
        names = [buffer.name for buffer in given_buffers(schedule)]
        if set(work.parts) != set(names):
            raise InvalidArgumentError(
                f"parts: expected one for each buffer of the schedule, {', '.join(names)}; found "
                f"{', '.join(work.parts)}"
            )
        slices: list[tuple[int, tuple[int, int] | None]] = []
        for part in map(work.parts.__getitem__, names):
            rows = None if count == work.rows else (first * part.each, count * part.each)
            slices.append((part.array, rows if part.first is None else (part.first, part.each)))
        yield schedule, slices


class Way(Enum):
    """How outputs alias inputs."""

    APART = "apart"  # they lie apart from all that is read
    BEHIND = "behind"  # they may lie where something is read: they get there when all is done
    IN_PLACE = "in place"  # the one result takes the place of the one input

    __hash__ = object.__hash__  # Enum's takes longer


@attrs.frozen
class Lines:
    """An array, given or temporary, as it lies in memory."""

    number: int  # of what a call is handed; temporaries come behind it
    spec: Spec
    axes: tuple[int, ...] | None = None  # the order in which those of what is handed over stand here
    origin: int = 0  # its address, as far as alignment goes
    first: int | None = None  # of a part of a packed array: which of the array's elements is its first

    @classmethod
    def of(cls, number: int, spec: Spec, axes: tuple[int, ...], order: tuple[int, ...] | None = None) -> Lines:
        """With the axes of a row last, behind the others in this order."""
        order = (*(axis for axis in order or range(len(spec.shape)) if axis not in axes), *axes)
        return cls(number, spec.permuted(order), order, spec.origin)

    def part(self, first: int, count: int) -> Lines:
        """A slice of a packed array, in one dimension, from element `first` on."""
        dtype = self.spec.dtype
        return attrs.evolve(self, spec=Spec((count,), dtype), first=first, origin=self.origin + first * dtype.itemsize)

    @property
    def offset(self) -> int:
        """Bytes from the array's first element to that of the part."""
        return (self.first or 0) * self.spec.dtype.itemsize

    @property
    def is_packed(self) -> bool:
        """Whether kernels take it as it lies."""
        return self.spec.is_plain and self.spec.strides is None

    @property
    def bounds(self) -> tuple[int, int]:
        """The byte offsets between which its elements lie, relative to the first."""
        return bounds(self.spec.shape, self.spec.all_strides, self.spec.dtype.itemsize)


@attrs.frozen
class Move:
    """A copy to an array of the same shape, or to a packed one of as many elements in the same order."""

    source: Lines
    to: Lines


@attrs.frozen
class Launch:
    """A run of a schedule on packed arrays or parts of them, or on strided arrays where the kernels take strides."""

    schedule: Schedule
    arrays: tuple[Lines, ...]


@attrs.frozen
class Steps:
    given: int  # so many arrays that the call is handed
    temporaries: list[Lines] = attrs.field(factory=list[Lines])
    steps: list[Move | Launch] = attrs.field(factory=list[Move | Launch])

    def temporary(self, like: Spec | Output) -> Lines:
        made = Lines(self.given + len(self.temporaries), Spec(like.shape, native(like.dtype)))
        self.temporaries.append(made)
        return made

    def move(self, source: Lines, to: Lines) -> None:
        self.steps.append(Move(source, to))


def steps_of(inputs: Sequence[Lines], outs: Sequence[Lines], works: Works, way: Way) -> Steps:
    """The runs of all works, and the copies around them. `inputs` and `outs` have the axes of a row last."""
    steps = Steps(len(inputs) + len(outs))
    results = [out if out.is_packed and way is not Way.BEHIND else steps.temporary(out.spec) for out in outs]
    rows = [*inputs, *results, *map(steps.temporary, works.between)]
    if way is Way.IN_PLACE and results[0] is not outs[0]:
        steps.move(inputs[0], results[0])
    ends = [0] * len(rows)  # of what is bound or copied, in bytes
    for work in works:
        for copied in work.copies:
            _require_array("Copy", copied.source, rows)
            _require_array("Copy", copied.to, rows, len(inputs))
            source, to = rows[copied.source], rows[copied.to]
            place = to if copied.first is None else to.part(copied.first, *source.spec.shape)
            end = place.offset + source.spec.nbytes
            if end > to.spec.nbytes:
                raise InvalidArgumentError(
                    f"outputs, or a Copy: expected an array of {end} bytes to copy to, found one of {to.spec.nbytes}"
                )
            steps.move(source, place)
            ends[copied.to] = max(ends[copied.to], end)
        for schedule, slices in runs_of(work):
            taken: list[Lines] = []
            for buffer, (number, part) in zip(given_buffers(schedule), slices, strict=True):
                _require_array("Part", number, rows, 0 if buffer.role is Role.INPUT else len(inputs))
                if work.as_it_lies and number < len(inputs):
                    taken.append(inputs[number])
                    continue
                if not rows[number].is_packed:
                    packed = steps.temporary(rows[number].spec)
                    steps.move(rows[number], packed)
                    rows[number] = packed
                taken.append(rows[number] if part is None else rows[number].part(*part))
            for buffer, (number, _), lines in zip(given_buffers(schedule), slices, taken, strict=True):
                _require_room(buffer.name, buffer.nbytes, lines)
                ends[number] = max(ends[number], lines.offset + buffer.nbytes)
            steps.steps.append(Launch(schedule, tuple(taken)))
    for result, end in zip(results, ends[len(inputs) :], strict=False):
        if end < result.spec.nbytes:
            raise InvalidArgumentError(
                f"outputs: expected an array of {end} bytes, as many as the works write, found one of "
                f"{result.spec.nbytes}{'' if end else '; what no work writes, `answer` gives'}"
            )
    for result, out in zip(results, outs, strict=True):
        if result is not out:
            steps.move(result, out)
    return steps


def _require_array(of: str, number: int, rows: Sequence[Lines], least: int = 0) -> None:
    """Raises InvalidArgumentError for the number of an array that an operation, a user's, has not; or, below `least`,
    of an input that it would write."""
    if not least <= number < len(rows):
        what = "an array to write" if least else "an array"
        raise InvalidArgumentError(f"{of}: expected {what} from {least} to {len(rows) - 1}, found {number}")


def _require_room(buffer: str, nbytes: int, lines: Lines) -> None:
    """Raises InvalidArgumentError for an operation, a user's, that has a buffer bound to an array too small for it."""
    low, high = lines.bounds
    if high - low < nbytes:
        raise InvalidArgumentError(
            f"outputs, or a Part: expected an array of {nbytes} bytes for the buffer {buffer!r}, found one of "
            f"{high - low}"
        )
