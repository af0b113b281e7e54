"""Helpers that a target may write in a way of its own. What they mean is what they say: their Python body."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

OVERRIDABLE: set[object] = set()


def overridable(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a helper. It takes the invocation, memories and scalars, and gives a scalar."""
    OVERRIDABLE.add(function)
    return function
