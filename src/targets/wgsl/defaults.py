"""WebGPU's default limits: what every device offers, and all that one offers that was requested without limits."""

from __future__ import annotations

from collections.abc import Mapping

from ...machine import Limits

DEFAULT_LIMITS: Mapping[str, int] = {
    "max-storage-buffers-per-shader-stage": 8, "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256, "max-compute-workgroup-storage-size": 16384,
    "max-compute-workgroups-per-dimension": 65535, "max-storage-buffer-binding-size": 128 << 20,
    "max-buffer-size": 256 << 20,
}  # fmt: skip

# The same as gpusort's Limits, without subgroups.
DEFAULTS = Limits(
    group_size=DEFAULT_LIMITS["max-compute-invocations-per-workgroup"],
    workgroup_bytes=DEFAULT_LIMITS["max-compute-workgroup-storage-size"],
    groups=DEFAULT_LIMITS["max-compute-workgroups-per-dimension"] ** 2,
    storage_bytes=DEFAULT_LIMITS["max-storage-buffer-binding-size"],
    storage_buffers=DEFAULT_LIMITS["max-storage-buffers-per-shader-stage"],
    subgroup_size=1,
    most_subgroup_size=1,
)
