"""What tells one version of a file from another: of the source of a sort, and of the files that a sort left."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TypeAlias

Facts: TypeAlias = Mapping[str, object]  # a JSON object


def identity_of(source: Path) -> Facts:
    """What identifies a file and its version: path, inode, size, times. The time of its last change, which no call can
    set, tells of one that was written to and has its modification time back. Empty if there is none."""
    try:
        found = source.stat()
    except FileNotFoundError:
        return {}
    return {
        "path": str(source), "inode": found.st_ino, "bytes": found.st_size, "modified": found.st_mtime_ns,
        "changed": found.st_ctime_ns,
    }  # fmt: skip


def stamps_of(files: Iterable[Path]) -> Facts:
    """The length and the modification time of files. Whose they are, and for whom, may change."""
    return {str(path): [path.stat().st_size, path.stat().st_mtime_ns] for path in files if path.exists()}


def is_at(path: Path, file: IO[bytes]) -> bool:
    """Whether a path leads to an open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
