"""Overridable helpers: a target may emit its own implementation. The Python body defines what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

OVERRIDABLE: set[object] = set()


def overridable(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a helper that takes the invocation, memories and scalars, and returns a scalar."""
    OVERRIDABLE.add(function)
    return function
