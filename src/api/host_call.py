"""Executes the steps of a call on NumPy arrays: NumPy packs and unpacks, and kernels take arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from ..arrays.host import copy_elements
from ..arrays.kinds import Device
from ..kernel.launch import Schedule
from ..types.specs import HostArray
from .steps import Launch, Lines, Move, Steps

Step: TypeAlias = Callable[[list[HostArray]], object]
Look: TypeAlias = Callable[[list[HostArray]], HostArray]


class HostCall:
    """The steps of a call, prepared for host arrays."""

    scratch_bytes = 0

    def __init__(self, device: Device[HostArray], steps: Steps, keeps_scratch: bool) -> None:
        self._makers = [device.empty(made.shape, made.dtype, None) for made in steps.temporaries]
        self._kept = [make() for make in self._makers] if keeps_scratch else None
        self._steps = [_mover(step) if isinstance(step, Move) else _launcher(step) for step in steps.steps]
        self.schedules: tuple[Schedule, ...] = tuple(
            step.run.schedule for step in steps.steps if isinstance(step, Launch)
        )

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
    run, taken = launch.run.prepared.run, list(zip(launch.arrays, launch.run.slices, strict=True))
    if all(part is None and lines.is_packed and not _is_turned(lines) for lines, part in taken):
        numbers = [lines.number for lines in launch.arrays]
        return lambda arrays: run([arrays[number] for number in numbers])
    looks = [_taken(lines, part) for lines, part in taken]
    return lambda arrays: run([look(arrays) for look in looks])


def _taken(lines: Lines, part: tuple[int, int] | None) -> Look:
    """The view of an array that a kernel is given."""
    look = _look(lines)
    if part is not None:
        first, end = part[0], part[0] + part[1]
        return lambda arrays: look(arrays).reshape(-1)[first:end]
    if lines.is_packed:
        return look
    _, end = lines.bounds
    length, stride = (end // lines.dtype.itemsize,), (lines.dtype.itemsize,)
    return lambda arrays: np.lib.stride_tricks.as_strided(arrays[lines.number], length, stride)


def _look(lines: Lines) -> Look:
    """The view with the axes of a row last."""
    number, order = lines.number, cast(Any, lines.axes)
    if lines.first is not None:
        first, end = lines.first, lines.first + lines.shape[0]
        return lambda arrays: arrays[number][first:end]
    return (lambda arrays: arrays[number].transpose(order)) if _is_turned(lines) else lambda arrays: arrays[number]


def _is_turned(lines: Lines) -> bool:
    return lines.axes is not None and lines.axes != tuple(range(len(lines.axes)))
