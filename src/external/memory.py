"""The memory budget of an external sort: parses sizes, and finds free memory (MemAvailable and cgroup limits)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import SupportsIndex, cast

from ..types.checks import as_int
from ..types.errors import InvalidArgumentError, UnsupportedTypeError

LEAST = 1 << 16
_MOST = float(1 << 60)  # a cap on numbers, so that they stay finite
_SHARE = 2  # "auto" takes one half; the other is for other processes and for libraries
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def bytes_of(memory: object, name: str = "memory") -> int:
    """Parses a number of bytes, a text such as "600M" or "1.5GiB", or "auto": half of what is free. Units are powers
    of 1024. Raises InvalidArgumentError below LEAST."""
    expected = f'{name}: expected a number of bytes, a text such as "600M" or "1.5GiB", or "auto",'
    if not isinstance(memory, str):
        memory = as_int(cast(SupportsIndex, memory))
        if type(memory) is not int:
            raise UnsupportedTypeError(f"{expected} found {memory!r}")
    if memory == "auto":
        return max(LEAST, free_memory() // _SHARE)
    if isinstance(memory, str):
        parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", memory.strip().lower())
        if parts is None:
            raise InvalidArgumentError(f"{expected} found {memory!r}")
        number, unit = parts.groups()
        memory = int(min(float(number), _MOST) * (1 << _UNITS[unit]))
    if memory < LEAST:
        raise InvalidArgumentError(f"{name}: expected at least {LEAST} bytes, found {memory}")
    return memory


def free_memory() -> int:
    """Free bytes: the least of the machine's and of those left in this process's cgroups."""
    return min([_machine_free(), *_cgroup_free()])


def _machine_free() -> int:
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) << 10 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _cgroup_free(proc: Path = Path("/proc/self/cgroup"), mounts: Path = Path("/sys/fs/cgroup")) -> list[int]:
    """Limit less usage of this process's cgroup and all its ancestors, in cgroup version 1 or 2."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return []
    left: list[int] = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            root, limit, used = mounts, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, used = mounts / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        path = Path(group.lstrip("/"))
        for folder in (root / path, *(root / parent for parent in path.parents)):
            try:  # usage includes reclaimable page cache, so this errs on the safe side
                left.append(max(0, int((folder / limit).read_text()) - int((folder / used).read_text())))
            except (OSError, ValueError):  # no such group, or no limit ("max")
                continue
    return left
