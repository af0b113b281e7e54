"""Executes the steps of a call on NumPy arrays: NumPy packs and unpacks, and kernels take arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from ..arrays.host import copy_elements
from ..arrays.kinds import Device
from ..operations.argsort import Argsort
from ..operations.base import Operation
from ..targets.base import ChecksMonoids, Target
from ..types.dtypes import native
from ..types.elements import decode, dtype_of, encode, mismatch
from ..types.keys import SortableKey, is_lossy, no_inverse
from ..types.specs import HostArray, Spec
from .steps import Launch, Lines, Move, Steps

Step: TypeAlias = Callable[[list[HostArray]], object]
Look: TypeAlias = Callable[[list[HostArray]], HostArray]

_LOOKED_AT = 12  # elements, by which laws are checked


class HostCall:
    """The steps of a call, prepared for host arrays."""

    scratch_bytes = 0

    def __init__(self, device: Device[HostArray], steps: Steps, keeps_scratch: bool) -> None:
        self._makers = [device.empty(made.shape, made.dtype, None) for made in steps.temporaries]
        self._kept = [make() for make in self._makers] if keeps_scratch else None
        self._steps = [_mover(step) if isinstance(step, Move) else _launcher(step) for step in steps.steps]
        self.schedules = tuple(step.run.schedule for step in steps.steps if isinstance(step, Launch))

    def __call__(self, arrays: list[HostArray], stream: int) -> None:
        if self._makers:
            arrays += self._kept or [make() for make in self._makers]
        for step in self._steps:
            step(arrays)


def _mover(move: Move) -> Step:
    source, to, shape = _look(move.source), _look(move.to), move.source.shape

    def copy(arrays: list[HostArray]) -> None:
        target = to(arrays)
        copy_elements(source(arrays), target if target.shape == shape else target.reshape(shape))

    return copy


def _launcher(launch: Launch) -> Step:
    run, arrays = launch.run.prepared.run, launch.arrays
    if all(lines.first is None and lines.is_packed and not _is_turned(lines) for lines in arrays):
        numbers = [lines.number for lines in arrays]
        return lambda arrays: run([arrays[number] for number in numbers])
    looks = [_look(lines, as_it_lies=not lines.is_packed) for lines in arrays]
    return lambda arrays: run([look(arrays) for look in looks])


def _look(lines: Lines, as_it_lies: bool = False) -> Look:
    """The view with the axes of a row last, or the part of it; for kernels that take strides, all that is spanned."""
    number, order = lines.number, cast(Any, lines.axes)
    if as_it_lies:
        size, length = lines.dtype.itemsize, lines.bounds[1] // lines.dtype.itemsize
        return lambda arrays: np.lib.stride_tricks.as_strided(arrays[number], (length,), (size,))
    if lines.first is not None:
        whole, first, end = _look(attrs.evolve(lines, first=None)), lines.first, lines.first + lines.shape[0]
        return lambda arrays: whole(arrays).reshape(-1)[first:end]
    return (lambda arrays: arrays[number].transpose(order)) if _is_turned(lines) else lambda arrays: arrays[number]


def _is_turned(lines: Lines) -> bool:
    return lines.axes is not None and lines.axes != tuple(range(len(lines.axes)))


def law_check(operation: Operation, spec: Spec, target: Target) -> Callable[[HostArray], None] | None:
    """The check of a monoid's laws (identity, associativity), or of a key's (from_word is the inverse), before each
    call, on a sample of the array; None if neither is the caller's own, or the target checks none."""
    if not isinstance(target, ChecksMonoids):
        return None
    monoid = operation.checked_monoid
    if monoid is None:
        return key_check(operation)
    axes, element = operation.axes(spec), dtype_of(monoid.element)
    length = operation.rows(spec)[1]

    def check(array: HostArray) -> None:
        rows = np.moveaxis(array, axes, range(-len(axes), 0))
        places = np.unique(np.linspace(0, math.prod(rows.shape) - 1, _LOOKED_AT).astype(np.intp))
        found = np.array(rows.squeeze().flat[places], native(rows.dtype)).view(element)  # `flat` has at most 32 axes
        target.check_monoid(monoid, found, [int(place) % length for place in places], operation.commutes)

    return check


def key_check(operation: Operation) -> Callable[[HostArray], None] | None:
    """The check of a key on a sample of an array; None for an argsort, whose results no inverse makes."""
    key: SortableKey[Any, Any] | None = getattr(operation, "key", None)
    if key is None or is_lossy(key) or isinstance(operation, Argsort):
        return None

    def check(array: HostArray) -> None:
        flat = array.squeeze().flat  # which takes no more than 32 axes
        for place in np.unique(np.linspace(0, max(0, array.size - 1), _LOOKED_AT).astype(np.intp))[: array.size]:
            given = np.array(flat[place], native(array.dtype)).view(dtype_of(key.element))[()]
            try:
                word = key.to_word(decode(key.element, given))
                found = key.from_word(word)
            except Exception:  # of a method of the user's: the run itself names it, with its line
                return
            fits = mismatch(key.word, word) is None and mismatch(key.element, found) is None  # else likewise
            is_nan = given != given  # of which the bits may change on the way
            if fits and not is_nan and np.array(encode(found), given.dtype).tobytes() != given.tobytes():
                raise no_inverse(key, given, found)

    return check
