"""Environment variables. A blank one counts as unset; numbers are ASCII digits, clamped to their maximum."""

from __future__ import annotations

import os
from functools import lru_cache

from .checks import LARGEST, number_in
from .errors import InvalidArgumentError


def word(name: str) -> str:
    """A variable's value, stripped; empty where it is not set."""
    return os.environ.get(name, "").strip()


def whole_number(name: str, usual: int, *, least: int, what: str, most: int = LARGEST) -> int:
    """A variable's number, at most `most`; `usual` where it is not set. Raises InvalidArgumentError below `least`."""
    said = word(name)
    return usual if not said else min(_number(name, said, least, what), most)


def core_count() -> int:
    """The number of cores that this process may run on, by its affinity."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@lru_cache(maxsize=1)
def memory_bytes() -> int:
    """The machine's memory, or what this container may use of it; 0 where the system does not tell."""
    sysconf = getattr(os, "sysconf", None)
    found = sysconf("SC_PAGE_SIZE") * sysconf("SC_PHYS_PAGES") if sysconf is not None else 0
    return min([found, *(limit for limit, _ in memory_limits())])


def memory_limits(proc: str = "/proc/self/cgroup", mounts: str = "/sys/fs/cgroup") -> list[tuple[int, int]]:
    """The bytes that this process's control group may use, and uses, and the same for all around it, a container's
    among them, in version 1 or 2. Groups without a limit are left out. Files that the system caches are not counted as
    used: it drops them where memory is short, and until then they may take all that is left."""
    found: list[tuple[int, int]] = []
    for line in _read(proc).splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            folder, names, below = mounts, ("memory.max", "memory.current"), ""
        elif "memory" in controllers.split(","):
            folder, names = f"{mounts}/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
            below = "total_"  # of what the groups in it use, too
        else:
            continue
        parts = [folder, *filter(None, group.split("/"))]
        for count in range(len(parts), 0, -1):
            limit, used, stat = (_read("/".join((*parts[:count], name))).strip() for name in (*names, "memory.stat"))
            if limit.isdigit():  # or "max", or there is no such group where this process sees them
                counts = {kind: count for kind, _, count in (line.partition(" ") for line in stat.splitlines())}
                cached = sum(int(counts.get(f"{below}{kind}_file", 0)) for kind in ("active", "inactive"))
                found.append((int(limit), max(0, int(used or 0) - cached)))
    return found


def _read(path: str) -> str:
    """A file's text; none if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


@lru_cache(maxsize=64)
def _number(name: str, said: str, least: int, what: str) -> int:
    number = number_in(said)
    if number is not None and number >= least:
        return number
    raise InvalidArgumentError(f"{name}: expected {what}, found {said!r}")
