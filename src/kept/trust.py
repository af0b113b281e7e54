"""Whether nobody but the user can change what lies in a directory. The rules are those of ssh for its own files.

A path is walked from the root on. Each directory must belong to the user or to root, and neither its group nor all may
write there, but for a group in which its owner is alone; above the directory that is meant, a sticky one will do, as
/tmp is. A symbolic link must belong to the user or root, and is followed by the same rules. So none but these two can
put anything else in the place of what was just looked at, and there is no race to win. Where users have no numbers
(Windows), their profiles are theirs by the system's own means, and only kinds are looked at.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

_MOST_LINKS = 40
_HAS_OWNERS = hasattr(os, "geteuid")


class Untrusted(Exception):
    """Raised when others could change what lies in a directory; the message says where and how."""


def trusted_directory(path: str, *below: str, make: bool) -> str:
    """The real path of a directory and what lies below it, made if need be: of the user's own, whatever the umask.

    Raises Untrusted where others could write, and OSError where it is not there or cannot be made.
    """
    if not _HAS_OWNERS:
        return _made(os.path.join(path, *below), make)
    here = _walked(path if os.path.isabs(path) else os.path.join(os.getcwd(), path), make)
    for name in below:
        here = _walked(os.path.join(here, name), make)
    return here


def is_trusted_file(found: os.stat_result) -> bool:
    """Whether an open file is an ordinary one that none but the user or root can write."""
    ours = not _HAS_OWNERS or (found.st_uid in _trusted_users() and not _who_else_writes(found))
    return stat.S_ISREG(found.st_mode) and ours


def is_secret_file(found: os.stat_result) -> bool:
    """Whether none but the user can read it, either."""
    secret = not _HAS_OWNERS or (found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    return stat.S_ISREG(found.st_mode) and secret


def _made(path: str, make: bool) -> str:
    if make:
        os.makedirs(path, mode=0o700, exist_ok=True)
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return path


def _walked(path: str, make: bool) -> str:
    """The directory that an absolute path leads to."""
    here, links = os.sep, 0
    _require(here, os.lstat(here))
    ahead = _parts(path)
    while ahead:
        part = ahead.pop()
        if part == os.pardir:
            here = os.path.dirname(here)
            continue
        there = os.path.join(here, part)
        found = _found(there, make)
        if stat.S_ISLNK(found.st_mode):
            _require_owner(there, found)
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(there)
            here = os.sep if os.path.isabs(target) else here
            ahead += _parts(target)
            continue
        _require(there, found)
        here = there
    _require(here, os.lstat(here), is_meant=True)
    return here


def _parts(path: str) -> list[str]:
    """A path's parts, the first last."""
    return [part for part in reversed(path.split(os.sep)) if part not in ("", os.curdir)]


def _found(path: str, make: bool) -> os.stat_result:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process was faster: what it made is looked at all the same
        os.mkdir(path, 0o700)
    return os.lstat(path)


def _require(path: str, found: os.stat_result, *, is_meant: bool = False) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    _require_owner(path, found)
    who = _who_else_writes(found)
    if who and (is_meant or not found.st_mode & stat.S_ISVTX):
        raise Untrusted(f"{path} can be written by {who} (mode {stat.S_IMODE(found.st_mode):o})")


def _who_else_writes(found: os.stat_result) -> str:
    """Nobody, mostly. A group in which the owner is alone does not count: many systems give each user one."""
    if found.st_mode & stat.S_IWOTH:
        return "everybody"
    if found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid, found.st_uid):
        return "its group"
    return ""


def _is_private(group: int, owner: int) -> bool:
    """Whether a group is its owner's own: of the owner's name and number, and with no other member."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(owner), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


def _require_owner(path: str, found: os.stat_result) -> None:
    if found.st_uid not in _trusted_users():
        raise Untrusted(f"{path} belongs to another user ({found.st_uid})")


def _trusted_users() -> tuple[int, int]:
    return 0, os.geteuid()
