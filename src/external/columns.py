"""Adapters that let a table of one numeric column without nulls be sorted like a plain file of numbers."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from ..types.indices import SortOrder
from .arrow_values import values_of
from .cuts import Array, Indices
from .direct import Bytes
from .parting import Parting, Unbalanced
from .runs import parted_lines
from .table_files import RowReader, TableFile
from .table_sinks import Sink
from .work import SortElements

_ROWS = 1 << 20  # decoded at a time
_MOST_NOTED = 1 << 21  # zeros and NaNs


class ColumnInput:
    """Reads the column as an input of Passes, in order; from its beginning again if it is to go back."""

    def __init__(self, table: TableFile, dtype: np.dtype[Any]) -> None:
        self._table, self._dtype = table, dtype
        self._rows = RowReader(table.batches(None, _ROWS))
        self._at = 0

    def read(self, buffer: Bytes, at: int, start: int, stop: int) -> int:
        if start < self._at:
            self._rows = RowReader(self._table.batches(None, _ROWS))
        self._at = stop
        size, end = self._dtype.itemsize, at
        for batch in self._rows.read(start // size, (stop - start) // size):
            numbers = values_of(batch.column(0)).view(np.uint8)
            buffer[end : end + numbers.size] = numbers
            end += numbers.size
        return at

    def copied(self, start: int, stop: int) -> Bytes:
        """At most as many bytes, from near there. Raises Unbalanced."""
        size = self._dtype.itemsize
        rows = self._table.rows_near(start // size, (stop - start) // size)
        return values_of(rows.column(0)).view(np.uint8).copy()  # it may be changed


@attrs.frozen(eq=False)
class ColumnOutput:
    """Writes the column as an output of Passes. It cannot be resumed, so sync() does nothing."""

    sink: Sink
    schema: pa.Schema

    def lead(self, offset: int) -> int:
        return 0

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        kind = self.schema.types[0]
        numbers = pa.Array.from_buffers(kind, 8 * nbytes // kind.bit_width, [None, pa.py_buffer(buffer[:nbytes])])
        self.sink.write(pa.Table.from_arrays([numbers], schema=self.schema))

    def sync(self) -> None:
        pass


@attrs.frozen(eq=False)
class SortColumn(SortElements):
    """Sorts the elements of a column; those that tie keep their order."""

    @property
    def parting(self) -> Parting | None:
        if self.source.kind != "f":
            return super().parting
        return _FloatParting(attrs.evolve(self, stable=False), self.order)

    def reliable(self, done: set[str]) -> set[str]:
        """The steps of an earlier call that can be relied on: not partitions of floats, whose ties it has looked at."""
        parted = {f"run {run} " for run in parted_lines(done)} if self.source.kind == "f" else set[str]()
        return {step for step in done if step.startswith("run") and not step.startswith(tuple(parted))}


class _FloatParting(Parting):
    """Partitions floats, and sorts buckets, neither of which keeps the order of zeros and NaNs: those are noted, and
    written anew as they came. Raises Unbalanced where there are too many."""

    def __init__(self, work: SortElements, order: SortOrder) -> None:
        super().__init__(work, order)
        self._zeros: dict[int, Array] = {}  # the words of a piece's, by where it begins
        self._nans: dict[int, Array] = {}

    def to_parts(self, piece: Array, start: int, out: Array, pivots: Array) -> Indices:
        words = piece.view(f"u{piece.itemsize}")
        self._zeros[start] = words[piece == 0]
        if np.isnan(piece.max()):
            self._nans[start] = words[np.isnan(piece)]
        if sum(noted.size for noted in (*self._zeros.copy().values(), *self._nans.copy().values())) > _MOST_NOTED:
            raise Unbalanced
        return super().to_parts(piece, start, out, pivots)

    def to_bucket(self, piece: Array, out: Array) -> None:
        """All zeros are in one bucket, and all NaNs in one."""
        super().to_bucket(piece, out)
        words = out.view(f"u{out.itemsize}")
        for noted, are_such in ((self._zeros, out == 0), (self._nans, np.isnan(out))):
            if noted and are_such.any():
                words[are_such] = np.concatenate([noted[start] for start in sorted(noted)])
