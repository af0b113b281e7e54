"""The memory budget of an external sort: parses sizes, and finds free memory (MemAvailable and cgroup limits)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import SupportsIndex, cast

from ..types.checks import as_int
from ..types.environment import memory_limits
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
        parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", memory.strip(), re.ASCII | re.IGNORECASE)
        if parts is None:
            raise InvalidArgumentError(f"{expected} found {memory!r}")
        number, unit = parts.groups()
        memory = int(min(float(number), _MOST) * (1 << _UNITS[unit.lower()]))
    if memory < LEAST:
        raise InvalidArgumentError(f"{name}: expected at least {LEAST} bytes, found {memory}")
    return memory


def free_memory() -> int:
    """Free bytes: the least of the machine's and of those left in this process's control groups."""
    # What a group uses includes page cache that could be dropped, so this errs on the safe side.
    return min([_machine_free(), *(max(0, limit - used) for limit, used in memory_limits())])


def _machine_free() -> int:
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) << 10 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
