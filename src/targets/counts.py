"""NumPy's count of what is not zero, which tells of a few elements in a tenth of the time that `any` and `all` take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

# What NumPy's function comes to, in a fourth of the time; the function itself where it is not found.
_inside = getattr(getattr(np, "_core", None), "multiarray", None)
count_nonzero = cast("Callable[[Array], int]", getattr(_inside, "count_nonzero", np.count_nonzero))


_FEW = 1 << 12  # elements: of more, the greatest is found sooner


def is_any(values: npt.NDArray[np.bool_ | np.unsignedinteger[Any]]) -> bool:
    """`values.any()`."""
    return count_nonzero(values) > 0 if values.size <= _FEW else bool(np.maximum.reduce(values, None))


def are_all(values: Array) -> bool:
    """`values.all()`."""
    return count_nonzero(values) == values.size
