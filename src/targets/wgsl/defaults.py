"""WebGPU's default limits: what every device offers, and all that one offers that was requested without limits."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...algos.sizes import LARGEST_U32
from ...machine import Limits, TargetInfo

_WORD = 4
DEFAULT_LIMITS: Mapping[str, int] = {
    "max-storage-buffers-per-shader-stage": 8, "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256, "max-compute-workgroup-storage-size": 16384,
    "max-compute-workgroups-per-dimension": 65535, "max-storage-buffer-binding-size": 128 << 20,
    "max-buffer-size": 256 << 20,
}  # fmt: skip

# What WebGPU calls the limits that a device of the caller's may be opened with.
NAMES: Mapping[str, tuple[str, ...]] = {
    "group_size": ("max-compute-invocations-per-workgroup", "max-compute-workgroup-size-x"),
    "workgroup_bytes": ("max-compute-workgroup-storage-size",),
    "storage_buffers": ("max-storage-buffers-per-shader-stage",),
    "storage_bytes": ("max-storage-buffer-binding-size", "max-buffer-size"),
}


def limits_of(limits: Mapping[str, int]) -> Limits:
    """A device's limits, by WebGPU's names for them, as gpusort's; without subgroups."""
    found = {limit: min(limits[name] for name in names) for limit, names in NAMES.items()}
    found["storage_bytes"] -= found["storage_bytes"] % _WORD
    return Limits(
        **found, groups=min(limits["max-compute-workgroups-per-dimension"] ** 2, LARGEST_U32), subgroup_size=1
    )


DEFAULTS = attrs.evolve(limits_of(DEFAULT_LIMITS), most_subgroup_size=1)
USUAL = TargetInfo("wgsl", "any device", "", DEFAULTS, frozenset())
