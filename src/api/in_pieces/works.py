"""Out-of-core reductions, scans and selections: rows are streamed through the device part by part.

The works are those of a device whose bindings hold no row. Parts of the array travel there; what one work leaves for
another stays, and so do results, unless they are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from ...algos.fit import power_below
from ...external.in_pieces import Piece, each_through, piece_length
from ...kernel.launch import Role
from ...operations.base import Operation
from ...operations.select import TopK
from ...targets.base import HasRoom, given_buffers
from ...types.errors import CapabilityError
from ...types.specs import Spec
from ..steps import Launch, Lines, Run, Steps, runs_of
from .desk import Desk, DType, Flat, InPieces, Task, bytes_of, span, specs_on_device

_SHARE = 8  # of the memory: what results may take that stay there
_MOST_PARTS = 1 << 12
_PLACED = 4  # times as large is a binding as the elements of which it holds words with places

Part: TypeAlias = tuple[int, slice]  # of which array, inputs first


class _TooMuchStays(Exception):
    """What has to stay on the device between works is more than its free memory."""


def works_in_pieces(
    operation: Operation, rows: int, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
) -> InPieces | None:
    """Runs in order, each on the parts of arrays that it takes. The size of parts is chosen by pretending bindings of
    that size, so that all fits `free` bytes."""
    specs = specs_on_device((rows, length), dtypes)
    nbytes = sum(map(bytes_of, specs))
    wanted = power_below(min(free, (_PLACED if isinstance(operation, TopK) else 1) * piece_length(nbytes, 1)))
    less = (wanted >> n for n in range(wanted.bit_length()) if wanted >> n > nbytes // _MOST_PARTS)
    more = (wanted << n for n in range(1, free.bit_length()) if wanted << n < free)
    for bindings in (less, more):
        for binding in bindings:
            try:
                found = _with(binding, operation, specs, target, free)
            except CapabilityError:  # of a row of which no binding is so small a part
                continue
            except _TooMuchStays:
                if bindings is less:  # the same with smaller parts, of which there are ever more
                    break
                continue
            if found is not None and found.demand.total <= free:
                return found
    return None


def _with(
    binding: int, operation: Operation, specs: tuple[Spec, ...], target: HasRoom, free: int
) -> InPieces | None:  # fmt: skip
    """None if a work needs more than parts of the arrays. Raises _TooMuchStays."""
    info = attrs.evolve(target.info, limits=attrs.evolve(target.info.limits, storage_bytes=binding))
    results = [Spec(output.shape, output.dtype) for output in operation.outputs(*specs)]
    works = operation.works(specs, info)
    arrays = [*specs, *results, *(Spec(output.shape, output.dtype) for output in works.between)]
    stay = [n for n, array in enumerate(arrays) if n > len(results) or (n and bytes_of(array) <= free // _SHARE)]
    stays = tuple(bytes_of(arrays[number]) for number in stay)
    if span(stays) > free:
        raise _TooMuchStays
    if any(work.copies or work.as_it_lies for work in works):
        return None
    cut = _Cut(arrays, {number: place for place, number in enumerate(stay)})
    made = [cut.task(run) for work in works for run in runs_of(work, target)]
    tasks = [task for task in made if task is not None]
    if not tasks or len(tasks) < len(made):
        return None

    def through(desk: Desk, given: Flat, outs: Flat) -> None:
        held = [*given, *outs]
        each_through(
            desk, [Piece([[held[n][part]] for n, part in ins], task, [held[n][part] for n, part in left])
                   for task, ins, left in tasks],
        )  # fmt: skip
        for number, place in cut.stay.items():
            if number < len(held):
                desk.fetch(place, held[number])

    return InPieces(target, [task for task, _, _ in tasks], through, stays)


@attrs.frozen(eq=False)
class _Cut:
    """Inputs, outputs and intermediates, and which of them stay resident on the device."""

    arrays: Sequence[Spec]
    stay: dict[int, int]

    def task(self, run: Run) -> tuple[Task, list[Part], list[Part]] | None:
        """A run as a task with its uploads and downloads; None if an array would travel both ways."""
        given: list[tuple[Part, int]] = []
        left: list[tuple[Part, int]] = []
        for (number, part), buffer in zip(run.parts, given_buffers(run.schedule), strict=True):
            if number in self.stay:
                continue
            if buffer.role is not (Role.OUTPUT if number else Role.INPUT):
                return None
            first, count = part or (0, self.arrays[number].size)
            (left if number else given).append(((number, slice(first, first + count)), buffer.nbytes))
        travelling = len(given) + len(left)
        ahead = iter(range(len(given))), iter(range(len(given), travelling))
        lines: list[Lines] = []
        for number, part in run.parts:
            spec, stays = self.arrays[number], number in self.stay
            handle = travelling + self.stay[number] if stays else next(ahead[number > 0])
            whole = Lines(handle, (spec.size,), (spec.dtype.itemsize,), spec.dtype, is_packed=True)
            lines.append(whole.part(*part) if stays and part is not None else whole)
        steps = Steps(travelling + len(self.stay), [], [Launch(run, tuple(lines))])
        task = Task(steps, tuple(nbytes for _, nbytes in given), tuple(nbytes for _, nbytes in left))
        return task, [part for part, _ in given], [part for part, _ in left]
