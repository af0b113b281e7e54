"""Direct I/O (O_DIRECT): page-aligned reads and writes that bypass the page cache, where the file system allows it.

Data that is read once and written once gains nothing from the cache, and would evict everybody else's.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..types.calls import uninterrupted
from ..types.errors import FileChangedError

Bytes: TypeAlias = npt.NDArray[np.uint8]

PAGE = 4096
_SLICE = 1 << 26  # bytes of one system call, which cannot be interrupted
_CLOSED = -1
_DIRECT: int = getattr(os, "O_DIRECT", 0)


def whole_pages(nbytes: int) -> int:
    return -(-nbytes // PAGE) * PAGE


def buffer_for(nbytes: int) -> Bytes:
    """Page-aligned memory with room for `nbytes` from any, also unaligned, position of a file."""
    room = whole_pages(nbytes) + 3 * PAGE
    memory = np.empty(room + PAGE, np.uint8)
    first = -int(memory.__array_interface__["data"][0]) % PAGE
    return memory[first : first + room]


def take_room(descriptor: int, start: int, nbytes: int) -> None:
    """Preallocates disk space for a part of a file, if the file system can. Raises OSError (ENOSPC) if there is not
    enough."""
    if nbytes and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, start, nbytes)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Has errors tell the file, which the system's calls know by a number."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


class DirectFile(AbstractContextManager["DirectFile"]):
    """A file for direct I/O, opened for reading, or for reading and writing. Offsets count from a byte of it, `base`:
    that of the first element."""

    def __init__(self, path: Path, *, write: bool = False, base: int = 0) -> None:
        flags = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
        self._path, self._base, self._fd = path, base, _CLOSED
        try:
            uninterrupted(lambda: self._open(path, flags))
        except BaseException:
            self.close()
            raise

    def _open(self, path: Path, flags: int) -> None:
        try:
            self._fd = os.open(path, flags | _DIRECT, 0o666)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._fd = os.open(path, flags, 0o666)  # no O_DIRECT: tmpfs of older kernels, some network file systems

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_fd"):  # absent if __init__ was interrupted
            self.close()  # for an interrupt between __init__ and a `with`

    def close(self) -> None:
        open_, self._fd = self._fd, _CLOSED
        if open_ != _CLOSED:
            os.close(open_)

    def read(self, buffer: Bytes, start: int, stop: int) -> Bytes:
        """Reads bytes start..stop into a page-aligned buffer, by whole pages. Returns the part of it that has them.
        Raises FileChangedError."""
        start, stop = self._base + start, self._base + stop
        first, done = start // PAGE * PAGE, 0
        while first + done < stop:
            step = min(whole_pages(stop - first - done), _SLICE)
            got = self._retried(os.preadv, buffer[done : done + step], first + done)
            if not got:
                raise FileChangedError(f"{self._path} has become shorter while it was being sorted")
            done += got
        return buffer[start - first : stop - first]

    def copied(self, start: int, stop: int) -> Bytes:
        """Bytes start..stop in new memory."""
        return self.read(buffer_for(stop - start), start, stop)

    def lead(self, offset: int) -> int:
        """Where in a buffer the bytes for an offset are to lie: pages of both are aligned."""
        return (self._base + offset) % PAGE

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        """Writes `nbytes` that lie in a buffer from `lead(offset)` on, by whole pages. The first page keeps what it has
        before them; the excess in the last has to be overwritten or cut off later."""
        lead = self.lead(offset)
        if lead:
            buffer[:lead] = self.copied(offset - lead, offset)
        done, last, first = 0, lead + nbytes, self._base + offset - lead
        while done < last:
            step = min(whole_pages(last - done), _SLICE)
            done += self._retried(os.pwritev, buffer[done : done + step], first + done)

    def sync(self) -> None:
        """Makes the written data durable (fdatasync)."""
        with naming(self._path):
            getattr(os, "fdatasync", os.fsync)(self._fd)

    def reserve(self, nbytes: int) -> None:
        """Preallocates disk space for a file of whole pages, if the file system can; the file is as long in any case.
        Raises OSError (ENOSPC) if there is not enough."""
        nbytes = whole_pages(nbytes)
        with naming(self._path):
            take_room(self._fd, 0, nbytes)
            if os.fstat(self._fd).st_size < nbytes:
                os.ftruncate(self._fd, nbytes)

    def cut_off(self, nbytes: int) -> None:
        """Truncates the file to `nbytes`."""
        with naming(self._path):
            os.ftruncate(self._fd, nbytes)

    def _retried(self, call: Any, part: Bytes, offset: int) -> int:
        """One read or write; falls back to buffered I/O for good if direct I/O is refused (EINVAL)."""
        with naming(self._path):
            try:
                done: int = call(self._fd, [part], offset)
            except OSError as error:
                import fcntl

                flags = fcntl.fcntl(self._fd, fcntl.F_GETFL)
                if error.errno != errno.EINVAL or not flags & _DIRECT:
                    raise
                fcntl.fcntl(self._fd, fcntl.F_SETFL, flags & ~_DIRECT)
                done = call(self._fd, [part], offset)
            return done
