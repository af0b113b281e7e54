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

from ...types.invocation import Invoker
from ..counts import are_all, is_any
from ..interpreters import MOST_INVOCATIONS

Indices: TypeAlias = npt.NDArray[np.int64]
Keys: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]

LOCAL_BITS = (MOST_INVOCATIONS - 1).bit_length()
BARRIER_BITS = 28
_GROUP_SHIFT = np.uint64(LOCAL_BITS + BARRIER_BITS)
_GROUP_MASK = np.uint64((1 << LOCAL_BITS + BARRIER_BITS) - 1)  # of what one workgroup's keys differ in
_LOCAL_MASK = np.uint64((1 << LOCAL_BITS) - 1)
ONE_BARRIER = np.uint64(1 << LOCAL_BITS)


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
    Access.WRITE: (Access.ATOMIC_READ, Access.READ, Access.WRITE, Access.ATOMIC_WRITE),
    Access.ATOMIC_READ: (Access.WRITE,),
    Access.ATOMIC_WRITE: (Access.READ, Access.WRITE),
}


@attrs.frozen
class Race:
    """An unordered pair of conflicting accesses. `position` is the later one's in the batch passed to `access`."""

    position: int
    other: Invoker
    other_access: Access
    other_site: int


class _Accesses:
    """Shadow memory for one kind of access: for each element two keys, each with its site (statement)."""

    def __init__(self, kind: Access, count: int, of_one_group: bool) -> None:
        self._kind = kind
        self._of_one_group = of_one_group
        self.first = np.zeros(count, np.uint64)
        self.first_site = np.zeros(count, np.int64)
        self.second: Keys | None = None  # allocated when first needed, which for most memories is never
        self.second_site = np.zeros(0, np.int64)
        self.interval = -1  # of the last access

    def race_with(self, elements: Indices, keys: Keys) -> Race | bool:
        """The first access that is unordered with a recorded one. If there is none, whether all elements were accessed
        by the same invocations, since their last barriers."""
        own = False
        for known, sites in ((self.first, self.first_site), (self.second, self.second_site)):
            if known is None:
                continue
            others = known[elements]
            differing = others ^ keys
            if not is_any(differing):
                own = True
                continue
            unordered = self._unordered(others, differing)
            if is_any(unordered):
                position = int(np.argmax(unordered))
                element = int(elements[position])
                return Race(position, invoker_of(known[element]), self._kind, int(sites[element]))
        return own

    def replace(self, elements: Indices, keys: Keys, site: int) -> None:
        """Records accesses after which earlier ones do not matter."""
        self.first[elements] = keys
        self.first_site[elements] = site

    def record(self, elements: Indices, keys: Keys, site: int, interval: int) -> None:
        """Records accesses to distinct elements."""
        if self.interval < interval:
            self.interval = interval
            self.replace(elements, keys, site)
            return
        first = self.first[elements]
        differing = first ^ keys
        if not is_any(differing):
            return
        replace = differing > _LOCAL_MASK
        # Mostly nothing was accessed, or by the same workgroups before their last barriers.
        if are_all(replace) and (self._of_one_group or not is_any(first) or not is_any(differing > _GROUP_MASK)):
            self.replace(elements, keys, site)
            return
        add = self._unordered(first, differing)
        replace &= ~add
        if self.second is not None and not self._of_one_group:
            second = self.second[elements]
            add &= (second == 0) | ((first ^ second) <= _GROUP_MASK)  # unless accesses of two workgroups are known
        self.replace(elements[replace], keys[replace], site)
        if is_any(add):
            if self.second is None:
                self.second = np.zeros(len(self.first), np.uint64)
                self.second_site = np.zeros(len(self.first), np.int64)
            self.second[elements[add]] = keys[add]
            self.second_site[elements[add]] = site

    def _unordered(self, others: Keys, differing: Keys) -> Mask:
        """Where neither access happens before the other: two workgroups, or two invocations between the same barriers.
        Of nothing accessed yet the workgroup differs, too."""
        unordered: Mask = (differing - np.uint64(1)) < _LOCAL_MASK  # 0 - 1 wraps and is large
        if not self._of_one_group and is_any(others):
            unordered |= (differing > _GROUP_MASK) & (others != 0)
        return unordered


def ends_of_runs(rises: Mask) -> tuple[Mask, Mask]:
    """Of ascending elements, given where one is followed by a greater one: the last of each, and the first of each."""
    last, first = np.empty((2, len(rises) + 1), np.bool_)
    last[:-1], last[-1] = rises, True
    first[1:], first[0] = rises, True
    return last, first


class RaceDetector:
    """Detects races on one memory during one launch. `of_one_group`: each element is accessed by the invocations of one
    workgroup only."""

    def __init__(self, count: int, of_one_group: bool = False) -> None:
        self._count = count
        self._of_one_group = of_one_group
        self._accesses: dict[Access, _Accesses] = {}

    def access(self, elements: Indices, keys: Keys, kind: Access, site: int, barriers: int = 0) -> Race | None:
        """Records accesses by invocations in ascending order, after so many barriers that all workgroups passed;
        returns the first race found."""
        interval = barriers if self._of_one_group else 0  # all accesses of an earlier one happen before these
        is_read = False
        for other in _CONFLICTING[kind]:
            before = self._accesses.get(other)
            if before is None or before.interval < interval or is_read:
                continue
            found = before.race_with(elements, keys)
            if isinstance(found, Race):
                return found
            if found and other is Access.WRITE:
                return None  # any access by others would race with what these invocations have written, which is noted
            is_read = found and other is Access.READ  # and any write by others with what they have read
        known = self._accesses.get(kind)
        if known is None:
            known = self._accesses[kind] = _Accesses(kind, self._count, self._of_one_group)
        rises = elements[1:] > elements[:-1]
        are_distinct = are_all(rises)
        if kind is Access.WRITE:  # any earlier ones happen before these, which may race with each other
            known.interval = interval
            known.replace(elements, keys, site)
            found = not are_distinct and known.race_with(elements, keys)
            return found if isinstance(found, Race) else None
        if are_distinct:
            known.record(elements, keys, site, interval)
            return None
        if not are_all(elements[1:] >= elements[:-1]):
            order = np.argsort(elements, kind="stable")
            elements, keys = elements[order], keys[order]
            rises = elements[1:] > elements[:-1]
        # Several invocations access one element. Recording the first and the last suffices: if any two are of different
        # workgroups, these are.
        for ends in ends_of_runs(rises):
            known.record(elements[ends], keys[ends], site, interval)
        return None
