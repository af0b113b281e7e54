"""Checks that only the user can change the contents of a directory, by the rules that ssh applies to its files.

The path is walked from the root. Each directory must belong to the user or root, and must not be writable by others or
by its group (except a group with the owner as its only member); ancestors of the directory may also be sticky, as /tmp
is. Symbolic links must belong to the user or root, and are followed by the same rules. As nobody else can replace a
component that was checked, there is no race between check and use (TOCTOU). Without user ids (Windows) only file types
are checked: user profiles are protected by the system.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

_MOST_LINKS = 40
_HAS_OWNERS = hasattr(os, "geteuid")


class Untrusted(Exception):
    """Raised if others could change a directory's contents; the message says where and how."""


def trusted_directory(path: str, *below: str, make: bool) -> str:
    """The real path of a subdirectory, checked; with `make` created with mode 0700. Raises Untrusted if others could
    write, and OSError if it does not exist or cannot be created."""
    if not _HAS_OWNERS:
        return _unchecked_path(os.path.join(path, *below), make)
    here = _checked_path(path if os.path.isabs(path) else os.path.join(os.getcwd(), path), make)
    for name in below:
        here = _checked_path(os.path.join(here, name), make)
    return here


def is_trusted_file(found: os.stat_result) -> bool:
    """Whether an open file is a regular one that only the user or root can write."""
    ours = not _HAS_OWNERS or (found.st_uid in _trusted_users() and not _who_else_writes(found))
    return stat.S_ISREG(found.st_mode) and ours


def is_secret_file(found: os.stat_result) -> bool:
    """Whether an open file is a regular one that only the user can read."""
    secret = not _HAS_OWNERS or (found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    return stat.S_ISREG(found.st_mode) and secret


def _unchecked_path(path: str, make: bool) -> str:
    if make:
        os.makedirs(path, mode=0o700, exist_ok=True)
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return path


def _checked_path(path: str, make: bool) -> str:
    """Resolves an absolute path, checking each component."""
    here, links = os.sep, 0
    _require(here, os.lstat(here))
    ahead = _parts(path)
    while ahead:
        part = ahead.pop()
        if part == os.pardir:
            here = os.path.dirname(here)
            continue
        there = os.path.join(here, part)
        found = _status(there, make)
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
    """A path's components, in reverse order."""
    return [part for part in reversed(path.split(os.sep)) if part not in ("", os.curdir)]


def _status(path: str, make: bool) -> os.stat_result:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process was faster; its directory is checked like any other
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
    """Who besides the owner can write: "everybody", "its group" or nobody (""). A private group does not count."""
    if found.st_mode & stat.S_IWOTH:
        return "everybody"
    if found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid, found.st_uid):
        return "its group"
    return ""


def _is_private(group: int, owner: int) -> bool:
    """Whether a group is a user private group: the owner's primary group, of the same name, without other members."""
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
