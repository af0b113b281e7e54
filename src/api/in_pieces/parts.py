"""Out-of-core calls part by part: batches of whole rows; parts of long rows that are reduced, scanned or selected from,
and of arrays that share no rows.

Rows are independent, so they are sent in batches where a device holds several. A longer row's works are those of a
device whose bindings hold no row: parts of the array are uploaded; what one work leaves for another stays resident, and
so do results, unless they are many. Where 32-bit indices do not count a row, the host keeps the candidates that each
part leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import attrs
import numpy as np

from ...algos.fit import power_below
from ...arrays.kinds import span
from ...kernel.launch import Role, Schedule
from ...operations.base import INDEX, Operation
from ...operations.reduce import Reduce
from ...operations.select import TopK
from ...targets.base import HasRoom, given_buffers
from ...types.dtypes import native
from ...types.errors import CapabilityError
from ...types.specs import Spec
from ..steps import Launch, Lines, Slices, Steps, runs_of
from .desk import Desk, DType, Flat, InPieces, Piece, Task, fitting, lengths_of, piece_length, specs_on_device

_SHARE = 8  # of the memory: what results may take that stay there
_MOST_PARTS = 1 << 12
_PLACED = 4  # times as large is a binding as the elements of which it holds words with places

Part: TypeAlias = tuple[int, slice]  # of which array, inputs first


def rows_in_pieces(
    operation: Operation, rows: int, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
) -> InPieces | None:
    """Batches of whole rows, of every array. None if no row fits, or is longer than kernels take; or if a result is of
    all rows, or one of several inputs is the same for all."""
    given = specs_on_device((rows, length), dtypes)
    for output in operation.outputs(*given):
        if math.prod(size for axis, size in enumerate(output.shape) if axis not in output.axes) != rows:
            return None

    def made(batch: int) -> InPieces:
        given = {count: specs_on_device((count, length), dtypes) for count in lengths_of(rows, batch)}
        tasks = {count: Task.of(operation, specs, target) for count, specs in given.items()}
        return _in_batches(rows, length, tasks, target)

    try:
        works = operation.works(given, target.info) if len(given) > 1 else ()
        if any(part.first is not None for work in works for part in work.parts.values()):
            return None
        return fitting(piece_length(rows, length * sum(dtype.itemsize for dtype in dtypes)), made, free)
    except CapabilityError:
        return None


def whole_at_once(operation: Operation, spec: Spec, target: HasRoom) -> InPieces | None:
    """All of a C-contiguous array, as it lies. None if it has more elements than kernels count."""
    try:
        task = Task.of(operation, specs_on_device(spec.shape, (native(spec.dtype),)), target)
    except CapabilityError:
        return None
    return _in_batches(1, spec.size, {1: task}, target)


def _in_batches(rows: int, length: int, tasks: dict[int, Task], target: HasRoom) -> InPieces:
    """With tasks by the rows of a batch: of most of them, and of the last."""
    batch = max(tasks)

    def through(desk: Desk, arrays: Flat, outs: Flat) -> None:
        each, pieces = [out.size // rows for out in outs], list[Piece]()
        for first in range(0, rows, batch):
            last = min(first + batch, rows)
            left = [out[first * count : last * count] for out, count in zip(outs, each, strict=True)]
            given = [[array[first * length : last * length]] for array in arrays]
            pieces.append(Piece(given, tasks[last - first], left))
        desk.send(pieces, len(pieces))

    return InPieces(target, list(tasks.values()), through)


class _NotByParts(Exception):
    """Works do not take arrays part by part, or leave more between them than the device's free memory."""


