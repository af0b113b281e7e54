"""Out-of-core work on a device: host arrays larger than its memory are streamed through it in pieces, double-buffered.

Upload, kernels and download of successive pieces overlap in a pipeline. All device memory is allocated before anything
is done: two upload slots, two download slots, arrays that stay resident from piece to piece, and scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from functools import cached_property
from itertools import accumulate, count
from typing import Any, Self, TypeAlias

import attrs
import numpy as np

from ...algos.sizes import LARGEST_U32
from ...arrays.kinds import places, span
from ...external.pipeline import SLOTS, ahead, run_pipeline
from ...kernel.launch import Role
from ...operations.base import Operation
from ...targets.base import HasRoom, Room, Target
from ...types.specs import HostArray, Memory, Spec
from ..step_calls import StreamCall
from ..steps import Launch, Lines, Steps, Way, steps_of

DType: TypeAlias = np.dtype[Any]
Flat: TypeAlias = Sequence[HostArray]  # arrays of one dimension, packed and in the machine's byte order

# Pieces at least, unless they get too small: the first upload and the last download overlap with nothing.
_MOST = 12
_LEAST_BYTES = 1 << 26  # of a piece; a smaller one is not worth its overhead


@attrs.frozen(eq=False)
class Task:
    """The steps for a piece. Their arrays are numbered: uploaded ones, downloaded ones, then resident ones."""

    steps: Steps
    given: tuple[int, ...]  # bytes of each
    left: tuple[int, ...]

    @classmethod
    def of(cls, operation: Operation, specs: tuple[Spec, ...], target: Target) -> Self:
        """A whole operation on packed arrays of native byte order."""
        outputs, works = operation.outputs(*specs), operation.works(specs, target.info)
        results = [Spec(output.shape, output.dtype) for output in outputs]
        lie = any(work.as_it_lies for work in works)
        inputs = [*map(Lines.of, count(), specs, map(operation.axes, specs))]
        outs = [*map(Lines.of, count(len(specs)), results, [() if lie else output.axes for output in outputs])]
        steps = steps_of(inputs, outs, works, Way.APART)
        return cls(steps, tuple([x.nbytes for x in specs]), tuple([x.nbytes for x in results]))

    @property
    def scratch(self) -> int:
        """An upper bound in bytes: intermediates between works, and the scratch of all runs."""
        launches = [step for step in self.steps.steps if isinstance(step, Launch)]
        buffers = [b.nbytes for step in launches for b in step.schedule.buffers if b.role is Role.SCRATCH]
        return span([lines.spec.nbytes for lines in self.steps.temporaries]) + span(buffers)


@attrs.frozen(eq=False)
class Piece:
    """A piece of work: host inputs, the task on the device, and host outputs."""

    given: Sequence[Flat]  # inputs, each the concatenation of some host arrays
    task: Task
    left: Flat  # the host array for each result


def specs_on_device(shape: tuple[int, ...], dtypes: Sequence[DType]) -> tuple[Spec, ...]:
    return tuple(Spec(shape, dtype, Memory.CUDA) for dtype in dtypes)


class Desk:
    """Device memory laid out for pieces: double-buffered input and output slots, resident arrays, scratch. Uploads,
    work and downloads are done by different threads at the same time."""

    def __init__(self, way: InPieces, room: Room) -> None:
        self._target, self._room = way.target, room
        self._calls: dict[Task, StreamCall] = {}
        given, left, stays = way.sizes
        starts = [*accumulate([*[given] * SLOTS, *[left] * SLOTS, stays], initial=room.address)]
        self._given, self._left = starts[:SLOTS], starts[SLOTS : 2 * SLOTS]
        self._stays, self._scratch = places(starts[-2], way.stays), starts[-1]
        self._uploads: list[object] = [None] * SLOTS  # of each slot, what its work waits for

    def send(self, pieces: Iterable[Piece], count: int) -> None:
        """Streams so many pieces through the device, in order. They are made in a thread of their own, each while the
        one before is on its way."""
        made = closing(ahead(iter(pieces)))
        with made as found, made:  # closed twice, as an interrupt may skip one
            run_pipeline(range(count), lambda _, slot: self.upload(next(found), slot), self.work, self.download)

    def upload(self, piece: Piece, slot: int) -> Piece:
        """Uploads the inputs. May also touch (overwrite) the host arrays for results, to fault in their pages."""
        copies: list[tuple[int, HostArray]] = []
        for address, parts in zip(places(self._given[slot], piece.task.given), piece.given, strict=True):
            starts = accumulate((part.nbytes for part in parts), initial=address)
            copies += zip(starts, parts, strict=False)
        self._uploads[slot] = self._room.upload(copies, piece.left)
        return piece

    def work(self, _: int, piece: Piece, slot: int) -> Piece:
        """Runs the task, from the slot's inputs to its results, behind the piece's upload."""
        task = piece.task
        handles = [*places(self._given[slot], task.given), *places(self._left[slot], task.left), *self._stays]

        def run(stream: int) -> None:
            call = self._calls.get(task)
            if call is None:
                call = self._calls[task] = StreamCall(
                    self._target, self._room.alignment, self._scratch_for, task.steps, keeps_scratch=False
                )
            call(handles, stream)

        self._room.work(run, self._uploads[slot])
        return piece

    def download(self, _: int, piece: Piece, slot: int) -> None:
        """Downloads the results. Synchronous."""
        self._room.download([*zip(places(self._left[slot], piece.task.left), piece.left, strict=True)])

    def host_memory(self, nbytes: int) -> AbstractContextManager[HostArray]:
        """Uninitialised bytes on the host for what is sent to the device and back."""
        return self._room.host_memory(nbytes)

    def fetch(self, number: int, array: HostArray) -> None:
        """Downloads a resident array."""
        self._room.download([(self._stays[number], array)])

    def _scratch_for(self, sizes: Sequence[int]) -> Callable[[], tuple[object, list[Any]]]:
        """Scratch of the room: one run uses it at a time."""
        found = None, places(self._scratch, sizes)
        return lambda: found


def lengths_of(count: int, length: int) -> set[int]:
    """Those of all pieces of a count, of which the last may be shorter."""
    return {length, count % length or length}


def piece_length(count: int, itemsize: int) -> int:
    """The preferred length of pieces, in elements, if device memory allows; at most what kernels can index."""
    return max(1, min(max(-(-count // _MOST), _LEAST_BYTES // max(1, itemsize)), count, LARGEST_U32))


@attrs.frozen(eq=False)
class InPieces:
    """A way to run a call in pieces, sized for the memory that was free."""

    target: HasRoom
    tasks: Sequence[Task]  # of which the largest takes as much memory as any
    through: Callable[[Desk, Flat, Flat], None]  # runs all pieces of arrays, into their outputs
    stays: tuple[int, ...] = ()  # bytes of each resident array
    can_be_in_place: bool = False  # whether outputs may be inputs, so that an exception loses no element

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of an upload slot, of a download slot, and of what stays resident."""
        given, left = (max(map(span, each)) for each in zip(*((t.given, t.left) for t in self.tasks), strict=True))
        return given, left, span(self.stays)

    @cached_property
    def nbytes(self) -> int:
        given, left, stays = self.sizes
        return SLOTS * (given + left) + stays + max(task.scratch for task in self.tasks)

    def run(self, arrays: Flat, outs: Flat) -> None:
        with self.target.room(self.nbytes) as room:
            self.through(Desk(self, room), arrays, outs)


def fitting(wanted: int, made: Callable[[int], InPieces], free: int) -> InPieces | None:
    """`made(n)` for the greatest n up to `wanted` that fits `free` bytes, to within a sixteenth; or None."""
    while wanted > 0:
        way = made(wanted)
        if way.nbytes <= free:
            return way
        wanted = min(wanted * 15 // 16, wanted * free // way.nbytes)
    return None
