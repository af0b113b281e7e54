"""The steps of a call on a device: packing and unpacking are kernels too, and all go to one stream, in one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..algos.copy import Strided, copy_strided
from ..algos.sizes import LARGEST_U32
from ..forks import never_released_in_children
from ..kernel.launch import Schedule
from ..machine import Limits
from ..targets.base import LaunchesAtOnce, Prepared, Target, in_one_run, prepared_by
from ..types.scalars import UNSIGNED
from ..types.specs import Shape, bounds, packed_strides
from .steps import Lines, Move, Steps

_LITTLE = 1 << 16  # bytes of scratch that a plan may keep
_WORD = 8  # the most bytes that are moved as one


class StreamCall:
    """The steps of a call, prepared for one device."""

    def __init__(
        self, target: Target, alignment: int, new_scratch: Callable[[Sequence[int]], tuple[object, list[Any]]],
        steps: Steps, keeps_scratch: bool,
    ) -> None:  # fmt: skip
        """For the current device. `alignment` is that of its memory in bytes; `new_scratch` allocates pieces of given
        sizes, and returns what owns them and their handles."""
        made: list[tuple[Schedule, Prepared]] = []
        places: list[tuple[int, int]] = []  # which memory each kernel takes, and from which byte on
        for step in steps.steps:
            if isinstance(step, Move):
                for schedule, taken in _copies(step.source, step.to, alignment, target.info.limits):
                    made.append((schedule, prepared_by(target, schedule, keeps_scratch)))
                    places += taken
            else:
                made.append((step.run.schedule, step.run.prepared))
                places += [(lines.number, (lines.first or 0) * lines.dtype.itemsize) for lines in step.arrays]
        self._new_scratch = new_scratch
        self._run = in_one_run([prepared for _, prepared in made])
        self.schedules = tuple(schedule for schedule, _ in made)
        as_handed = places == [(number, 0) for number in range(steps.given)]
        self._places = None if as_handed else places
        needed = [math.prod(lines.shape) * lines.dtype.itemsize for lines in steps.temporaries]
        self._sizes = [*needed, self._run.scratch_bytes] if self._run.scratch_bytes else needed
        self.scratch_bytes = sum(self._sizes) + self._run.own_bytes
        self._kept = new_scratch(self._sizes) if keeps_scratch and self._sizes else None
        self._free: list[tuple[object, list[Any]]] = []  # scratch for the default stream
        never_released_in_children(self)

    @property
    def at_once(self) -> Callable[[tuple[Any, ...], int], None] | None:
        """The launch function itself, if it takes the arrays as they are and no scratch; else None."""
        if self._sizes or self._places is not None or not isinstance(self._run, LaunchesAtOnce):
            return None
        return self._run.launch

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
        return self._new_scratch(self._sizes)


def _copies(
    source: Lines, to: Lines, alignment: int, limits: Limits
) -> Iterator[tuple[Schedule, list[tuple[int, int]]]]:  # fmt: skip
    """Strided copies, with the memory of each: several where 32-bit indices, or a binding, do not span the arrays."""
    shape, size = source.shape, source.dtype.itemsize
    to_strides = to.strides if to.shape == shape else packed_strides(shape, size)  # which it is
    word = math.gcd(_WORD, size, source.origin, to.origin, *source.strides, *to_strides)
    words = (size // word,) if word < size else ()  # of elements that are none, or that are not aligned
    most = min(LARGEST_U32 * word, limits.storage_bytes) - alignment
    for part, firsts in _pieces(shape, (source.strides, to_strides), size, most):
        lies: list[Strided] = []
        places: list[tuple[int, int]] = []
        for lines, strides, first in zip((source, to), (source.strides, to_strides), firsts, strict=True):
            low, high = bounds(part, strides, size)
            low -= (lines.origin + first + low) % alignment
            in_words = (*[stride // word for stride in strides], *[1 for _ in words])
            lies.append(Strided(-low // word, in_words, (high - low) // word))
            places.append((lines.number, (lines.first or 0) * size + first + low))
        yield copy_strided(UNSIGNED[word], part + words, *lies), places


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
