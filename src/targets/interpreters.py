"""What the simulator and the target "python" have in common: limits and capabilities, chosen freely."""

from __future__ import annotations

from ..machine import Capability, Limits, TargetInfo
from ..types.errors import InvalidArgumentError

MOST_INVOCATIONS = 1024  # of a workgroup


def interpreter_info(name: str, adapter: str, driver: str, subgroup_size: int) -> TargetInfo:
    """The description of an interpreter with subgroups of this size. Raises InvalidArgumentError."""
    if subgroup_size not in (1, 2, 4, 8, 16, 32, 64):
        raise InvalidArgumentError(f"subgroup_size: expected a power of two from 1 to 64, found {subgroup_size}")
    limits = Limits(
        group_size=MOST_INVOCATIONS,
        workgroup_bytes=64 << 10,
        groups=1 << 24,
        storage_bytes=1 << 32,
        storage_buffers=64,
        subgroup_size=subgroup_size,
        most_subgroup_size=subgroup_size,
    )
    capabilities = frozenset({Capability.FLOAT64, Capability.SUBGROUPS})
    return TargetInfo(name, f"{adapter}, subgroups of {subgroup_size}", driver, limits, capabilities)
