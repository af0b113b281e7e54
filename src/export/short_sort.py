"""The exported sort of short arrays: a bitonic sort, whose kernels compile in a fraction of the time of radix sort's.

For short arrays compilation takes most of a page's first sort. Small tiles and workgroups, as some drivers clear
workgroup memory word by word, and software drivers are slow with large workgroups.
"""

from __future__ import annotations

from typing import Any

from ..algos.bitonic import bitonic_launches
from ..algos.copy import copy_whole
from ..kernel.launch import Buffer, Role, Schedule
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.params import BitonicPolicy

MOST = 1 << 16  # keys up to which this is used
_POLICY = BitonicPolicy(tile=512, group_size=64, fused_passes=1)


def sort_short(key: SortableKey[Any, Any], length: int, order: SortOrder) -> Schedule:
    """Sorts `data` into `results`."""
    data = Buffer("data", key.element, length, Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    if length == 0:
        return Schedule((data, results), ())
    network = bitonic_launches(key, results, 1, length, order, _POLICY, shares=True)
    return Schedule((data, results), (copy_whole(data, results), *network))
