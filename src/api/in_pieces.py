"""Operations on host arrays that a device cannot hold at once: how each can be cut, and into what.

All work on arrays laid out in rows. Where a device holds several rows at once, batches of rows travel; of longer rows,
parts. A row that is sorted is cut into runs and buckets; what a reduction, a scan or a selection leaves of a part stays
on the device, as it does where no binding holds a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Protocol, TypeAlias, TypeGuard

import attrs
import numpy as np

from ..algos.words import Transform
from ..arrays.kinds import HostArray
from ..external.in_pieces import Piece, PieceSort, each_through, piece_length
from ..external.order import transform_of
from ..operations.argsort import INDEX, Argsort, SortPairs
from ..operations.base import Operation, rows_of
from ..operations.placed import SortPlaced
from ..operations.reduce import Reduction
from ..operations.scan import Scanning
from ..operations.select import TopK
from ..operations.sort import Sort
from ..targets.base import HasRoom, Target
from ..types.dtypes import key_for, native
from ..types.keys import RankKey, is_lossy
from ..types.specs import Memory, Spec
from .desk import Demand, Desk, Task

ByRows: TypeAlias = Sort | Argsort | TopK | Reduction | Scanning
DType: TypeAlias = np.dtype[Any]
Flat: TypeAlias = Sequence[HostArray]  # arrays of one dimension, packed and in the machine's byte order


class InPieces(Protocol):
    """A way for some arrays, with as much memory as was free."""

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        """Rows to results, which may be the rows' own memory where it `can_be_in_place`."""
        ...

    @property
    def can_be_in_place(self) -> bool:
        """Whether an exception then leaves every element there, in some order."""
        ...


def way_in_pieces(
    operation: Operation, specs: tuple[Spec, ...], target: HasRoom, free: int
) -> InPieces | None:  # fmt: skip
    """How it can be done in so much of the device's memory; None where it cannot be."""
    rows, length = rows_of(specs[0], operation.axes(0, specs[0]))
    dtypes = tuple(native(spec.dtype) for spec in specs)
    turned = attrs.evolve(operation, axis=1) if _goes_by_rows(operation) else operation
    found = None if rows == 1 else RowsInPieces.of(turned, rows, length, dtypes, target, free)
    return found or SortInPieces.of(turned, length, dtypes, target, free)


def _goes_by_rows(operation: Operation) -> TypeGuard[ByRows]:
    return isinstance(operation, Sort | Argsort | TopK | Reduction | Scanning)


def specs_on_device(shape: tuple[int, ...], dtypes: Sequence[DType]) -> tuple[Spec, ...]:
    return tuple(Spec(shape, dtype, Memory.CUDA) for dtype in dtypes)


def fitting(wanted: int, demand: Callable[[int], Demand], free: int) -> int | None:
    """The greatest number, as wanted or less, for which there is memory; as near as matters."""
    while wanted > 0:
        total = demand(wanted).total
        if total <= free:
            return wanted
        wanted = min(wanted * 15 // 16, wanted * free // total)
    return None


# -- many rows --------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class RowsInPieces:
    """Batches of whole rows, each by itself."""

    target: HasRoom
    rows: int
    length: int
    tasks: dict[int, Task]  # by rows of a batch: of most of them, and of the last

    can_be_in_place = False

    @classmethod
    def of(
        cls, operation: Operation, rows: int, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> RowsInPieces | None:
        def tasks(batch: int) -> dict[int, Task]:
            counts = {batch, rows % batch or batch}
            return {count: Task.of(operation, specs_on_device((count, length), dtypes), target) for count in counts}

        wanted = piece_length(rows, length * dtypes[0].itemsize)
        batch = fitting(wanted, lambda count: Demand.of(list(tasks(count).values())), free)
        return None if batch is None else cls(target, rows, length, tasks(batch))

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        demand = Demand.of(list(self.tasks.values()))
        each_through(Desk(self.target, self.target.room(demand.total), demand), list(self._pieces(arrays[0], outs)))

    def _pieces(self, x: HostArray, outs: Flat) -> Iterator[Piece[Task]]:
        batch, each = max(self.tasks), [out.size // self.rows for out in outs]
        for first in range(0, self.rows, batch):
            last = min(first + batch, self.rows)
            given = x[first * self.length : last * self.length]
            left = [out[first * count : last * count] for out, count in zip(outs, each, strict=True)]
            yield Piece([[given]], self.tasks[last - first], left)


# -- rows that are sorted ---------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class SortedRuns:
    """How pieces of a row are sorted, and the buckets that they are made into."""

    words: Callable[[], Transform]  # by which runs are cut
    columns: tuple[DType, ...]  # of a run: its keys, and what goes along with them
    left: tuple[int | None, ...]  # which result each of them is
    run: Callable[[int, int], Task]  # from one place on, so many
    bucket: Callable[[int], Task]

    @classmethod
    def of(cls, operation: Operation, dtypes: tuple[DType, ...], target: Target) -> SortedRuns | None:
        """None where it cannot be cut: by a key whose words do not tell which elements they are of, results of pieces
        would have to be elements, and are words."""
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
        """Runs and buckets are sorted as the row is to be."""

        @cache
        def task(count: int) -> Task:
            return Task.of(asked, specs_on_device((count,), dtypes), target)

        words = partial(transform_of, dtypes[0], asked.order, ranks=ranks, key=asked.key)
        return cls(words, dtypes, tuple(range(len(dtypes))), lambda _, count: task(count), task)

    @classmethod
    def _of_places(cls, asked: Argsort, dtype: DType, target: Target) -> SortedRuns:
        """Keys go along with their places in the row, and stay behind at the end."""
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
class SortInPieces:
    """Long rows, one after another: runs, cuts, buckets."""

    target: HasRoom
    runs: SortedRuns
    length: int
    piece: int
    can_be_in_place: bool

    @classmethod
    def of(
        cls, operation: Operation, length: int, dtypes: tuple[DType, ...], target: HasRoom, free: int
    ) -> SortInPieces | None:
        runs = SortedRuns.of(operation, dtypes, target)
        if runs is None:
            return None

        def made(piece: int) -> SortInPieces:
            return cls(target, runs, length, piece, isinstance(operation, Sort))

        wanted = piece_length(length, sum(dtype.itemsize for dtype in runs.columns))
        piece = fitting(wanted, lambda count: made(count).demand, free)
        return None if piece is None else made(piece)

    @property
    def demand(self) -> Demand:
        last = self.length % self.piece or self.piece
        return Demand.of([make for n in {self.piece, last} for make in (self.runs.run(0, n), self.runs.bucket(n))])

    def run(self, arrays: Flat, outs: Flat, /) -> None:
        runs, demand = self.runs, self.demand
        desk = Desk(self.target, self.target.room(demand.total), demand)
        sort = PieceSort(desk, runs.words(), self.piece, runs.run, runs.bucket)
        for first in range(0, arrays[0].size, self.length):
            row = slice(first, first + self.length)
            left = [None if number is None else outs[number][row] for number in runs.left]
            sort.into([array[row] for array in arrays], left, runs.columns)
