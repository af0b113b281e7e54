"""A sort's scratch folder: a lock, a journal for crash recovery, and the atomic rename that publishes the result.

The journal's first line (a manifest) says what is sorted by which plan; each further line names a completed step, so a
killed sort resumes after the last complete line. An fsync after every step would be slow, so there is one about every
second, recorded by a line "synced": after a power loss (another boot id) only lines before the last such line count.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from io import FileIO
from pathlib import Path
from typing import cast

import attrs

from ..types.errors import FileChangedError, GpusortError, InvalidArgumentError
from .crew import always_uninterrupted, whole
from .direct import naming
from .plans import Plan
from .versions import Facts, identity_of, is_at, stamp_of, stamps_of

_JOURNAL = "journal"
SCRATCH, PART = ".sorting", ".part"  # how the names end of a scratch folder, and of an incomplete result
_SYNCED, _STOPPED, _RESUMED, _WHOLE = "synced", "stopped ", "resumed", "whole "
_SECONDS = 1.0  # between two fsyncs: the work that a power loss may undo


class Scratch(AbstractContextManager["Scratch"]):
    """The scratch folder of one sort, locked by it. An exception removes it, unless `keep` and steps were completed.
    Enter it twice before it is locked, as in `with scratch, scratch`: if an exception arrives as one exit begins, the
    other runs."""

    def __init__(self, target: Path, where: Path | None, *, keep: bool, source: Path | None = None) -> None:
        """To be made before anything is read of the source, which must stay as it is until the result is published."""
        name = f"{target.name}{SCRATCH}"
        if where is not None:  # targets in different folders may have the same name
            name = f"{target.name}.{hashlib.sha256(os.fsencode(target)).hexdigest()[:12]}{SCRATCH}"
        self.folder = (where or target.parent) / name
        self.done: set[str] = set()
        self.durable: list[str] = []  # an earlier call's journal lines that can be relied on, in order
        self.keep = keep
        self.identity: Facts = {} if source is None else identity_of(source)
        self._source = source
        self._is_ours = False  # ours to remove: a sort that was killed may have left what is to be resumed
        self.target = target
        self._journal: FileIO | None = None  # while the lock is held
        self._has_part = False  # while the whole result is there, and has not got its name
        self._last_sync = time.monotonic()

    @property
    def part(self) -> Path:
        """The incomplete result: in the target's folder, so that it can be renamed atomically."""
        return self.target.with_name(f"{self.target.name}{PART}")

    def __exit__(self, kind: type[BaseException] | None, failure: BaseException | None, _: object) -> None:
        may_follow = isinstance(failure, OSError | ValueError) and not isinstance(failure, GpusortError)
        if (may_follow or isinstance(failure, FileChangedError)) and (changed := self._changed()):
            self._leave(has_failed=True)
            raise FileChangedError(changed) from (None if isinstance(failure, FileChangedError) else failure)
        self._leave(has_failed=kind is not None)

    def _changed(self) -> str:
        """What somebody else did meanwhile, after which the result would be of neither version; empty if nothing."""
        if self._journal is None:
            return ""
        if self._source is not None and identity_of(self._source) != self.identity:
            self.keep = False  # what is done is of no use
            return f"source: {self._source} was written to, replaced or removed while it was being sorted: sort it anew"
        if not is_at(self.folder / _JOURNAL, self._journal):
            return f"target: {self.folder} was removed while {self.target} was being sorted: sort it anew"
        if self._has_part and not self.part.exists():
            return f"target: {self.part} was removed while it was being written: sort it anew"
        return ""

    @whole
    def lock(self) -> None:
        """Makes the folder, and locks it. Raises InvalidArgumentError if another sort has, or something is there."""
        # A part of ours comes with a scratch folder; anything else of that name belongs to somebody else.
        if self.part.is_dir() or (os.path.lexists(self.part) and not self.folder.exists()):
            raise InvalidArgumentError(
                f"target: {self.part} is in the way, which no sort has left that is known here: move or delete it"
            )
        while not self._is_locked():
            pass

    def _is_locked(self) -> bool:
        """Tries to create and lock the folder. False, to try again, if another sort that finished just removed it."""
        import fcntl

        path = self.folder / _JOURNAL
        with suppress(FileExistsError):
            self.folder.mkdir(0o700)  # the data may be private
        try:
            is_folder = self.folder.is_dir() and not self.folder.is_symlink()  # which could not be removed
            is_scratch = is_folder and (not any(self.folder.iterdir()) or path.is_file())
            journal = FileIO(path, "a+") if is_scratch else None
        except FileNotFoundError:
            return False
        except OSError:
            with suppress(OSError):  # the exception under way matters more
                self.folder.rmdir()
            raise
        if journal is None:
            if not os.path.lexists(self.folder):
                return False
            raise InvalidArgumentError(
                f"target: {self.folder} is in the way, which no sort has left: move it, or have scratch files "
                "elsewhere (scratch=, --scratch)"
            )
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            journal.close()
            reason = f"{self.target} is being sorted already, by this process or another"
            if not isinstance(error, BlockingIOError):  # of some network file systems
                reason = f"{path} cannot be locked: have scratch files elsewhere (scratch=, --scratch): {error}"
            raise InvalidArgumentError(f"target: {reason}") from error
        if not is_at(path, journal):
            journal.close()
            return False
        self._journal = journal
        self._is_ours = not (self.keep and self._lines())
        return True

    def _leave(self, *, has_failed: bool) -> None:
        """Removes what is not to be kept, and unlocks, whatever interrupts it."""

        def leave() -> None:
            if self._journal is None:
                return
            try:
                if not has_failed or (self._is_ours and not (self.keep and self.done)):
                    if has_failed:
                        with suppress(OSError):  # the exception under way matters more
                            self.part.unlink(missing_ok=True)
                    shutil.rmtree(self.folder, ignore_errors=True)
                elif self._is_ours:
                    self._note_stop()
            finally:
                self._journal.close()
                self._journal = None

        always_uninterrupted(leave)

    @property
    def _log(self) -> int:
        """The journal's file descriptor."""
        assert self._journal is not None  # it is locked
        return self._journal.fileno()

    def sort(self, work: str, plan: Plan, by: Callable[[Plan], None]) -> None:
        """Sorts by this plan, or by that of the call that is resumed, and publishes the result; unless that call has
        done so, and only failed to remove this folder."""
        with self, self:
            self.lock()
            identity, is_over = {**self.identity, "target": str(self.target), "work": work}, self._is_over()
            if self.keep and is_over and self._has_made(identity):
                return
            found = self.claim(identity, plan, resume=self.keep and not is_over)
            # The result must not be readable by more users than the file that it replaces.
            if self.target.exists() and not self.part.exists():
                self.part.touch(0o600, exist_ok=False)
            by(found)
            self.publish()

    def _has_made(self, identity: Facts) -> bool:
        """Whether the target is an earlier call's result, and of the same data and arguments. Of a file that was sorted
        over itself nothing is as it was but its name."""
        is_over_itself = self._source == self.target
        known = {name: identity[name] for name in ("path", "target", "work")} if is_over_itself else identity
        is_whole = self._lines()[-1] == self._whole(self.target)
        return is_whole and {**self.sorted_before, **known} == self.sorted_before

    @whole
    def claim(self, identity: Facts, plan: Plan, *, resume: bool) -> Plan:
        """Starts or resumes: the plan of an earlier call for the same data and arguments, else this one, with a new
        journal. Raises InvalidArgumentError if it is to resume a sort of something else."""
        lines = self._lines()
        if resume and lines:
            earlier = self._first_of(lines)
            if earlier["of"] != json.loads(json.dumps(identity)):
                raise InvalidArgumentError(
                    f"resume: {self.folder} was left by a sort of other data, or with other arguments: "
                    "use the same, or do not resume"
                )
            self.durable = lines[1:] if earlier["boot"] == _boot() else _before_last(_SYNCED, lines[1:])
            self.done = set(self.durable)
            if not self.part.exists():
                self.done = {step for step in self.done if not step.startswith("bucket")}
            if lines[-1].startswith(_STOPPED) and earlier["boot"] == _boot():
                self._require_stamps(json.loads(lines[-1].removeprefix(_STOPPED)))
            self._is_ours = True
            self._write(_RESUMED)  # from here on files change
            return Plan(**cast("dict[str, int]", earlier["plan"]))
        with naming(self.folder / _JOURNAL):
            os.ftruncate(self._log, 0)  # first: a journal must not tell of files that are gone, whenever this is killed
        self._is_ours = True
        self.part.unlink(missing_ok=True)
        for entry in self.folder.iterdir():
            if entry.name != _JOURNAL:
                entry.unlink()
        self._write(json.dumps({"of": identity, "plan": attrs.asdict(plan), "boot": _boot()}))
        return plan

    def _note_stop(self) -> None:
        """Journals how files are left."""
        with suppress(OSError):  # the exception under way matters more
            if not self._is_over():
                files = [self.part, *(path for path in self.folder.iterdir() if path.name != _JOURNAL)]
                self._write(f"{_STOPPED}{json.dumps(stamps_of(files))}")

    def _require_stamps(self, stamps: Facts) -> None:
        """Raises FileChangedError unless files are as a call has left them. A part may be gone: it is made again."""
        found = stamps_of(map(Path, stamps))
        for path, stamp in stamps.items():
            if found.get(path, stamp if path == str(self.part) else None) != stamp:
                raise self._damaged(Path(path))

    def require_kept(self, step: str, path: Path, nbytes: int) -> None:
        """Raises FileChangedError if steps of such a name are done, and the file that has them is gone or shorter than
        it was made."""
        if any(done.startswith(step) for done in self.done) and (not path.exists() or path.stat().st_size < nbytes):
            raise self._damaged(path)

    def _damaged(self, path: Path) -> FileChangedError:
        return FileChangedError(
            f"{path} was written to, cut off or removed after an earlier call had stopped, whose work it has: do not "
            f"resume, or remove {self.folder}"
        )

    def _lines(self) -> list[str]:
        text = (self.folder / _JOURNAL).read_text("utf-8", "replace")
        return text.split("\n")[:-1]  # without an incomplete last line

    def _first_of(self, lines: list[str]) -> Facts:
        """The manifest."""
        with suppress(ValueError, TypeError):
            first: Facts = json.loads(lines[0])
            if {"of", "plan", "boot"} <= set(first):
                return first
        raise InvalidArgumentError(f"resume: {self.folder} has no journal that can be read: do not resume")

    @property
    def sorted_before(self) -> Facts:
        """What an earlier call's journal says that it sorts. Raises InvalidArgumentError if it cannot be read."""
        return cast("Facts", self._first_of(self._lines())["of"])

    def has(self, word: str) -> bool:
        """Whether the journal has a line that begins with a word."""
        return any(line.startswith(word) for line in self._lines()[1:])

    def _is_over(self) -> bool:
        """Whether a call has published its result."""
        return any(line.startswith(_WHOLE) for line in self._lines()[-1:]) and not self.part.exists()

    @staticmethod
    def _whole(path: Path) -> str:
        return f"{_WHOLE}{path.stat().st_ino} {stamp_of(path)}" if path.exists() else ""

    def mark(self, step: str, sync: Callable[[], object], *, now: bool = False) -> None:
        """Journals a completed step. `sync` is called if an fsync is due, or `now`: it must make all data written so
        far durable."""
        self.done.add(step)
        self._write(step)
        if now or time.monotonic() - self._last_sync > _SECONDS:
            self.sync(sync)

    def sync(self, sync: Callable[[], object]) -> None:
        """Makes data and journal durable, in this order."""
        sync()
        self._write(_SYNCED)
        with naming(self.folder / _JOURNAL):
            os.fsync(self._log)
        self._last_sync = time.monotonic()

    def _write(self, line: str) -> None:
        with naming(self.folder / _JOURNAL):
            os.write(self._log, f"{line}\n".encode())

    @whole
    def publish(self) -> None:
        """Makes the result durable, which must be complete, and renames it to the target, atomically."""
        self._has_part = True
        if changed := self._changed():
            raise FileChangedError(changed)
        fsync_path(self.part)
        self._write(self._whole(self.part))
        if self.target.exists():
            self.part.chmod(self.target.stat().st_mode & 0o7777)
        os.replace(self.part, self.target)
        self._has_part, self._source = False, None  # which the result may have replaced
        fsync_path(self.target.parent)


def fsync_path(path: Path) -> None:
    """Makes a file or a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _boot() -> str:
    """The boot id; a random one, equal to none, where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.urandom(8).hex()


def _before_last(word: str, lines: list[str]) -> list[str]:
    return lines[: len(lines) - lines[::-1].index(word) - 1] if word in lines else []


class NoJournal:
    """The journal of a sort that cannot be resumed."""

    def __init__(self) -> None:
        self.done: set[str] = set()

    def mark(self, step: str, sync: Callable[[], object]) -> None:
        pass

    def sync(self, sync: Callable[[], object]) -> None:
        pass
