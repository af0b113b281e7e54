"""Top-k, argmin and argmax of host rows beyond 32-bit indices: candidates of each part, then the best of those."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
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


@attrs.frozen(eq=False)
class CandidatesInPieces(InPieces):
    """Long rows, one after another. The host keeps each part's few candidates, with their indices in the row."""

    target: HasRoom
    operation: Search
    length: int
    dtype: DType
    part: int

    @classmethod
    def of(
        cls, operation: Operation, length: int, dtype: DType, target: HasRoom, free: int
    ) -> CandidatesInPieces | None:
        if not (isinstance(operation, TopK) or (isinstance(operation, Reduce) and operation.reducer.finds_index)):
            return None
        made = partial(cls, target, operation, length, dtype)
        return fitting(piece_length(length, dtype.itemsize), made, free)

    @cached_property
    def tasks(self) -> tuple[Task, Task, Task]:
        """The tasks of a whole part, of the last part, and of the candidates."""
        last = self.length % self.part or self.part
        each, least = (self._task(self._within(count), count) for count in (self.part, last))
        parts = -(-self.length // self.part)
        return each, least, self._task(self.operation, (parts - 1) * _left_by(each) + _left_by(least))

    def needed(self) -> Sequence[Task]:
        return self.tasks

    def _task(self, operation: Search, count: int) -> Task:
        return Task.of(operation, specs_on_device((1, count), (self.dtype,)), self.target)

    def _within(self, count: int) -> Search:
        asked = self.operation
        return attrs.evolve(asked, k=min(asked.k, count)) if isinstance(asked, TopK) else asked

    def through(self, desk: Desk, arrays: Flat, outs: Flat, /) -> None:
        (x,), rows = arrays, arrays[0].size // self.length
        for row in range(rows):
            given = x[row * self.length : (row + 1) * self.length]
            left = [out[row * (out.size // rows) : (row + 1) * (out.size // rows)] for out in outs]
            values, places = self._candidates(desk, given)
            each_through(desk, [Piece([[values]], self.tasks[2], left)])
            left[-1][...] = places[left[-1].view(np.int64)]

    def _candidates(self, desk: Desk, x: HostArray) -> tuple[HostArray, npt.NDArray[np.int64]]:
        """The candidates of all parts, in order, and their indices in the row."""
        each, last, _ = self.tasks
        starts = np.arange(0, self.length, self.part)
        counts = np.array([_left_by(each)] * (starts.size - 1) + [_left_by(last)])
        ends = np.cumsum(counts)
        places, values = np.empty(ends[-1], np.int64), np.empty(ends[-1], self.dtype)
        pieces: list[Piece[Task]] = []
        for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
            stretch = slice(end - count, end)
            left = [values[stretch], places[stretch]] if isinstance(self.operation, TopK) else [places[stretch]]
            pieces.append(Piece([[x[start : start + self.part]]], last if end == ends[-1] else each, left))
        each_through(desk, pieces)
        places += np.repeat(starts, counts)
        return (values if isinstance(self.operation, TopK) else x[places]), places


def _left_by(task: Task) -> int:
    """The number of candidates that a task leaves."""
    return task.left[-1] // INDEX.itemsize
