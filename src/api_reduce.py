"""Reducing: sums, products, extrema, any, all, over axes, with NumPy's result dtypes; and any monoid of the user's.

Every function takes `axis` as NumPy does (an int, a tuple where NumPy takes one, or None for all), `keepdims`, and
`target`: a name of `targets()`, a target, or "auto" to work where the array lies.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from .checks import check_policy
from .reducing import Reduction, arithmetic, check_elements, extreme, place, truth
from .signatures import Axis, is_arithmetic, is_extremum, is_place, is_truth
from .signatures_monoids import is_reduce
from .targets.base import Target
from .types.dtypes import Extreme
from .types.monoids import AllTrue, AnyTrue, ArgMax, ArgMin, Monoid, Product, Sum
from .types.params import ReducePolicy

E = TypeVar("E")
S = TypeVar("S")


@is_reduce
def reduce(
    x: object, monoid: Monoid[E, S], /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto",
    policy: ReducePolicy | None = None,
) -> object:  # fmt: skip
    """The states that a monoid, built in or your own, makes of an array: a scalar, or an array of them along axes.

    The elements are read as `monoid.element`: the array has that dtype or, where that is an unsigned integer, any of
    its size, whose bits are read (as keys do). A state of several fields comes as a structured dtype, in host memory.
    """
    asked = Reduction.of(x, axis, keepdims, target)
    check_elements(asked.array, monoid)
    check_policy(policy, ReducePolicy)
    states = asked.states(monoid, policy)
    if states.dtype.names is not None:
        return states.reshape(asked.shape)[()]
    return asked.result(states)


@is_arithmetic
def sum(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """The sum of the elements: integers in 64 bits, floats in pairwise order.

    NaT makes NaT; so does a sum of times on its way from the first to the last, if it comes by int64's least number.
    """
    return arithmetic(np.sum, Sum, x, axis, keepdims, target)


@is_arithmetic
def prod(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """The product of the elements: integers in 64 bits, floats in pairwise order."""
    return arithmetic(np.prod, Product, x, axis, keepdims, target)


@is_extremum
def min(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """The least element; NaN or NaT where there is one."""
    return extreme(np.min, Extreme.LEAST, x, axis, keepdims, target)


@is_extremum
def max(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """The greatest element; NaN or NaT where there is one."""
    return extreme(np.max, Extreme.GREATEST, x, axis, keepdims, target)


@is_place
def argmin(x: object, /, *, axis: int | None = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """Where the least element stands: the first of equals; the first NaN or NaT where there is one."""
    return place(np.argmin, ArgMin, x, axis, keepdims, target)


@is_place
def argmax(x: object, /, *, axis: int | None = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """Where the greatest element stands: the first of equals; the first NaN or NaT where there is one."""
    return place(np.argmax, ArgMax, x, axis, keepdims, target)


@is_truth
def any(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """Whether an element is true, that is, not zero; NaN and NaT are true."""
    return truth(np.any, AnyTrue, x, axis, keepdims, target)


@is_truth
def all(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """Whether every element is true, that is, not zero; NaN and NaT are true."""
    return truth(np.all, AllTrue, x, axis, keepdims, target)
