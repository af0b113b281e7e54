"""What one invocation of a kernel knows, and how it meets the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from .memory import Workgroup
from .scalars import U32, U64, Bool

T = TypeVar("T")


class Invocation(ABC):
    """One run of a kernel's body. A kernel's first parameter; a helper that is not handed it cannot wait.

    Workgroups and subgroups are one-dimensional and count from 0. A barrier or a subgroup operation must be reached
    by all invocations of the workgroup (of the subgroup), or by none.
    """

    @property
    @abstractmethod
    def local_id(self) -> U32:
        """Which invocation of the workgroup this is."""

    @property
    @abstractmethod
    def group_id(self) -> U32:
        """Which workgroup of the launch this is."""

    @property
    @abstractmethod
    def group_size(self) -> U32:
        """How many invocations a workgroup has."""

    @property
    @abstractmethod
    def num_groups(self) -> U32:
        """How many workgroups the launch has."""

    @property
    @abstractmethod
    def lane(self) -> U32:
        """Which invocation of the subgroup this is."""

    @property
    @abstractmethod
    def subgroup_id(self) -> U32:
        """Which subgroup of the workgroup this is."""

    @property
    @abstractmethod
    def subgroup_size(self) -> U32:
        """How many invocations a subgroup has; the last of a workgroup may have fewer."""

    @property
    def global_id(self) -> U32:
        """Which invocation of the launch this is."""
        return self.group_id * self.group_size + self.local_id

    @abstractmethod
    def barrier(self) -> None:
        """Waits for the workgroup, and makes its writes visible to all of it."""

    def load_uniform(self, memory: Workgroup[U32], index: U32 | int) -> U32:
        """An element, known to be the same for all invocations: a condition on it may guard barriers.

        Waits for the workgroup before and after. The index must be the same for all too.
        """
        self.barrier()
        value = memory[index]
        self.barrier()
        return value

    @abstractmethod
    def ballot(self, condition: Bool) -> U64:
        """The lanes for which the condition holds, bit i for lane i."""

    @abstractmethod
    def match(self, value: U32) -> U64:
        """The lanes that hold my value, bit i for lane i."""

    @abstractmethod
    def shuffle(self, value: T, lane: U32) -> T:
        """The value of another lane; the lane counts modulo the subgroup's size."""

    @abstractmethod
    def shuffle_xor(self, value: T, mask: U32) -> T:
        """The value of the lane whose number differs in the mask's bits."""

    @abstractmethod
    def shuffle_up(self, value: T, distance: U32) -> T:
        """The value of the lane that far below; my own where there is none."""

    @abstractmethod
    def shuffle_down(self, value: T, distance: U32) -> T:
        """The value of the lane that far above; my own where there is none."""

    @abstractmethod
    def subgroup_add(self, value: U32) -> U32:
        """The sum over all lanes."""

    @abstractmethod
    def exclusive_add(self, value: U32) -> U32:
        """The sum over the lanes below mine."""
