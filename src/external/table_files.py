"""Streaming readers of Parquet and Arrow files, and of runs, which are Arrow files too."""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyarrow import parquet

from ..types.errors import FileChangedError, InvalidArgumentError
from .arrow_values import naming_pyarrow
from .formats import Format
from .parting import Unbalanced

_BATCH = 1 << 16  # rows decoded at a time
_LONG = 1 << 24  # bytes of a record batch from which on it is read through the mapping; of a row group that is long
_FEW_GROUPS = 16  # that are decoded for a sample


class ParquetTable:
    """A Parquet file, streamed page by page rather than by whole row groups."""

    def __init__(self, path: Path) -> None:
        self._file = parquet.ParquetFile(pa.OSFile(os.fsencode(path)), buffer_size=1 << 20, pre_buffer=False)
        self.metadata = self._file.metadata
        self.schema = self._file.schema_arrow
        self.rows = self.metadata.num_rows
        self._groups = [self.metadata.row_group(number) for number in range(self.metadata.num_row_groups)]
        self._decoded = lru_cache(maxsize=1)(self._decode)

    def _decode(self, group: int, columns: tuple[str, ...]) -> pa.RecordBatch:
        return self._file.read_row_group(group, list(columns)).combine_chunks().to_batches()[0]

    @property
    def nbytes(self) -> int:
        """Of all rows, encoded but not compressed."""
        return sum(group.total_byte_size for group in self._groups)

    def may_be_null(self, column: str) -> bool:
        found = [chunk.statistics for chunk in self.chunks() if chunk.path_in_schema == column]
        return any(of_chunk is None or of_chunk.null_count != 0 for of_chunk in found)

    def batches(self, columns: Sequence[str] | None, rows: int = _BATCH) -> Iterator[pa.RecordBatch]:
        """All rows in order, so many at most at a time, of some columns, or of all (None)."""
        return self._file.iter_batches(rows, columns=columns)

    def rows_near(self, row: int, count: int, columns: tuple[str, ...]) -> pa.RecordBatch:
        """At most as many rows of some columns, for a sample, of the one of a few row groups that is nearest, which is
        decoded as a whole. Raises Unbalanced if some are long."""
        if any(group.total_byte_size > _LONG for group in self._groups):
            raise Unbalanced
        some = [number for number, group in enumerate(self._groups) if group.num_rows]
        few = some[:: -(-len(some) // _FEW_GROUPS)]
        group, part = divmod(row * len(few), self.rows)
        rows = self._decoded(few[group], columns)
        return rows.slice(max(0, min(part * rows.num_rows // self.rows, rows.num_rows - count)), count)

    def chunks(self) -> Iterator[parquet.ColumnChunkMetaData]:
        for group in self._groups:
            yield from map(group.column, range(group.num_columns))


class ArrowTable:
    """An Arrow IPC file. Long record batches are read in slices through a memory mapping, whose pages are then dropped;
    short and compressed ones by plain reads. A mapping of a file that is truncated kills the process (SIGBUS): so
    slices are copied, each right after a look at the file's size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            memory = pa.py_buffer(self._map)
            opened = pa.ipc.open_file(pa.BufferReader(memory))
        except ValueError as error:  # ArrowInvalid is a ValueError; so is mapping an empty file
            raise InvalidArgumentError(f"source: {path} is no Arrow file: {error}") from error
        self._read = pa.ipc.open_file(pa.OSFile(os.fsencode(path)))
        self._read_again = lru_cache(maxsize=1)(self._read.get_batch)
        self.schema, self.rows, self.nbytes = opened.schema, 0, 0
        self._starts, self._with_nulls = list[int](), set[str]()
        self._mapped: list[pa.RecordBatch | None] = []  # None for one that is compressed: it is unpacked into memory
        for batch in map(opened.get_batch, range(opened.num_record_batches)):
            self._starts.append(self.rows)
            self.rows += batch.num_rows
            self.nbytes += batch.get_total_buffer_size()
            columns = zip(self.schema.names, batch.columns, strict=True)
            self._with_nulls.update(name for name, column in columns if column.null_count)
            self._mapped.append(batch if _lies_in(memory, batch) else None)

    def may_be_null(self, column: str) -> bool:
        return column in self._with_nulls

    def rows_near(self, row: int, count: int, columns: tuple[str, ...]) -> pa.RecordBatch:
        """At most as many rows of the batch that holds one, for a sample."""
        at = bisect_right(self._starts, row) - 1
        batch = self._mapped[at] or self._read_again(at)
        return self._copied(batch.select(list(columns)).slice(row - self._starts[at], count))

    def batches(self, columns: Sequence[str] | None, rows: int = _BATCH) -> Iterator[pa.RecordBatch]:
        for number, mapped in enumerate(self._mapped):
            is_long = mapped is not None and mapped.get_total_buffer_size() > _LONG
            batch = mapped if mapped is not None and is_long else self._read.get_batch(number)
            if columns is not None:
                batch = pa.RecordBatch.from_arrays([batch.column(name) for name in columns], list(columns))
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                yield self._copied(part) if is_long else part
                if is_long:
                    self._map.madvise(mmap.MADV_DONTNEED)

    def _copied(self, part: pa.RecordBatch) -> pa.RecordBatch:
        """A slice of the mapping in memory of its own. Raises FileChangedError if the file has become shorter."""
        if self._path.stat().st_size < len(self._map):
            raise FileChangedError(f"source: {self._path} has become shorter while it was being sorted")
        return _copied(part)


TableFile: TypeAlias = ParquetTable | ArrowTable


def _lies_in(memory: pa.Buffer, batch: pa.RecordBatch) -> bool:
    """Whether all that a batch holds is in some memory."""
    held = [buffer for column in batch.columns for buffer in column.buffers() if buffer is not None and buffer.size]
    return all(memory.address <= buffer.address < memory.address + memory.size for buffer in held)


def _copied(part: pa.RecordBatch) -> pa.RecordBatch:
    """A slice of a batch in memory of its own."""
    copied = [pa.concat_arrays([column, column.slice(0, 0)]) for column in part.columns]
    return pa.RecordBatch.from_arrays(copied, schema=part.schema)


def open_table(path: Path) -> TableFile:
    """Opens a table by its suffix. Raises InvalidArgumentError if it is not one."""
    with naming_pyarrow(path):
        if Format.of(path) is Format.ARROW:
            return ArrowTable(path)
        try:
            return ParquetTable(path)
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(f"source: {path} is no Parquet file: {error}") from error


class RowReader:
    """Reads ranges of rows, in ascending order, from a stream of record batches; rows in between are skipped."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None
        self._at = 0

    def read(self, start: int, count: int) -> Iterator[pa.RecordBatch]:
        while count > 0:
            batch = next(self._batches, None) if self._rest is None else self._rest
            if batch is None:  # pyarrow ends early where the file does
                raise FileChangedError("source: it has become shorter while it was being sorted")
            part = batch.slice(min(start - self._at, batch.num_rows), count)
            used = min(start - self._at, batch.num_rows) + part.num_rows
            self._rest = batch.slice(used) if used < batch.num_rows else None
            self._at += used
            start, count = start + part.num_rows, count - part.num_rows
            if part.num_rows:
                yield part


class ArrowRun:
    """A run: an Arrow file in record batches of a fixed number of rows, for random access. It ends at a byte of the one
    file that all runs lie in: of a large table there are more than files may be open."""

    def __init__(self, file: pa.NativeFile, end: int, batch: int, keys: Sequence[str]) -> None:
        self._batch, self._rows = batch, pa.ipc.open_file(file, end)
        fields = [i for i, name in enumerate(self._rows.schema.names) if name in keys]
        self._keys = pa.ipc.open_file(file, end, options=pa.ipc.IpcReadOptions(included_fields=fields))

    def read(self, start: int, stop: int, *, of_keys: bool = False) -> list[pa.RecordBatch]:
        """Rows start..stop, not empty; of the key columns only, or of all."""
        reader = self._keys if of_keys else self._rows
        found: list[pa.RecordBatch] = []
        for at in range(start // self._batch * self._batch, stop, self._batch):
            first = max(start - at, 0)
            whole = reader.get_batch(at // self._batch)
            part = whole.slice(first, min(stop - at, self._batch) - first)
            found.append(part if part.num_rows == whole.num_rows else _copied(part))  # else all of it stays in memory
        return found
