"""Which kind of array something is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np

from ..types.errors import UnsupportedTypeError
from .host import KINDS, NUMPY, SUBCLASS, converted
from .kinds import Kind

# By class, once seen. What is neither here nor found below is handed to NumPy.
KNOWN: dict[type, Kind] = {np.ndarray: NUMPY}


def known_kind(x: object) -> Kind | None:
    """The kind of an array whose class was met before."""
    return KNOWN.get(type(x))


def recognised(name: str, x: object) -> tuple[Kind, Any]:
    """The kind of an argument, and the array itself: another only where NumPy made one, of a list."""
    kind = KNOWN.get(type(x))
    if kind is not None:
        return kind, x
    if isinstance(x, np.ma.MaskedArray):
        raise UnsupportedTypeError(f"{name}: masked arrays are not supported; fill or compress it first")
    if isinstance(x, np.ndarray):
        kind = SUBCLASS
    else:
        kind = next((found for find in _FINDERS if (found := find(x)) is not None), None)
    if kind is None:
        made = converted(name, x)
        return recognised(name, made) if type(made) is not np.ndarray else (NUMPY, made)
    KNOWN[type(x)] = kind
    return kind, x


def _in(module: str, name: str) -> Kind:
    return cast(Kind, getattr(import_module(f".{module}", __package__), name))


def _torch(x: object) -> Kind | None:
    """Found only once the caller has imported torch."""
    torch = sys.modules.get("torch")
    return _in("torch", "TORCH") if torch is not None and isinstance(x, getattr(torch, "Tensor", ())) else None


def _cuda(x: object) -> Kind | None:
    if not hasattr(x, "__cuda_array_interface__"):
        return None
    is_cupy = type(x).__module__.startswith("cupy")
    return _in("cuda", "CUPY" if is_cupy else "ON_DEVICE")


_FINDERS: tuple[Callable[[object], Kind | None], ...] = (_torch, _cuda)

__all__ = ["KINDS", "KNOWN", "known_kind", "recognised"]
