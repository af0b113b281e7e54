"""Files in the cache that are run: each bears a digest made with a key that only the user has; no other is believed.

The digest is over the file's kind, its name and its content. So what was changed, cut short, given another's name, or
brought from another machine counts as not there, and is made again.
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
    """What is kept under a name, if it was kept here under that name."""
    content = read(kind, name)
    if content is None or not content.startswith(_MAGIC) or len(content) < _HEAD:
        return None
    key, payload = _key(make=False), content[_HEAD:]
    if key is None or not hmac.compare_digest(content[len(_MAGIC) : _HEAD], _digest(key, kind, name, payload)):
        return None
    return payload


def write_sealed(kind: str, name: str, payload: bytes) -> bool:
    """Keeps a file under its seal. Whether that could be done."""
    key = _key(make=True)
    return key is not None and write(kind, name, _MAGIC + _digest(key, kind, name, payload) + payload) is not None


def _digest(key: bytes, kind: str, name: str, payload: bytes) -> bytes:
    about = f"{kind}\0{name}\0{len(payload)}\0".encode()
    return hmac.new(key, _MAGIC + about + payload, hashlib.sha256).digest()


def _key(*, make: bool) -> bytes | None:
    """The key of this cache directory. One that others could read, or of another length, is replaced."""
    place = folder(make=make)
    if place is None:
        return None
    path = os.path.join(place, _KEY)
    key = _read_key(path)
    if key is None and make:
        fresh = secrets.token_bytes(_KEY_BYTES)
        # Of several processes that start at once the first one's counts, where the file system has links.
        if not write_file(path, fresh, os.link) and _read_key(path) is None:
            write_file(path, fresh, os.replace)
        key = _read_key(path)
    return key


def _read_key(path: str) -> bytes | None:
    key = read_file(path, is_secret_file)
    return key if key is not None and len(key) == _KEY_BYTES else None
