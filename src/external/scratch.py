"""What a sort leaves on the disk while it runs: a folder of its own, with a journal of what is done, and a lock.

The journal's first line says what is sorted and how it is parted; each line after it names a step that is done. So a
sort that was killed goes on behind the last line that is whole. Waiting for the disk after every step would take long;
so it is done now and then, and a line says so: after a loss of power only what stands above that is believed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self, TypeAlias, cast

from ..types.errors import DiskFullError, InvalidArgumentError

Facts: TypeAlias = Mapping[str, object]  # what JSON holds, with text as names

_JOURNAL = "journal"
_SYNCED = "synced"
_SECONDS = 1.0  # of work that a loss of power may undo


class Scratch:
    """The folder of one sort, locked for it. Left by an exception it goes, unless it is to be resumed."""

    def __init__(self, target: Path, where: Path | None, *, keep: bool) -> None:
        name = f"{target.name}.sorting"
        if where is not None:  # there may be targets of one name in several folders
            name = f"{target.name}.{hashlib.sha256(str(target).encode()).hexdigest()[:12]}.sorting"
        self.folder = (where or target.parent) / name
        self.done: set[str] = set()
        self.believed: list[str] = []  # of what an earlier call wrote, in order
        self._keep = keep
        self._is_ours = True
        self._target = target
        self._journal = -1
        self._last_sync = time.monotonic()

    @property
    def part(self) -> Path:
        """The result as long as it is not whole: in the target's folder, so that it can be renamed."""
        return self._target.with_name(f"{self._target.name}.part")

    def __enter__(self) -> Self:
        # A part comes with a folder; what has its name without one, or is a folder itself, is somebody else's.
        if self.part.is_dir() or (os.path.lexists(self.part) and not self.folder.exists()):
            raise InvalidArgumentError(
                f"target: {self.part} is in the way, which no sort has left that is known here: move or delete it"
            )
        while not self._is_locked():
            pass
        return self

    def _is_locked(self) -> bool:
        """Whether the folder is this sort's now. It is not where another one, being done, removed it meanwhile."""
        with suppress(FileExistsError):
            self.folder.mkdir(0o700)  # what is sorted may be for its owner's eyes
        try:
            is_foreign = next(self.folder.iterdir(), None) is not None and not (self.folder / _JOURNAL).is_file()
        except NotADirectoryError:
            is_foreign = True
        except FileNotFoundError:
            if not self.folder.is_symlink():
                return False
            is_foreign = True
        if is_foreign:
            raise InvalidArgumentError(
                f"target: {self.folder} is in the way, which no sort has left: move it, or see scratch="
            )
        path = self.folder / _JOURNAL
        try:
            self._journal = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = path.exists() and path.stat().st_ino == os.fstat(self._journal).st_ino
        except FileNotFoundError:
            is_there = False
        except OSError as error:
            os.close(self._journal)
            raise InvalidArgumentError(f"target: {self._target} is being sorted by another process") from error
        if not is_there:
            os.close(self._journal)
        return is_there

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._is_ours and (kind is None or not (self._keep and self.done)):
                if kind is not None:
                    with suppress(OSError):  # whatever it is, there is another error to tell of
                        self.part.unlink(missing_ok=True)
                shutil.rmtree(self.folder, ignore_errors=True)
        finally:
            os.close(self._journal)

    def claim(self, identity: Facts, plan: Facts, *, resume: bool) -> Facts:
        """The plan to go by: that of an earlier call for the same, if there is one and it is to be resumed."""
        lines = self._lines()
        if resume and lines:
            earlier = self._first_of(lines)
            if earlier["of"] != json.loads(json.dumps(identity)):
                self._is_ours = False
                raise InvalidArgumentError(
                    f"resume: {self.folder} was left by a sort of other data, or with other arguments; "
                    "call with the same, or without resume"
                )
            self.believed = lines[1:] if earlier["boot"] == _boot() else _above_the_last(_SYNCED, lines[1:])
            self.done = set(self.believed)
            if not self.part.exists():
                self.done = {step for step in self.done if not step.startswith("bucket")}
            return dict(cast(Facts, earlier["plan"]))
        self.part.unlink(missing_ok=True)
        for entry in self.folder.iterdir():
            if entry.name != _JOURNAL:
                entry.unlink()
        if self._target.exists():  # the result is for nobody else's eyes than the file that it replaces
            os.close(os.open(self.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.ftruncate(self._journal, 0)
        os.write(self._journal, f"{json.dumps({'of': identity, 'plan': plan, 'boot': _boot()})}\n".encode())
        return plan

    def _lines(self) -> list[str]:
        text = (self.folder / _JOURNAL).read_text("utf-8", "replace")
        return text.split("\n")[:-1]  # behind the last line's end nothing is whole

    def _first_of(self, lines: list[str]) -> Facts:
        """What is sorted, and how."""
        first: Facts = {}
        try:
            first = json.loads(lines[0])
            known = {"of", "plan", "boot"} <= set(first)
        except (ValueError, TypeError):
            known = False
        if not known:
            self._is_ours = False
            raise InvalidArgumentError(f"resume: {self.folder} has no journal that can be read; call without resume")
        return first

    def has(self, word: str) -> bool:
        """Whether an earlier call wrote a line that begins so."""
        return any(line.startswith(word) for line in self._lines()[1:])

    def is_published(self) -> bool:
        """Whether an earlier call did all but to remove this folder."""
        return self._lines()[-1:] == [self._whole(self._target)] and not self.part.exists()

    @staticmethod
    def _whole(path: Path) -> str:
        return f"whole {path.stat().st_ino}" if path.exists() else ""

    def mark(self, step: str, sync: Callable[[], object], *, now: bool = False) -> None:
        """Writes down that a step is done; `sync` makes what was written for it, and before, last."""
        self.done.add(step)
        self._write(step)
        if now or time.monotonic() - self._last_sync > _SECONDS:
            self.sync(sync)

    def sync(self, sync: Callable[[], object]) -> None:
        """Makes what was done last, and says so."""
        sync()
        self._write(_SYNCED)
        os.fsync(self._journal)
        self._last_sync = time.monotonic()

    def _write(self, line: str) -> None:
        os.write(self._journal, f"{line}\n".encode())

    def publish(self) -> None:
        """Gives the result, which is whole and on the disk, its name."""
        self._write(self._whole(self.part))
        if self._target.exists():
            self.part.chmod(self._target.stat().st_mode & 0o7777)
        os.replace(self.part, self._target)
        folder = os.open(self._target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _boot() -> str:
    """What tells one start of the machine from the next; something new each time where that is not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.urandom(8).hex()


def _above_the_last(word: str, lines: list[str]) -> list[str]:
    return lines[: len(lines) - lines[::-1].index(word) - 1] if word in lines else []


class NoJournal:
    """Of a sort that leaves nothing to go on from."""

    def __init__(self) -> None:
        self.done: set[str] = set()

    def mark(self, step: str, sync: Callable[[], object]) -> None:
        pass

    def sync(self, sync: Callable[[], object]) -> None:
        pass


def identity_of(source: Path) -> Facts:
    """What tells a file from others, and from itself when it was written to."""
    found = source.stat()
    return {"path": str(source), "inode": found.st_ino, "bytes": found.st_size, "modified": found.st_mtime_ns}


def require_room(files: Mapping[Path, int]) -> None:
    """Raises DiskFullError where the files would not fit, each of so many bytes; what they have already is theirs."""
    wanted: dict[int, tuple[Path, int]] = {}
    for path, nbytes in files.items():
        held = path.stat().st_blocks * 512 if path.exists() else 0
        device = path.parent.stat().st_dev
        folder, before = wanted.get(device, (path.parent, 0))
        wanted[device] = folder, before + max(0, nbytes - held)
    for folder, nbytes in wanted.values():
        free = shutil.disk_usage(folder).free
        if nbytes > free:
            raise disk_full(folder, nbytes, free)


def disk_full(folder: Path, nbytes: int, free: int) -> DiskFullError:
    return DiskFullError(
        errno.ENOSPC, f"sorting takes {nbytes:,} bytes more in {folder}, where {free:,} are free; see scratch="
    )


@contextmanager
def as_disk_full(nbytes: int, *folders: Path) -> Generator[None, None, None]:
    """The system's error as our own, of the fullest of the disks that were written to."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise OSError(
                errno.EFBIG, f"a file of {nbytes:,} bytes is more than this process may write (ulimit -f), or than "
                f"{' or '.join(map(str, folders))} takes"
            ) from error  # fmt: skip
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or isinstance(error, DiskFullError):
            raise
        free, folder = min((shutil.disk_usage(folder).free, folder) for folder in folders)
        raise disk_full(folder, nbytes, free) from error
