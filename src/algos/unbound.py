"""Stand-ins for a kernel's parameters that a mode of it does not use."""

from __future__ import annotations

from typing import TypeVar

from ..kernel.launch import Buffer, Role

T = TypeVar("T")


def unbound(element: type[T]) -> Buffer[T]:
    """A buffer that gives a parameter its type and is in no schedule, so that no memory is bound to it."""
    return Buffer("none", element, 1, Role.SCRATCH)
