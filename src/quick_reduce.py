"""The short way to reduce a plain array in the host's memory to one value: NumPy's own reductions, side by side.

On one core NumPy reads about as fast as the memory gives, and a small array costs it a microsecond; what it does not
do is share a large one among cores. Pieces have a fixed size, so the order in which floats are added depends on the
length alone. Everything else, user-defined monoids above all, goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from .arrays import HostArray

NumPyFunction: TypeAlias = Callable[..., Any]

_KINDS = frozenset("biuf")
_SHARED_BYTES = 1 << 24  # below, one core reads about as much as it costs to wake another
_PIECE = 1 << 16  # elements; small enough to stay in a core's cache, and to share evenly


def quick_reduce(function: NumPyFunction, x: object, axis: object, keepdims: bool, target: object) -> object | None:
    """What NumPy's function gives for the whole array; None where the long way is needed."""
    if type(x) is not np.ndarray or axis is not None or keepdims or target not in ("auto", "cpu"):
        return None
    array = cast(HostArray, x)
    dtype, flags = array.dtype, array.flags
    if dtype.kind not in _KINDS or not dtype.isnative or not (flags.c_contiguous and flags.aligned):
        return None
    if array.size == 0 or (dtype.kind == "f" and dtype.itemsize not in (4, 8)):
        return None
    if function is np.sum and dtype.kind in "iu" and dtype.itemsize < 8 and array.nbytes >= _SHARED_BYTES:
        return None  # NumPy widens these first; the kernel adds them as they are
    with np.errstate(all="ignore"):
        if array.nbytes < _SHARED_BYTES:
            return cast(object, function(array))
        return _shared(function, array.reshape(-1))


def _shared(function: NumPyFunction, flat: HostArray) -> object:
    """The same by the threads of the CPU target."""
    from .targets.cpu.pool import shared_pool

    pool = shared_pool()
    count = -(-len(flat) // _PIECE)
    whole = len(flat) // _PIECE
    rows = flat[: whole * _PIECE].reshape(whole, _PIECE)
    partial: HostArray = np.empty(count, np.asarray(function(flat[:1])).dtype)
    shares = max(1, min(4 * pool.threads, whole))

    def share(number: int) -> None:
        first, last = whole * number // shares, whole * (number + 1) // shares
        with np.errstate(all="ignore"):  # which is each thread's own
            partial[first:last] = function(rows[first:last], axis=1)

    pool.run(share, shares)
    if count > whole:
        partial[whole] = function(flat[whole * _PIECE :])
    if function not in (np.argmin, np.argmax):
        return cast(object, function(partial))
    places = cast("np.ndarray[Any, np.dtype[np.int64]]", partial) + np.arange(count) * _PIECE
    return cast(object, places[function(flat[places])])
