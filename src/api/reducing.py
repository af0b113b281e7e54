"""Reductions over axes and prefix scans, with NumPy's result dtypes; and of any monoid."""

# Of variables that an overload has once: signatures.py says why.
# pyright: reportInvalidTypeVarUse=false
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ..arrays.registry import KNOWN
from ..operations.reduce import Fold, Reduce, Reducer
from ..operations.scan import Cumsum, Scan
from ..types.checks import check_like, checked_flag, index_of
from ..types.indices import ScanKind
from ..types.specs import HostArray
from .arguments import axes_or_none, axis_or_none, check_key, check_policy
from .call import Maker, call
from .signatures import (
    Axis,
    AxisOrAll,
    F,
    G,
    Given,
    Keyed,
    Labelled,
    Like,
    Nested,
    Numpys,
    Raw,
    Shape,
    Signed,
    Unsigned,
    Where,
)
from .signatures_reductions import is_arithmetic, is_extremum, is_place, is_reduce, is_scan, is_truth

if TYPE_CHECKING:
    from ..types.monoids import Monoid
    from ..types.params import ReducePolicy, ScanPolicy

_SUM, _PROD, _MIN, _MAX, _ARGMIN, _ARGMAX, _ANY, _ALL = (partial(Reduce, reducer=one) for one in Reducer)
E = TypeVar("E")
S = TypeVar("S")


@is_reduce
def reduce(
    x: object, /, monoid: Monoid[E, S], *, axis: Axis = None, keepdims: bool = False, target: Where = "auto",
    policy: ReducePolicy | None = None,
) -> object:  # fmt: skip
    """Reduces an array by a monoid, built in or your own, to its state: a scalar, or an array of states over axes.

    The elements are read as `monoid.element`: the array has that dtype or, if that is an unsigned integer, any dtype of
    the same size, whose bits are read (as keys do). A state of several fields has a structured dtype, in host memory
    unless `x` is such an array in a wgpu buffer. `policy` replaces the division of work that was measured to be
    fastest. The rest is as for `sum`.
    """
    if axis is not None and axis.__class__ is not int:
        axis = axes_or_none(axis)
    if keepdims is not False:
        keepdims = checked_flag("keepdims", keepdims)
    return call(_fold, (axis, keepdims, monoid, policy), target, x)


def _fold(
    axis: int | tuple[int, ...] | None, keepdims: bool, monoid: Monoid[E, S], policy: ReducePolicy | None
) -> Fold:
    from ..types.params import ReducePolicy

    check_like("monoid", monoid)
    check_policy(policy, ReducePolicy)
    return Fold(axis, keepdims, of=monoid, policy=policy)


def _reduced(
    make: Maker, x: object, axis: object, keepdims: object, target: Where, key: Keyed = None,
    checked: Callable[[object], object] = axes_or_none,
) -> object:  # fmt: skip
    """By an operation of an axis, keepdims and a key."""
    if axis is not None and axis.__class__ is not int:
        axis = checked(axis)
    if keepdims is not False:
        keepdims = checked_flag("keepdims", keepdims)
    if key is not None:
        check_key(key)
    return call(make, (axis, keepdims, key), target, x)


