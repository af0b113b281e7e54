"""Environment variables. A blank one counts as unset; numbers are ASCII digits, clamped to their maximum."""

from __future__ import annotations

import os
from functools import lru_cache

from .errors import InvalidArgumentError

_DIGITS = frozenset("0123456789")
_LARGEST = (1 << 63) - 1
_MOST_DIGITS = 18  # fewer than the largest has


def word(name: str) -> str:
    """A variable's value, stripped; empty where it is not set."""
    return os.environ.get(name, "").strip()


def whole_number(name: str, usual: int, *, least: int, what: str, most: int = _LARGEST) -> int:
    """A variable's number, at most `most`; `usual` where it is not set. Raises InvalidArgumentError below `least`."""
    said = word(name)
    return usual if not said else min(_number(name, said, least, what), most)


def core_count() -> int:
    """The number of cores that this process may run on, by its affinity."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


# Of a container, in version 2 of control groups and in version 1.
_MEMORY_LIMITS = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"


@lru_cache(maxsize=1)
def memory_bytes() -> int:
    """The machine's memory, or what this container may use of it; 0 where the system does not tell."""
    sysconf = getattr(os, "sysconf", None)
    found = sysconf("SC_PAGE_SIZE") * sysconf("SC_PHYS_PAGES") if sysconf is not None else 0
    for path in _MEMORY_LIMITS:
        try:
            with open(path, encoding="ascii") as limit:
                said = limit.read().strip()
        except OSError:
            continue
        if said.isdigit():  # or "max"
            found = min(found, int(said))
    return found


@lru_cache(maxsize=64)
def _number(name: str, said: str, least: int, what: str) -> int:
    if _DIGITS.issuperset(said):
        digits = said.lstrip("0") or "0"
        number = int(digits) if len(digits) <= _MOST_DIGITS else _LARGEST
        if number >= least:
            return number
    raise InvalidArgumentError(f"{name}: expected {what}, found {said!r}")
