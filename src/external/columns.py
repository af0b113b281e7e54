"""Key columns of a table as numbers, and adapters by which these, and a table of one numeric column without nulls, are
sorted like a plain file of records or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.indices import SortOrder
from .arrow_values import key_dtypes, key_values, values_of
from .cuts import Array, Indices
from .direct import Bytes
from .order import KeyColumn, KeyOrder
from .parting import Parting, Unbalanced
from .runs import parted_lines
from .table_files import RowReader, TableFile
from .table_sinks import PyarrowSink
from .work import SortElements

_ROWS = 1 << 20  # decoded at a time
_PYARROW = 3 << 25  # bytes of pyarrow's own overhead
_MOST_NOTED = 1 << 21  # zeros and NaNs


def without_pyarrow(memory: int) -> int:
    """The part of the memory budget that is left to data."""
    return memory - min(memory // 2, _PYARROW)


@attrs.frozen(eq=False, slots=False)
class RowKeys:
    """The numbers that order the rows of a table."""

    table: TableFile
    by: tuple[str, ...]
    order: SortOrder

    @cached_property
    def null_columns(self) -> frozenset[str]:
        """The key columns that may have nulls."""
        return frozenset(name for name in self.by if self.table.may_be_null(name))

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Of a row's numbers, all ordered alike. Those of a column that may have nulls are preceded by what puts these
        last. Raises InvalidArgumentError for unknown columns, UnsupportedTypeError for types that have no order."""
        names = self.table.schema.names
        kinds = dict(zip(names, self.table.schema.types, strict=True))
        found = ", ".join(self.by) or "nothing"
        if not self.by or not set(self.by) <= set(kinds):
            raise InvalidArgumentError(f"by: expected one or more of {', '.join(kinds)}, found {found}")
        if any(names.count(name) > 1 for name in self.by):
            raise InvalidArgumentError(f"by: expected names of one column each, found {found} of {', '.join(names)}")
        fields: list[tuple[str, np.dtype[Any]]] = []
        for name in self.by:
            dtypes = key_dtypes(kinds[name])
            if not dtypes:
                raise UnsupportedTypeError(
                    f"by: cannot order the column {name!r} of {kinds[name]}; columns of bools, integers, floats, "
                    "decimals, dates, times, timestamps and durations can be: cast it to one, e.g. text to numbers"
                )
            nulls = [np.dtype(np.bool_)] if name in self.null_columns else []
            fields += [(f"{name} {number}", dtype) for number, dtype in enumerate([*nulls, *dtypes])]
        return np.dtype(fields)

    @property
    def count(self) -> int:
        return self.table.rows

    def opened(self) -> AbstractContextManager[KeyInput]:
        """The numbers of all rows as an input of Passes."""
        return nullcontext(KeyInput(self))

    @cached_property
    def lexicographic(self) -> KeyOrder:
        return KeyOrder([KeyColumn(self.dtype[name], self.order) for name in self.dtype.names or ()])

    def of(self, columns: Sequence[pa.Array]) -> list[Array]:
        """The numbers of some rows, of which these are the key columns."""
        found: list[Array] = []
        for name, column in zip(self.by, columns, strict=True):
            numbers = key_values(column)
            if name in self.null_columns:
                is_null = values_of(column.is_null())
                if column.null_count:
                    numbers = [np.where(is_null, np.zeros(1, values.dtype), values) for values in numbers]
                found.append(is_null if self.order is SortOrder.ASCENDING else ~is_null)
            found += numbers
        return found

    def records(self, batch: pa.RecordBatch) -> Bytes:
        """The same as records."""
        numbers = self.of([batch.column(name) for name in self.by])
        if len(numbers) == 1:
            return numbers[0].view(np.uint8)
        made = np.empty(batch.num_rows, self.dtype)
        for field, values in zip(self.dtype.names or (), numbers, strict=True):
            made[field] = values
        return made.view(np.uint8)


class KeyInput:
    """Reads rows' numbers as an input of Passes, in order; from the table's beginning again if it is to go back."""

    def __init__(self, keys: RowKeys) -> None:
        self._keys = keys
        self._rows, self._at = self._reader(), 0

    def _reader(self) -> RowReader:
        return RowReader(self._keys.table.batches(self._keys.by, _ROWS))

    def read(self, buffer: Bytes, start: int, stop: int) -> Bytes:
        if start < self._at:
            self._rows = self._reader()
        self._at = stop
        size, end = self._keys.dtype.itemsize, 0
        for batch in self._rows.read(start // size, (stop - start) // size):
            numbers = self._keys.records(batch)
            buffer[end : end + numbers.size] = numbers
            end += numbers.size
        return buffer[:end]

    def copied(self, start: int, stop: int) -> Bytes:
        """At most as many bytes, from near there. Raises Unbalanced."""
        size = self._keys.dtype.itemsize
        rows = self._keys.table.rows_near(start // size, (stop - start) // size, self._keys.by)
        return self._keys.records(rows).copy()  # it may be changed


@attrs.frozen(eq=False)
class ColumnOutput:
    """Writes the column as an output of Passes. It cannot be resumed, so sync() does nothing."""

    sink: PyarrowSink
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
