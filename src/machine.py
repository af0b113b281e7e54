"""What is known of a machine that runs kernels: enough to choose an algorithm and a policy for it."""

from __future__ import annotations

from enum import Enum

import attrs


class Capability(Enum):
    """What a kernel may need beyond the portable core."""

    FLOAT64 = "64-bit float arithmetic"
    SUBGROUPS = "subgroup operations"
    FORWARD_PROGRESS = "forward progress between workgroups"
    HOST_SORT = "a sort of the host's own"  # which no kernel needs: HostSort does


@attrs.frozen
class Limits:
    """How far a target goes. A schedule is made within them; a kernel that asks for more is refused."""

    group_size: int  # invocations in a workgroup
    workgroup_bytes: int  # workgroup memory of one workgroup
    groups: int  # workgroups in a launch
    storage_bytes: int  # one storage buffer
    storage_buffers: int  # storage buffers of one kernel
    subgroup_size: int  # the smallest a kernel may meet; 1 where there are no subgroups
    most_subgroup_size: int = 64  # the largest a kernel may meet


@attrs.frozen
class TargetInfo:
    """Who runs the kernels: for `targets()`, and for the choice of a policy."""

    name: str  # "cpu", "wgsl", "cuda", "simulator", "python"
    adapter: str  # the hardware, by the name it gives itself
    driver: str  # what stands between: driver, compiler, versions
    limits: Limits
    capabilities: frozenset[Capability]
    is_software: bool = False  # an adapter that is no device, but a driver which computes on the host's processor
