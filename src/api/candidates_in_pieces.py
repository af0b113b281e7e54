"""Searches of rows in which kernels cannot count places: the first of each part, and of those the first."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias, TypeGuard, cast

import attrs
import numpy as np

from ..arrays.host import NUMPY
from ..arrays.kinds import HostArray
from ..external.in_pieces import Piece, each_through, piece_length
from ..operations.argsort import INDEX
from ..operations.base import Operation
from ..operations.reduce import Reduce
from ..operations.select import TopK
from ..targets.base import HasRoom
from ..types.specs import Spec
from .desk import Demand, Desk, DType, Flat, Task, fitting, specs_on_device
from .kernel_plan import KernelPlan
from .plan import as_tuple

Search: TypeAlias = TopK | Reduce


@attrs.frozen(eq=False)
class CandidatesInPieces:
    """Long rows, one after another. What parts leave is few: the host keeps it, with where each stands in its row."""

    target: HasRoom
    operation: Search
    length: int
    dtype: DType
    part: int

    can_be_in_place = False

    @classmethod
    def of(
        cls, operation: Operation, length: int, dtype: DType, target: HasRoom, free: int
    ) -> CandidatesInPieces | None:
        if not _searches(operation):
            return None

        def made(part: int) -> CandidatesInPieces:
            return cls(target, operation, length, dtype, part)

        part = fitting(piece_length(length, dtype.itemsize), lambda count: Demand.of(made(count).tasks), free)
        return None if part is None else made(part)

    @cached_property
    def tasks(self) -> list[Task]:
        """Of most parts, and of the last."""
        last = self.length % self.part or self.part
        return [
            Task.of(self._within(count), specs_on_device((1, count), (self.dtype,)), self.target)
            for count in (self.part, last)
        ]

    def _within(self, count: int) -> Search:
        asked = self.operation
        return attrs.evolve(asked, k=min(asked.k, count)) if isinstance(asked, TopK) else asked

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        (x,), rows = arrays, arrays[0].size // self.length
        for row in range(rows):
            given = x[row * self.length : (row + 1) * self.length]
            found = self._chosen(given, *self._candidates(given))
            for out, values in zip(outs, found, strict=True):
                each = out.size // rows
                out[row * each : (row + 1) * each] = values.reshape(-1)

    def _candidates(self, x: HostArray) -> tuple[HostArray, HostArray]:
        """Of all parts, in order, and their places in the row."""
        starts, demand = np.arange(0, self.length, self.part), Demand.of(self.tasks)
        counts = [task.left[-1] // INDEX.itemsize for task in self.tasks]
        ends = np.minimum((np.arange(starts.size) + 1) * counts[0], (starts.size - 1) * counts[0] + counts[1])
        places = np.empty(ends[-1], np.int64)
        values = np.empty(ends[-1], self.dtype)
        pieces: list[Piece[Task]] = []
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            stretch = slice(number * counts[0], end)
            left = [values[stretch], places[stretch]] if isinstance(self.operation, TopK) else [places[stretch]]
            pieces.append(Piece([[x[start : start + self.part]]], self.tasks[number == starts.size - 1], left))
        each_through(Desk(self.target, self.target.room(demand.total), demand), pieces)
        places += np.repeat(starts, np.diff(ends, prepend=0))
        return (values if isinstance(self.operation, TopK) else x[places]), places

    def _chosen(self, x: HostArray, values: HostArray, places: HostArray) -> tuple[HostArray, ...]:
        spec = Spec((1, values.size), self.dtype)
        plan = KernelPlan(NUMPY, self.operation, (spec,), self.target)
        *kept, chosen = cast("tuple[HostArray, ...]", as_tuple(plan(values.reshape(1, -1))))
        return *kept, places[chosen.astype(np.int64)]


def _searches(operation: Operation) -> TypeGuard[Search]:
    return isinstance(operation, TopK) or (isinstance(operation, Reduce) and operation.reducer.finds_index)
