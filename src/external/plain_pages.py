"""Encodes a column of numbers without nulls as plain Parquet pages: a copy and the compression are all there is to do.

pyarrow's writer takes three times as long for it, as it also looks at each number's definition level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from .cuts import Array
from .thrift import TRUE, Items, Struct, Value, write_struct

if TYPE_CHECKING:
    import pyarrow as pa

_PAGE = 1 << 20  # bytes of numbers in a page
_PLAIN, _LEVELS = 0, 3  # encodings: of numbers, and of definition levels (RLE)
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12  # kinds of Thrift's fields
_ENCODINGS, _VALUES, _LONG, _SHORT, _FIRST, _STATISTICS, _PAGES = 2, 5, 6, 7, 9, 12, 13  # fields of a column's metadata
_CODEC, _DICTIONARY = 4, 11
_OF_OTHER_PAGES = 10, _DICTIONARY, 14, 15, 16  # an index, a dictionary, a Bloom filter, the sizes of levels
_CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_DTYPES = {"float": "<f4", "double": "<f8", "uint32": "<u4", "uint64": "<u8"}  # the others are signed integers
_KINDS = {
    "int32", "int64", "uint32", "uint64", "float", "double", "date32[day]", "time32[ms]", "time64[us]", "time64[ns]",
    *(f"timestamp[{unit}{zone}" for unit in ("ms", "us", "ns") for zone in ("]", ", tz=")),
}  # fmt: skip  # whose numbers Parquet has as they lie in memory


def is_plain(kind: pa.DataType) -> bool:
    """Whether Parquet has a column's numbers as they lie in memory."""
    name = str(kind)
    return name in _KINDS or name.partition("tz=")[0] + "tz=" in _KINDS


def can_write(like: Struct) -> bool:
    """Whether a column like that has no dictionary, and a codec that is known here."""
    return _DICTIONARY not in like.fields and like.number(_CODEC) in _CODECS


@attrs.frozen
class PlainChunk:
    """A column's pages for a row group: headers and what follows them, by turns; and its metadata but for positions."""

    parts: list[bytes | memoryview]
    metadata: Struct
    long: int  # bytes, before compression
    short: int

    @classmethod
    def of(cls, column: pa.Array, like: Struct, *, is_nullable: bool) -> PlainChunk:
        """`like` is the metadata that pyarrow wrote for some other numbers of the column."""
        import pyarrow as pa

        name = _CODECS[like.number(_CODEC)]
        codec = None if name is None else pa.Codec(name)
        values = _as_stored(column)
        step = _PAGE // values.itemsize
        parts: list[bytes | memoryview] = []
        long = short = 0
        for start in range(0, values.size, step):
            some = values[start : start + step]
            page = np.concatenate([_levels(some.size, is_nullable), some.view(np.uint8)])
            # A slice, as the buffer itself shows the size that it had before it was cut off.
            given = pa.py_buffer(page)
            made = memoryview(given if codec is None else codec.compress(given).slice())
            header = _header(some.size, page.nbytes, made.nbytes)
            parts += [header, made]
            long += len(header) + page.nbytes
            short += len(header) + made.nbytes
        fields = {field: value for field, value in like.fields.items() if field not in _OF_OTHER_PAGES}
        count = len(parts) // 2
        fields |= {
            _ENCODINGS: (_LIST, Items(_I32, [_PLAIN, _LEVELS])),
            _VALUES: (_I64, values.size), _LONG: (_I64, long), _SHORT: (_I64, short),
            _STATISTICS: (_STRUCT, _statistics(values)),
            _PAGES: (_LIST, Items(_STRUCT, [Struct({1: (_I32, 0), 2: (_I32, _PLAIN), 3: (_I32, count)})])),
        }  # fmt: skip
        return cls(parts, Struct(fields), long, short)

    def metadata_at(self, first: int) -> Struct:
        """The metadata of a column whose first page is at a position."""
        return Struct({**self.metadata.fields, _FIRST: (_I64, first)})


def _as_stored(column: pa.Array) -> Array:
    """The numbers, as Parquet orders them."""
    width, buffer = column.type.bit_width // 8, column.buffers()[1]
    dtype = np.dtype(_DTYPES.get(str(column.type), f"i{width}"))
    if buffer is None:
        return np.zeros(0, dtype)
    return np.frombuffer(memoryview(buffer), dtype, len(column), column.offset * width)


def _levels(count: int, is_nullable: bool) -> Array:
    """Of so many elements that are there: one run of ones, behind its length."""
    if not is_nullable:
        return np.zeros(0, np.uint8)
    run, left = bytearray(), count << 1
    while left > 0x7F:
        run.append(left & 0x7F | 0x80)
        left >>= 7
    run += bytes((left, 1))
    return np.frombuffer(len(run).to_bytes(4, "little") + run, np.uint8)


def _header(count: int, long: int, short: int) -> bytes:
    data = Struct({1: (_I32, count), 2: (_I32, _PLAIN), 3: (_I32, _LEVELS), 4: (_I32, _LEVELS)})
    return write_struct(Struct({1: (_I32, 0), 2: (_I32, long), 3: (_I32, short), 5: (_STRUCT, data)}))


def _statistics(numbers: Array) -> Struct:
    """No nulls, and the extremes but for NaNs; where one is zero, of the sign that is farther out."""
    fields: dict[int, tuple[int, Value]] = {3: (_I64, 0)}
    if numbers.dtype.kind == "f" and numbers.size and np.isnan(numbers.max()):
        numbers = numbers[~np.isnan(numbers)]
    if numbers.size:
        least, most = numbers.min(), numbers.max()
        if numbers.dtype.kind == "f":
            least, most = least if least else -abs(least), most if most else abs(most)
        fields |= {5: (_BINARY, most.tobytes()), 6: (_BINARY, least.tobytes()), 7: (TRUE, b""), 8: (TRUE, b"")}
    return Struct(fields)
