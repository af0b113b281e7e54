"""The compiled loops of cumulative sums, made when they are first needed."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..compiler.loading import Kernel, load_kernel
from .cumsum_text import columns_text, pieces_text


@cache
def columns(seen_as: np.dtype[np.generic], result: np.dtype[np.generic]) -> Kernel:
    """For neighbours that stay."""
    return load_kernel("cumsum_columns", columns_text(seen_as, result), is_serial=True)


@cache
def totals(seen_as: np.dtype[np.generic], result: np.dtype[np.generic]) -> Kernel:
    """What each piece of a row comes to."""
    return load_kernel("cumsum_totals", pieces_text(seen_as, result, writes=False), is_serial=True)


@cache
def pieces(seen_as: np.dtype[np.generic], result: np.dtype[np.generic]) -> Kernel:
    """The sums of all pieces, with what came before each."""
    return load_kernel("cumsum_pieces", pieces_text(seen_as, result, writes=True), is_serial=True)
