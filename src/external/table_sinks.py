"""Writers of tables, piece by piece: Arrow files, and argsort results as .npy or raw. For Parquet: parquet_sink.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs
import numpy as np

from .arrow_values import values_of
from .formats import header_for

if TYPE_CHECKING:
    import pyarrow as pa

ROW_INDEX = "row index"


class Sink(Protocol):
    """A writer of a table, piece by piece."""

    def prepare(self, table: pa.Table, /) -> Callable[[], object]:
        """Does of the writing what several threads may do at once. What it returns writes the piece, in its turn."""
        ...

    def close(self) -> None: ...


@contextmanager
def closing(sink: Sink) -> Generator[Sink, None, None]:
    """Closes a writer. After an exception in the block, errors of close() are suppressed."""
    try:
        yield sink
    except BaseException:
        with suppress(Exception):
            sink.close()
        raise
    sink.close()


class ArrowSink:
    """Writes an Arrow IPC file, in record batches of at most `rows` rows."""

    def __init__(self, path: Path, schema: pa.Schema, rows: int | None = None) -> None:
        import pyarrow as pa

        self._file, self._rows = pa.OSFile(str(path), "wb"), rows
        self._writer = pa.ipc.new_file(self._file, schema)

    def prepare(self, table: pa.Table) -> Callable[[], object]:
        return partial(self._writer.write_table, table, self._rows)

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._file.close()


@attrs.define
class IndicesSink:
    """Writes an argsort's row indices to an .npy or raw file."""

    path: Path
    target: Path
    rows: int

    def __attrs_post_init__(self) -> None:
        self.path.write_bytes(header_for(self.target, np.dtype(np.int64), self.rows))

    def prepare(self, table: pa.Table) -> Callable[[], object]:
        return partial(self._write, table)

    def _write(self, table: pa.Table) -> None:
        with self.path.open("ab") as file:
            values_of(table[ROW_INDEX].combine_chunks()).tofile(file)

    def close(self) -> None:
        pass


def sync_file(path: Path) -> None:
    """fsyncs a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
