"""Pickling and copying of targets: by name, opened again where they are unpickled, or by constructor arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .base import Target

Reduced: TypeAlias = tuple[Callable[..., Target], tuple[object, ...]]  # the result of __reduce__


def reduce_to_name(name: str) -> Reduced:
    """Unpickles to the target of this name; in this process, to the same object."""
    from .registry import target

    return target, (name,)


def reduce_to_settings(one: Target, *settings: object) -> Reduced:
    """Unpickles to the registered target of its name if it is that, else to a new one with these settings."""
    from .registry import is_opened

    return reduce_to_name(one.info.name) if is_opened(one) else (type(one), settings)
