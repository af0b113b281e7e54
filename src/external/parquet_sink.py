"""Writes a Parquet file of which several threads encode the row groups.

pyarrow encodes one after another. So each row group is encoded as a file of its own, in memory; its pages are then
appended to the file, and its metadata, with positions moved by as much, goes to the one footer at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .parquet_encode import CHUNK, COLUMNS, GROUPS, MAGIC, Encoding, RowGroup
from .table_files import TableFile
from .thrift import Items, Struct, write_struct

if TYPE_CHECKING:
    import pyarrow as pa

# Numbers of fields in the footer's structs.
_ROWS, _ROWS_OF_GROUP = 3, 3
_FIRST_OF_GROUP, _ORDINAL = 5, 7
_FIRST_OF_CHUNK, _INDICES = 2, (4, 6)  # of offsets, of columns
_PAGES = 9, 10, 11, 14  # of data, an index, a dictionary, a Bloom filter


class ParquetSink:
    """Writes Parquet; with the compression, dictionaries and row group size of the source if that is Parquet too."""

    def __init__(self, path: Path, like: TableFile) -> None:
        self._encoding = Encoding.like(like)
        self._groups: list[bytes] = []
        self._rows, self._end = 0, 0
        self._file = path.open("wb", buffering=0)
        self._write([MAGIC])

    def prepare(self, table: pa.Table) -> Callable[[], object]:
        return partial(self._append, self._encoding.groups(table))

    def _append(self, groups: Sequence[RowGroup]) -> None:
        for group in groups:
            _move(group.metadata, self._end - len(MAGIC))
            self._groups.append(write_struct(group.metadata))
            self._rows += group.metadata.number(_ROWS_OF_GROUP)
            self._write(group.parts)

    def _write(self, parts: Sequence[bytes | memoryview]) -> None:
        for part in parts:
            self._end += len(part)
            left = memoryview(part)
            while left:  # one call may write less
                left = left[self._file.write(left) :]

    def close(self) -> None:
        try:
            footer = self._encoding.footer
            footer.replace(_ROWS, self._rows)
            footer.replace(GROUPS, Items.of_structs(self._groups))
            made = write_struct(footer)
            self._write([made, len(made).to_bytes(4, "little"), MAGIC])
        finally:
            self._file.close()


def _move(group: Struct, by: int) -> None:
    """Moves a row group's positions. Its number, which need not be there, is left out."""
    group.fields.pop(_ORDINAL, None)
    group.add(_FIRST_OF_GROUP, by)
    for column in group.structs(COLUMNS):
        for field in (_FIRST_OF_CHUNK, *_INDICES):
            column.add(field, by)
        chunk = column.struct(CHUNK)
        for field in _PAGES:
            chunk.add(field, by)
