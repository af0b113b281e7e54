"""File formats by suffix, and the layout of .npy and raw files: dtype, count, offset; and .npy headers."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from tokenize import TokenError
from typing import Any, cast

import attrs
import numpy as np

from ..types.errors import InvalidArgumentError
from .direct import PAGE, DirectFile, whole_pages

# Of files that hold no raw elements, so that nobody wants them sorted, or written, as if they did.
_OTHERS = {
    ".npz", ".zip", ".gz", ".bz2", ".xz", ".zst", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".xlsx", ".h5", ".hdf5",
    ".orc", ".pkl",
}  # fmt: skip


class Format(Enum):
    """A file format, with its suffixes. Any other suffix is raw, also none."""

    NPY = (".npy",)
    PARQUET = (".parquet", ".pq")
    ARROW = (".arrow", ".feather", ".ipc")
    RAW = ("",)  # Python 3.11.2 makes another object of an empty tuple

    @property
    def is_table(self) -> bool:
        return self in (Format.PARQUET, Format.ARROW)

    @classmethod
    def of(cls, path: Path) -> Format:
        return next((found for found in cls if path.suffix.lower() in found.value), cls.RAW)


def require_known(name: str, path: Path) -> None:
    """Raises InvalidArgumentError for the suffix of a format that cannot be read or written, as .npz or .csv."""
    suffix = path.suffix.lower()
    if suffix in _OTHERS:
        raise InvalidArgumentError(
            f"{name}: {path}: {suffix} files are not supported; .npy, Parquet and Arrow files are, and raw elements, "
            "of a given dtype or under another suffix"
        )


@attrs.frozen
class Layout:
    """`count` elements of a dtype, from byte `start` of a file on."""

    source: Path
    dtype: np.dtype[Any]
    count: int
    start: int

    def opened(self) -> DirectFile:
        return DirectFile(self.source, base=self.start)


def layout_of(source: Path, dtype: np.dtype[Any] | None) -> Layout:
    """The layout of a .npy or raw file. `dtype` is required for raw files, and for no others. Raises
    InvalidArgumentError."""
    if Format.of(source) is Format.NPY:
        if dtype is not None:
            raise InvalidArgumentError(f"dtype: {source} says its own dtype; found {dtype}")
        return _npy_layout(source)
    if dtype is None:
        raise InvalidArgumentError(f"dtype: {source} is a raw file, whose dtype must be given, e.g. 'f4'")
    size = source.stat().st_size
    if dtype.itemsize == 0 or size % dtype.itemsize:
        raise InvalidArgumentError(
            f"source: {source} has {size} bytes, which is no multiple of {dtype}'s {dtype.itemsize}"
        )
    return Layout(source, dtype, size // dtype.itemsize, 0)


_LONGEST_HEADER, _READ_BY_DEFAULT = 1 << 20, 10_000  # bytes: here, and by NumPy; some hundred fields take more
# What NumPy raises of a header that is cut off or was never one: numbers too large, half a sentence, brackets in
# brackets, a dtype without its parts.
_BROKEN = ValueError, OverflowError, TypeError, LookupError, RecursionError, MemoryError, TokenError


def _npy_layout(source: Path) -> Layout:
    try:
        with np.errstate(over="ignore"):  # of a length beyond 64 bits, which NumPy then finds to be too long
            mapped = np.lib.format.open_memmap(source, "r", max_header_size=_LONGEST_HEADER)
    except _BROKEN as error:
        raise InvalidArgumentError(f"source: {source} is no whole .npy file of numbers or records: {error}") from error
    array = cast("np.memmap[tuple[int, ...], np.dtype[Any]]", mapped)
    if array.ndim != 1:
        raise InvalidArgumentError(f"source: expected an array of one dimension in {source}, found {array.shape}")
    found = Layout(source, array.dtype, array.size, array.offset)
    beyond = source.stat().st_size - found.start - array.nbytes
    if beyond:  # two arrays in one file, or a longer file that was partly overwritten
        raise InvalidArgumentError(
            f"source: {source} is no whole .npy file: behind the {found.count} elements of {found.dtype} that its "
            f"header tells of, found {beyond} more bytes"
        )
    return found


def header_for(target: Path, dtype: np.dtype[Any], count: int) -> bytes:
    """The file's header: for .npy padded to whole pages, so that elements are aligned for direct I/O and mappings,
    unless NumPy would refuse so long a one; empty for raw files."""
    if Format.of(target) is not Format.NPY:
        return b""
    try:
        described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
    except ValueError as error:  # np.save has no words for them either
        raise InvalidArgumentError(
            f"target: .npy files have no fields that overlap or are out of order: sort to a raw file, found {dtype}"
        ) from error
    text = repr(described).encode()
    is_long = len(text) + 13 > PAGE or not text.isascii()  # version 3 has a 32-bit length, and UTF-8
    lead = 12 if is_long else 10
    room = whole_pages(lead + len(text) + 1) - lead
    if room > _READ_BY_DEFAULT >= len(text) + 1:
        room = _READ_BY_DEFAULT
    version = np.lib.format.magic(3 if is_long else 1, 0)
    return version + room.to_bytes(lead - 8, "little") + text.ljust(room - 1) + b"\n"
