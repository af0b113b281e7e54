"""Scanning: what a monoid makes of every element and all before it, and NumPy's cumulative sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, cast, overload

import attrs
import numpy as np
import numpy.typing as npt

from .algos.choice import fitting_scan
from .algos.fit import fitted_scan_policy
from .algos.scan import scan_rows
from .api import checked_axis
from .arrays import HostArray, HostOperand, Operand, operand
from .checks import check_policy, checked_flag
from .kernel.launch import Schedule
from .quick_card import is_plain_on_card
from .quick_scan import cumsum_on_card, scanned_together
from .reducing import as_read, check_elements, require_floats, result_dtype, try_laws
from .signatures import F, Nested, Other, Signed, Unsigned, Where
from .signatures_monoids import is_scan
from .targets.base import Target, loads_aside
from .targets.registry import choose
from .types.dtypes import native, number_for
from .types.elements import dtype_of
from .types.indices import ScanKind
from .types.monoids import Monoid, RunningSum
from .types.params import ScanPolicy

if TYPE_CHECKING:
    import cupy

E = TypeVar("E")
S = TypeVar("S")


@is_scan
def scan(
    x: object, monoid: Monoid[E, S], /, *, axis: SupportsIndex = -1, exclusive: bool = False,
    target: str | Target = "auto", policy: ScanPolicy | None = None,
) -> object:  # fmt: skip
    """The states that a monoid, built in or your own, makes of every element and all before it along an axis.

    Exclusive: of those before it alone, so the first is the monoid's identity. The elements are read as `reduce` reads
    them, and are combined in their order: `combine` must be associative, nothing more. States come in an array of x's
    kind; those of several fields as a structured dtype, in host memory.
    """
    array = operand("x", x)
    along = checked_axis(axis, len(array.shape), "an int")
    check_elements(array, monoid)
    check_policy(policy, ScanPolicy)
    kind = ScanKind.EXCLUSIVE if checked_flag("exclusive", exclusive) else ScanKind.INCLUSIVE
    chosen = choose(target, array.memory)
    try_laws(array, [along], monoid, chosen, commutes=False)
    scanning = _Scanning(array, along, monoid, kind, chosen, policy)
    state = dtype_of(monoid.state)
    return scanning.structs() if state.names is not None else scanning.scalars(state).owner


@overload
def cumsum(x: npt.NDArray[F], /, *, axis: SupportsIndex | None = None, target: Where = "auto") -> npt.NDArray[F]: ...
@overload
def cumsum(x: Signed, /, *, axis: SupportsIndex | None = None, target: Where = "auto") -> npt.NDArray[np.int64]: ...
@overload
def cumsum(x: Unsigned, /, *, axis: SupportsIndex | None = None, target: Where = "auto") -> npt.NDArray[np.uint64]: ...
@overload  # the ignores: to Python an int is a float, so these two overlap, and are read in turn
def cumsum(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
    x: Nested[int], /, *, axis: SupportsIndex | None = None, target: Where = "auto"
) -> npt.NDArray[np.int64]: ...
@overload
def cumsum(
    x: Nested[float], /, *, axis: SupportsIndex | None = None, target: Where = "auto"
) -> npt.NDArray[np.float64]: ...
@overload
def cumsum(x: Other, /, *, axis: SupportsIndex | None = None, target: Where = "auto") -> Other: ...
@overload
def cumsum(x: npt.ArrayLike, /, *, axis: SupportsIndex | None = None, target: Where = "auto") -> HostArray: ...
def cumsum(x: object, /, *, axis: SupportsIndex | None = None, target: Where = "auto") -> object:
    """The sums of every element and all before it along an axis, in the dtype of NumPy's `cumsum`.

    `axis=None` takes the flattened array. Floats are added in another order than NumPy's, from left to right within
    blocks, and the same way every time; float16 in 32 bits, rounded once, where NumPy rounds after each element.
    """
    if type(x) is np.ndarray and target in ("auto", "cpu") and _is_left_to_numpy(cast(HostArray, x), axis):
        return np.cumsum(x, axis=axis)
    if target in ("auto", "cuda") and is_plain_on_card(x):
        found = cumsum_on_card(cast("cupy.ndarray", x), axis)
        if found is not None:
            return found
    array = operand("x", x)
    number, wanted = number_for(array.dtype, "x"), result_dtype(np.cumsum, array.dtype)
    chosen = choose(target, array.memory)
    flat = axis is None or (array.shape == () and type(axis) is int and axis in (0, -1))  # which NumPy lets pass
    if flat and len(array.shape) != 1:
        array = array.flattened()
    along = checked_axis(-1 if axis is None or flat else axis, len(array.shape))
    if isinstance(array, HostOperand) and _is_for_numpy(array, along, wanted, chosen):
        return array.wrap(_by_numpy(array.values, along, wanted))
    scanning = _Scanning(array, along, RunningSum(number), ScanKind.INCLUSIVE, chosen, None)
    if wanted.kind in "iu" and isinstance(array, HostOperand) and not scanning.is_loaded():
        return array.wrap(_by_numpy(array.values, along, wanted))
    sums = scanning.scalars(wanted)
    if wanted.kind == "m":
        _spread_nat(array, along, sums)
    return sums.owner


# -- on the host ------------------------------------------------------------------------------------------

_SHORT = 1 << 17  # elements: below that, NumPy's sums of floats take less time than threads
_SHORT_WIDENED = 1 << 22  # the same for integers that grow to 64 bits; those that have them are NumPy's at any length
_SHORT_ROW = 1 << 9  # the same for one row of several


def _is_left_to_numpy(x: HostArray, axis: object) -> bool:
    """Whether an array is so short, and all else so plain, that to look closer takes longer than to add up."""
    return x.size < _SHORT and x.dtype.char in "bBhHiIlLqQfd" and (axis is None or type(axis) is int)


def _is_for_numpy(array: HostOperand, axis: int, wanted: np.dtype[np.generic], target: Target) -> bool:
    """Whether NumPy's own loop is to add: where threads take longer, and where sums of times might leave 64 bits, which
    some of its versions refuse, and others not."""
    if target.info.name == "cpu" and not _is_for_threads(array, axis, wanted):
        return True
    return wanted.kind == "m" and _may_leave_64_bits(array.values, array.shape[axis])


def _may_leave_64_bits(times: HostArray, length: int) -> bool:
    if not times.size:
        return False
    numbers = times[~np.isnat(times)].astype(native(times.dtype)).view(np.int64)
    most = np.iinfo(np.int64).max // length
    return bool(numbers.size) and not -most <= numbers.min() <= numbers.max() <= most


def _is_for_threads(array: HostOperand, axis: int, wanted: np.dtype[np.generic]) -> bool:
    """Whether NumPy's own loop takes longer than threads do."""
    size, length = array.values.size, array.shape[axis]
    if axis != len(array.shape) - 1 or (length < size and length < _SHORT_ROW):
        return False
    if wanted.kind == "f":
        return size >= _SHORT
    return size >= _SHORT_WIDENED and array.dtype.itemsize < wanted.itemsize


