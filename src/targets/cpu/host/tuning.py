"""Measuring from which size on the CPU's own ways pay, on the user's machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....types.indices import SortOrder
from .sort import sort_rows

Report: TypeAlias = Callable[[str], object]
_ROUNDS, _NEVER = 5, 1 << 62
_WORTH = 0.97  # of the time that NumPy takes: less is worth a change

# Each threshold, the dtype it is about, the bytes a size of it stands for, and the sizes to try.
_THRESHOLDS: dict[str, tuple[str, int, Sequence[int]]] = {
    "part_bytes_from": ("u4", 1, [1 << log for log in range(18, 25)]),
    "count_bytes_from": ("u1", 1, [1 << log for log in range(14, 21)]),
    "count_pairs_from": ("u2", 2, [1 << log for log in range(16, 23)]),
}


def tuned_policy(largest: int, tell: Report) -> HostSortPolicy:
    """The policy with what is fastest here; arrays are no longer than `largest`."""
    policy = HostSortPolicy()
    for name, (dtype, unit, sizes) in _THRESHOLDS.items():
        worth: int | None = None
        always = attrs.evolve(_with(policy, name, 1), by_radix=False)
        # thresholds of some processors, too, which lie below
        never = attrs.evolve(_with(always, name, _NEVER), crew_bytes_from=_NEVER, count_slow_pairs_from=_NEVER)
        for size in sizes:
            x = np.random.default_rng(size).integers(0, 256, size * unit, np.uint8).view(dtype)
            if x.size > largest:
                break
            plain, own = _side_by_side(never, always, x)
            tell(f"cpu {dtype} {x.size}: NumPy alone {plain * 1e6:.1f} us, threads' own way {own * 1e6:.1f} us")
            if own > plain * _WORTH:
                worth = None
            elif worth is None:
                worth = size
        if worth is not None:
            policy = _with(policy, name, worth)
    return policy


def _with(policy: HostSortPolicy, name: str, size: int) -> HostSortPolicy:
    change: dict[str, Any] = {name: size}
    return attrs.evolve(policy, **change)


def _side_by_side(
    a: HostSortPolicy, b: HostSortPolicy, x: np.ndarray[tuple[int], np.dtype[np.generic]]
) -> tuple[float, float]:
    """Medians of both by turns, after a call of each."""
    times: tuple[list[float], list[float]] = ([], [])
    rows, results = x.reshape(1, -1), np.empty_like(x).reshape(1, -1)
    for number in range(2 * _ROUNDS + 1):
        for policy, found in zip((a, b), times, strict=True):
            start = time.perf_counter()
            sort_rows(rows, results, SortOrder.ASCENDING, policy)
            if number:
                found.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])
