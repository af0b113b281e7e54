"""Scanning: what a monoid makes of every element and all before it, and NumPy's cumulative sum."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import attrs
import numpy as np
import numpy.typing as npt

from .algos.choice import fitting_scan
from .algos.scan import scan_array
from .api import Nested, Other, rows_together
from .api_reduce import Count, Counted
from .arrays import HostArray, HostOperand, Operand, operand
from .kernel.launch import Schedule
from .quick_card import is_plain_on_card
from .quick_scan import cumsum_on_card
from .reducing import check_elements, require_floats, result_dtype
from .targets.base import Target
from .targets.registry import choose
from .types.dtypes import number_for
from .types.elements import dtype_of
from .types.errors import InvalidArgumentError
from .types.indices import ScanKind
from .types.monoids import Monoid, Sum
from .types.params import ScanPolicy

if TYPE_CHECKING:
    import cupy

E = TypeVar("E")
S = TypeVar("S")
F = TypeVar("F", bound=np.floating)

_SHORT = 1 << 17  # below that, NumPy's sums of floats take less time than threads
_SHORT_WIDENED = 1 << 20  # the same for integers that grow to 64 bits; those that have them are NumPy's at any length


def scan(
    x: object, monoid: Monoid[E, S], /, *, exclusive: bool = False, target: str | Target = "auto",
    policy: ScanPolicy | None = None,
) -> object:  # fmt: skip
    """The states that a monoid, built in or your own, makes of every element and all before it.

    Exclusive: of those before it alone, so the first is the monoid's identity. `x` has one dimension. The elements are
    read as `reduce` reads them, and are combined in their order: `combine` must be associative, nothing more. States
    come in an array of x's kind; those of several fields as a structured dtype, in host memory.
    """
    array = operand("x", x)
    if len(array.shape) != 1:
        raise InvalidArgumentError(f"x: expected one dimension, found shape {array.shape}")
    check_elements(array, monoid)
    kind = ScanKind.EXCLUSIVE if exclusive else ScanKind.INCLUSIVE
    chosen = choose(target, array.memory)
    return _scanned(array, monoid, kind, chosen, policy, dtype_of(monoid.state))


@overload
def cumsum(x: npt.NDArray[F], /, *, target: str | Target = "auto") -> npt.NDArray[F]: ...
@overload
def cumsum(x: Counted, /, *, target: str | Target = "auto") -> npt.NDArray[Count]: ...
@overload
def cumsum(x: HostArray | Nested, /, *, target: str | Target = "auto") -> HostArray: ...
@overload
def cumsum(x: Other, /, *, target: str | Target = "auto") -> Other: ...
def cumsum(x: object, /, *, target: str | Target = "auto") -> object:
    """The sums of every element and all before it, of the flattened array, in the dtype of NumPy's `cumsum`.

    Floats are added in another order than NumPy's, from left to right within blocks; float16 in 32 bits.
    """
    if target in ("auto", "cuda") and is_plain_on_card(x):
        found = cumsum_on_card(cast("cupy.ndarray", x))
        if found is not None:
            return found
    array = operand("x", x)
    number, wanted = number_for(array.dtype, "x"), result_dtype(np.cumsum, array.dtype)
    chosen = choose(target, array.memory)
    if chosen.info.name == "cpu" and isinstance(array, HostOperand):
        if array.values.size < _least_for_threads(array.values.dtype, wanted):
            sums = np.cumsum(array.values, axis=None, dtype=np.float32 if wanted.itemsize == 2 else wanted)
            with np.errstate(over="ignore"):
                return array.wrap(sums.astype(wanted, copy=False))
    flat = array if len(array.shape) == 1 else array.flattened()
    found = _scanned(flat, Sum(number), ScanKind.INCLUSIVE, chosen, None, wanted)
    if wanted.kind == "m":
        _spread_nat(flat, found)
    return found


def _least_for_threads(dtype: np.dtype[np.generic], wanted: np.dtype[np.generic]) -> float:
    """How many elements NumPy's own loop takes longer for than threads do."""
    if wanted.kind == "f":
        return _SHORT
    return _SHORT_WIDENED if dtype.itemsize < wanted.itemsize else float("inf")


def _spread_nat(source: Operand, sums: object) -> None:
    """From the first NaT on, every sum is one. Only the host has such arrays."""
    assert isinstance(source, HostOperand)
    assert isinstance(sums, np.ndarray)
    missing = np.isnat(source.values)
    if missing.any():
        sums[missing.argmax() :] = np.array("NaT", source.dtype)


def _scanned(
    array: Operand, monoid: Monoid[Any, Any], kind: ScanKind, target: Target, policy: ScanPolicy | None,
    wanted: np.dtype[np.generic],
) -> object:  # fmt: skip
    """The states as elements of a dtype: their own, another of their size, or a float of less bits."""
    info, element, state = target.info, dtype_of(monoid.element), dtype_of(monoid.state)
    require_floats(monoid, info)
    length = array.shape[0]
    with array.working():
        work = array if array.is_packed else array.pack()
        if length:  # an error, if that is more than the target takes
            largest = max(element.itemsize, state.itemsize)
            rows_together("x", length, largest, 1, info.name, info.limits)
        chosen = policy or fitting_scan(monoid.state, length, info)
        schedule = _schedule(_Plan(monoid, length, kind, chosen))
        data = work.rows(0, 1, length, element)
        if state.names is None and wanted.itemsize == state.itemsize:
            results = array.blank(wanted)
            target.run(schedule, {"data": data, "results": results.rows(0, 1, length, state)})
            return results.owner
        states = work.empty(length, state)
        target.run(schedule, {"data": data, "results": states})
        found = work.to_host(states, state)
    if state.names is not None:
        return found
    with np.errstate(over="ignore"):
        return array.wrap(found.astype(wanted))


@attrs.frozen
class _Plan:
    """All that a schedule depends on."""

    monoid: Monoid[Any, Any]
    length: int
    kind: ScanKind
    policy: ScanPolicy


@lru_cache(maxsize=512)
def _schedule(plan: _Plan) -> Schedule:
    """Kept, so that a target can keep what it has made of it."""
    return scan_array(plan.monoid, plan.length, plan.kind, plan.policy)
