"""Targets that are handed to other processes, or copied: each is opened there, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .base import Target

Remade: TypeAlias = tuple[Callable[..., Target], tuple[object, ...]]  # as pickle and copy take it


def opened_by_name(name: str) -> Remade:
    """The target of this name, of whoever reads it. In this process that is the same one."""
    from .registry import target

    return target, (name,)


def remade(one: Target, *settings: object) -> Remade:
    """A target that has nothing but its settings: the one of its name, if it is that, or one of the same settings."""
    from .registry import is_opened

    return opened_by_name(one.info.name) if is_opened(one) else (type(one), settings)
