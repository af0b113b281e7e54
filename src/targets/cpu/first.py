"""A process's first long array is left to NumPy: loading Numba takes a hundred times as long as it would save there.

From the second on the compiled loops are loaded; an array for which even the first is worth it loads them at once.
"""

from __future__ import annotations

import sys

from ..apart import import_apart

_WORTH_LOADING = 1 << 28  # bytes: here parting and threads save about as much time as loading takes
_came: list[bool] = []  # not empty once a long array has come


def is_first(nbytes: int) -> bool:
    """Whether this is the first long array, and no compiled loops are there yet. If not, Numba is loaded at the end."""
    if _came or nbytes >= _WORTH_LOADING or "numba" in sys.modules:
        import_apart("numba")
        return False
    _came.append(True)
    return True
