"""The environment's variables: one way to read each kind.

What is empty or blank is not set. Numbers are ASCII digits and nothing else; what passes the most that makes sense
counts as that.
"""

from __future__ import annotations

import os
from functools import lru_cache

from .errors import InvalidArgumentError

_DIGITS = frozenset("0123456789")
_LARGEST = (1 << 63) - 1
_MOST_DIGITS = 18  # fewer than the largest has


def word(name: str) -> str:
    """What a variable says, without blanks around it; nothing where it is not set."""
    return os.environ.get(name, "").strip()


def whole_number(name: str, usual: int, *, least: int, what: str, most: int = _LARGEST) -> int:
    """The number a variable gives, `most` where it gives more; `usual` where it is not set."""
    said = word(name)
    return usual if not said else min(_number(name, said, least, what), most)


def core_count() -> int:
    """The cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@lru_cache(maxsize=64)
def _number(name: str, said: str, least: int, what: str) -> int:
    if _DIGITS.issuperset(said):
        digits = said.lstrip("0") or "0"
        number = int(digits) if len(digits) <= _MOST_DIGITS else _LARGEST
        if number >= least:
            return number
    raise InvalidArgumentError(f"{name}: expected {what}, found {said!r}")
