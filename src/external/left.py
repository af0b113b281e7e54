"""What sorts in place of memory-mapped arrays leave beside the file when they are killed: for each part of it that was
being sorted a scratch folder, or a link to one elsewhere. Some elements may be there alone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import attrs

from ..types.bounded import Bounded
from ..types.errors import InvalidArgumentError
from .scratch import JOURNAL, SCRATCH, Scratch

_END = 1 << 63  # of a part that nothing tells of
_APART = 2 * 10**9  # nanoseconds, in which times of all file systems are apart
_listed: Bounded[str, tuple[int, list[str]]] = Bounded(1 << 6)  # by folder: when it last changed, and the names then


@attrs.frozen
class Left:
    """What one sort has left that was killed, or that is under way."""

    path: Path
    start: int  # bytes of the file that it sorts
    stop: int
    folder: Path
    link: Path | None  # beside the file, where the folder is elsewhere
    has_begun: bool  # to write over the file that is there now
    is_there: bool = True  # the folder, and of this file

    @property
    def may_lack(self) -> bool:
        """Whether elements of the file may be in the folder alone."""
        return self.has_begun or not self.is_there

    @property
    def is_under_way(self) -> bool:
        """Whether a process holds it."""
        import fcntl

        with suppress(FileNotFoundError), (self.folder / JOURNAL).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def refusal(self, name: str) -> InvalidArgumentError:
        where, way = str(self.folder), "sort it with the same arguments first"
        if not self.is_there:
            where, way = f"{where}, which is not there, or of a file elsewhere", "bring both back"
        rest = f"{self.folder}" if self.link is None else f"{self.folder} and {self.link}"
        return InvalidArgumentError(
            f"{name}: a process that sorted {self.path} in place was killed, or still sorts it, and its elements are "
            f"in {where}: {way}, or remove {rest} to sort the array as it is now, without them"
        )


def scratch_of(path: Path, position: int, where: Path | None) -> Scratch:
    """Of a sort in place of a part of a file: what is left beside it goes before what this call would choose."""
    named = path.with_name(f"{path.name}@{position}")
    chosen, beside = (Scratch(named, folder, keep=True) for folder in (where, None))
    if (led := led_to(beside.folder)) is not None:
        return Scratch(named, led.parent, keep=True)
    return beside if beside.is_left else chosen


def link_to(scratch: Scratch) -> Path | None:
    """Beside the file, the place of a link to a scratch folder that is elsewhere: for calls that know of no other."""
    place = Scratch(scratch.target, None, keep=True).folder
    return None if place == scratch.folder else place


def led_to(link: Path) -> Path | None:
    """Where a link leads; None if there is none, or no longer."""
    with suppress(OSError):
        return link.parent / os.readlink(link)
    return None


def left_of(file: str, where: Path | None) -> Iterator[Left]:
    """What is left of sorts of any part of a file, beside it or in another folder."""
    beside, name = os.path.split(file)
    names, lead = set[str](), f"{name}@"
    for folder in {beside, beside if where is None else os.fspath(where)}:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            names.update(name for name in _parts_in(folder) if name.startswith(lead))
    numbers = {name.removeprefix(lead).partition(".")[0] for name in names}
    for position in sorted(int(number) for number in numbers if number.isascii() and number.isdecimal()):
        path = Path(file)
        link = path.with_name(f"{lead}{position}{SCRATCH}")
        led, scratch = led_to(link), scratch_of(path, position, where)
        if scratch.is_left:
            with suppress(FileNotFoundError):  # of one that has come to its end meanwhile
                yield found_in(scratch, path, position)
        elif led is not None and led == led_to(link):  # else a sort has just begun, or come to its end
            yield Left(path, position, _END, led, link, has_begun=False, is_there=False)


def _parts_in(folder: str) -> list[str]:
    """What in a folder has a name as of a part of a file. Folders of many files are listed again only once anything was
    made or removed there: their time tells, unless it is so recent that it may not tell two changes apart."""
    changed = os.stat(folder).st_mtime_ns
    known = _listed.get(folder)
    if known is not None and known[0] == changed:
        return known[1]
    found = [name for name in os.listdir(folder) if "@" in name]
    if time.time_ns() - changed > _APART:
        _listed[folder] = changed, found
    return found


def found_in(scratch: Scratch, path: Path, position: int) -> Left:
    """What the scratch folder, which is there, tells of its sort."""
    lines, link = (scratch.folder / JOURNAL).read_text("utf-8", "replace").split("\n"), link_to(scratch)
    nbytes, inode = 1, None
    with suppress(ValueError, TypeError, KeyError):  # of one that was killed as it began, or has yet to look for others
        of = json.loads(lines[0])["of"]
        nbytes, inode = int(of["bytes"]), of["inode"]
    has_begun = path.stat().st_ino == inode and any(line.startswith("begun") for line in lines)
    return Left(path, position, position + nbytes, scratch.folder, link, has_begun)


def require_all_there(name: str, left: Iterable[Left]) -> None:
    """Raises InvalidArgumentError if elements of a file may be nowhere but in what is left of sorts in place."""
    for one in left:
        if one.may_lack:
            raise one.refusal(name)
