"""Memory-mapped arrays that outgrow memory, sorted as files are: read and written where they are mapped, a piece at a
time, with runs in a file beside.

In place an array cannot be written beside and renamed, for the caller holds the map. So nothing is written to it before
all its elements lie on the disk as sorted runs, and each piece that is written then is told of first. An exception puts
the runs back. Of a process that is killed the runs stay, and the next call for the same array goes on from them, if the
array is as that process left it: that is told by sums of its pieces.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, cast

import attrs
import numpy as np

from ..types.errors import InvalidArgumentError
from .cuts import Array
from .direct import Bytes, DirectFile, whole_pages
from .passes import Ends, Passes
from .plans import Plan
from .scratch import NoJournal, Scratch, as_disk_full, require_room
from .work import Work

_PIECE = 1 << 26  # bytes that are put back at a time
_AHEAD = 1 << 26  # bytes that are told of at a time, which waits for the disk


@attrs.frozen(eq=False)
class Mapping:
    """Where a file has an array that is mapped: its bytes from a position on."""

    path: Path
    position: int
    nbytes: int
    memory: mmap.mmap
    start: int  # of the array in the mapped memory

    @classmethod
    def of(cls, array: object) -> Mapping | None:
        """None for what is no part of a file with a name, or of changes to one that no file sees."""
        if not isinstance(array, np.memmap) or array.mode == "c" or array.filename is None:
            return None
        mapped = cast("np.memmap[tuple[int, ...], np.dtype[Any]]", array)
        base = _whose_memory(mapped)
        if not isinstance(base, mmap.mmap) or not mapped.flags.c_contiguous:
            return None
        start = mapped.ctypes.data - np.frombuffer(base, np.uint8).ctypes.data
        first = mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY
        return cls(Path(os.fspath(array.filename)).resolve(), first + start, mapped.nbytes, base, start)

    def is_at(self, other: Mapping) -> bool:
        """Whether both are the same bytes of the same file."""
        return self.position == other.position and self.nbytes == other.nbytes and self.path.samefile(other.path)

    def sync(self) -> None:
        self.memory.flush(*self._pages(0, self.nbytes))

    def let_go(self, start: int, stop: int) -> None:
        """Bytes that were read or written need not be resident any more; what was written is still to be."""
        self.memory.madvise(mmap.MADV_DONTNEED, *self._pages(start, stop))

    def _pages(self, start: int, stop: int) -> tuple[int, int]:
        first = (self.start + start) // mmap.PAGESIZE * mmap.PAGESIZE
        return first, self.start + stop - first


class End:
    """An array as what is read, or written to; mapped or not."""

    def __init__(self, array: Array, mapping: Mapping | None) -> None:
        self.mapping = mapping
        self._bytes: Bytes = np.asarray(array).view(np.uint8)

    def read(self, buffer: Bytes, at: int, start: int, stop: int) -> int:
        buffer[at : at + stop - start] = self._bytes[start:stop]
        self._let_go(start, stop)
        return at

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        self._bytes[offset : offset + nbytes] = buffer[:nbytes]
        self._let_go(offset, offset + nbytes)

    def sync(self) -> None:
        if self.mapping is not None:
            self.mapping.sync()

    def _let_go(self, start: int, stop: int) -> None:
        if self.mapping is not None:
            self.mapping.let_go(start, stop)


class EndInPlace(End):
    """Both at once. What each piece holds is written down: its sum, or that it is being written."""

    def __init__(self, array: Array, mapping: Mapping, scratch: Scratch) -> None:
        super().__init__(array, mapping)
        self._scratch = scratch
        self._told = 0  # bytes up to here are being written

    def read(self, buffer: Bytes, at: int, start: int, stop: int) -> int:
        found = super().read(buffer, at, start, stop)
        self._tell(start, stop, _sum_of(buffer[found : found + stop - start]))
        return found

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        if offset + nbytes > self._told:
            self._told = min(self._bytes.size, max(offset + nbytes, self._told + _AHEAD))
            self._scratch.mark(f"begun {self._told}", self.sync, now=True)
        super().write(buffer, nbytes, offset)
        self._tell(offset, offset + nbytes, _sum_of(buffer[:nbytes]))

    def is_as_it_was_left(self) -> bool:
        """As far as can be told: of what was being written nothing is known."""
        sums: dict[tuple[int, int], int] = {}
        for line in self._scratch.believed:
            match line.split():
                case ["holds", start, stop, total]:
                    sums[int(start), int(stop)] = int(total)
                case ["begun", told]:
                    sums = {(start, stop): total for (start, stop), total in sums.items() if start >= int(told)}
                case _:
                    pass
        return all(total == _sum_of(self._bytes[start:stop]) for (start, stop), total in sums.items())

    def _tell(self, start: int, stop: int, total: int) -> None:
        self._scratch.mark(f"holds {start} {stop} {total}", lambda: None)


@attrs.frozen(eq=False)
class MapSort:
    """One array being sorted into another, or into itself. Both have one dimension, and one of them is mapped."""

    work: Work
    memory: int
    where: Path | None  # what was said of where runs are to lie

    def new(self, like: Array, beside: Path) -> Array:
        """An array for the result, in a file without a name, which goes with it."""
        folder = self.where or beside.parent
        require_room({folder / "runs": 2 * like.nbytes})
        with as_disk_full(like.nbytes, folder), TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, like.nbytes)
            return np.memmap(file, like.dtype, "w+", shape=like.shape)

    def into(self, x: Array, out: Array) -> None:
        """Where it is raised from, `out` holds anything."""
        given, made = Mapping.of(x), Mapping.of(out)
        beside = made or given
        assert beside is not None
        plan = Plan.within(self.memory, x.size, self.work)
        with as_disk_full(x.nbytes, self.where or beside.path.parent), self._nameless(beside.path, x.nbytes) as runs:
            ends = Ends(End(x, given), 0, runs, End(out, made), 0)
            Passes(self.work, x.size, plan, ends, NoJournal(), None).run()

    @contextmanager
    def _nameless(self, beside: Path, nbytes: int) -> Generator[DirectFile, None, None]:
        """A file for runs that goes with the process."""
        folder = self.where or beside.parent
        require_room({folder / "runs": whole_pages(nbytes)})
        with TemporaryDirectory(prefix=f".{beside.name}.", dir=folder) as held:
            path = Path(held) / "runs"
            file = DirectFile(path, write=True)
            path.unlink()
        with file:
            file.reserve(whole_pages(nbytes))
            yield file

    def in_place(self, x: Array, mapping: Mapping) -> None:
        """Where it is raised from, `x` holds its elements, in some order."""
        name = mapping.path.with_name(f"{mapping.path.name}@{mapping.position}")
        scratch = Scratch(name, self.where, keep=True)
        with as_disk_full(x.nbytes, scratch.folder.parent), scratch:
            runs_file = scratch.folder / "runs"
            end = EndInPlace(x, mapping, scratch)
            require_room({runs_file: whole_pages(x.nbytes)})
            plan = self._agreed(scratch, mapping, x)
            if scratch.believed and not end.is_as_it_was_left():
                raise InvalidArgumentError(
                    f"x: {mapping.path} was written to after a process that sorted it in place was killed. What it "
                    f"held then lies in {runs_file}: remove {scratch.folder} to sort the array as it is"
                )
            scratch.done = {step for step in scratch.done if step.startswith("run")}
            with DirectFile(runs_file, write=True) as runs:
                try:
                    runs.reserve(whole_pages(x.nbytes))
                    Passes(self.work, x.size, plan, Ends(end, 0, runs, end, 0), scratch, None).run()
                    mapping.sync()
                except BaseException:
                    if scratch.has("begun"):
                        self._put_back(x, runs, scratch)
                        mapping.sync()
                    scratch.done.clear()  # nothing is left to go on from
                    raise

    def _agreed(self, scratch: Scratch, mapping: Mapping, x: Array) -> Plan:
        """That of a call whose runs are the only place where all elements are, if there is one."""
        facts = {"path": str(mapping.path), "inode": mapping.path.stat().st_ino, "bytes": x.nbytes}
        plan = Plan.within(self.memory, x.size, self.work)
        identity = {**facts, "position": mapping.position, "work": self.work.describe()}
        try:
            found = scratch.claim(identity, attrs.asdict(plan), resume=scratch.has("begun"))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"x: a process that sorted {mapping.path} in place was killed, and what it held lies in "
                f"{scratch.folder}: sort it with the same arguments first"
            ) from error
        return Plan(**cast("dict[str, int]", found))

    def _put_back(self, x: Array, runs: DirectFile, scratch: Scratch) -> None:
        spilled = self.work.spilled
        step = _PIECE // spilled.itemsize
        scratch.mark(f"begun {x.nbytes}", runs.sync, now=True)
        for start in range(0, x.size, step):
            count = min(step, x.size - start)
            x[start : start + count] = runs.read_elements(spilled, start * spilled.itemsize, count)


def _whose_memory(array: Array) -> object:
    base = array.base
    return _whose_memory(base) if isinstance(base, np.ndarray) else base


def _sum_of(piece: Bytes) -> int:
    """What tells bytes from others, as far as an accident goes."""
    whole = piece.size // 8 * 8
    return int(piece[:whole].view(np.uint64).sum(dtype=np.uint64)) + int(piece[whole:].sum(dtype=np.uint64))
