"""Top-k, argmin and argmax of host rows beyond 32-bit indices: candidates of each part, then the best of those."""

from __future__ import annotations

from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ...external.in_pieces import Piece, each_through, piece_length
from ...operations.base import INDEX, Operation
from ...operations.reduce import Reduce
from ...operations.select import TopK
from ...targets.base import HasRoom
from ...types.specs import HostArray
from .desk import Desk, DType, Flat, InPieces, Task, fitting, specs_on_device

Search: TypeAlias = TopK | Reduce


def candidates_in_pieces(
    operation: Operation, length: int, dtype: DType, target: HasRoom, free: int
) -> InPieces | None:  # fmt: skip
    """Long rows, one after another."""
    if not (isinstance(operation, TopK) or (isinstance(operation, Reduce) and operation.reducer.finds_index)):
        return None

    def made(part: int) -> InPieces:
        search = _Search.of(operation, length, dtype, part, target)
        return InPieces(target, (search.each, search.last, search.best), search.through)

    return fitting(piece_length(length, dtype.itemsize), made, free)


@attrs.frozen(eq=False)
class _Search:
    """The host keeps each part's few candidates, with their indices in the row."""

    length: int
    dtype: DType
    part: int
    each: Task  # of a whole part
    last: Task
    best: Task  # of the candidates

    @classmethod
    def of(cls, operation: Search, length: int, dtype: DType, part: int, target: HasRoom) -> _Search:
        def task(count: int, most: int) -> Task:
            asked = attrs.evolve(operation, k=min(operation.k, most)) if isinstance(operation, TopK) else operation
            return Task.of(asked, specs_on_device((1, count), (dtype,)), target)

        parts, rest = -(-length // part), length % part or part
        each, last = task(part, part), task(rest, rest)
        return cls(length, dtype, part, each, last, task((parts - 1) * _left_by(each) + _left_by(last), length))

    def through(self, desk: Desk, arrays: Flat, outs: Flat) -> None:
        (x,), rows = arrays, arrays[0].size // self.length
        for row in range(rows):
            given = x[row * self.length : (row + 1) * self.length]
            left = [out[row * (out.size // rows) : (row + 1) * (out.size // rows)] for out in outs]
            values, places = self._candidates(desk, given, has_values=len(outs) > 1)
            each_through(desk, [Piece([[values]], self.best, left)])
            left[-1][...] = places[left[-1].view(np.int64)]

    def _candidates(
        self, desk: Desk, x: HostArray, *, has_values: bool
    ) -> tuple[HostArray, npt.NDArray[np.int64]]:  # fmt: skip
        """The candidates of all parts, in order, and their indices in the row."""
        starts = np.arange(0, self.length, self.part)
        counts = np.array([_left_by(self.each)] * (starts.size - 1) + [_left_by(self.last)])
        ends = np.cumsum(counts)
        places, values = np.empty(ends[-1], np.int64), np.empty(ends[-1], self.dtype)
        pieces: list[Piece[Task]] = []
        for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
            stretch = slice(end - count, end)
            left = [values[stretch], places[stretch]] if has_values else [places[stretch]]
            task = self.last if end == ends[-1] else self.each
            pieces.append(Piece([[x[start : start + self.part]]], task, left))
        each_through(desk, pieces)
        places += np.repeat(starts, counts)
        return (values if has_values else x[places]), places


def _left_by(task: Task) -> int:
    """The number of candidates that a task leaves."""
    return task.left[-1] // INDEX.itemsize
