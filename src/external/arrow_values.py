"""Arrow's columns of numbers, bools, times and decimals as NumPy's arrays, and back, by their buffers: pyarrow's own
conversions import pandas where it is installed, which takes longer than to sort some million rows. And rows of a table,
also where pyarrow has no kernel for a column's type: polars writes text as string views."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ..types.dtypes import is_ordered
from ..types.errors import GpusortError, InvalidArgumentError, UnsupportedTypeError
from .cuts import Array, Indices

_WORD = 64  # bits

_DTYPES = {
    "bool": "?", "halffloat": "f2", "float": "f4", "double": "f8", "date32[day]": "M8[D]", "date64[ms]": "M8[ms]",
    "time32[s]": "i4", "time32[ms]": "i4", "time64[us]": "i8", "time64[ns]": "i8",
    **{f"{sign}int{bits}": f"{sign or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """The NumPy dtype of a column; object if it is of no numbers, bools, dates, timestamps, durations or times of day,
    which are integers."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return np.dtype(f"{'M' if pa.types.is_timestamp(kind) else 'm'}8[{kind.unit}]")
    return np.dtype(_DTYPES.get(str(kind), "O"))


def key_dtypes(kind: pa.DataType) -> list[np.dtype[Any]]:
    """The dtypes of the numbers that order a column, the most significant first; none if it has no order here. Decimals
    are integers, of 64 bits in a word."""
    if pa.types.is_decimal(kind):
        if kind.bit_width <= _WORD:
            return [np.dtype(f"i{kind.bit_width // 8}")]
        return [np.dtype(np.int64), *[np.dtype(np.uint64)] * (kind.bit_width // _WORD - 1)]
    dtype = dtype_of(kind)
    return [dtype] if is_ordered(dtype) else []


def key_values(column: pa.Array) -> list[Array]:
    """Those numbers; undefined where they are null."""
    if not pa.types.is_decimal(column.type):
        return [values_of(column)]
    dtypes, buffer, start, count = key_dtypes(column.type), column.buffers()[1], column.offset, len(column)
    if buffer is None or not count:
        return [np.zeros(count, dtype) for dtype in dtypes]
    size = dtypes[0].itemsize
    words = np.frombuffer(memoryview(buffer), f"<i{size}", count * len(dtypes), start * len(dtypes) * size)
    least_first = words.reshape(count, len(dtypes)).T
    return [word.view(f"<{dtype.kind}{size}") for word, dtype in zip(least_first[::-1], dtypes, strict=True)]


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


def take_rows(table: pa.Table, indices: Indices) -> pa.Table:
    """The table's rows at some indices, column by column, so that only one is there in chunks and as a whole. Views of
    text and bytes are copied to arrays of them and back."""
    packed = np.ascontiguousarray(indices, np.int64)
    places = pa.Array.from_buffers(pa.int64(), packed.size, [None, pa.py_buffer(packed)])
    taken: list[pa.Array] = []
    for column in table.columns:
        kind = _without_views(column.type)
        if column.type == kind:
            taken.append(column.combine_chunks().take(places))
        else:
            rows = column.cast(kind).combine_chunks().take(places)
            # pyarrow 23 to 25 end the process where keys of maps have bits that say that none is null; a copy has none.
            copied = pa.concat_arrays([rows]) if "map<" in str(kind) else rows
            taken.append(copied.cast(column.type))
    return pa.Table.from_arrays(taken, schema=table.schema)


def bytes_of(batch: pa.RecordBatch) -> int:
    """The bytes that a batch holds. Of views, whose bytes pyarrow before 24 does not tell, what the same text takes
    without."""
    return sum(map(_bytes_of_column, batch.columns))


def _bytes_of_column(column: pa.Array) -> int:
    try:
        return column.nbytes
    except TypeError:
        kind = _without_views(column.type)
        return column.get_total_buffer_size() if kind == column.type else column.cast(kind).nbytes


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type that holds the same elements without views; itself if there are none in it."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    fields = [kind.field(number) for number in range(kind.num_fields)]
    plain = [field.with_type(_without_views(field.type)) for field in fields]
    if plain == fields:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(plain)
    if pa.types.is_map(kind):
        entry = plain[0].type
        return pa.map_(entry.field(0), entry.field(1), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(plain[0])
    if pa.types.is_large_list(kind):
        return pa.large_list(plain[0])
    return pa.list_(plain[0], kind.list_size) if pa.types.is_fixed_size_list(kind) else kind


@contextmanager
def naming_pyarrow(source: object) -> Generator[None, None, None]:
    """Translates what pyarrow has no code for to UnsupportedTypeError, and what it cannot read, which it gives as an
    OSError that the system has no number for, to InvalidArgumentError."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedTypeError(
            f"source: pyarrow {pa.__version__} cannot sort or write some column of {source}: {error}; cast such "
            "columns to another type, or leave them out"
        ) from error
    except OSError as error:
        if error.errno is not None or isinstance(error, GpusortError):
            raise
        raise InvalidArgumentError(f"source: {source}, or what was made of it, is damaged: {error}") from error
