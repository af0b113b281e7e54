"""The compiled loops of cumulative sums, made when they are first needed: so is the import of what makes them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..compiler.loading import Kernel

BLOCK = 1 << 11  # sums at most that a task keeps at hand where neighbours stay


@cache
def columns(seen_as: np.dtype[np.generic], result: np.dtype[np.generic]) -> Kernel:
    """For neighbours that stay."""
    from ..compiler.loading import load_kernel
    from .cumsum_text import columns_text

    return load_kernel("cumsum_columns", columns_text(seen_as, result), is_serial=True)


@cache
def totals(seen_as: np.dtype[np.generic], result: np.dtype[np.generic]) -> Kernel:
    """What each piece of a row comes to."""
    from ..compiler.loading import load_kernel
    from .cumsum_text import pieces_text

    return load_kernel("cumsum_totals", pieces_text(seen_as, result, writes=False), is_serial=True)


@cache
def pieces(seen_as: np.dtype[np.generic], result: np.dtype[np.generic]) -> Kernel:
    """The sums of all pieces, with what came before each."""
    from ..compiler.loading import load_kernel
    from .cumsum_text import pieces_text

    return load_kernel("cumsum_pieces", pieces_text(seen_as, result, writes=True), is_serial=True)
