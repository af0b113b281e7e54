"""The compiled loops of reductions, made when they are first needed: so is the import of what makes them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import attrs
import numpy as np

from ....operations.reduce import Reducer

if TYPE_CHECKING:
    from ..compiler.loading import Kernel


@attrs.frozen(eq=False)
class Loop:
    """For elements of a dtype: what they are seen as, and what becomes of them."""

    kernel: Kernel
    seen_as: np.dtype[np.generic]
    state: np.dtype[np.generic]


@cache
def places_for(fold: Reducer, dtype: np.dtype[np.generic]) -> Loop:
    """Where extremes are; float16 are seen as signed integers."""
    from ..compiler.loading import load_kernel
    from .reduce_text import places_text

    is_half = dtype == np.float16
    seen_as = np.dtype(np.int16) if is_half else dtype
    return Loop(load_kernel(fold.value, places_text(fold, seen_as, is_half), is_serial=True), seen_as, seen_as)


@cache
def loop_for(fold: Reducer, dtype: np.dtype[np.generic], in_rows: bool) -> Loop:
    from ..compiler.loading import load_kernel
    from .reduce_text import Elements, module_text

    elements = Elements.of(fold, dtype)
    name = f"{fold.value}_{'rows' if in_rows else 'columns'}"
    kernel = load_kernel(name, module_text(fold, dtype, in_rows), is_serial=True)
    return Loop(kernel, elements.seen_as, elements.state)
