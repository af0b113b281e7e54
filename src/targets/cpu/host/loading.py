"""Whether the compiled loops for a dtype are there: asked before every long array, answered at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ....operations.reduce import Reducer
from ..background import background
from .reducers import PLACES


def can_sort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """Whether a long row of so many bytes should be sorted by compiled loops, now or at last."""
    return background.has(("sort", dtype), partial(_sorting, dtype), nbytes)


def can_argsort(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    return background.has(("argsort", dtype), partial(_argsorting, dtype), nbytes)


def can_fold(fold: Reducer, dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """The same for a reduction."""
    return background.has(("fold", fold, dtype), partial(_folding, fold, dtype), nbytes)


def can_scan(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """The same for a cumulative sum."""
    return background.has(("scan", dtype), partial(_scanning, dtype), nbytes)


# Numba is loaded by the first step.


def _sorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    from .warm_up import sorting

    yield from sorting(dtype)


def _argsorting(dtype: np.dtype[np.generic]) -> Iterator[object]:
    from .warm_up import argsorting

    yield from argsorting(dtype)


def _folding(fold: Reducer, dtype: np.dtype[np.generic]) -> Iterator[object]:
    from . import arg_reduce, reduce_axes

    yield from (arg_reduce if fold in PLACES else reduce_axes).rehearse(fold, dtype)


def _scanning(dtype: np.dtype[np.generic]) -> Iterator[object]:
    from .cumsum import rehearse

    yield from rehearse(dtype)
