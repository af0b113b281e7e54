"""Writers of tables, piece by piece: Parquet and Arrow files."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import attrs
import pyarrow as pa
from pyarrow import parquet

from .direct import naming
from .table_files import ParquetTable, TableFile

_WIDTHS = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}  # bytes of Parquet's physical types
_CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}  # metadata name to the name that pyarrow's writer takes
_USUAL_ROWS = 1 << 20
_LEAST_ROWS = 1000  # in a row group: with fewer the footer takes longer than the rows


@attrs.frozen(eq=False)
class PyarrowSink(AbstractContextManager["PyarrowSink"]):
    """Writes tables by a writer of pyarrow's, in batches or row groups of at most `rows` rows. As a context manager it
    closes the file; where the block has failed, it may fail to."""

    path: Path
    file: pa.NativeFile
    writer: pa.ipc.RecordBatchFileWriter | parquet.ParquetWriter
    rows: int | None

    @classmethod
    def of_arrow(cls, path: Path, schema: pa.Schema, rows: int | None = None, mode: str = "wb") -> PyarrowSink:
        """To an Arrow IPC file, which with mode "ab" follows others in the same file."""
        file = pa.OSFile(os.fsencode(path), mode)
        return cls(path, file, pa.ipc.new_file(file, schema), rows)

    @classmethod
    def of_parquet(cls, path: Path, like: TableFile) -> PyarrowSink:
        """To a Parquet file; with the compression, dictionaries and row group size of the source if that is Parquet
        too, else pyarrow's own."""
        codecs: dict[str, str] | str = "snappy"
        words: list[str] | bool = True
        rows = _USUAL_ROWS
        if isinstance(like, ParquetTable) and like.rows:
            chunks = list(like.chunks())
            codecs = {c.path_in_schema: _CODECS.get(c.compression, c.compression.lower()) for c in chunks}
            words = sorted({c.path_in_schema for c in chunks if _is_worth_a_dictionary(c)})
            rows = max(_LEAST_ROWS, like.metadata.row_group(0).num_rows)
        file = pa.OSFile(os.fsencode(path), "wb")
        writer = parquet.ParquetWriter(file, like.schema, compression=codecs, use_dictionary=words)
        return cls(path, file, writer, rows)

    def write(self, table: pa.Table) -> None:
        with naming(self.path):
            self.writer.write_table(table, self.rows)
        _start_writing(self.path)  # so that the fsync at the end finds little left

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(*([] if kind is None else [Exception])), self.file:
            self.writer.close()


def _start_writing(path: Path) -> None:
    """Starts the disk on what the system holds of a file, without waiting. The file is opened anew, since pyarrow
    before 25 does not tell its descriptor. Only a hint: that somebody removed the file is found at the end."""
    if sys.platform == "linux":
        with suppress(OSError):
            descriptor = os.open(path, os.O_WRONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def _is_worth_a_dictionary(chunk: parquet.ColumnChunkMetaData) -> bool:
    """Whether dictionary encoding saves space in this column. (By default the writer uses it for every column.)"""
    if not any("DICTIONARY" in encoding for encoding in chunk.encodings):
        return False
    width, statistics = _WIDTHS.get(chunk.physical_type), chunk.statistics
    nulls = 0 if statistics is None else statistics.null_count or 0
    return width is None or chunk.total_uncompressed_size < (chunk.num_values - nulls) * width
