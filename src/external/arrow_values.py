"""Arrow's columns of numbers, bools and times as NumPy's arrays, and back, by their buffers: pyarrow's own conversions
import pandas where it is installed, which takes longer than to sort some million rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .cuts import Array, Indices

if TYPE_CHECKING:
    import pyarrow as pa

_DTYPES = {
    "bool": "?", "halffloat": "f2", "float": "f4", "double": "f8", "date32[day]": "M8[D]", "date64[ms]": "M8[ms]",
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """The NumPy dtype of a column; object if it is of no numbers, bools, dates, timestamps or durations."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return np.dtype(f"{'M' if pa.types.is_timestamp(kind) else 'm'}8[{kind.unit}]")
    return np.dtype(_DTYPES.get(str(kind), "O"))


def values_of(column: pa.Array) -> Array:
    """The values of a column that has a dtype, without a copy of most; undefined where they are null."""
    dtype, buffer, start, count = dtype_of(column.type), column.buffers()[1], column.offset, len(column)
    if buffer is None or not count:
        return np.zeros(count, dtype)
    held = memoryview(buffer)
    if dtype.kind == "b":
        bits = np.frombuffer(held, np.uint8)
        return np.unpackbits(bits, count=start + count, bitorder="little")[start:].view(np.bool_)
    if column.type.bit_width != 8 * dtype.itemsize:  # days, which Arrow has in 32 bits
        return np.frombuffer(held, np.int32, count, 4 * start).astype(np.int64).view(dtype)
    return np.frombuffer(held, dtype, count, start * dtype.itemsize)


def indices_array(indices: Indices) -> pa.Array:
    """Indices as Arrow's, without a copy."""
    import pyarrow as pa

    packed = np.ascontiguousarray(indices, np.int64)
    return pa.Array.from_buffers(pa.int64(), packed.size, [None, pa.py_buffer(packed)])
