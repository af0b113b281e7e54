"""What kernels rely on in the machine that runs them, so that a target can refuse what would go wrong there."""

from __future__ import annotations

import attrs


@attrs.frozen
class Needs:
    """What one policy makes a kernel rely on."""

    lanes: int = 0  # in the smallest subgroup that the kernel may meet; 0 for one that has no use for subgroups
    whole: int = 0  # a workgroup of so many invocations is made of whole subgroups; 0 where it need not be
    or_one: bool = False  # or it is no larger than one
    forward_progress: bool = False  # a workgroup that has started goes on, though others wait for it

    def parts_evenly(self, lanes: int) -> bool:
        """Whether subgroups of a size make up such a workgroup."""
        return self.whole % lanes == 0 or (self.or_one and self.whole <= lanes)


class Policy:
    """How a kernel is cut up: compile-time choices, handed to a launch as one of its arguments.

    A kernel of one's own that takes something for granted is handed an attrs class derived from this one.
    """

    __slots__ = ()

    @property
    def needs(self) -> Needs:
        """What a kernel compiled for this policy relies on. Every target compares it with what it has."""
        return Needs()
