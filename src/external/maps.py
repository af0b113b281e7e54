"""External sort of memory-mapped arrays larger than memory: through the mapping piece by piece, with runs in a file.

In place there can be no atomic rename, as the caller holds the mapping. Instead the journal is a write-ahead log:
nothing is written to the array before all elements are durable as sorted runs, and each range is journalled before it
is overwritten. An exception copies the runs back. After a kill the runs remain, and the next call for the same array
resumes from them, if checksums of its pieces show that it is as the killed process left it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from ..types.calls import uninterrupted
from ..types.errors import InvalidArgumentError
from .crew import OnFailure
from .cuts import Array
from .direct import Bytes, DirectFile, take_room
from .disk_space import raising_disk_full, require_disk_space
from .journal import Journal, NoJournal
from .left import Left, found_in, led_to, left_of, link_to, scratch_of
from .plans import Plan
from .scratch import Scratch
from .sort import Passes
from .work import Work

Mapped: TypeAlias = "np.memmap[tuple[int, ...], np.dtype[Any]]"

_PIECE = 1 << 26  # bytes restored at a time
_AHEAD = 1 << 26  # bytes journalled ahead at a time, by an fsync
_lies_at: WeakKeyDictionary[mmap.mmap, tuple[str, int]] = WeakKeyDictionary()  # the file, once seen, and the address


@attrs.frozen(eq=False)
class Mapping:
    """A memory-mapped array's bytes in its file, and in the mapping."""

    file: str  # a pathlib.Path, as of Python 3.12, cannot be made at the interpreter's end
    position: int  # of the array in the file, in bytes
    nbytes: int
    memory: mmap.mmap
    start: int  # of the array in the mapping, in bytes

    @classmethod
    def of(cls, array: object) -> Mapping | None:
        """A contiguous array's; None if it has none, or one that is copy-on-write or anonymous."""
        return None if getattr(array, "mode", "c") == "c" else cls.read_by(array)

    @classmethod
    def read_by(cls, array: object) -> Mapping | None:
        """Also of a copy-on-write mapping; of an array that is not contiguous from its first byte to its last."""
        if not isinstance(array, np.memmap) or array.filename is None:
            return None
        mapped = cast(Mapped, array)
        base = _memory_owner(mapped)
        if not isinstance(base, mmap.mmap):
            return None
        if (lies := _lies_at.get(base)) is None:  # so that a warm call need not follow links through all folders
            whole = np.frombuffer(base, np.uint8)
            lies = _lies_at[base] = os.path.realpath(array.filename), np.lib.array_utils.byte_bounds(whole)[0]
        low, high = np.lib.array_utils.byte_bounds(mapped)
        file, start = lies[0], low - lies[1]
        first = mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY
        return cls(file, first + start, high - low, base, start)

    @property
    def path(self) -> Path:
        return Path(self.file)

    def left(self, where: Path | None) -> list[Left]:
        """Of sorts in place of some of these bytes."""
        stop = self.position + self.nbytes
        return [left for left in left_of(self.file, where) if max(left.start, self.position) < min(left.stop, stop)]

    def reserve(self) -> None:
        """Takes room on the disk for all of it. A new file has none yet, and the system ends a process that writes to a
        mapping where there is no more (SIGBUS). Raises DiskFullError."""
        end = self.position + self.nbytes
        gone = suppress(FileNotFoundError, PermissionError)  # or no longer ours: the mapping stays
        with gone, open(self.file, "rb+") as file, raising_disk_full(self.nbytes, self.path.parent):
            # Of the file that was mapped: another of its name may be shorter.
            if os.fstat(file.fileno()).st_size >= end > os.lseek(file.fileno(), self.position, os.SEEK_HOLE):
                take_room(file.fileno(), self.position, self.nbytes)

    def sync(self) -> None:
        self.memory.flush(*self._pages(0, self.nbytes))

    def drop_pages(self, start: int, stop: int) -> None:
        """Releases resident pages (madvise DONTNEED). The kernel still writes back dirty ones."""
        self.memory.madvise(mmap.MADV_DONTNEED, *self._pages(start, stop))

    def _pages(self, start: int, stop: int) -> tuple[int, int]:
        first = (self.start + start) // mmap.PAGESIZE * mmap.PAGESIZE
        return first, self.start + stop - first


class ArrayEndpoint:
    """An array, mapped or not, as an input or output of Passes."""

    def __init__(self, array: Array, mapping: Mapping | None) -> None:
        self.mapping = mapping
        self._bytes: Bytes = np.asarray(array).view(np.uint8)

    def read(self, buffer: Bytes, start: int, stop: int) -> Bytes:
        found = buffer[: stop - start]
        found[:] = self._bytes[start:stop]
        self._drop_pages(start, stop)
        return found

    def copied(self, start: int, stop: int) -> Bytes:
        found: Bytes = self._bytes[start:stop].copy()
        self._drop_pages(start, stop)
        return found

    def lead(self, offset: int) -> int:
        return 0

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        self._bytes[offset : offset + nbytes] = buffer[:nbytes]
        self._drop_pages(offset, offset + nbytes)

    def sync(self) -> None:
        if self.mapping is not None:
            self.mapping.sync()

    def _drop_pages(self, start: int, stop: int) -> None:
        if self.mapping is not None:
            self.mapping.drop_pages(start, stop)


