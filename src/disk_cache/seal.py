"""Authenticated cache files, for content that is executed: each has an HMAC with a secret key of the user's.

The HMAC covers the file's kind, name and content. A file that was changed, truncated, renamed, or copied from another
machine is a cache miss.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets

from .cache import folder, read, read_file, write, write_file
from .trust import is_secret_file

_MAGIC = b"gpusort sealed 1\n"
_DIGEST = hashlib.sha256().digest_size
_HEAD = len(_MAGIC) + _DIGEST
_KEY, _KEY_BYTES = "key", 32


def read_sealed(kind: str, name: str) -> bytes | None:
    """A file's payload if its HMAC is valid; None otherwise."""
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
