"""Out-of-core merge: two sorted host arrays are runs already, which exact cuts split into buckets.

The device sorts each bucket, which takes less time than its transfer. The sort is stable, so equal elements of the
first array come first.
"""

from __future__ import annotations

import attrs

from ..external.in_pieces import PieceSort, piece_length
from ..operations.merge import Merge
from ..targets.base import HasRoom
from .desk import Demand, Desk, DType, Flat, fitting
from .sort_in_pieces import SortedRuns


@attrs.frozen(eq=False)
class MergeInPieces:
    """The merge of two arrays, in buckets of `piece` elements."""

    target: HasRoom
    runs: SortedRuns
    length: int  # of the result
    piece: int

    can_be_in_place = False

    @classmethod
    def of(
        cls, operation: Merge, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> MergeInPieces | None:
        columns = dtypes[: len(dtypes) // 2]
        runs = SortedRuns.of(operation.sort, columns, target)
        if runs is None:
            return None
        most = piece_length(length, sum(dtype.itemsize for dtype in columns))
        return fitting(most, lambda piece: cls(target, runs, length, piece), free)

    @property
    def demand(self) -> Demand:
        return Demand.of([self.runs.bucket(count) for count in {self.piece, self.length % self.piece or self.piece}])

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        runs, demand, each = self.runs, self.demand, len(arrays) // 2
        with self.target.room(demand.total) as room:
            sort = PieceSort(Desk(self.target, room, demand), runs.words(), self.piece, runs.run, runs.bucket)
            sort.merge([arrays[:each], arrays[each:]], outs)
