"""Out-of-core sorts of long rows, and merges: sorted runs, exact cuts, buckets (a sample sort with exact splitters)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import attrs

from ..algos.words import Transform
from ..external.in_pieces import PieceSort, piece_length
from ..external.order import transform_of
from ..operations.argsort import INDEX, Argsort, SortPairs
from ..operations.base import Operation
from ..operations.merge import Merge
from ..operations.placed import SortPlaced
from ..operations.sort import Sort
from ..targets.base import HasRoom, Target
from ..types.dtypes import key_for
from ..types.keys import RankKey, is_lossy
from .desk import Desk, DType, Flat, InPieces, Task, fitting, specs_on_device


@attrs.frozen(eq=False)
class SortedRuns:
    """How runs and buckets of a row are sorted on the device."""

    words: Callable[[], Transform]  # by which runs are cut
    columns: tuple[DType, ...]  # of a run: its keys, and what goes along with them
    left: tuple[int | None, ...]  # which result each of them is
    run: Callable[[int, int], Task]  # from one place on, so many
    bucket: Callable[[int], Task]

    @classmethod
    def of(cls, operation: Operation, dtypes: tuple[DType, ...], target: Target) -> SortedRuns | None:
        """None if the operation cannot be cut: with a lossy key, elements cannot be told from the words of a run."""
        match operation:
            case Sort():
                return cls._alike(attrs.evolve(operation, axis=0), dtypes, target, operation.stable)
            case SortPairs() if operation.key is None or not is_lossy(operation.key):
                return cls._alike(operation, dtypes, target, ranks=False)
            case Argsort(by_bits=False) if operation.key is None or not is_lossy(operation.key):
                return cls._of_places(operation, dtypes[0], target)
            case _:
                return None

    @classmethod
    def _alike(cls, asked: Sort | SortPairs, dtypes: tuple[DType, ...], target: Target, ranks: bool) -> SortedRuns:
        """For sorts whose runs and buckets are sorted by the same operation as the row."""

        @cache
        def task(count: int) -> Task:
            return Task.of(asked, specs_on_device((count,), dtypes), target)

        words = partial(transform_of, dtypes[0], asked.order, ranks=ranks, key=asked.key)
        return cls(words, dtypes, tuple(range(len(dtypes))), lambda _, count: task(count), task)

    @classmethod
    def _of_places(cls, asked: Argsort, dtype: DType, target: Target) -> SortedRuns:
        """For argsort: keys travel with their indices, and are dropped at the end."""
        key = key_for(dtype) if asked.key is None else asked.key
        pairs, columns = SortPairs(asked.order, RankKey(key)), (dtype, INDEX)

        def run(first: int, count: int) -> Task:
            return Task.of(SortPlaced(first, asked.order, key), specs_on_device((count,), (dtype,)), target)

        @cache
        def bucket(count: int) -> Task:
            return Task.of(pairs, specs_on_device((count,), columns), target)

        words = partial(transform_of, dtype, asked.order, ranks=True, key=asked.key)
        return cls(words, columns, (None, 0), run, bucket)


@attrs.frozen(eq=False)
class SortInPieces(InPieces):
    """The sort of long rows, one after another; or the merge of two arrays, which are sorted runs already.

    The device sorts each bucket of a merge, which takes less time than its transfer. The sort is stable, so equal
    elements of the first array come first.
    """

    target: HasRoom
    runs: SortedRuns
    length: int  # of a row, or of a merge's result
    merges: bool
    can_be_in_place: bool
    piece: int

    @classmethod
    def of(
        cls, operation: Operation, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> SortInPieces | None:
        merges, can_be_in_place = isinstance(operation, Merge), isinstance(operation, Sort)
        if isinstance(operation, Merge):
            operation, dtypes = operation.sort, dtypes[: len(dtypes) // 2]
        runs = SortedRuns.of(operation, dtypes, target)
        if runs is None:
            return None
        made = partial(cls, target, runs, length, merges, can_be_in_place)
        return fitting(piece_length(length, sum(dtype.itemsize for dtype in runs.columns)), made, free)

    def needed(self) -> Sequence[Task]:
        counts = {self.piece, self.length % self.piece or self.piece}
        runs = [] if self.merges else [self.runs.run(0, count) for count in counts]
        return [*runs, *map(self.runs.bucket, counts)]

    def through(self, desk: Desk, arrays: Flat, outs: Flat, /) -> None:
        runs = self.runs
        sort = PieceSort(desk, runs.words(), self.piece, runs.run, runs.bucket)
        if self.merges:
            each = len(arrays) // 2
            sort.merge([arrays[:each], arrays[each:]], outs)
            return
        for first in range(0, arrays[0].size, self.length):
            row = slice(first, first + self.length)
            left = [None if number is None else outs[number][row] for number in runs.left]
            sort.into([array[row] for array in arrays], left, runs.columns)
