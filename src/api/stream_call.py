"""The steps of a call on a device: all elements are moved by kernels of ours, all steps go to one stream, in one run.

Nothing is made current and nothing is looked up again. Scratch comes from the caller's library, in the order of the
stream that its work goes to; kernels are handed addresses.
"""

from __future__ import annotations

import math
from typing import Any

from ..algos.copy import Strided, copy_strided
from ..arrays.kinds import Device, Shape
from ..forks import never_released_in_children
from ..kernel.launch import Schedule
from ..targets.base import Prepared, Target, in_one_run, prepared_by
from ..types.scalars import UNSIGNED
from ..types.specs import packed_strides
from .steps import Lines, Move, Steps

_LITTLE = 1 << 16  # bytes of scratch that a plan may keep
_WORD = 8  # the most bytes that are moved as one


class StreamCall:
    """All steps of a call."""

    def __init__(self, target: Target, device: Device[Any], steps: Steps, keeps_scratch: bool) -> None:
        """On the device, which is the current one."""
        made: list[tuple[Schedule, Prepared]] = []
        places: list[tuple[int, int]] = []  # which memory each kernel takes, and from which byte on
        for step in steps.steps:
            if isinstance(step, Move):
                schedule, taken = _copy(step.source, step.to, device.alignment)
                made.append((schedule, prepared_by(target, schedule, keeps_scratch)))
                places += taken
            else:
                made.append((step.run.schedule, step.run.prepared))
                places += [
                    (lines.number, 0 if part is None else part[0] * lines.dtype.itemsize)
                    for lines, part in zip(step.arrays, step.run.slices, strict=True)
                ]
        self._device = device
        self._run = in_one_run([prepared for _, prepared in made])
        self.schedules = tuple(schedule for schedule, _ in made)
        as_handed = places == [(number, 0) for number in range(steps.given)]
        self._places = None if as_handed else places
        needed = [math.prod(lines.shape) * lines.dtype.itemsize for lines in steps.temporaries]
        self._sizes = [*needed, self._run.scratch_bytes] if self._run.scratch_bytes else needed
        self.scratch_bytes = sum(self._sizes) + self._run.own_bytes
        self._kept = device.scratch(self._sizes) if keeps_scratch and self._sizes else None
        self._free: list[tuple[object, list[Any]]] = []  # scratch for the default stream
        never_released_in_children(self)

    def __call__(self, handles: list[Any], stream: int) -> None:
        held: tuple[object, list[Any]] | None = None
        scratch: Any = None
        if self._sizes:
            held = self._kept or self._scratch(stream)
            scratch = held[1][-1]
        if self._places is not None:
            handles = handles if held is None else [*handles, *held[1]]
            handles = [handles[number] + offset if offset else handles[number] for number, offset in self._places]
        self._run.run_at(handles, scratch, stream)
        # Until all is on its way it is ours. What the stream does next may have it: the library gives it out again in
        # that order. A little is left here for the next call: on the default stream, for others end, and their numbers
        # come back.
        if held is not None and stream == 0 and self.scratch_bytes <= _LITTLE and self._kept is None:
            self._free.append(held)

    def _scratch(self, stream: int) -> tuple[object, list[Any]]:
        if stream == 0:
            try:
                return self._free.pop()
            except IndexError:  # there was none yet, or other threads have it
                pass
        return self._device.scratch(self._sizes)


def _copy(source: Lines, to: Lines, alignment: int) -> tuple[Schedule, list[tuple[int, int]]]:
    """The kernel that moves elements, and its memory."""
    shape, size = source.shape, source.dtype.itemsize
    to_strides = to.strides if to.shape == shape else packed_strides(shape, size)  # which it is
    word = math.gcd(_WORD, size, source.origin, to.origin, *source.strides, *to_strides)
    if word < size:  # in pieces: of elements that are no words, or that are not aligned
        pieces = (size // word,)
        shape, given, goal = shape + pieces, (*source.strides, word), (*to_strides, word)
    else:
        given, goal = source.strides, to_strides
    (first, source_lies), (to_first, to_lies) = (
        _in_words(lines, shape, strides, word, alignment) for lines, strides in ((source, given), (to, goal))
    )
    schedule = copy_strided(UNSIGNED[word], shape, source_lies, to_lies)
    return schedule, [(source.number, first), (to.number, to_first)]


def _in_words(lines: Lines, shape: Shape, strides: Shape, word: int, alignment: int) -> tuple[int, Strided]:
    """From which byte of an array on a kernel takes its memory, and where elements lie there."""
    low, high = lines.bounds
    low -= (lines.origin + low) % alignment
    return low, Strided(-low // word, tuple(stride // word for stride in strides), (high - low) // word)
