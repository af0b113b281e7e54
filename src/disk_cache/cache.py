"""Reads and writes files in the user's cache directory, best effort, by atomic rename.

A directory that others could write is refused with one warning for the process; one that is missing, full or read-only
is not used, silently. Then nothing is cached, and everything else works.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from ..types.environment import word
from .trust import Untrusted, is_secret_file, is_trusted_file, trusted_directory

LOGGER = "gpusort"

_READING = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_SUFFIX = ".tmp"
_ABANDONED = 3600.0  # seconds after which a temporary file is stale
_LONGEST = 1 << 26  # bytes of a file: damaged ones may be of any length

_refused: dict[str, object] = {}  # untrusted directories, logged once
_failed: dict[str, object] = {}  # unusable ones, logged once


def cache_directory() -> str | None:
    """$GPUSORT_CACHE_DIR, else gpusort in $XDG_CACHE_HOME, else in ~/.cache; None without a home directory."""
    wanted, has_home = word("GPUSORT_CACHE_DIR"), os.environ.get("HOME") != ""  # which would expand to the root
    if wanted:
        found = os.path.expanduser(wanted) if has_home else wanted
        return None if found.startswith("~") else found  # which is left where there is no such home
    base = word("XDG_CACHE_HOME")
    if not os.path.isabs(base):  # relative paths are to be ignored, says its specification
        home = os.path.expanduser("~") if has_home else ""
        base = os.path.join(home, ".cache")
    return os.path.join(base, "gpusort") if os.path.isabs(base) else None


def folder(*kind: str, make: bool) -> str | None:
    """The directory for files of a kind, or the cache directory itself; None if it cannot be used."""
    wanted = cache_directory()
    if wanted is None or wanted in _refused:
        return None
    try:
        return trusted_directory(wanted, *kind, make=make)
    except Untrusted as reason:
        text = "the cache directory %s is not used: %s, and what lies in it would be run; nothing is kept"
        _say_once(_refused, "WARNING", text, wanted, reason)
    except (OSError, ValueError) as reason:
        if make:
            _say_once(_failed, "INFO", "the cache directory %s cannot be used: %s; nothing is kept", wanted, reason)
    return None


def read(kind: str, name: str) -> bytes | None:
    """A file's content; None if there is none."""
    place = folder(kind, make=False)
    return None if place is None else read_file(os.path.join(place, name), is_trusted_file)


def write(kind: str, name: str, content: bytes) -> Path | None:
    """Writes a file; returns its path, or None if that failed."""
    place = folder(kind, make=True)
    if place is None:
        return None
    _sweep(place)
    path = os.path.join(place, name)
    return Path(path) if write_file(path, content, os.replace) else None


def remove(kind: str, name: str) -> None:
    """Removes a file, if there is one."""
    place = folder(kind, make=False)
    if place is not None:
        with suppress(OSError):
            os.unlink(os.path.join(place, name))


def read_file(path: str, is_good: Callable[[os.stat_result], bool]) -> bytes | None:
    """A file's content if `is_good` accepts its status; None otherwise. Checked after opening, and without following
    symbolic links."""
    try:
        with open(path, "rb", opener=lambda path, _: os.open(path, _READING)) as file:
            found = os.fstat(file.fileno())
            return file.read() if is_good(found) and found.st_size <= _LONGEST else None
    except OSError:
        return None


def write_file(path: str, content: bytes, place: Callable[[str, str], object]) -> bool:
    """Writes a file with mode 0600 atomically: to a temporary file, which `place` (os.replace or os.link) then gives
    its name. Returns whether that succeeded."""
    try:
        import tempfile  # which takes longer than to find what is cached

        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=os.path.basename(path), suffix=_SUFFIX)
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        place(temporary, path)
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    return True


@cache
def _sweep(place: str) -> None:
    """Removes stale temporary files of killed processes, once for each process and directory."""
    oldest = time.time() - _ABANDONED
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.endswith(_SUFFIX) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)


def _say_once(said: dict[str, object], level: str, text: str, wanted: str, reason: Exception) -> None:
    """Logs a line once for each directory, also with several threads (setdefault is atomic)."""
    mark = object()
    if said.setdefault(wanted, mark) is mark:
        import logging

        logging.getLogger(LOGGER).log(getattr(logging, level), text, wanted, reason)


_MAGIC = b"gpusort sealed 1\n"
_DIGEST = hashlib.sha256().digest_size
_HEAD = len(_MAGIC) + _DIGEST
_KEY, _KEY_BYTES = "key", 32


def read_sealed(kind: str, name: str) -> bytes | None:
    """The payload of a file whose content is executed, if its HMAC, by a secret key of the user's, is valid; None
    otherwise. The HMAC covers the file's kind, name and content: a file that was changed, truncated, renamed, or copied
    from another machine is a cache miss."""
    content = read(kind, name)
    if content is None or not content.startswith(_MAGIC) or len(content) < _HEAD:
        return None
    key, payload = _key(make=False), content[_HEAD:]
    if key is None or not hmac.compare_digest(content[len(_MAGIC) : _HEAD], _digest(key, kind, name, payload)):
        return None
    return payload


def write_sealed(kind: str, name: str, payload: bytes) -> bool:
    """Writes a file with its HMAC; returns whether that succeeded."""
    key = _key(make=True)
    return key is not None and write(kind, name, _MAGIC + _digest(key, kind, name, payload) + payload) is not None


def _digest(key: bytes, kind: str, name: str, payload: bytes) -> bytes:
    about = f"{kind}\0{name}\0{len(payload)}\0".encode()
    return hmac.new(key, _MAGIC + about + payload, hashlib.sha256).digest()


def _key(*, make: bool) -> bytes | None:
    """The secret key of this cache directory; with `make` created if missing, readable by others, or of wrong size."""
    place = folder(make=make)
    if place is None:
        return None
    path = os.path.join(place, _KEY)
    key = _read_key(path)
    if key is None and make:
        fresh = secrets.token_bytes(_KEY_BYTES)
        # A hard link fails if the file exists: of several processes that start at once, the first one's key is used.
        if not write_file(path, fresh, os.link) and _read_key(path) is None:
            write_file(path, fresh, os.replace)
        key = _read_key(path)
    return key


def _read_key(path: str) -> bytes | None:
    key = read_file(path, is_secret_file)
    return key if key is not None and len(key) == _KEY_BYTES else None
