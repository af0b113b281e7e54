"""The short way to reduce a plain array to one value, in the host's memory; and on a card, where the result stays.

Extrema are NumPy's own reductions, side by side: on one core they read about as fast as the memory gives, and a small
array costs them a microsecond; what they do not do is share a large one among cores. Sums of large arrays are compiled.
Pieces have a fixed size, so the order in which floats are added depends on the length alone. Everything else,
user-defined monoids above all, goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from .arrays import HostArray
from .quick_card import is_plain_on_card
from .targets.apart import import_apart

if TYPE_CHECKING:
    import cupy

    from .kernel.launch import Schedule
    from .targets.base import TargetInfo
    from .targets.cuda.plan import Plan

NumPyFunction: TypeAlias = Callable[..., Any]

_KINDS = frozenset("biuf")
_ON_CARD = (np.sum, np.min, np.max, np.argmin, np.argmax)
_SHARED_BYTES = 1 << 24  # below, one core reads about as much as it costs to wake another
_PIECE = 1 << 16  # elements; small enough to stay in a core's cache, and to share evenly
_COMPILED_BYTES = 1 << 21  # below, what is saved is never worth loading Numba
_SUMMED_TOGETHER_BYTES = 1 << 25  # a compiled sum reads as fast as the caches give


def quick_reduce(function: NumPyFunction, x: object, axis: object, keepdims: bool, target: object) -> object | None:
    """What NumPy's function gives for the whole array; None where the long way is needed."""
    if axis is not None or keepdims is not False:
        return None
    if function in _ON_CARD and target in ("auto", "cuda") and is_plain_on_card(x):
        return _on_card(function, cast("cupy.ndarray", x))
    if type(x) is not np.ndarray or target not in ("auto", "cpu"):
        return None
    array = cast(HostArray, x)
    dtype, flags = array.dtype, array.flags
    if dtype.kind not in _KINDS or not dtype.isnative or not (flags.c_contiguous and flags.aligned):
        return None
    if array.size == 0 or (dtype.kind == "f" and dtype.itemsize not in (4, 8)):
        return None
    with np.errstate(all="ignore"):
        if function is np.sum and array.nbytes >= _COMPILED_BYTES and _is_added_in_blocks(dtype, array.nbytes):
            return sum_in_blocks(array.reshape(-1))
        if array.nbytes < _SHARED_BYTES:
            return cast(object, function(array))
        return _shared(function, array.reshape(-1))


def _is_added_in_blocks(dtype: np.dtype[np.generic], nbytes: int) -> bool:
    """Floats always, for the order of their addition must not change; integers once the loops are loaded."""
    if dtype.kind == "f":
        return True
    from .targets.cpu.loops import can_add

    return can_add(dtype, nbytes)


def sum_in_blocks(flat: HostArray) -> object:
    """The sum, block by block: integers in 64 bits, as NumPy has it."""
    import_apart("numba")
    from .targets.cpu.alias import without_lock
    from .targets.cpu.sum_kernels import BLOCK, sum_floats, sum_signed, sum_unsigned

    flat, kind = without_lock(flat), flat.dtype.kind
    kernel = {"f": sum_floats, "u": sum_unsigned}.get(kind, sum_signed)
    count = -(-flat.size // BLOCK)
    sums: HostArray = np.empty(count, {"f": flat.dtype, "u": np.dtype("u8")}.get(kind, np.dtype("i8")))
    if flat.nbytes < _SUMMED_TOGETHER_BYTES:
        kernel(flat, sums, 0, count)
    else:
        from .targets.cpu.pool import shared_pool

        pool = shared_pool()
        shares = min(8 * pool.threads, count)
        pool.run(lambda share: kernel(flat, sums, count * share // shares, count * (share + 1) // shares), shares)
    return cast(object, np.sum(sums))


def _shared(function: NumPyFunction, flat: HostArray) -> object:
    """NumPy's function by the threads of the CPU target."""
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


# -- on a card --------------------------------------------------------------------------------------------


def _on_card(function: NumPyFunction, x: cupy.ndarray) -> object | None:
    """Neither waits for the card nor copies: the result is an array of no dimensions there, as cupy has it."""
    import cupy

    from .targets.cuda.target import device_errors

    device = cupy.cuda.runtime.getDevice()
    if x.dtype.kind not in "iuf" or x.dtype.itemsize < 4 or x.size == 0 or x.device.id != device:
        return None
    plan = _plan(function, x.dtype, x.size, device)
    if plan is None:
        return None
    result = cupy.empty((), _result_dtype(function, x.dtype))
    with device_errors():
        plan.run([x.data.ptr, result.data.ptr])
    return result


def _result_dtype(function: NumPyFunction, dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Integers are added in 64 bits."""
    if function in (np.argmin, np.argmax):
        return np.dtype(np.int64)
    return np.dtype(f"{dtype.kind}8") if function is np.sum and dtype.kind in "iu" else dtype


@lru_cache(maxsize=256)
def _plan(function: NumPyFunction, dtype: np.dtype[np.generic], count: int, device: int) -> Plan | None:
    """The plan that reduces so many elements; None where one launch does not take them."""
    from .algos.sizes import LARGEST_U32
    from .kernel.launch import Role
    from .targets import registry
    from .targets.cuda.target import CudaTarget

    target = registry.target("cuda")
    assert isinstance(target, CudaTarget)
    if count > LARGEST_U32:
        return None
    schedule = _schedule(function, dtype, count, target.info)
    order = [buffer.name for buffer in schedule.buffers if buffer.role is not Role.SCRATCH]
    assert order == ["data", "results"], order
    return target.prepared(schedule, device)


def _schedule(function: NumPyFunction, dtype: np.dtype[np.generic], count: int, info: TargetInfo) -> Schedule:
    from .algos.choice import fitting_reduction
    from .algos.finish import extremes, places
    from .algos.reduce import reduce_rows
    from .types.dtypes import key_for, number_for
    from .types.monoids import ArgMax, ArgMin, Maximum, Minimum, Sum

    if function is np.sum:
        total = Sum(number_for(dtype))
        return reduce_rows(total, 1, count, fitting_reduction(total.state, count, info))
    key: Any = key_for(dtype)
    if function in (np.argmin, np.argmax):
        place: ArgMin[Any, Any] | ArgMax[Any, Any] = ArgMin(key) if function is np.argmin else ArgMax(key)
        return places(place, 1, count, fitting_reduction(place.state, count, info))
    extreme: Minimum[Any, Any] | Maximum[Any, Any] = Minimum(key) if function is np.min else Maximum(key)
    return extremes(extreme, 1, count, fitting_reduction(extreme.state, count, info))