class InPlaceEndpoint(ArrayEndpoint):
    """An array that is both input and output. Journals a checksum of each piece ("holds"), and which part is about to
    be overwritten ("begun")."""

    def __init__(self, array: Array, mapping: Mapping, journal: Journal) -> None:
        super().__init__(array, mapping)
        self._journal = journal
        self._begun = 0  # bytes that are journalled as being overwritten

    def read(self, buffer: Bytes, start: int, stop: int) -> Bytes:
        found = super().read(buffer, start, stop)
        self._note(start, stop, _checksum(found), lambda: None)
        return found

    def write(self, buffer: Bytes, nbytes: int, offset: int) -> None:
        if offset + nbytes > self._begun:
            self._begun = min(self._bytes.size, max(offset + nbytes, self._begun + _AHEAD))
            self._journal.mark(f"begun {self._begun}", self.sync, now=True)
        super().write(buffer, nbytes, offset)
        self._note(offset, offset + nbytes, _checksum(buffer[:nbytes]), self.sync)

    def is_unchanged(self) -> bool:
        """Whether the array has the journalled checksums. A part that was being overwritten has none."""
        sums: dict[tuple[int, int], int] = {}
        for line in self._journal.durable:
            match line.split():
                case ["holds", start, stop, total]:
                    sums[int(start), int(stop)] = int(total)
                case ["begun", begun]:
                    sums = {(start, stop): total for (start, stop), total in sums.items() if start >= int(begun)}
                case _:
                    pass
        return all(total == _checksum(self._bytes[start:stop]) for (start, stop), total in sums.items())

    def _note(self, start: int, stop: int, total: int, sync: Callable[[], object]) -> None:
        self._journal.mark(f"holds {start} {stop} {total}", sync)


