"""A table of one column of numbers, none of them null: elements that are decoded as they are read, and encoded as they
are written. Nothing is taken along, so they are sorted as those of other files are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from .direct import Bytes
from .table_files import RowReader, Sink, TableFile

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnGiven:
    """The numbers of a table, from its start on."""

    def __init__(self, table: TableFile, dtype: np.dtype[Any]) -> None:
        self._rows, self._dtype = RowReader(table.batches(None)), dtype

    def read(self, buffer: Bytes, at: int, start: int, stop: int) -> int:
        size, end = self._dtype.itemsize, at
        for batch in self._rows.read(start // size, (stop - start) // size):
            numbers = batch.column(0).to_numpy(zero_copy_only=False).view(np.uint8)
            buffer[end : end + numbers.size] = numbers
            end += numbers.size
        return at


@attrs.frozen(eq=False)
class ColumnMade:
    """The numbers of a table being written. It cannot be gone on with, so nothing of it is waited for."""

    sink: Sink
    schema: pa.Schema

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        import pyarrow as pa

        kind = self.schema.types[0]
        numbers = pa.Array.from_buffers(kind, 8 * nbytes // kind.bit_width, [None, pa.py_buffer(buffer[:nbytes])])
        self.sink.write(pa.Table.from_arrays([numbers], schema=self.schema))

    def sync(self) -> None:
        pass
