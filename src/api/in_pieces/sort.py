"""Out-of-core sorts of long rows, and merges: sorted runs, exact cuts, buckets (a sample sort with exact splitters)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import attrs
import numpy as np

from ...algos.sizes import LARGEST_U32
from ...algos.words import Transform
from ...external.in_pieces import PieceSort, piece_length
from ...external.order import transform_of
from ...operations.argsort import Argsort, SortIndices, SortPairs, SortPlaced
from ...operations.base import INDEX, Operation
from ...operations.merge import Merge, has_ties_in_order
from ...operations.sort import Sort
from ...targets.base import HasRoom, Target
from ...types.dtypes import key_for
from ...types.keys import RankKey, is_lossy
from .desk import Desk, DType, Flat, InPieces, Task, fitting, specs_on_device


@attrs.frozen(eq=False)
class SortedRuns:
    """How runs and buckets of a row are sorted on the device."""

    words: Callable[[], Transform]  # by which runs are cut
    columns: tuple[DType, ...]  # of a run: its keys, and what goes along with them
    run: Callable[[int], Task]  # of so many
    bucket: Callable[[int], Task]  # which leaves the results

    @classmethod
    def of(
        cls, operation: Operation, dtypes: tuple[DType, ...], length: int, target: Target, *, tied: bool = False
    ) -> SortedRuns | None:
        """None if the operation cannot be cut: with a lossy key, elements cannot be told from the words of a run. With
        `tied`, for floats whose ties stay in their order."""
        asked: Sort | SortPairs
        match operation:
            case Sort():
                ranks = tied or operation.stable
                asked = attrs.evolve(operation, axis=0, stable=ranks)
            case SortPairs() if operation.key is None or not is_lossy(operation.key):
                ranks, asked = tied, operation
                if tied:
                    by_ranks: RankKey[Any, Any] = RankKey(key_for(dtypes[0]))
                    asked = attrs.evolve(operation, key=by_ranks)
            case Argsort(by_bits=False) if operation.key is None or not is_lossy(operation.key):
                return cls._of_places(operation, dtypes[0], length, target)
            case _:
                return None

        @cache
        def task(count: int) -> Task:
            return Task.of(asked, specs_on_device((count,), dtypes), target)

        words = partial(transform_of, dtypes[0], operation.order, ranks=ranks, key=operation.key)
        return cls(words, dtypes, task, task)

    @classmethod
    def _of_places(cls, asked: Argsort, dtype: DType, length: int, target: Target) -> SortedRuns:
        """For argsort: keys are moved with their indices, and are dropped at the end."""
        key: RankKey[Any, Any] = RankKey(key_for(dtype) if asked.key is None else asked.key)
        columns = dtype, INDEX if length > LARGEST_U32 else np.dtype(np.uint32)  # which buckets widen

        @cache
        def run(count: int) -> Task:
            given = *specs_on_device((count,), columns[:1]), *specs_on_device((1,), columns[1:])
            return Task.of(SortPlaced(asked.order, key), given, target)

        @cache
        def bucket(count: int) -> Task:
            return Task.of(SortIndices(asked.order, key), specs_on_device((count,), columns), target)

        words = partial(transform_of, dtype, asked.order, ranks=True, key=asked.key)
        return cls(words, columns, run, bucket)


def sort_in_pieces(
    operation: Operation, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
) -> InPieces | None:
    runs = SortedRuns.of(operation, dtypes, length, target)
    if runs is None:
        return None

    def made(piece: int) -> InPieces:
        def through(desk: Desk, arrays: Flat, outs: Flat) -> None:
            sort = PieceSort(desk, runs.words(), piece, runs.run, runs.bucket)
            for first in range(0, arrays[0].size, length):
                row = slice(first, first + length)
                sort.into([array[row] for array in arrays], [out[row] for out in outs], runs.columns)

        tasks = [task for count in _lengths(length, piece) for task in (runs.run(count), runs.bucket(count))]
        return InPieces(target, tasks, through, can_be_in_place=isinstance(operation, Sort))

    return fitting(piece_length(length, sum(dtype.itemsize for dtype in runs.columns)), made, free)


def merge_in_pieces(
    operation: Merge, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
) -> InPieces | None:
    """The merge of two arrays, which are sorted runs already, to one of this length. The device sorts each bucket,
    stably; floats whose ties are not in the order of their bits are merged as equal, as by kernels."""
    columns, sort = dtypes[: len(dtypes) // 2], operation.sort
    runs = tied = SortedRuns.of(sort, columns, length, target)
    has_ties = operation.key is None and columns[0].kind == "f"
    if has_ties:
        tied = SortedRuns.of(sort, columns, length, target, tied=True)
    if runs is None or tied is None:
        return None

    def made(piece: int) -> InPieces:
        def through(desk: Desk, arrays: Flat, outs: Flat) -> None:
            each = len(columns)
            are_in_order = not has_ties or all(has_ties_in_order(keys, operation.order) for keys in arrays[::each])
            chosen = runs if are_in_order else tied
            sort = PieceSort(desk, chosen.words(), piece, chosen.run, chosen.bucket)
            sort.merge([arrays[:each], arrays[each:]], outs)

        tasks = [either.bucket(count) for either in (runs, tied) for count in _lengths(length, piece)]
        return InPieces(target, tasks, through)

    return fitting(piece_length(length, sum(dtype.itemsize for dtype in columns)), made, free)


def _lengths(length: int, piece: int) -> set[int]:
    """Those of the pieces of a row."""
    return {piece, length % piece or piece}
