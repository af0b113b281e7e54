"""The invocation (thread) of a kernel: its indices, barriers and subgroup operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

import attrs

from .memory import Workgroup
from .scalars import TRUE, U32, U64, Bool

T = TypeVar("T")
_NONE = U32(0)  # what operands stand beside: scalars of its type, or literals
Synchronise: TypeAlias = Callable[[str, tuple[object, ...]], object]


@attrs.frozen
class Invoker:
    """An invocation, as reports name it."""

    group: int
    local: int

    def __str__(self) -> str:
        return f"(group {self.group}, local {self.local})"


@attrs.frozen
class InvocationIds(Invoker):
    """An invocation's ids and sizes."""

    groups: int
    group_size: int
    subgroup_size: int


class Invocation:
    """One run of a kernel's body: a kernel's first parameter. A helper without it has no barriers. Workgroups and
    subgroups are one-dimensional and count from 0. A barrier or a subgroup operation must be reached by all invocations
    of the workgroup (of the subgroup), or by none. Under CPython, `synchronise` gets the names and operands of
    these."""

    def __init__(self, ids: InvocationIds, synchronise: Synchronise) -> None:
        self.ids = ids
        self._synchronise = synchronise

    @property
    def local_id(self) -> U32:
        """The index of this invocation in its workgroup."""
        return U32(self.ids.local)

    @property
    def group_id(self) -> U32:
        """The index of this workgroup in the launch."""
        return U32(self.ids.group)

    @property
    def group_size(self) -> U32:
        """The number of invocations in a workgroup."""
        return U32(self.ids.group_size)

    @property
    def num_groups(self) -> U32:
        """The number of workgroups in the launch."""
        return U32(self.ids.groups)

    @property
    def lane(self) -> U32:
        """The index of this invocation in its subgroup."""
        return U32(self.ids.local % self.ids.subgroup_size)

    @property
    def subgroup_id(self) -> U32:
        """The index of this subgroup in its workgroup."""
        return U32(self.ids.local // self.ids.subgroup_size)

    @property
    def subgroup_size(self) -> U32:
        """The number of lanes in a subgroup; the last of a workgroup may have fewer."""
        return U32(self.ids.subgroup_size)

    @property
    def global_id(self) -> U32:
        """The index of this invocation in the launch."""
        return self.group_id * self.group_size + self.local_id

    def barrier(self) -> None:
        """Waits for all of the workgroup, and makes its writes to memory visible to it."""
        self._synchronise("barrier", ())

    def load_uniform(self, memory: Workgroup[U32], index: U32 | int) -> U32:
        """Loads an element as a uniform value: a branch on it may have barriers inside. A barrier before and one after
        are part of it. The index must be uniform too."""
        if not isinstance(cast(object, memory), Workgroup):
            raise TypeError(f"expected workgroup memory of U32, found a {type(memory).__name__}")
        self.barrier()
        value = _NONE.beside(memory[index])
        self.barrier()
        return value

    def ballot(self, condition: Bool) -> U64:
        """The mask of lanes for which the condition holds, bit i for lane i."""
        return cast(U64, self._synchronise("ballot", (TRUE.beside(condition),)))

    def match(self, value: U32) -> U64:
        """The mask of lanes with the same value as this one, bit i for lane i."""
        return cast(U64, self._synchronise("match", (_NONE.beside(value),)))

    def shuffle(self, value: T, lane: U32) -> T:
        """The value of another lane, taken modulo the subgroup's size."""
        return cast(T, self._synchronise("shuffle", (value, _NONE.beside(lane))))

    def shuffle_xor(self, value: T, mask: U32) -> T:
        """The value of lane `lane ^ mask` (a butterfly exchange)."""
        return cast(T, self._synchronise("shuffle_xor", (value, _NONE.beside(mask))))

    def shuffle_up(self, value: T, distance: U32) -> T:
        """The value of lane `lane - distance`; this lane's own where there is none."""
        return cast(T, self._synchronise("shuffle_up", (value, _NONE.beside(distance))))

    def shuffle_down(self, value: T, distance: U32) -> T:
        """The value of lane `lane + distance`; this lane's own where there is none."""
        return cast(T, self._synchronise("shuffle_down", (value, _NONE.beside(distance))))

    def subgroup_add(self, value: U32) -> U32:
        """The sum over all lanes of the subgroup."""
        return cast(U32, self._synchronise("subgroup_add", (_NONE.beside(value),)))

    def exclusive_add(self, value: U32) -> U32:
        """The exclusive prefix sum: over the lanes below this one."""
        return cast(U32, self._synchronise("exclusive_add", (_NONE.beside(value),)))
