"""Out-of-core merge: two sorted host arrays are runs already, which exact cuts split into buckets.

The device sorts each bucket, which takes less time than its transfer. The sort is stable, so equal elements of the
first array come first. Tied floats that are not in the order of their bits are merged as equal, as by kernels.
"""

from __future__ import annotations

import attrs

from ..external.in_pieces import PieceSort, piece_length
from ..operations.merge import Merge
from ..operations.tied import has_ties_in_order
from ..targets.base import HasRoom
from ..types.indices import SortOrder
from .desk import Demand, Desk, DType, Flat, fitting
from .sort_in_pieces import SortedRuns


@attrs.frozen(eq=False)
class MergeInPieces:
    """The merge of two arrays, in buckets of `piece` elements."""

    target: HasRoom
    runs: SortedRuns
    tied: SortedRuns | None  # for floats
    order: SortOrder
    length: int  # of the result
    piece: int

    can_be_in_place = False

    @classmethod
    def of(
        cls, operation: Merge, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> MergeInPieces | None:
        columns = dtypes[: len(dtypes) // 2]
        sort = operation.sort
        runs = SortedRuns.of(sort, columns, target)
        if runs is None:
            return None
        has_ties = operation.key is None and columns[0].kind == "f"
        tied = SortedRuns.of_tied(sort, columns, target) if has_ties else None
        most = piece_length(length, sum(dtype.itemsize for dtype in columns))
        return fitting(most, lambda piece: cls(target, runs, tied, operation.order, length, piece), free)

    @property
    def demand(self) -> Demand:
        either = [runs for runs in (self.runs, self.tied) if runs is not None]
        sizes = {self.piece, self.length % self.piece or self.piece}
        return Demand.of([runs.bucket(count) for runs in either for count in sizes])

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        each, demand = len(arrays) // 2, self.demand
        runs = self.runs
        if self.tied is not None and not all(has_ties_in_order(keys, self.order) for keys in arrays[::each]):
            runs = self.tied
        with self.target.room(demand.total) as room:
            sort = PieceSort(Desk(self.target, room, demand), runs.words(), self.piece, runs.run, runs.bucket)
            sort.merge([arrays[:each], arrays[each:]], outs)
