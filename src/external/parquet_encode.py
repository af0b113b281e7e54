"""Encodes row groups of a Parquet file, in memory: columns of plain numbers here, the others by pyarrow."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from .plain_pages import PlainChunk, can_write, is_plain
from .table_files import ParquetTable, TableFile
from .thrift import Items, Struct, Value, read_struct

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

MAGIC = b"PAR1"
_WIDTHS = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}  # bytes of Parquet's physical types
_CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}  # metadata name to the name that pyarrow's writer takes
_USUAL_ROWS = 1 << 20
_LEAST_ROWS = 1000  # in a row group: with fewer the footer takes longer than the rows

# Numbers of fields in the footer's structs, and their kinds.
GROUPS, COLUMNS, CHUNK = 4, 1, 3
_LONG, _ROWS, _FIRST, _SHORT = 2, 3, 5, 6
_PATH = 3
_I64, _LIST, _STRUCT = 6, 9, 12


@attrs.frozen(eq=False)
class RowGroup:
    """What is to be written, and its metadata as if it began behind a file's magic."""

    parts: list[bytes | memoryview]
    metadata: Struct


@attrs.frozen(eq=False, slots=False)
class Encoding:
    """How a table is encoded."""

    schema: pa.Schema
    codecs: dict[str, str] | str
    words: list[str] | bool  # the columns that get a dictionary
    rows: int  # in a row group, at most

    @classmethod
    def like(cls, table: TableFile) -> Encoding:
        """The compression, dictionaries and row group size of a source that is Parquet too; else pyarrow's own."""
        if not isinstance(table, ParquetTable) or not table.rows:
            return cls(table.schema, "snappy", True, _USUAL_ROWS)
        chunks = list(table.chunks())
        codecs = {c.path_in_schema: _CODECS.get(c.compression, c.compression.lower()) for c in chunks}
        words = {c.path_in_schema for c in chunks if _is_worth_a_dictionary(c)}
        return cls(table.schema, codecs, sorted(words), max(_LEAST_ROWS, table.metadata.row_group(0).num_rows))

    def groups(self, table: pa.Table) -> list[RowGroup]:
        return [self._group(table.slice(start, self.rows)) for start in range(0, table.num_rows, self.rows)]

    @cached_property
    def footer(self) -> Struct:
        """Of a file without rows."""
        import pyarrow as pa

        # Not by `empty_table`, which imports pandas.
        return self._by_pyarrow(pa.Table.from_batches([], schema=self.schema))[1]

    @cached_property
    def _plain(self) -> dict[str, Struct]:
        """The columns of plain numbers, and pyarrow's metadata of one number of each."""
        names, numbers = self.schema.names, _zeros(self.schema)
        if len(set(names)) < len(names) or not numbers.num_columns:
            return {}
        group = self._by_pyarrow(numbers)[1].structs(GROUPS)[0]
        found = zip(numbers.column_names, (column.struct(CHUNK) for column in group.structs(COLUMNS)), strict=True)
        return {name: like for name, like in found if can_write(like)}

    def _group(self, table: pa.Table) -> RowGroup:
        plain = {name: like for name, like in self._plain.items() if not table[name].null_count}
        others = [name for name in self.schema.names if name not in plain] if plain else None
        if others is None:
            pages, footer = self._by_pyarrow(table)
            return RowGroup([pages], footer.structs(GROUPS)[0])
        parts: list[bytes | memoryview] = []
        columns: dict[str, list[Struct]] = {name: [] for name in self.schema.names}  # in the schema's order
        long = short = 0
        if others:
            pages, footer = self._by_pyarrow(table.select(others))
            group = footer.structs(GROUPS)[0]
            parts.append(pages)
            long, short = group.number(_LONG), group.number(_SHORT)
            for column in group.structs(COLUMNS):
                columns[column.struct(CHUNK).texts(_PATH)[0]].append(column)
        at = len(MAGIC) + sum(map(len, parts))
        for name, like in plain.items():
            chunk = PlainChunk.of(table[name].combine_chunks(), like, is_nullable=self.schema.field(name).nullable)
            columns[name] = [Struct({2: (_I64, 0), CHUNK: (_STRUCT, chunk.metadata_at(at))})]
            parts += chunk.parts
            at, long, short = at + chunk.short, long + chunk.long, short + chunk.short
        fields: dict[int, tuple[int, Value]] = {
            COLUMNS: (_LIST, Items(_STRUCT, [column for name in columns for column in columns[name]])),
            _LONG: (_I64, long), _ROWS: (_I64, table.num_rows), _FIRST: (_I64, len(MAGIC)), _SHORT: (_I64, short),
        }  # fmt: skip
        return RowGroup(parts, Struct(fields))

    def _by_pyarrow(self, table: pa.Table) -> tuple[memoryview, Struct]:
        """The pages of one row group, and the footer of a file that has them behind its magic."""
        import pyarrow as pa
        from pyarrow import parquet

        made = pa.BufferOutputStream()
        with parquet.ParquetWriter(made, table.schema, compression=self.codecs, use_dictionary=self.words) as writer:
            if table.num_rows:
                writer.write_table(table, table.num_rows)
        whole = memoryview(made.getvalue())
        ends = len(whole) - len(MAGIC) - 4
        footer = ends - int.from_bytes(whole[ends : ends + 4], "little")
        return whole[len(MAGIC) : footer], read_struct(bytes(whole[footer:ends]))


def _zeros(schema: pa.Schema) -> pa.Table:
    """A zero for each column of plain numbers."""
    import pyarrow as pa

    fields = [schema.field(i) for i, kind in enumerate(schema.types) if is_plain(kind)]
    zero = pa.py_buffer(np.zeros(8, np.uint8))
    arrays = [pa.Array.from_buffers(field.type, 1, [None, zero]) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _is_worth_a_dictionary(chunk: parquet.ColumnChunkMetaData) -> bool:
    """Whether dictionary encoding saves space in this column. (By default the writer uses it for every column.)"""
    if not any("DICTIONARY" in encoding for encoding in chunk.encodings):
        return False
    width = _WIDTHS.get(chunk.physical_type)
    return width is None or chunk.total_uncompressed_size < chunk.num_values * width
