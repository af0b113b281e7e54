"""Data race detection by happens-before, with shadow memory for each element.

Two accesses race when different invocations touch one element, at least one writes, they are not both atomic, and
neither happens before the other. A barrier orders the invocations of a workgroup; nothing in a launch orders two
workgroups. So no vector clocks are needed: an epoch of 64 bits (workgroup + 1, barriers passed by that workgroup, local
id) says all of an access.

The shadow memory holds two such epochs ("keys") for each element and kind of access, chosen so that no race is missed:
two of different workgroups once there are any; else two of different invocations since the last barrier.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ..counts import are_all, is_any
from ..interpreters import MOST_INVOCATIONS

Indices: TypeAlias = npt.NDArray[np.int64]
Keys: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]

LOCAL_BITS = (MOST_INVOCATIONS - 1).bit_length()
BARRIER_BITS = 28
_GROUP_SHIFT = np.uint64(LOCAL_BITS + BARRIER_BITS)
_LOCAL_SHIFT = np.uint64(LOCAL_BITS)
_LOCAL_MASK = np.uint64((1 << LOCAL_BITS) - 1)
ONE_BARRIER = np.uint64(1 << LOCAL_BITS)


@attrs.frozen
class Invoker:
    group: int
    local: int

    def __str__(self) -> str:
        return f"(group {self.group}, local {self.local})"


def keys_of(groups: npt.NDArray[np.uint32], locals_: npt.NDArray[np.uint32]) -> Keys:
    """The keys of invocations that have passed no barrier yet. No key is 0, which means "no access"."""
    return ((groups.astype(np.uint64) + np.uint64(1)) << _GROUP_SHIFT) | locals_.astype(np.uint64)


def invoker_of(key: np.uint64) -> Invoker:
    return Invoker(int(key >> _GROUP_SHIFT) - 1, int(key & _LOCAL_MASK))


class Access(Enum):
    """The kinds of access that conflict differently."""

    READ = "read"
    WRITE = "written"
    ATOMIC_READ = "read atomically"
    ATOMIC_WRITE = "updated atomically"

    __hash__ = object.__hash__  # Enum's own takes the name's, in Python, and every access asks for some


_CONFLICTING = {
    Access.READ: (Access.WRITE, Access.ATOMIC_WRITE),
    Access.WRITE: (Access.WRITE, Access.READ, Access.ATOMIC_WRITE, Access.ATOMIC_READ),
    Access.ATOMIC_READ: (Access.WRITE,),
    Access.ATOMIC_WRITE: (Access.WRITE, Access.READ),
}
_OTHERS = {kind: tuple(other for other in others if other is not kind) for kind, others in _CONFLICTING.items()}
_ITSELF = (Access.WRITE,)


@attrs.frozen
class Race:
    """An unordered pair of conflicting accesses. `position` is the later one's in the batch passed to `access`."""

    position: int
    other: Invoker
    other_access: Access
    other_site: int


class _Accesses:
    """Shadow memory for one kind of access: for each element two keys, each with its site (statement)."""

    def __init__(self, count: int) -> None:
        self.first = np.zeros(count, np.uint64)
        self.first_site = np.zeros(count, np.int32)
        self.second: Keys | None = None  # allocated when first needed, which for most memories is never
        self.second_site = np.zeros(0, np.int32)

    def find_unordered(self, elements: Indices, keys: Keys) -> tuple[int, Keys, npt.NDArray[np.int32]] | None:
        """The first position whose access is unordered with a recorded one, with that one's key and site."""
        for known, sites in ((self.first, self.first_site), (self.second, self.second_site)):
            if known is None:
                continue
            others = known[elements]
            if not is_any(others):
                continue
            unordered = _unordered(others, keys)
            if is_any(unordered):
                position = int(np.argmax(unordered))
                element = elements[position : position + 1]
                return position, known[element], sites[element]
        return None

    def record(self, elements: Indices, keys: Keys, site: int) -> None:
        """Records accesses to distinct elements."""
        first = self.first[elements]
        differing = first ^ keys
        if self.second is None:
            # Mostly nothing was accessed, or by the same workgroups before their last barriers, or by the same
            # invocations since then.
            if not is_any(first) or (not is_any(differing >> _GROUP_SHIFT) and are_all(differing >> _LOCAL_SHIFT)):
                self.first[elements] = keys
                self.first_site[elements] = site
                return
            if not is_any(differing):
                return
        known = first != 0
        foreign = known & ((differing >> _GROUP_SHIFT) != 0)
        same_interval = (differing >> _LOCAL_SHIFT) == 0
        add = foreign | (same_interval & (differing != 0))
        replace = ~(foreign | same_interval)
        if self.second is not None:
            second = self.second[elements]
            settled = (second != 0) & (((first ^ second) >> _GROUP_SHIFT) != 0)
            add &= ~settled
            replace &= ~settled
        replaced = elements[replace]
        self.first[replaced] = keys[replace]
        self.first_site[replaced] = site
        if self.second is None and is_any(add):
            self.second = np.zeros(len(self.first), np.uint64)
            self.second_site = np.zeros(len(self.first), np.int32)
        if self.second is not None:
            self.second[replaced] = 0
            self.second[elements[add]] = keys[add]
            self.second_site[elements[add]] = site


def _unordered(others: Keys, keys: Keys) -> Mask:
    """Where neither access happens before the other: two workgroups, or two invocations between the same barriers."""
    differing = others ^ keys
    unordered: Mask = (differing - np.uint64(1)) < _LOCAL_MASK  # 0 - 1 wraps and is large
    apart = differing >> _GROUP_SHIFT
    if is_any(apart):  # which they are in one workgroup's memory only where nothing was accessed yet
        unordered |= (apart != 0) & (others != 0)
    return unordered


class RaceDetector:
    """Detects races on one memory during one launch."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._accesses: dict[Access, _Accesses] = {}
        self._positions = np.zeros(count, np.int32)

    def access(self, elements: Indices, keys: Keys, kind: Access, site: int) -> Race | None:
        """Records accesses by invocations in ascending order; returns the first race found."""
        race = self._find(elements, keys, _OTHERS[kind])
        if race is not None:
            return race
        if kind not in self._accesses:
            self._accesses[kind] = _Accesses(self._count)
        known = self._accesses[kind]
        if are_all(elements[1:] > elements[:-1]):  # all distinct
            known.record(elements, keys, site)
            return self._find(elements, keys, _ITSELF) if kind is Access.WRITE else None
        order = np.arange(len(elements), dtype=np.int32)
        self._positions[elements] = order
        last = self._positions[elements] == order
        known.record(elements[last], keys[last], site)
        if not are_all(last):
            # Several invocations access one element. Recording the first and the last suffices: if any two are of
            # different workgroups, these are.
            self._positions[elements[::-1]] = order[::-1]
            first = (self._positions[elements] == order) & ~last
            known.record(elements[first], keys[first], site)
        # Plain writes race with each other, also within one statement, so they are checked after recording.
        return self._find(elements, keys, _ITSELF) if kind is Access.WRITE else None

    def _find(self, elements: Indices, keys: Keys, kinds: tuple[Access, ...]) -> Race | None:
        for kind in kinds:
            known = self._accesses.get(kind)
            found = None if known is None else known.find_unordered(elements, keys)
            if found is not None:
                position, key, site = found
                return Race(position, invoker_of(key[0]), kind, int(site[0]))
        return None
