"""Reductions over axes: sum, prod, min, max, argmin, argmax, any and all, with NumPy's result dtypes; and any monoid.

Every function takes `axis` as NumPy does (an int, a tuple where NumPy takes one, or None for all), `keepdims`, and
`target`: a name of `targets()`, a target, or "auto" for the array's own device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..operations.reduce import Fold, Reduce, Reducer
from .arguments import axes_or_none, axis_or_none, check_like, check_policy, checked_flag
from .call import call
from .signatures import Axis, Keyed, Where, is_arithmetic, is_extremum, is_place, is_truth
from .signatures_monoids import is_reduce

if TYPE_CHECKING:
    from ..types.monoids import Monoid
    from ..types.params import ReducePolicy

_SUM, _PROD, _MIN, _MAX, _ARGMIN, _ARGMAX, _ANY, _ALL = Reducer  # a member of an enumeration is looked up slowly
E = TypeVar("E")
S = TypeVar("S")


@is_reduce
def reduce(
    x: object, /, monoid: Monoid[E, S], *, axis: Axis = None, keepdims: bool = False, target: Where = "auto",
    policy: ReducePolicy | None = None,
) -> object:  # fmt: skip
    """Reduces an array by a monoid, built in or your own, to its state: a scalar, or an array of states over axes.

    The elements are read as `monoid.element`: the array has that dtype or, where that is an unsigned integer, any of
    its size, whose bits are read (as keys do). A state of several fields comes as a structured dtype, in host memory.
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


def _reduced(reducer: Reducer, x: object, axis: object, keepdims: object, target: Where, key: Keyed = None) -> object:
    if axis is not None and axis.__class__ is not int:
        axis = axis_or_none(axis) if reducer.finds_index else axes_or_none(axis)
    if keepdims is not False:
        keepdims = checked_flag("keepdims", keepdims)
    if key is not None:
        check_like("key", key)
    return call(Reduce, (axis, keepdims, reducer, key), target, x)


@is_arithmetic
def sum(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> object:
    """The sum of the elements: integers in 64 bits, floats in an order that depends on shape, dtype and layout alone.

    NaT makes NaT; so does a sum of times on its way from the first to the last, if it comes by int64's least number.
    """
    return _reduced(_SUM, x, axis, keepdims, target)


@is_arithmetic
def prod(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> object:
    """The product of the elements: integers in 64 bits, floats in an order as that of `sum`."""
    return _reduced(_PROD, x, axis, keepdims, target)


@is_extremum
def min(
    x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto", key: Keyed = None,
) -> object:  # fmt: skip
    """The minimum, in the order of `key` if one is given; NaN or NaT where there is one."""
    return _reduced(_MIN, x, axis, keepdims, target, key)


@is_extremum
def max(
    x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto", key: Keyed = None,
) -> object:  # fmt: skip
    """The maximum, in the order of `key` if one is given; NaN or NaT where there is one."""
    return _reduced(_MAX, x, axis, keepdims, target, key)


@is_place
def argmin(x: object, /, *, axis: int | None = None, keepdims: bool = False, target: Where = "auto") -> object:
    """The index of the minimum: the first of equals; the first NaN or NaT where there is one."""
    return _reduced(_ARGMIN, x, axis, keepdims, target)


@is_place
def argmax(x: object, /, *, axis: int | None = None, keepdims: bool = False, target: Where = "auto") -> object:
    """The index of the maximum: the first of equals; the first NaN or NaT where there is one."""
    return _reduced(_ARGMAX, x, axis, keepdims, target)


@is_truth
def any(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> object:
    """Whether an element is true, that is, not zero; NaN and NaT are true."""
    return _reduced(_ANY, x, axis, keepdims, target)


@is_truth
def all(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> object:
    """Whether every element is true, that is, not zero; NaN and NaT are true."""
    return _reduced(_ALL, x, axis, keepdims, target)
