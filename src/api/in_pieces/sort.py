"""Out-of-core sorts of long rows, and merges: sorted runs, exact cuts, buckets (a sample sort with exact splitters)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import attrs

from ...algos.words import Transform
from ...external.in_pieces import PieceSort, piece_length
from ...external.order import transform_of
from ...operations.argsort import Argsort, SortPairs
from ...operations.base import Operation
from ...operations.merge import Merge
from ...operations.placed import SortIndices, SortPlaced, index_within
from ...operations.sort import Sort
from ...operations.tied import has_ties_in_order
from ...targets.base import HasRoom, Target
from ...types.dtypes import key_for
from ...types.indices import SortOrder
from ...types.keys import RankKey, SortableKey, is_lossy
from .desk import Desk, DType, Flat, InPieces, Task, fitting, specs_on_device


@attrs.frozen(eq=False)
class SortedRuns:
    """How runs and buckets of a row are sorted on the device."""

    words: Callable[[], Transform]  # by which runs are cut
    columns: tuple[DType, ...]  # of a run: its keys, and what goes along with them
    run: Callable[[int, int], Task]  # from one place on, so many
    bucket: Callable[[int], Task]  # which leaves the results

    @classmethod
    def of(cls, operation: Operation, dtypes: tuple[DType, ...], length: int, target: Target) -> SortedRuns | None:
        """None if the operation cannot be cut: with a lossy key, elements cannot be told from the words of a run."""
        match operation:
            case Sort():
                asked = attrs.evolve(operation, axis=0)
                return cls._alike(asked, dtypes, target, operation.stable, operation.key)
            case SortPairs() if operation.key is None or not is_lossy(operation.key):
                return cls._alike(operation, dtypes, target, False, operation.key)
            case Argsort(by_bits=False) if operation.key is None or not is_lossy(operation.key):
                return cls._of_places(operation, dtypes[0], length, target)
            case _:
                return None

    @classmethod
    def of_tied(cls, operation: Sort | SortPairs, dtypes: tuple[DType, ...], target: Target) -> SortedRuns:
        """For floats whose ties stay in their order."""
        if isinstance(operation, Sort):
            return cls._alike(attrs.evolve(operation, stable=True), dtypes, target, True, None)
        ranks: RankKey[Any, Any] = RankKey(key_for(dtypes[0]))
        return cls._alike(attrs.evolve(operation, key=ranks), dtypes, target, True, None)

    @classmethod
    def _alike(
        cls, asked: Sort | SortPairs, dtypes: tuple[DType, ...], target: Target, ranks: bool,
        key: SortableKey[Any, Any] | None,
    ) -> SortedRuns:  # fmt: skip
        """For sorts whose runs and buckets are sorted by the same operation as the row."""

        @cache
        def task(count: int) -> Task:
            return Task.of(asked, specs_on_device((count,), dtypes), target)

        words = partial(transform_of, dtypes[0], asked.order, ranks=ranks, key=key)
        return cls(words, dtypes, lambda _, count: task(count), task)

    @classmethod
    def _of_places(cls, asked: Argsort, dtype: DType, length: int, target: Target) -> SortedRuns:
        """For argsort: keys travel with their indices, and are dropped at the end."""
        key = key_for(dtype) if asked.key is None else asked.key
        columns = dtype, index_within(length)

        def run(first: int, count: int) -> Task:
            asked_of_run = SortPlaced(first, asked.order, key, columns[1])
            return Task.of(asked_of_run, specs_on_device((count,), (dtype,)), target)

        @cache
        def bucket(count: int) -> Task:
            return Task.of(SortIndices(asked.order, key), specs_on_device((count,), columns), target)

        words = partial(transform_of, dtype, asked.order, ranks=True, key=asked.key)
        return cls(words, columns, run, bucket)


@attrs.frozen(eq=False)
class SortInPieces(InPieces):
    """The sort of long rows, one after another."""

    target: HasRoom
    runs: SortedRuns
    length: int
    can_be_in_place: bool
    piece: int

    @classmethod
    def of(
        cls, operation: Operation, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> SortInPieces | None:
        runs = SortedRuns.of(operation, dtypes, length, target)
        if runs is None:
            return None
        made = partial(cls, target, runs, length, isinstance(operation, Sort))
        return fitting(piece_length(length, sum(dtype.itemsize for dtype in runs.columns)), made, free)

    def needed(self) -> Sequence[Task]:
        return [make for n in _lengths(self.length, self.piece) for make in (self.runs.run(0, n), self.runs.bucket(n))]

    def through(self, desk: Desk, arrays: Flat, outs: Flat, /) -> None:
        runs = self.runs
        sort = PieceSort(desk, runs.words(), self.piece, runs.run, runs.bucket)
        for first in range(0, arrays[0].size, self.length):
            row = slice(first, first + self.length)
            sort.into([array[row] for array in arrays], [out[row] for out in outs], runs.columns)


@attrs.frozen(eq=False)
class MergeInPieces(InPieces):
    """The merge of two arrays, which are sorted runs already.

    The device sorts each bucket, which takes less time than its transfer. The sort is stable, so equal elements of the
    first array come first. Tied floats that are not in the order of their bits are merged as equal, as by kernels.
    """

    target: HasRoom
    order: SortOrder
    runs: SortedRuns
    tied: SortedRuns | None  # for floats whose ties are not in order
    length: int  # of the result
    piece: int
    can_be_in_place = False

    @classmethod
    def of(
        cls, operation: Merge, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> MergeInPieces | None:
        columns, sort = dtypes[: len(dtypes) // 2], operation.sort
        runs = SortedRuns.of(sort, columns, length, target)
        if runs is None:
            return None
        has_ties = operation.key is None and columns[0].kind == "f"
        tied = SortedRuns.of_tied(sort, columns, target) if has_ties else None
        made = partial(cls, target, operation.order, runs, tied, length)
        return fitting(piece_length(length, sum(dtype.itemsize for dtype in columns)), made, free)

    def needed(self) -> Sequence[Task]:
        either = [runs for runs in (self.runs, self.tied) if runs is not None]
        return [runs.bucket(count) for runs in either for count in _lengths(self.length, self.piece)]

    def through(self, desk: Desk, arrays: Flat, outs: Flat, /) -> None:
        each, runs = len(arrays) // 2, self.runs
        if self.tied is not None and not all(has_ties_in_order(keys, self.order) for keys in arrays[::each]):
            runs = self.tied
        sort = PieceSort(desk, runs.words(), self.piece, runs.run, runs.bucket)
        sort.merge([arrays[:each], arrays[each:]], outs)


def _lengths(length: int, piece: int) -> set[int]:
    """Those of the pieces of a row."""
    return {piece, length % piece or piece}
