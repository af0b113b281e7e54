"""The in-memory sort that external sorts (src/external) call: gpusort's own operations."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from ..algos.host_sort import Partition
from ..external.cuts import Array, Indices
from ..operations.argsort import Argsort
from ..operations.sort import Sort
from ..targets.base import HostTarget, Target
from ..targets.registry import choose
from ..types.environment import core_count
from ..types.indices import SortOrder
from ..types.specs import Memory
from .call import call, call_with

_MOST_WORKERS = 4  # at NumPy's rate more than a disk reads and writes
_LITTLE = 1 << 28  # bytes of memory: what threads and compiled loops take of it would show
_NEVER = 1 << 62


@attrs.frozen
class OwnEngine:
    """On one target; several pieces at once, or one that is alone."""

    target: str | Target
    workers: int = 1
    for_one: str | Target | None = None
    partitions: bool = False

    @classmethod
    def for_files(cls, target: str | Target, memory: int, parameter: str = "target_device") -> OwnEngine:
        """For pieces that come one after another: on the host several at once, each by one thread, as to part one among
        threads costs a pass over it. With little memory nothing is compiled."""
        found = choose(target, Memory.HOST, parameter=parameter)
        if not isinstance(found, HostTarget):
            return cls(target)
        policy = attrs.evolve(found.policy, part_bytes_from=_NEVER, most_threads=1)
        if memory < _LITTLE:
            policy = attrs.evolve(policy, serial_below=_NEVER, deal_from=_NEVER)
        own, is_little = found.with_policy(policy), memory < _LITTLE
        return cls(own, min(_MOST_WORKERS, core_count()), own if is_little else found, not is_little)

    @property
    def alone(self) -> OwnEngine:
        return OwnEngine(self.target if self.for_one is None else self.for_one)

    def partition_for(self, dtype: np.dtype[np.generic]) -> Partition | None:
        """Of a piece by one thread, which takes a third of the time of its sort."""
        if self.partitions and isinstance(self.target, HostTarget):
            return self.target.partition_for(dtype)
        return None

    def foresee_sorts(self, dtype: np.dtype[np.generic], order: SortOrder, length: int) -> None:
        if self.partitions and isinstance(self.target, HostTarget):
            self.target.foresee_sorts(dtype, order, length)

    def sort(self, x: Array, out: Array, order: SortOrder, *, stable: bool) -> None:
        call_with(Sort, (-1, order, stable, None, None), self.target, (x,), out)

    def argsort(self, x: Array, order: SortOrder) -> Indices:
        return cast(Indices, call(Argsort, (-1, order, None), self.target, x))
