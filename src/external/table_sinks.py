"""Writers of tables, piece by piece: Arrow files, and argsort results as .npy or raw. For Parquet: parquet_sink.py."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

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


class IndicesSink:
    """Writes an argsort's row indices to an .npy or raw file."""

    def __init__(self, path: Path, target: Path, rows: int) -> None:
        self._file = path.open("wb")
        self._file.write(header_for(target, np.dtype(np.int64), rows))

    def prepare(self, table: pa.Table) -> Callable[[], object]:
        return partial(values_of(table[ROW_INDEX].combine_chunks()).tofile, self._file)

    def close(self) -> None:
        self._file.close()
