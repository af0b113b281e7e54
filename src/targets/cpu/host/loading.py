"""Tells whether the compiled loops for a dtype are loaded, and requests them in the background if not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

import numpy as np

from ....operations.reduce import Reducer
from ..background import NUMBA, OURS, background
from .reducers import PLACES


def can_sort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """Whether a long row of so many bytes should be sorted by compiled loops, now or at last."""
    return background.has(("sort", dtype), partial(_steps, "warm_up", "sorting", dtype), nbytes)


def can_argsort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    return background.has(("argsort", dtype), partial(_steps, "warm_up", "argsorting", dtype), nbytes)


def can_fold(fold: Reducer, dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """The same for a reduction."""
    module, compiler = ("arg_reduce", NUMBA) if fold in PLACES else ("reduce_axes", OURS)
    return background.has(("fold", fold, dtype), partial(_steps, module, "rehearse", fold, dtype), nbytes, compiler)


def can_scan(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """The same for a cumulative sum."""
    return background.has(("scan", dtype), partial(_steps, "cumsum", "rehearse", dtype), nbytes, OURS)


def _steps(module: str, function: str, *arguments: object) -> Iterator[object]:
    """Of a function of this package's that compiles loops. Numba is loaded by the first step."""
    steps: Callable[..., Iterator[object]] = getattr(import_module(f".{module}", __package__), function)
    yield from steps(*arguments)
