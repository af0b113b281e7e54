"""A sort's scratch folder: a lock, a journal, and the atomic rename that publishes the result."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from io import FileIO
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from ..types.calls import uninterrupted
from ..types.errors import FileChangedError, GpusortError, InvalidArgumentError
from .crew import whole
from .direct import naming
from .journal import Journal
from .plans import Plan
from .versions import Facts, identity_of, is_at, stamps_of

JOURNAL = "journal"
SCRATCH, PART = ".sorting", ".part"  # how the names end of a scratch folder, and of an incomplete result
_RESUMED, _WHOLE = "resumed", "whole "  # lines of the journal, as are steps


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
        beyond = len(os.fsencode(name)) - os.pathconf(target.parent, "PC_NAME_MAX")
        if beyond > 0:
            raise InvalidArgumentError(
                f"target: {target} has a name too long for the folder {name} of its sort: give it one that is {beyond} "
                "bytes shorter"
            )
        self.target, self._source, self._keep = target, source, keep
        self._identity: Facts = {} if source is None else identity_of(source)
        self._is_ours = False  # ours to remove: a sort that was killed may have left what is to be resumed
        self._journal: Journal | None = None  # while the lock is held
        self._part: FileIO | None = None  # while it is locked: sorts with scratch folders elsewhere would write to it

    @property
    def part(self) -> Path:
        """The incomplete result: in the target's folder, so that it can be renamed atomically."""
        return self.target.with_name(f"{self.target.name}{PART}")

    @property
    def is_left(self) -> bool:
        """Whether a sort was killed that had it, or is under way."""
        with suppress(FileNotFoundError, NotADirectoryError):  # another user's may not be looked into, but is there
            return S_ISREG((self.folder / JOURNAL).stat().st_mode)
        return False

    @property
    def journal(self) -> Journal:
        assert self._journal is not None  # it is locked
        return self._journal

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
        if self._source is not None and identity_of(self._source) != self._identity:
            self._keep = False  # what is done is of no use
            return f"source: {self._source} was written to, replaced or removed while it was being sorted: sort it anew"
        if not self._journal.is_there:
            return f"target: {self.folder} was removed while {self.target} was being sorted: sort it anew"
        if self._part is not None and not is_at(self.part, self._part):
            return f"target: {self.part} was removed while it was being written: sort it anew"
        return ""

    @whole
    def lock(self) -> None:
        """Makes the folder, and locks it. Raises InvalidArgumentError if another sort has, or something is there."""
        # A part of ours comes with a scratch folder; anything else of that name belongs to somebody else.
        is_known = self.folder.exists() and self.part.is_file() and self.part != self._source
        if os.path.lexists(self.part) and not is_known:
            raise InvalidArgumentError(
                f"target: {self.part} is in the way, which no sort has left that is known here: if one has scratch "
                "files elsewhere, name their folder (scratch=, --scratch); else move or delete it"
            )
        while not self._is_locked():
            pass
        if self.part.exists():
            self._hold(new=False)

    def _is_locked(self) -> bool:
        """Tries to create and lock the folder. False, to try again, if another sort that finished just removed it."""
        import fcntl

        path = self.folder / JOURNAL
        with suppress(FileExistsError):
            self.folder.mkdir(0o700)  # the data may be private
        try:
            found = self.folder.lstat()  # not of what a link leads to, which could not be removed
            # A folder for all users, as /tmp, may have one that another has made, and would read our runs in.
            is_ours = found.st_uid in (os.geteuid(), self.folder.parent.stat().st_uid)
            is_scratch = S_ISDIR(found.st_mode) and is_ours and (not any(self.folder.iterdir()) or path.is_file())
            file = FileIO(path, "a+") if is_scratch else None
        except FileNotFoundError:
            return False
        except OSError:
            with suppress(OSError):  # the exception under way matters more
                self.folder.rmdir()
            raise
        if file is None:
            if not os.path.lexists(self.folder):
                return False
            raise InvalidArgumentError(
                f"target: {self.folder} is in the way, which no sort of this user has left: move it, or have scratch "
                "files elsewhere (scratch=, --scratch)"
            )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if isinstance(error, BlockingIOError):
                raise self._sorted_already() from error
            if not path.stat().st_size:  # no other call has left it
                shutil.rmtree(self.folder, ignore_errors=True)
            raise InvalidArgumentError(  # on some network file systems
                f"target: {path} cannot be locked: have scratch files elsewhere (scratch=, --scratch): {error}"
            ) from error
        journal = Journal(path, file)
        if not journal.is_there:
            journal.close()
            return False
        self._journal, self._is_ours = journal, not (self._keep and journal.lines)
        return True

    def _sorted_already(self) -> InvalidArgumentError:
        return InvalidArgumentError(f"target: {self.target} is being sorted already, by this process or another")

    @whole
    def _hold(self, *, new: bool) -> None:
        """Locks the part: a new one, or what an earlier call has left. Raises InvalidArgumentError if another sort has
        locked it."""
        import fcntl

        # The result must not be readable by more users than the file that it replaces.
        mode = 0o600 if self.target.exists() else 0o666
        try:
            part = FileIO(os.open(self.part, os.O_CREAT | os.O_EXCL if new else os.O_RDONLY, mode))
        except (FileExistsError, FileNotFoundError) as error:  # made, or published, a moment ago
            raise self._sorted_already() from error
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_taken = not is_at(self.part, part)
        except OSError as error:
            is_taken = isinstance(error, BlockingIOError)  # some network file systems have no locks
        if is_taken:
            part.close()
            raise self._sorted_already()
        self._part = part

    def _let_go(self) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None

    def _leave(self, *, has_failed: bool) -> None:
        """Removes what is not to be kept, and unlocks, whatever interrupts it."""

        def leave() -> None:
            if self._journal is None:
                return
            try:
                if not has_failed or (self._is_ours and not (self._keep and self._journal.done)):
                    if has_failed and self._part is not None and is_at(self.part, self._part):
                        with suppress(OSError):  # the exception under way matters more
                            self.part.unlink(missing_ok=True)
                    shutil.rmtree(self.folder, ignore_errors=True)
                elif self._is_ours:
                    self._note_stop()
            finally:
                self._let_go()
                self._journal.close()
                self._journal = None

        uninterrupted(leave, always=True)

    def sort(self, work: str, plan: Plan, by: Callable[[Plan], None]) -> None:
        """Sorts by this plan, or by that of the call that is resumed, and publishes the result; unless that call has
        done so, and only failed to remove this folder."""
        with self, self:
            self.lock()
            identity, is_over = {**self._identity, "target": str(self.target), "work": work}, self._is_over()
            if self._keep and is_over and self._has_made(identity):
                return
            found = self.claim(identity, plan, resume=self._keep and not is_over)
            if self._part is None:
                self._hold(new=True)
            by(found)
            self.publish()

    def _has_made(self, identity: Facts) -> bool:
        """Whether the target is an earlier call's result, and of the same data and arguments. Of a file that was sorted
        over itself nothing is as it was but its name."""
        is_over_itself = self._source == self.target
        known = {name: identity[name] for name in ("path", "target", "work")} if is_over_itself else identity
        is_whole, before = self.journal.lines[-1] == self._whole(self.target), self.journal.sorted_before
        return is_whole and {**before, **known} == before

    @whole
    def claim(self, identity: Facts, plan: Plan, *, resume: bool) -> Plan:
        """Starts or resumes: the plan of an earlier call for the same data and arguments, else this one, with a new
        journal. Raises InvalidArgumentError if it is to resume a sort of something else."""
        journal = self.journal
        if resume and journal.lines:
            found = journal.resume(identity)
            if not self.part.exists():
                journal.done = {step for step in journal.done if not step.startswith("bucket")}
            self._require_stamps(journal.stamps)
            self._is_ours = True
            journal.write(_RESUMED)  # from here on files change
            return found
        journal.begin(identity, plan)  # first: it must not tell of files that are gone, whenever this is killed
        self._is_ours = True
        if self._part is not None:  # else another sort may have made one meanwhile
            self.part.unlink(missing_ok=True)
            self._let_go()
        for entry in self.folder.iterdir():
            if entry.name != JOURNAL:
                entry.unlink()
        return plan

    def _note_stop(self) -> None:
        """Journals how files are left."""
        with suppress(OSError):  # the exception under way matters more
            if not self._is_over():
                files = [self.part, *(path for path in self.folder.iterdir() if path.name != JOURNAL)]
                self.journal.note_stop(stamps_of(files))

    def _require_stamps(self, stamps: Facts) -> None:
        """Raises FileChangedError unless files are as a call has left them. A part may be gone: it is made again."""
        found = stamps_of(map(Path, stamps))
        for path, stamp in stamps.items():
            if found.get(path, stamp if path == str(self.part) else None) != stamp:
                raise self._damaged(Path(path))

    def require_kept(self, step: str, path: Path, nbytes: int) -> bool:
        """Whether steps of such a name are done. Raises FileChangedError if they are, and the file that has them is
        gone or shorter than it was made."""
        is_done = any(done.startswith(step) for done in self.journal.done)
        if is_done and (not path.exists() or path.stat().st_size < nbytes):
            raise self._damaged(path)
        return is_done

    def _damaged(self, path: Path) -> FileChangedError:
        return FileChangedError(
            f"{path} was written to, cut off or removed after an earlier call had stopped, whose work it has: do not "
            f"resume, or remove {self.folder}"
        )

    def _is_over(self) -> bool:
        """Whether a call has published its result."""
        return any(line.startswith(_WHOLE) for line in self.journal.lines[-1:]) and not self.part.exists()

    @staticmethod
    def _whole(path: Path) -> str:
        return f"{_WHOLE}{path.stat().st_ino} {[*stamps_of([path]).values()]}" if path.exists() else ""

    @whole
    def publish(self) -> None:
        """Makes the result durable, which must be complete, and renames it to the target, atomically."""
        if changed := self._changed():
            raise FileChangedError(changed)
        fsync_path(self.part)
        self.journal.write(self._whole(self.part))
        if self.target.exists():
            self.part.chmod(self.target.stat().st_mode & 0o7777)
        os.replace(self.part, self.target)
        self._let_go()
        self._source = None  # which the result may have replaced
        fsync_path(self.target.parent)


def fsync_path(path: Path) -> None:
    """Makes a file or a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fsync_held(descriptor, path)
    finally:
        os.close(descriptor)


def fsync_held(descriptor: int, path: Path) -> None:
    """Makes an open file durable, though it may be removed meanwhile: `path` is for messages."""
    with naming(path):
        os.fsync(descriptor)