@attrs.frozen(eq=False)
class MapSort:
    """The sort of a one-dimensional array into another, or in place. One of them is mapped."""

    work: Work
    memory: int
    where: Path | None  # the folder for runs; None: beside the mapped file

    def folder(self, beside: Path) -> Path:
        """The folder for runs. Raises InvalidArgumentError if nothing can be written there."""
        found = self.where or beside.parent
        if not os.access(found, os.W_OK):
            raise InvalidArgumentError(f"GPUSORT_SCRATCH: {found}, where runs would lie, cannot be written to: set it")
        return found

    def new(self, like: Array, beside: Path) -> Array:
        """A result array, mapped to an unlinked temporary file, which is freed with it."""
        folder = self.folder(beside)
        require_disk_space({folder / "runs": 2 * like.nbytes})

        def make() -> Array:
            with TemporaryFile(dir=folder) as file:
                take_room(file.fileno(), 0, like.nbytes)
                return np.memmap(file, like.dtype, "w+", shape=like.shape)

        with raising_disk_full(like.nbytes, folder):
            return uninterrupted(make)

    def into(self, x: Array, out: Array) -> None:
        """Sorts into another array. After an exception its contents are undefined."""
        given, made = Mapping.of(x), Mapping.of(out)
        beside = made or given
        assert beside is not None
        plan = Plan.within(self.memory, x.size, self.work)
        with self._nameless(beside.path, x.nbytes) as runs:
            source, target = ArrayEndpoint(x, given), ArrayEndpoint(out, made)
            Passes(self.work, x.size, plan, source, runs, target, NoJournal(), None).run()

    @contextmanager
    def _nameless(self, beside: Path, nbytes: int) -> Generator[DirectFile, None, None]:
        """An unlinked file for runs, which the system frees with the process."""
        folder = self.folder(beside)
        require_disk_space({folder / "runs": nbytes})

        def make() -> DirectFile:
            with NamedTemporaryFile(prefix=".gpusort.", dir=folder) as held:  # whose name goes with the block
                return DirectFile(Path(held.name), write=True)

        with raising_disk_full(nbytes, folder), uninterrupted(make) as file:
            file.reserve(nbytes)
            yield file

    def in_place(self, x: Array, mapping: Mapping) -> None:
        """Sorts in place. After an exception `x` holds its elements, in some order."""
        if not mapping.path.exists():
            raise InvalidArgumentError(
                f"x: {mapping.path}, which it maps, was removed, and the work of a sort in place is kept for a file of "
                "that name: use sort(x), which makes a sorted copy"
            )
        scratch = scratch_of(mapping.path, mapping.position, self.where)
        with raising_disk_full(x.nbytes, self.folder(mapping.path)), scratch, scratch:
            scratch.lock()
            runs_file, journal = scratch.folder / "runs", scratch.journal
            end = InPlaceEndpoint(x, mapping, journal)
            require_disk_space({runs_file: x.nbytes})
            plan = self._agreed(scratch, mapping, x)
            scratch.require_kept("run ", runs_file, x.nbytes)
            if journal.durable and not end.is_unchanged():
                raise self._overtaken(mapping, scratch, "written to")
            journal.done = {step for step in journal.done if step.startswith("run")}
            with DirectFile(runs_file, write=True) as runs:
                restored = OnFailure(lambda: self._restore(x, mapping, runs, scratch))
                with restored, restored, restored:
                    runs.reserve(x.nbytes)
                    self._link(scratch)
                    self._require_alone(mapping, scratch)  # now that others find this
                    Passes(self.work, x.size, plan, end, runs, end, journal, None).run()
                    mapping.sync()
                    self._unlink(scratch)

    def _agreed(self, scratch: Scratch, mapping: Mapping, x: Array) -> Plan:
        """The plan of a killed call that had begun to overwrite the array, which must be resumed; else a new one."""
        plan = Plan.within(self.memory, x.size, self.work)
        identity = {
            "path": str(mapping.path), "inode": mapping.path.stat().st_ino, "bytes": x.nbytes,
            "position": mapping.position, "work": repr(self.work),
        }  # fmt: skip
        must_resume = scratch.journal.has("begun")
        if not must_resume:
            self._unlink(scratch)  # of a call that wrote nothing: this one may fail before it makes its own
        try:
            if not must_resume or scratch.journal.sorted_before["inode"] == identity["inode"]:
                return scratch.claim(identity, plan, resume=must_resume)
        except InvalidArgumentError as error:
            raise found_in(scratch, mapping.path, mapping.position).refusal("x") from error
        raise self._overtaken(mapping, scratch, "replaced")

    @staticmethod
    def _overtaken(mapping: Mapping, scratch: Scratch, change: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"x: {mapping.path} was {change} after a process that sorted it in place was killed. Its elements at that "
            f"time are in {scratch.folder / 'runs'}: remove {scratch.folder} to sort the array as it is now"
        )

    def _require_alone(self, mapping: Mapping, scratch: Scratch) -> None:
        """Raises InvalidArgumentError if another sort in place of some of these bytes is under way, or was killed."""
        for other in mapping.left(self.where):
            if other.folder != scratch.folder and (other.may_lack or other.is_under_way):
                raise other.refusal("x")

    @staticmethod
    def _link(scratch: Scratch) -> None:
        if (link := link_to(scratch)) is not None:
            with suppress(OSError):  # where nothing can be written, calls find the folder by GPUSORT_SCRATCH alone
                link.symlink_to(scratch.folder)
            if os.path.lexists(link) and led_to(link) != scratch.folder:
                raise InvalidArgumentError(
                    f"x: {link} is in the way, of another sort in place of the same array, which is under way or was "
                    "killed as it began: try again, or remove it"
                )

    @staticmethod
    def _unlink(scratch: Scratch) -> None:
        """Before the folder goes: a link that leads nowhere tells of elements that are lost."""
        if (link := link_to(scratch)) is not None and led_to(link) == scratch.folder:
            link.unlink(missing_ok=True)

    def _restore(self, x: Array, mapping: Mapping, runs: DirectFile, scratch: Scratch) -> None:
        """Copies the runs back to the array, if it was written to. Then there is nothing to resume."""
        journal = scratch.journal
        if journal.done and journal.has("begun"):
            journal.mark(f"begun {x.nbytes}", runs.sync, now=True)
            spilled = self.work.spilled
            size = _PIECE // spilled.itemsize * spilled.itemsize
            for start in range(0, x.nbytes, size):
                held = runs.copied(start, min(start + size, x.nbytes)).view(spilled)
                x[start // spilled.itemsize :][: held.size] = held
            mapping.sync()
        self._unlink(scratch)
        journal.done.clear()


def _is_same_file(file: str, other: str) -> bool:
    with suppress(FileNotFoundError):  # of one that was removed since
        return os.path.samefile(file, other)
    return file == other


def shift_between(given: Mapping | None, made: Mapping | None) -> int | None:
    """How many bytes behind one array another begins in its file; None if both have no byte in common."""
    if given is None or made is None or not -made.nbytes < (shift := made.position - given.position) < given.nbytes:
        return None
    return shift if _is_same_file(given.file, made.file) else None


def are_mapped_twice(x: Mapped, out: Mapped) -> bool:
    """Whether both are, or may be, of the same bytes of a file that is mapped twice: addresses do not tell."""
    if x.filename is None or out.filename is None or _memory_owner(x) is _memory_owner(out):
        return False
    given, made = Mapping.of(x), Mapping.of(out)
    if given is not None and made is not None:
        return shift_between(given, made) is not None
    return _is_same_file(os.fspath(x.filename), os.fspath(out.filename))


def _memory_owner(array: Array) -> object:
    base = array.base
    return _memory_owner(base) if isinstance(base, np.ndarray) else base


def _checksum(piece: Bytes) -> int:
    """The sum of 64-bit words: finds accidental changes, not malicious ones."""
    whole = piece.size // 8 * 8
    return int(piece[:whole].view(np.uint64).sum(dtype=np.uint64)) + int(piece[whole:].sum(dtype=np.uint64))
