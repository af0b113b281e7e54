"""The CPU target: LLVM-compiled kernels, whose workgroups are shared among threads, and fast paths without kernels."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np

from ...algos.host_sort import HostSort, HostSortPolicy, Partition
from ...algos.tuned import tuned_host_sort
from ...machine import TargetInfo
from ..registry import Reduced, reduce_to_settings
from .background import background
from .host.fast_paths import fast_path
from .limits import CAPABILITIES, LIMITS
from .pool import thread_count

if TYPE_CHECKING:
    from ...algos.rules import SortRule
    from ...kernel.launch import Schedule
    from ...operations.base import Operation
    from ...types.indices import SortOrder
    from ...types.specs import Spec
    from ..base import Native
    from .kernels import CpuPrepared

_NAME = "cpu"


class CpuTarget:
    """Runs schedules on this machine's processor. Safe under Python threads and in forked children."""

    def __init__(self, policy: HostSortPolicy | None = None) -> None:
        self.policy = tuned_host_sort(_NAME, _processor()).policy if policy is None else policy

    def with_policy(self, policy: HostSortPolicy, /) -> CpuTarget:
        return CpuTarget(policy)

    def partition_for(self, dtype: np.dtype[np.generic], /) -> Partition | None:
        """By compiled loops, which are loaded when it is first called."""
        from .host.partition import RowPartition, can_partition

        return RowPartition(dtype) if can_partition(dtype) else None

    def foresee_sorts(self, dtype: np.dtype[np.generic], order: SortOrder, length: int, /) -> None:
        """Loads, in a background thread, the kernels for sorts that NumPy's own sort is too slow for."""
        from .host.radix_sort import loading, suits_radix

        if suits_radix(length, length, dtype, self.policy):
            background.foresee((loading, dtype, order))

    def __reduce__(self) -> Reduced:
        return reduce_to_settings(self, self.policy)

    @property
    def info(self) -> TargetInfo:
        threads = thread_count()
        driver = f"llvmlite {_llvmlite()}, {threads} thread{'s' if threads > 1 else ''}"
        return TargetInfo(_NAME, _processor(), driver, LIMITS, CAPABILITIES)

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        """Runs all launches on NumPy arrays, in place."""
        from ..binding import work_of
        from .kernels import run

        run(work_of(schedule), arrays)

    def prepare(self, schedule: Schedule, /, *, keeps_scratch: bool = False) -> CpuPrepared:
        """A run for packed arrays, which are not checked again."""
        from .kernels import CpuPrepared

        return CpuPrepared(schedule)

    def native(self, operation: Operation, given: Sequence[Spec], /) -> Native | None:
        """The fast path for host arrays, which runs no kernel; None if there is none."""
        return fast_path(operation, given, self.policy)

    def tune(self, largest: int, tell: Callable[[str], object], /) -> Sequence[SortRule]:
        """Measures the thresholds of HostSort's strategies, and uses them from now on."""
        from ...algos.table import HOST_RULE
        from .host.tuning import tuned_policy

        with background.off():
            self.policy = tuned_policy(largest, tell)
        return (attrs.evolve(HOST_RULE, algorithm=HostSort(self.policy)),)

    def read_tuning(self) -> None:
        self.policy = tuned_host_sort(_NAME, _processor()).policy


@cache
def _llvmlite() -> str:
    """Its version, by its outermost folder, which loads no LLVM: importlib.metadata takes longer than a sort."""
    try:
        import llvmlite
    except ImportError:
        return "(not installed)"
    return llvmlite.__version__


@lru_cache(maxsize=1)
def _processor() -> str:
    try:
        said = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        said = ""
    return processor_of(said) or platform.processor() or platform.machine()


def processor_of(cpuinfo: str) -> str:
    """A processor's name, by what Linux says of it. On ARM that is no name but numbers, for each core, and some
    processors have cores of several kinds. Numbers will do to tell machines apart, which may share a home."""
    found: dict[str, list[str]] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), []).append(value.strip())
    if "model name" in found:
        return found["model name"][0]
    makers, parts = (found.get(f"CPU {name}", []) for name in ("implementer", "part"))
    cores = dict.fromkeys(f"{maker}/{part}" for maker, part in zip(makers, parts, strict=False))
    return f"ARM {', '.join(cores)}" if cores else ""