def _by_numpy(values: HostArray, axis: int, wanted: np.dtype[np.generic]) -> HostArray:
    sums = np.cumsum(values, axis=axis, dtype=np.float32 if wanted == np.float16 else wanted)
    with np.errstate(over="ignore"):
        return cast(HostArray, sums.astype(wanted, copy=False))


def _spread_nat(source: Operand, axis: int, sums: Operand) -> None:
    """From the first NaT of a row on, be it an element or a sum, every sum is one. Only the host has such arrays."""
    assert isinstance(source, HostOperand)
    assert isinstance(sums, HostOperand)
    missing = np.logical_or.accumulate(np.isnat(source.values) | np.isnat(sums.values), axis=axis)
    sums.values[missing] = np.array("NaT", source.dtype)


# -- by a target ------------------------------------------------------------------------------------------


@attrs.frozen
class _Scanning:
    """An array, the axis to go along, what is made of it, and who works."""

    array: Operand
    axis: int
    monoid: Monoid[Any, Any]
    kind: ScanKind
    target: Target
    policy: ScanPolicy | None

    def scalars(self, wanted: np.dtype[np.generic]) -> Operand:
        """The states as elements of a dtype: their own, another of their size, or a float of less bits."""
        state = dtype_of(self.monoid.state)
        made = self.array.blank(wanted if wanted.itemsize == state.itemsize else state)
        with self.array.working():
            view = made.along([self.axis])
            results = view if view.is_packed else view.pack()
            self._run(lambda first, last, length: results.rows(first, last, length, state))
            if results is not view:
                view.assign(results)
            return made if made.dtype == wanted else made.converted(wanted)

    def is_loaded(self) -> bool:
        """Whether the target should do it now; if not, it compiles meanwhile."""
        shape, target, info = self.array.shape, self.target, self.target.info
        if not loads_aside(target) or 0 in shape:
            return True
        length, rows = shape[self.axis], math.prod(shape) // shape[self.axis]
        policy = fitting_scan(self.monoid.state, length, info)
        nbytes = rows * length * self.array.dtype.itemsize
        reading = as_read(self.array, self.monoid)
        return target.has_loaded(_schedule(_Plan(reading, rows, length, self.kind, policy)), nbytes)

    def structs(self) -> HostArray:
        """The states of several fields, in host memory."""
        state = dtype_of(self.monoid.state)
        others = [size for axis, size in enumerate(self.array.shape) if axis != self.axis]
        parts: list[object] = []

        def part(first: int, last: int, length: int) -> object:
            parts.append(self.array.empty((last - first) * length, state))
            return parts[-1]

        with self.array.working():
            self._run(part)
            found = np.concatenate([np.empty(0, state), *[self.array.to_host(p, state) for p in parts]])
        return np.moveaxis(found.reshape([*others, self.array.shape[self.axis]]), -1, self.axis)

    def _run(self, results: Callable[[int, int, int], object]) -> None:
        """Scans all rows, as many at once as the target takes; asks where the results of some rows go."""
        info, element = self.target.info, dtype_of(self.monoid.element)
        require_floats(self.monoid, info)
        wished = None if self.policy is None else fitted_scan_policy(self.policy, self.monoid.state, info)
        view = self.array.along([self.axis])
        work = view if view.is_packed else view.pack()
        length = work.shape[-1]
        rows = math.prod(work.shape[:-1])
        if length * rows == 0:
            return
        reading = as_read(self.array, self.monoid)
        policy = wished or fitting_scan(self.monoid.state, length, info)
        together = scanned_together(self.monoid, rows, length, policy, self.target)
        for first in range(0, rows, together):
            last = min(rows, first + together)
            schedule = _schedule(_Plan(reading, last - first, length, self.kind, policy))
            data = work.rows(first, last, length, element)
            self.target.run(schedule, {"data": data, "results": results(first, last, length)})


@attrs.frozen
class _Plan:
    """All that a schedule depends on."""

    monoid: Monoid[Any, Any]
    rows: int
    length: int
    kind: ScanKind
    policy: ScanPolicy


@lru_cache(maxsize=512)
def _schedule(plan: _Plan) -> Schedule:
    """Kept, so that a target can keep what it has made of it."""
    return scan_rows(plan.monoid, plan.rows, plan.length, plan.kind, plan.policy)
