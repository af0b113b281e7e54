"""gpusort's own functions as the engine of external/, for what fits into memory."""

from __future__ import annotations

import os

import attrs

from ..algos.choice import choose_host_sort
from ..algos.host_sort import HostSort
from ..external.cuts import Array, Places
from ..machine import Capability
from ..targets.base import Target
from ..targets.registry import choose
from ..types.indices import SortOrder
from ..types.specs import Memory
from .sorting import argsort, sort

_MOST_WORKERS = 4  # at NumPy's rate more than a disk reads and writes
_NEVER = 1 << 62


@attrs.frozen
class OwnEngine:
    """On one target."""

    target: str | Target
    workers: int = 1
    algorithm: HostSort | None = None

    @classmethod
    def for_files(cls, target: str | Target) -> OwnEngine:
        """For pieces that come one after another. On the host several are sorted at once, each by one thread: to part
        one among threads costs a pass over it, and all the pieces are parts already."""
        info = choose(target, Memory.HOST).info
        if Capability.HOST_SORT not in info.capabilities:
            return cls(target)
        policy = attrs.evolve(choose_host_sort(info).policy, part_bytes_from=_NEVER)
        return cls(target, min(_MOST_WORKERS, _cores()), HostSort(policy))

    @property
    def alone(self) -> OwnEngine:
        return OwnEngine(self.target)

    def sort(self, x: Array, out: Array, order: SortOrder, *, stable: bool) -> None:
        is_descending = order is SortOrder.DESCENDING
        sort(x, out=out, descending=is_descending, stable=stable, target=self.target, algorithm=self.algorithm)

    def argsort(self, x: Array, order: SortOrder) -> Places:
        places: Places = argsort(x, descending=order is SortOrder.DESCENDING, target=self.target)
        return places


def _cores() -> int:
    """Those that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