@is_arithmetic
def sum(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> object:
    """The sum of the elements: integers in 64 bits, floats in an order that depends on shape, dtype and layout alone.

    `axis` is an int, a tuple of ints, or None for all axes; `keepdims` leaves them in the result, of length 1. `target`
    is a name of `targets()` or a target; "auto" runs on the array's own device.

    A sum of times with a NaT is NaT; so is one of which a partial sum, from the first element on (in a wgpu buffer in
    another order), is int64's least number. From NumPy 2.5 on, a sum of NumPy's times beyond 64 bits is an
    OverflowError.
    """
    return _reduced(_SUM, x, axis, keepdims, target)


@is_arithmetic
def prod(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> object:
    """The product of the elements: integers in 64 bits, floats in an order as for `sum`, and so are the arguments."""
    return _reduced(_PROD, x, axis, keepdims, target)


@is_extremum
def min(
    x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto", key: Keyed = None,
) -> object:  # fmt: skip
    """The minimum, in the order of `key` if one is given; NaN or NaT where there is one. The rest is as for `sum`."""
    return _reduced(_MIN, x, axis, keepdims, target, key)


@is_extremum
def max(
    x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto", key: Keyed = None,
) -> object:  # fmt: skip
    """The maximum, in the order of `key` if one is given; NaN or NaT where there is one. The rest is as for `sum`."""
    return _reduced(_MAX, x, axis, keepdims, target, key)


@is_place
def argmin(
    x: object, /, *, axis: AxisOrAll = None, keepdims: bool = False, target: Where = "auto", key: Keyed = None,
) -> object:  # fmt: skip
    """The index of the minimum, in the order of `key` if one is given: the first of equals; the first NaN or NaT where
    there is one. `axis` is one, or None for the flattened array; the rest is as for `sum`."""
    return _reduced(_ARGMIN, x, axis, keepdims, target, key, axis_or_none)


@is_place
def argmax(
    x: object, /, *, axis: AxisOrAll = None, keepdims: bool = False, target: Where = "auto", key: Keyed = None,
) -> object:  # fmt: skip
    """The index of the maximum, in the order of `key` if one is given: the first of equals; the first NaN or NaT where
    there is one. `axis` is one, or None for the flattened array; the rest is as for `sum`."""
    return _reduced(_ARGMAX, x, axis, keepdims, target, key, axis_or_none)


@is_truth
def any(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> object:
    """Whether an element is true, that is, not zero; NaN and NaT are true. Arguments are as for `sum`."""
    return _reduced(_ANY, x, axis, keepdims, target)


@is_truth
def all(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> object:
    """Whether every element is true, that is, not zero; NaN and NaT are true. Arguments are as for `sum`."""
    return _reduced(_ALL, x, axis, keepdims, target)


@is_scan
def scan(
    x: object, /, monoid: Monoid[E, S], *, axis: SupportsIndex = -1, exclusive: bool = False,
    target: Where = "auto", policy: ScanPolicy | None = None,
) -> object:  # fmt: skip
    """The prefix scan of an array by a monoid, built in or your own: for every element the state of all up to it.

    With `exclusive`, the state of all before it: the first is the monoid's identity. The elements are read as by
    `reduce`, and combined in their order: `combine` must be associative, but need not commute. States are an array of
    x's kind; those of several fields are as for `reduce`. `axis` is an int; the rest is as for `reduce`, too.
    """
    if axis.__class__ is not int:
        axis = index_of("axis", axis)
    if exclusive is not False:
        exclusive = checked_flag("exclusive", exclusive)
    return _in_places(call(_scan, (axis, exclusive, policy, monoid), target, x), x)


def _scan(axis: int, exclusive: bool, policy: ScanPolicy | None, monoid: Monoid[E, S]) -> Scan:
    from ..types.params import ScanPolicy

    check_like("monoid", monoid)
    check_policy(policy, ScanPolicy)
    return Scan(axis, ScanKind.EXCLUSIVE if exclusive else ScanKind.INCLUSIVE, of=monoid, policy=policy)


@overload
def cumsum(x: Numpys[Shape, F], /, *, axis: AxisOrAll = None, target: Where = "auto") -> NDArray[F]: ...
@overload
def cumsum(x: Signed, /, *, axis: AxisOrAll = None, target: Where = "auto") -> NDArray[np.int64]: ...
@overload
def cumsum(x: Unsigned, /, *, axis: AxisOrAll = None, target: Where = "auto") -> NDArray[np.uint64]: ...
@overload  # the ignores: texts are of texts, to Python an int is a float, so these overlap, and are read in turn
def cumsum(  # type: ignore[overload-overlap]
    x: Raw | Labelled, /, *, axis: AxisOrAll = None, target: Where = "auto"
) -> HostArray: ...
@overload
def cumsum(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
    x: Nested[int], /, *, axis: AxisOrAll = None, target: Where = "auto"
) -> NDArray[np.int64]: ...
@overload
def cumsum(x: Nested[float], /, *, axis: AxisOrAll = None, target: Where = "auto") -> NDArray[np.float64]: ...
@overload
def cumsum(x: Like, /, *, axis: AxisOrAll = None, target: Where = "auto") -> Like: ...
@overload
def cumsum(x: Numpys[Shape, G] | Like, /, *, axis: AxisOrAll = None, target: Where = "auto") -> HostArray | Like: ...
@overload
def cumsum(x: Given, /, *, axis: AxisOrAll = None, target: Where = "auto") -> HostArray: ...
def cumsum(x: object, /, *, axis: AxisOrAll = None, target: Where = "auto") -> object:
    """The cumulative sum along an axis, in the dtype of NumPy's `cumsum`.

    `axis=None` takes the flattened array. Floats are added in another order than NumPy's, from left to right within
    blocks, and the same way every time; float16 in 32 bits, rounded once, where NumPy rounds after each element.

    Times and `target` are as for `sum`.
    """
    if axis is not None and axis.__class__ is not int:
        axis = axis_or_none(axis)
    return _in_places(call(Cumsum, (axis,), target, x), x)


def _in_places(found: object, x: object) -> object:
    """With the labels of the elements for which those of the result stand, where they have some."""
    kind = None if x.__class__ is np.ndarray else KNOWN.get(type(x))
    return found if kind is None else kind.in_places(found, x)
