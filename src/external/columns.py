"""Adapters that let a table of one numeric column without nulls be sorted like a plain file of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .arrow_values import values_of
from .direct import Bytes
from .table_files import RowReader, TableFile
from .table_sinks import Sink

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnInput:
    """Reads the column as an input of Passes, sequentially."""

    def __init__(self, table: TableFile, dtype: np.dtype[Any]) -> None:
        self._rows, self._dtype = RowReader(table.batches(None)), dtype

    def read(self, buffer: Bytes, at: int, start: int, stop: int) -> int:
        size, end = self._dtype.itemsize, at
        for batch in self._rows.read(start // size, (stop - start) // size):
            numbers = values_of(batch.column(0)).view(np.uint8)
            buffer[end : end + numbers.size] = numbers
            end += numbers.size
        return at


@attrs.frozen(eq=False)
class ColumnOutput:
    """Writes the column as an output of Passes. It cannot be resumed, so sync() does nothing."""

    sink: Sink
    schema: pa.Schema

    def lead(self, offset: int) -> int:
        return 0

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        import pyarrow as pa

        kind = self.schema.types[0]
        numbers = pa.Array.from_buffers(kind, 8 * nbytes // kind.bit_width, [None, pa.py_buffer(buffer[:nbytes])])
        self.sink.prepare(pa.Table.from_arrays([numbers], schema=self.schema))()

    def sync(self) -> None:
        pass
