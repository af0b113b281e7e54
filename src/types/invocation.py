"""The invocation (thread) of a kernel: its indices, barriers and subgroup operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from .memory import Workgroup
from .scalars import U32, U64, Bool

T = TypeVar("T")


class Invocation(ABC):
    """One run of a kernel's body: a kernel's first parameter. A helper without it has no barriers.

    Workgroups and subgroups are one-dimensional and count from 0. A barrier or a subgroup operation must be reached
    by all invocations of the workgroup (of the subgroup), or by none.
    """

    @property
    @abstractmethod
    def local_id(self) -> U32:
        """The index of this invocation in its workgroup."""

    @property
    @abstractmethod
    def group_id(self) -> U32:
        """The index of this workgroup in the launch."""

    @property
    @abstractmethod
    def group_size(self) -> U32:
        """The number of invocations in a workgroup."""

    @property
    @abstractmethod
    def num_groups(self) -> U32:
        """The number of workgroups in the launch."""

    @property
    @abstractmethod
    def lane(self) -> U32:
        """The index of this invocation in its subgroup."""

    @property
    @abstractmethod
    def subgroup_id(self) -> U32:
        """The index of this subgroup in its workgroup."""

    @property
    @abstractmethod
    def subgroup_size(self) -> U32:
        """The number of lanes in a subgroup; the last of a workgroup may have fewer."""

    @property
    def global_id(self) -> U32:
        """The index of this invocation in the launch."""
        return self.group_id * self.group_size + self.local_id

    @abstractmethod
    def barrier(self) -> None:
        """Waits for all of the workgroup, and makes its writes to memory visible to it."""

    def load_uniform(self, memory: Workgroup[U32], index: U32 | int) -> U32:
        """Loads an element as a uniform value: a branch on it may have barriers inside.

        A barrier before and one after are part of it. The index must be uniform too.
        """
        self.barrier()
        value = memory[index]
        self.barrier()
        return value

    @abstractmethod
    def ballot(self, condition: Bool) -> U64:
        """The mask of lanes for which the condition holds, bit i for lane i."""

    @abstractmethod
    def match(self, value: U32) -> U64:
        """The mask of lanes with the same value as this one, bit i for lane i."""

    @abstractmethod
    def shuffle(self, value: T, lane: U32) -> T:
        """The value of another lane, taken modulo the subgroup's size."""

    @abstractmethod
    def shuffle_xor(self, value: T, mask: U32) -> T:
        """The value of lane `lane ^ mask` (a butterfly exchange)."""

    @abstractmethod
    def shuffle_up(self, value: T, distance: U32) -> T:
        """The value of lane `lane - distance`; this lane's own where there is none."""

    @abstractmethod
    def shuffle_down(self, value: T, distance: U32) -> T:
        """The value of lane `lane + distance`; this lane's own where there is none."""

    @abstractmethod
    def subgroup_add(self, value: U32) -> U32:
        """The sum over all lanes of the subgroup."""

    @abstractmethod
    def exclusive_add(self, value: U32) -> U32:
        """The exclusive prefix sum: over the lanes below this one."""
