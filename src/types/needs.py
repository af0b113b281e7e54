"""What a kernel requires of a machine, so that a target can refuse it: subgroup sizes, forward progress."""

from __future__ import annotations

import attrs


@attrs.frozen
class Needs:
    """The requirements of kernels compiled for one policy."""

    lanes: int = 0  # the least subgroup size; 0 if subgroups are not used
    whole: int = 0  # a workgroup size that must be a multiple of the subgroup size; 0 for none
    or_one: bool = False  # or else such a workgroup fits into one subgroup
    forward_progress: bool = False  # a started workgroup makes progress while others spin on its results

    def parts_evenly(self, lanes: int) -> bool:
        """Whether such a workgroup consists of whole subgroups of a size."""
        return self.whole % lanes == 0 or (self.or_one and self.whole <= lanes)


class Policy:
    """Compile-time tuning of a kernel (sizes, variants), passed to a launch as an argument. A user's kernel that
    requires something of the machine takes an attrs class derived from this one."""

    __slots__ = ()

    @property
    def needs(self) -> Needs:
        """What a kernel compiled for this policy requires; every target checks it before a launch."""
        return Needs()
