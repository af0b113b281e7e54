"""The sort of few keys: by the bitonic network, whose kernels are compiled in a fraction of the time that radix takes.

For so few the compilation is most of a page's first sort. Drivers that clear workgroup memory by a store a word take
the longer the larger a tile is, and those that run invocations on a CPU take longer for large workgroups.
"""

from __future__ import annotations

from typing import Any

from ..algos.bitonic import bitonic_launches
from ..algos.copy import copy_whole
from ..kernel.launch import Buffer, Role, Schedule
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.params import BitonicPolicy

MOST = 1 << 16  # keys that are few
_POLICY = BitonicPolicy(tile=512, group_size=64, fused_passes=1)


def sort_few(key: SortableKey[Any, Any], length: int, order: SortOrder) -> Schedule:
    """Sorts `data` into `results`."""
    data = Buffer("data", key.element, length, Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    if length == 0:
        return Schedule((data, results), ())
    network = bitonic_launches(key, results, 1, length, order, _POLICY, shares=True)
    return Schedule((data, results), (copy_whole(data, results), *network))
