"""What the simulator and the target "python" have in common: limits and capabilities, chosen freely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..machine import Capability, Limits, TargetInfo
from ..types.errors import InvalidArgumentError
from ..types.monoids import Monoid
from .base import Elements
from .monoid_laws import Laws

MOST_INVOCATIONS = 1024  # of a workgroup


class Interpreter:
    """An interpreter with subgroups of a chosen size. Raises InvalidArgumentError."""

    def __init__(self, name: str, adapter: str, driver: str, subgroup_size: int) -> None:
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
        self._subgroup_size = subgroup_size
        self.info = TargetInfo(name, f"{adapter}, subgroups of {subgroup_size}", driver, limits, capabilities)

    def check_monoid(
        self, monoid: Monoid[Any, Any], elements: Elements, indices: Sequence[int], commutes: bool, /
    ) -> None:
        """See `ChecksMonoids` (base.py)."""
        Laws(monoid).check(elements, indices, commutes)
