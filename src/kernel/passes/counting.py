"""Loops that count: whether the counter could wrap round before it passes the end."""

from __future__ import annotations

from .. import ir


def ends_before_it_wraps(loop: ir.For) -> bool:
    """Whether the counter is known to pass the end within 32 bits."""
    if not isinstance(loop.step, ir.Const):
        return False
    if loop.step.value == 1:
        return True
    return isinstance(loop.stop, ir.Const) and int(loop.stop.value) + int(loop.step.value) <= 1 << 32