def works_in_pieces(operation: Operation, specs: tuple[Spec, ...], target: HasRoom, free: int) -> InPieces | None:
    """Runs in order, each on the parts of arrays that it takes. The size of parts is chosen by pretending bindings of
    that size, so that all fits `free` bytes."""
    nbytes = sum(spec.nbytes for spec in specs)
    wanted = power_below(min(free, (_PLACED if isinstance(operation, TopK) else 1) * piece_length(nbytes, 1)))
    less = (wanted >> n for n in range(wanted.bit_length()) if wanted >> n > nbytes // _MOST_PARTS)
    more = (wanted << n for n in range(1, free.bit_length()) if wanted << n < free)
    for bindings in (less, more):
        for binding in bindings:
            try:
                found = _with(binding, operation, specs, target, free)
            except (CapabilityError, _NotByParts):
                if bindings is less:  # the same with smaller parts, and to find out takes ever longer
                    break
                continue
            if found.nbytes <= free:
                return found
    return None


def _with(binding: int, operation: Operation, specs: tuple[Spec, ...], target: HasRoom, free: int) -> InPieces:
    """Raises _NotByParts; CapabilityError where a work takes whole rows, and no binding holds one."""
    info = attrs.evolve(target.info, limits=attrs.evolve(target.info.limits, storage_bytes=binding))
    results = [Spec(output.shape, output.dtype) for output in operation.outputs(*specs)]
    works = operation.works(specs, info)
    arrays = [*specs, *results, *(Spec(output.shape, output.dtype) for output in works.between)]
    given, ends = len(specs), len(specs) + len(results)
    stay = [n for n, array in enumerate(arrays) if n >= ends or (n >= given and array.nbytes <= free // _SHARE)]
    stays = tuple(arrays[number].nbytes for number in stay)
    if span(stays) > free or any(work.copies or (work.as_it_lies and given > 1) for work in works):
        raise _NotByParts
    places = {number: place for place, number in enumerate(stay)}
    tasks = [_task_of(schedule, slices, arrays, given, places) for work in works for schedule, slices in runs_of(work)]

    def through(desk: Desk, inputs: Flat, outs: Flat) -> None:
        held = [*inputs, *outs]
        pieces = (
            Piece([[held[n][part]] for n, part in ins], task, [held[n][part] for n, part in left])
            for task, ins, left in tasks
        )
        desk.send(pieces, len(tasks))
        for number, place in places.items():
            if number < len(held):
                desk.fetch(place, held[number])

    return InPieces(target, [task for task, _, _ in tasks], through, stays)


def _task_of(
    schedule: Schedule, slices: Slices, arrays: Sequence[Spec], inputs: int, stay: dict[int, int]
) -> tuple[Task, list[Part], list[Part]]:
    """A run on parts of arrays (so many inputs, then outputs and intermediates, some of which stay resident, at these
    places) as a task with its uploads and downloads. Raises _NotByParts if one would be uploaded and downloaded."""
    given: list[tuple[Part, int]] = []
    left: list[tuple[Part, int]] = []
    for (number, part), buffer in zip(slices, given_buffers(schedule), strict=True):
        if number in stay:
            continue
        if buffer.role is not (Role.INPUT if number < inputs else Role.OUTPUT):
            raise _NotByParts
        first, count = part or (0, arrays[number].size)
        (given if number < inputs else left).append(((number, slice(first, first + count)), buffer.nbytes))
    moved = len(given) + len(left)
    ahead = iter(range(len(given))), iter(range(len(given), moved))
    lines: list[Lines] = []
    for number, part in slices:
        handle = moved + stay[number] if number in stay else next(ahead[number >= inputs])
        whole = Lines(handle, Spec((arrays[number].size,), arrays[number].dtype))
        lines.append(whole.part(*part) if number in stay and part is not None else whole)
    steps = Steps(moved + len(stay), [], [Launch(schedule, tuple(lines))])
    task = Task(steps, tuple(nbytes for _, nbytes in given), tuple(nbytes for _, nbytes in left))
    return task, [part for part, _ in given], [part for part, _ in left]


def candidates_in_pieces(
    operation: Operation, length: int, dtype: DType, target: HasRoom, free: int
) -> InPieces | None:
    """Top-k, argmin and argmax of long rows, one after another: candidates of each part, then the best of those. The
    host keeps the candidates, with their indices in the row. None for other operations."""
    if not (isinstance(operation, TopK) or (isinstance(operation, Reduce) and operation.reducer.finds_index)):
        return None

    def search(count: int) -> Task:
        asked = attrs.evolve(operation, k=min(operation.k, count)) if isinstance(operation, TopK) else operation
        return Task.of(asked, specs_on_device((1, count), (dtype,)), target)

    def made(part: int) -> InPieces:
        starts = np.arange(0, length, part)
        tasks = {count: search(count) for count in lengths_of(length, part)}
        searches = [tasks[min(part, length - start)] for start in starts.tolist()]
        counts = [task.left[-1] // INDEX.itemsize for task in searches]
        ends = np.cumsum(counts)
        best = search(int(ends[-1]))

        def through(desk: Desk, arrays: Flat, outs: Flat) -> None:
            for row in range(rows := arrays[0].size // length):
                x = arrays[0][row * length : (row + 1) * length]
                left = [out.reshape(rows, -1)[row] for out in outs]
                places, values = np.empty(ends[-1], np.int64), np.empty(ends[-1], dtype)
                found = [values, places] if len(outs) > 1 else [places]
                pieces = [
                    Piece([[x[start : start + part]]], task, [each[end - count : end] for each in found])
                    for start, task, end, count in zip(starts.tolist(), searches, ends.tolist(), counts, strict=True)
                ]
                desk.send(pieces, len(pieces))
                places += np.repeat(starts, counts)
                desk.send([Piece([[values if len(outs) > 1 else x[places]]], best, left)], 1)
                left[-1][...] = places[left[-1].view(np.int64)]

        return InPieces(target, [*tasks.values(), best], through)

    return fitting(piece_length(length, dtype.itemsize), made, free)
