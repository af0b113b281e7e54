"""Sorting: array in, target and algorithm chosen, array of the same kind out."""

from __future__ import annotations

import operator
from typing import SupportsIndex, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index

from .algos.sizes import LARGEST_U32
from .algos.sorts import SortAlgorithm
from .arrays import HostArray, Operand, kind_of, operand
from .checks import check_algorithm, checked_flags, order_of
from .overlap import Overlap, overlap
from .quick import quick_sort, quick_sort_inplace
from .signatures import Nested, Other
from .sorting import sort_into
from .targets.base import Limits, Target
from .targets.registry import choose
from .types.dtypes import key_for
from .types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError

D = TypeVar("D", bound=np.dtype[np.generic])
Shape = TypeVar("Shape", bound=tuple[int, ...])


@overload
def sort(
    x: np.ndarray[Shape, D], /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = False,
    out: np.ndarray[Shape, D] | None = None, target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> np.ndarray[Shape, D]: ...  # fmt: skip
@overload
def sort(
    x: np.ndarray[Shape, D], /, *, axis: None, descending: bool = False, stable: bool = False,
    out: np.ndarray[tuple[int], D] | None = None, target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> np.ndarray[tuple[int], D]: ...  # fmt: skip
@overload  # the ignores: to Python a bool is an int, and an int a float, so these overlap, and are read in turn
def sort(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
    x: Nested[bool], /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = False,
    out: npt.NDArray[np.bool_] | None = None, target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> npt.NDArray[np.bool_]: ...  # fmt: skip
@overload
def sort(  # type: ignore[overload-overlap]
    x: Nested[int], /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = False,
    out: npt.NDArray[np.int64] | None = None, target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> npt.NDArray[np.int64]: ...  # fmt: skip
@overload
def sort(
    x: Nested[float], /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = False,
    out: npt.NDArray[np.float64] | None = None, target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> npt.NDArray[np.float64]: ...  # fmt: skip
@overload
def sort(
    x: Other, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = False,
    out: Other | None = None, target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> Other: ...  # fmt: skip
@overload
def sort(
    x: npt.ArrayLike, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = False,
    out: None = None, target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> HostArray: ...  # fmt: skip
def sort(
    x: object, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = False,
    out: object = None, target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> object:  # fmt: skip
    """A sorted copy of an array, in NumPy's order: NaN and NaT last, in both directions.

    `axis=None` sorts the flattened array. `stable` keeps 0.0 and -0.0, and NaNs of different bits, in the order they
    came in; nothing else can tell. `out` takes the result and must have its shape and dtype; it may be `x`, or lie
    partly where `x` does, which costs a copy. `target` is a name of `targets()` or a target; "auto" works where the
    array lies. `algorithm` is a value such as `Bitonic()`.
    """
    descending, stable = checked_flags(descending, stable)
    if axis == -1 and algorithm is None:
        found = quick_sort(x, out, descending, stable, target)
        if found is not None:
            return found
    check_algorithm(algorithm)
    source, order = operand("x", x), order_of(descending)
    key = key_for(source.dtype, "x")
    chosen = choose(target, source.memory)
    flat = axis is None
    if flat:
        source = source.flattened()
    place = checked_axis(-1 if axis is None else axis, len(source.shape))
    if out is not None:
        destination = _checked_out(out, source)
        match overlap(source, destination):
            case Overlap.SAME:
                source = destination
            case Overlap.PARTLY:  # until it is sorted, all of it stays as it is
                with source.working():
                    copy = source.pack()
                    sort_into(copy, copy, place, key, order, stable, chosen, algorithm)
                    destination.assign(copy)
                return destination.owner
            case Overlap.APART:
                pass
    else:
        destination = source if flat else source.fresh()
    sort_into(source, destination, place, key, order, stable, chosen, algorithm)
    return destination.owner


def sort_inplace(
    x: object, /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = False,
    target: str | Target = "auto", algorithm: SortAlgorithm | None = None,
) -> None:  # fmt: skip
    """Sorts an array where it lies. One that no target can work on as it lies is sorted in a copy, and put back."""
    descending, stable = checked_flags(descending, stable)
    if algorithm is None and quick_sort_inplace(x, axis, descending, stable, target):
        return
    check_algorithm(algorithm)
    source, order = operand("x", x), order_of(descending)
    if source.owner is not x:
        raise UnsupportedTypeError(f"x: expected an array to sort in place, found {kind_of(x)}")
    key = key_for(source.dtype, "x")
    place = checked_axis(axis, len(source.shape), "an int")
    if source.read_only:
        raise InvalidArgumentError("x: expected an array that can be written, found a read-only one")
    sort_into(source, source, place, key, order, stable, choose(target, source.memory), algorithm)


def rows_together(name: str, length: int, itemsize: int, groups: int, target: str, limits: Limits) -> int:
    """How many rows one run can take; an error where it cannot take one."""
    most = min(LARGEST_U32 // length, limits.storage_bytes // (length * itemsize), limits.groups // groups)
    if most < 1:
        raise CapabilityError(
            f"{name}: a row of {length} elements of {itemsize} bytes is more than target {target!r} takes: at most "
            f"{min(LARGEST_U32, limits.storage_bytes // itemsize)} elements"
        )
    return most


def checked_axis(axis: object, ndim: int, expected: str = "an int or None") -> int:
    """The axis counted from the front. Raises NumPy's AxisError where there is none."""
    if not hasattr(axis, "__index__") or isinstance(axis, np.ndarray):
        raise UnsupportedTypeError(f"axis: expected {expected}, found {axis!r}")
    return normalize_axis_index(operator.index(cast(SupportsIndex, axis)), ndim, "axis")


def _checked_out(out: object, source: Operand) -> Operand:
    """The destination that the caller brought, if it fits."""
    found = operand("out", out)
    if type(found) is not type(source) or found.owner is not out:
        raise UnsupportedTypeError(f"out: expected an array of x's kind, {kind_of(source.owner)}, found {kind_of(out)}")
    if found.shape != source.shape or found.dtype != source.dtype:
        raise InvalidArgumentError(
            f"out: expected shape {source.shape} and dtype {source.dtype}, found shape {found.shape} and dtype "
            f"{found.dtype}"
        )
    if found.read_only:
        raise InvalidArgumentError("out: expected an array that can be written, found a read-only one")
    return found
