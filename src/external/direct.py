"""Whole-page reads and writes past the page cache, where the file system allows that.

Data that is read once and written once gains nothing from the cache, and would drive everybody else's out of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from .cuts import Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

PAGE = 4096
_SLICE = 1 << 26  # bytes of one read or write: a call that can be waited for
_DIRECT: int = getattr(os, "O_DIRECT", 0)


def whole_pages(nbytes: int) -> int:
    return -(-nbytes // PAGE) * PAGE


def buffer_for(nbytes: int) -> Bytes:
    """Memory that starts with a page, and has room for a stretch of so many bytes from anywhere in a file."""
    room = whole_pages(nbytes) + 3 * PAGE
    memory = np.empty(room + PAGE, np.uint8)
    first = -int(memory.__array_interface__["data"][0]) % PAGE
    return memory[first : first + room]


class DirectFile:
    """A file opened for reading, or for both."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        flags = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
        flags |= getattr(os, "O_CLOEXEC", 0)
        try:
            self._fd = os.open(path, flags | _DIRECT, 0o666)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._fd = os.open(path, flags, 0o666)  # tmpfs in older kernels, some network file systems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def read(self, buffer: Bytes, at: int, start: int, stop: int) -> int:
        """Reads bytes start..stop of the file into the buffer, behind `at`: where they lie depends on where they lay in
        their page, and is given back."""
        page, first, done = whole_pages(at), start // PAGE * PAGE, 0
        while first + done < stop:
            step = min(whole_pages(stop - first - done), _SLICE)
            got = self._retried(os.preadv, buffer[page + done : page + done + step], first + done)
            if not got:
                raise EOFError("a file that is being sorted has become shorter")
            done += got
        return page + start - first

    def read_to(self, buffer: Bytes, at: int, start: int, stop: int) -> None:
        """The same, but right behind `at`. Up to three more pages are written to."""
        found = self.read(buffer, at, start, stop)
        buffer[at : at + stop - start] = buffer[found : found + stop - start]

    def read_elements(self, dtype: np.dtype[Any], start: int, count: int) -> Array:
        """So many elements from a byte on, in memory of their own."""
        nbytes = count * dtype.itemsize
        buffer = buffer_for(nbytes)
        at = self.read(buffer, 0, start, start + nbytes)
        return buffer[at : at + nbytes].view(dtype)

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        """Writes whole pages from the start of a buffer: what is too much in the last one is cut off, or written over,
        later."""
        done, whole = 0, whole_pages(nbytes)
        while done < whole:
            done += self._retried(os.pwritev, buffer[done : min(whole, done + _SLICE)], offset + done)

    def sync(self) -> None:
        """Waits until what was written would outlast a loss of power."""
        getattr(os, "fdatasync", os.fsync)(self._fd)

    def reserve(self, nbytes: int) -> None:
        """Takes so much of the disk now, where the file system can; raises OSError where there is not enough."""
        if nbytes and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(self._fd, 0, nbytes)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    raise

    def cut_off(self, nbytes: int) -> None:
        """Makes the file so long, and sees all of it on the disk."""
        os.ftruncate(self._fd, nbytes)
        os.fsync(self._fd)

    def _retried(self, call: Any, part: Bytes, offset: int) -> int:
        """One read or write; without direct access from where that is refused."""
        try:
            done: int = call(self._fd, [part], offset)
        except OSError as error:
            flags = fcntl.fcntl(self._fd, fcntl.F_GETFL)
            if error.errno != errno.EINVAL or not flags & _DIRECT:
                raise
            fcntl.fcntl(self._fd, fcntl.F_SETFL, flags & ~_DIRECT)
            done = call(self._fd, [part], offset)
        return done
