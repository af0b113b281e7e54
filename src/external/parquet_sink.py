"""Writes a Parquet file of which several threads encode the row groups.

pyarrow encodes one piece after another. So each piece is encoded as a file of its own, in memory; its pages are then
appended to the file, and its row groups, whose positions are moved by as much, go to the one footer at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from .table_files import ParquetTable, TableFile
from .thrift import Items, Struct, read_struct, write_struct

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

_MAGIC = b"PAR1"
_WIDTHS = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}  # bytes of Parquet's physical types
_CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}  # metadata name to the name that pyarrow's writer takes

# Numbers of fields in the footer's structs.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _FIRST_OF_GROUP, _ORDINAL = 1, 5, 7
_FIRST_OF_CHUNK, _CHUNK = 2, 3
_PAGES_AND_INDICES = 9, 10, 11, 14  # of data, an index, a dictionary, a Bloom filter
_INDICES_OF_PAGES = 4, 6  # of offsets, of columns
_MOST_ORDINALS = 1 << 15


@attrs.frozen
class _Settings:
    """How pyarrow's writer is to encode; with `rows` in a row group, or as many as it likes."""

    schema: pa.Schema
    codecs: dict[str, str] | str
    words: list[str] | bool  # the columns that get a dictionary
    rows: int | None

    @classmethod
    def like(cls, table: TableFile) -> _Settings:
        """The compression, dictionaries and row group size of a source that is Parquet too; else pyarrow's own."""
        if not isinstance(table, ParquetTable) or not table.rows:
            return cls(table.schema, "snappy", True, None)
        chunks = list(table.chunks())
        codecs = {c.path_in_schema: _CODECS.get(c.compression, c.compression.lower()) for c in chunks}
        words = {c.path_in_schema for c in chunks if _is_worth_a_dictionary(c)}
        return cls(table.schema, codecs, sorted(words), max(1, table.metadata.row_group(0).num_rows))


def _is_worth_a_dictionary(chunk: parquet.ColumnChunkMetaData) -> bool:
    """Whether dictionary encoding saves space in this column. (By default the writer uses it for every column.)"""
    if not any("DICTIONARY" in encoding for encoding in chunk.encodings):
        return False
    width = _WIDTHS.get(chunk.physical_type)
    return width is None or chunk.total_uncompressed_size < chunk.num_values * width


@attrs.frozen(eq=False)
class _Encoded:
    """A Parquet file in memory: its pages, which begin behind the magic, and its footer."""

    pages: memoryview
    footer: Struct

    @classmethod
    def of(cls, settings: _Settings, table: pa.Table | None) -> _Encoded:
        import pyarrow as pa
        from pyarrow import parquet

        made = pa.BufferOutputStream()
        with parquet.ParquetWriter(
            made, settings.schema, compression=settings.codecs, use_dictionary=settings.words
        ) as writer:
            if table is not None:
                writer.write_table(table, settings.rows)
        whole = memoryview(made.getvalue())
        ends = len(whole) - len(_MAGIC) - 4
        footer = ends - int.from_bytes(whole[ends : ends + 4], "little")
        return cls(whole[len(_MAGIC) : footer], read_struct(bytes(whole[footer:ends])))


class ParquetSink:
    """Writes Parquet; with the compression, dictionaries and row group size of the source if that is Parquet too."""

    def __init__(self, path: Path, like: TableFile) -> None:
        self._settings = _Settings.like(like)
        self._footer = _Encoded.of(self._settings, None).footer
        self._groups: list[bytes] = []
        self._rows, self._end = 0, len(_MAGIC)
        self._file = path.open("wb", buffering=0)
        self._write(_MAGIC)

    def prepare(self, table: pa.Table) -> Callable[[], object]:
        return partial(self._append, _Encoded.of(self._settings, table))

    def _append(self, piece: _Encoded) -> None:
        self._write(piece.pages)
        for group in piece.footer.structs(_GROUPS):
            _move(group, self._end - len(_MAGIC), len(self._groups))
            self._groups.append(write_struct(group))
        self._rows += piece.footer.number(_ROWS)
        self._end += len(piece.pages)

    def _write(self, data: bytes | memoryview) -> None:
        left = memoryview(data)
        while left:  # Linux writes no more than 2 GiB by one call, and less where a signal strikes
            left = left[self._file.write(left) :]

    def close(self) -> None:
        try:
            self._footer.replace(_ROWS, self._rows)
            self._footer.replace(_GROUPS, Items.of_structs(self._groups))
            footer = write_struct(self._footer)
            self._write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
        finally:
            self._file.close()


def _move(group: Struct, by: int, ordinal: int) -> None:
    """Moves a row group's positions, and numbers it."""
    group.add(_FIRST_OF_GROUP, by)
    if _ORDINAL in group.fields:
        if ordinal < _MOST_ORDINALS:
            group.replace(_ORDINAL, ordinal)
        else:
            del group.fields[_ORDINAL]  # it has 16 bits, and need not be there
    for column in group.structs(_COLUMNS):
        for field in (_FIRST_OF_CHUNK, *_INDICES_OF_PAGES):
            column.add(field, by)
        chunk = column.struct(_CHUNK)
        for field in _PAGES_AND_INDICES:
            chunk.add(field, by)
