"""A target's description: its limits and capabilities, by which algorithms and policies are chosen."""

from __future__ import annotations

from enum import Enum

import attrs

from .types.memory import MOST_REGISTER_BYTES


class Capability(Enum):
    """A feature beyond the portable core."""

    FLOAT64 = "64-bit float arithmetic"
    SUBGROUPS = "subgroup operations"
    FORWARD_PROGRESS = "forward progress between workgroups"
    HOST_SORT = "a sort of the host's own"  # needed by the algorithm HostSort, not by kernels


@attrs.frozen
class Limits:
    """A target's limits. Schedules are made within them; a kernel that exceeds one raises CapabilityError."""

    group_size: int  # invocations in a workgroup
    workgroup_bytes: int  # workgroup memory of one workgroup
    groups: int  # workgroups in a launch
    storage_bytes: int  # of one storage buffer
    storage_buffers: int  # of one kernel
    subgroup_size: int  # the smallest that a kernel may run with; 1 if there are no subgroups
    most_subgroup_size: int = 64  # the largest
    register_bytes: int = MOST_REGISTER_BYTES  # of an array of registers


@attrs.frozen
class TargetInfo:
    """A target's description, as `targets()` returns it and algorithms are chosen by."""

    name: str  # "cpu", "wgsl", "cuda", "simulator", "python"
    adapter: str  # the hardware's own name
    driver: str  # driver, compiler, versions
    limits: Limits
    capabilities: frozenset[Capability]
    is_software: bool = False  # a GPU API implemented in software on the CPU
