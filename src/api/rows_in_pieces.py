"""Out-of-core calls on many rows: batches of whole rows."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ..arrays.kinds import HostArray
from ..external.in_pieces import Piece, each_through, piece_length
from ..operations.base import Operation
from ..targets.base import HasRoom
from ..types.errors import CapabilityError
from .desk import Demand, Desk, DType, Flat, Task, fitting, specs_on_device


@attrs.frozen(eq=False)
class RowsInPieces:
    """Batches of whole rows, which are independent."""

    target: HasRoom
    rows: int
    length: int
    tasks: dict[int, Task]  # by rows of a batch: of most of them, and of the last

    can_be_in_place = False

    @classmethod
    def of(
        cls, operation: Operation, rows: int, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> RowsInPieces | None:
        def made(batch: int) -> RowsInPieces:
            counts = {batch, rows % batch or batch}
            tasks = {count: Task.of(operation, specs_on_device((count, length), dtypes), target) for count in counts}
            return cls(target, rows, length, tasks)

        try:
            return fitting(piece_length(rows, length * dtypes[0].itemsize), made, free)
        except CapabilityError:  # of a row longer than kernels take
            return None

    @property
    def demand(self) -> Demand:
        return Demand.of(list(self.tasks.values()))

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        demand = self.demand
        with self.target.room(demand.total) as room:
            each_through(Desk(self.target, room, demand), list(self._pieces(arrays[0], outs)))

    def _pieces(self, x: HostArray, outs: Flat) -> Iterator[Piece[Task]]:
        batch, each = max(self.tasks), [out.size // self.rows for out in outs]
        for first in range(0, self.rows, batch):
            last = min(first + batch, self.rows)
            given = x[first * self.length : last * self.length]
            left = [out[first * count : last * count] for out, count in zip(outs, each, strict=True)]
            yield Piece([[given]], self.tasks[last - first], left)
