"""The limits and capabilities of the CPU target."""

from __future__ import annotations

from ...algos.sizes import LARGEST_U32
from ...machine import Capability, Limits, TargetInfo

_SUBGROUP_SIZE = 8


def subgroup_size(group_size: int) -> int:
    """Eight lanes, or all of a workgroup of one, two or four. The last subgroup of others may have fewer."""
    return group_size if group_size in (1, 2, 4) else _SUBGROUP_SIZE


LIMITS = Limits(
    group_size=1024,
    workgroup_bytes=1 << 20,
    groups=LARGEST_U32,
    storage_bytes=8 * LARGEST_U32,  # indices are U32
    storage_buffers=64,
    subgroup_size=subgroup_size(1024),
    most_subgroup_size=subgroup_size(1024),
)
CAPABILITIES = frozenset({Capability.FLOAT64, Capability.SUBGROUPS, Capability.HOST_SORT})
USUAL = TargetInfo("cpu", "a processor", "", LIMITS, CAPABILITIES - {Capability.HOST_SORT})
REGISTER_BYTES = 4 << 20  # they lie on a thread's stack, as workgroup memory does
