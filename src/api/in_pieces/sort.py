"""Out-of-core sorts of long rows, and merges: sorted runs, exact cuts, buckets (a sample sort with exact splitters).

A row too long for one piece is sorted as files are. Its elements are sent to the device and back twice, and the runs
take as much host memory as the row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from ...algos.sizes import LARGEST_U32
from ...arrays.kinds import places, span
from ...external.crew import OnFailure
from ...external.cuts import held_cuts
from ...external.order import words_of
from ...operations.argsort import Argsort, SortIndices, SortPairs, SortPlaced
from ...operations.base import INDEX, Operation
from ...operations.merge import Merge, has_ties_in_order
from ...operations.sort import Sort
from ...targets.addresses import address_of
from ...targets.base import HasRoom, Target
from ...types.dtypes import key_for
from ...types.keys import RankKey, is_lossy
from ...types.specs import HostArray
from .desk import Desk, DType, Flat, InPieces, Piece, Task, fitting, lengths_of, piece_length, specs_on_device


@attrs.frozen(eq=False)
class SortedRuns:
    """How a long row is sorted through a device: a column of keys, and columns of values that go with them."""

    words: Callable[[HostArray], HostArray]  # of keys, to compare runs by
    # The dtypes of the runs' columns, which may be more than the row's: of indices, of which a run's task is given the
    # first.
    columns: tuple[DType, ...]
    run: Callable[[int], Task]  # the task that sorts a count of elements
    bucket: Callable[[int], Task]  # the task that sorts a count of elements, concatenated slices of runs

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

        words = partial(words_of, order=operation.order, ranks=ranks, key=operation.key)
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

        words = partial(words_of, order=asked.order, ranks=True, key=asked.key)
        return cls(words, columns, run, bucket)

    def sort(self, desk: Desk, length: int, row: Flat, out: Flat) -> None:
        """Sorts a row, of which a piece has so many elements. `out` has an array for each that a bucket leaves. Those
        may be the row's: then after an exception they hold its elements in some order."""
        stretches = _stretches(row[0].size, length)
        with self._held(desk, row[0].size) as held:
            runs = [[column[part] for column in held] for part in stretches]
            numbered = self.columns[len(row) :]
            pieces = (
                Piece(
                    [*[[column[part]] for column in row], *[[np.array([part.start], index)] for index in numbered]],
                    self.run(run[0].size),
                    run,
                )
                for part, run in zip(stretches, runs, strict=True)
            )
            desk.send(pieces, len(stretches))

            def put_back() -> None:
                for column, kept in zip(out, held, strict=False):
                    if any(address_of(column) == address_of(given) for given in row):
                        np.copyto(column, kept)

            undone = OnFailure(put_back)
            with undone, undone, undone:
                self.merge(desk, length, runs, out)

    def merge(self, desk: Desk, length: int, runs: Sequence[Flat], out: Flat) -> None:
        """Merges sorted runs of the same columns, in buckets by exact cuts: each element is sent to the device and back
        once. `out` must not overlap with the runs."""
        stretches = _stretches(sum(run[0].size for run in runs), length)
        sizes = [part.stop - part.start for part in stretches]
        cuts = held_cuts([run[0] for run in runs], sizes, self.words)
        pieces = (
            Piece(
                [
                    [run[low:high] for run, low, high in zip(column, lows, highs, strict=True) if low < high]
                    for column in zip(*runs, strict=True)
                ],
                self.bucket(size),
                [column[part] for column in out],
            )
            for part, size, (lows, highs) in zip(stretches, sizes, pairwise(cuts), strict=True)
        )
        desk.send(pieces, len(stretches))

    @contextmanager
    def _held(self, desk: Desk, count: int) -> Generator[list[HostArray]]:
        """Host memory for the runs, a column after the other."""
        sizes = [count * dtype.itemsize for dtype in self.columns]
        with desk.host_memory(span(sizes)) as memory:
            lies = zip(places(0, sizes), sizes, self.columns, strict=True)
            yield [memory[start : start + size].view(dtype) for start, size, dtype in lies]


def _stretches(count: int, length: int) -> list[slice]:
    """Cuts 0..count into pieces of a length; the last may be shorter."""
    return [slice(start, min(start + length, count)) for start in range(0, count, length)]


def sort_in_pieces(
    operation: Operation, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
) -> InPieces | None:
    runs = SortedRuns.of(operation, dtypes, length, target)
    if runs is None:
        return None

    def made(piece: int) -> InPieces:
        def through(desk: Desk, arrays: Flat, outs: Flat) -> None:
            for first in range(0, arrays[0].size, length):
                row = slice(first, first + length)
                runs.sort(desk, piece, [array[row] for array in arrays], [out[row] for out in outs])

        tasks = [task for count in lengths_of(length, piece) for task in (runs.run(count), runs.bucket(count))]
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
            chosen.merge(desk, piece, [arrays[:each], arrays[each:]], outs)

        tasks = [either.bucket(count) for either in (runs, tied) for count in lengths_of(length, piece)]
        return InPieces(target, tasks, through)

    return fitting(piece_length(length, sum(dtype.itemsize for dtype in columns)), made, free)
