"""Reducing: sums, products, extrema, any, all, over axes, with NumPy's result dtypes; and any monoid of the user's.

Every function takes `axis` as NumPy does (an int, a tuple where NumPy takes one, or None for all), `keepdims`, and
`target`: a name of `targets()`, a target, or "auto" to work where the array lies.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .api import Nested, Other
from .arrays import HostArray
from .reducing import Axes, Axis, Reduction, arithmetic, check_elements, check_monoid, extreme, place, truth
from .targets.base import Target
from .types.dtypes import Extreme
from .types.monoids import AllTrue, AnyTrue, ArgMax, ArgMin, Monoid, Product, Sum
from .types.params import ReducePolicy

E = TypeVar("E")
S = TypeVar("S")
G = TypeVar("G", bound=np.generic)
F = TypeVar("F", bound=np.floating | np.timedelta64)
Counted: TypeAlias = npt.NDArray[np.bool_ | np.integer]
Count: TypeAlias = np.int64 | np.uint64
Whole: TypeAlias = Literal[False]  # keepdims, without which a reduction over all axes is a scalar


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
    check_monoid(asked.array, asked.axes, monoid, asked.target, commutes=True)
    states = asked.states(monoid, policy)
    if states.dtype.names is not None:
        return states.reshape(asked.shape)[()]
    return asked.result(states)


@overload
def sum(
    x: npt.NDArray[F], /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> F: ...  # fmt: skip
@overload
def sum(
    x: npt.NDArray[F], /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[F]: ...  # fmt: skip
@overload
def sum(
    x: npt.NDArray[F], /, *, axis: Axes, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[F]: ...  # fmt: skip
@overload
def sum(
    x: Counted, /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> Count: ...  # fmt: skip
@overload
def sum(
    x: Counted, /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[Count]: ...  # fmt: skip
@overload
def sum(
    x: Counted, /, *, axis: Axes, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[Count]: ...  # fmt: skip
@overload
def sum(
    x: HostArray | Nested, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> np.generic | HostArray: ...  # fmt: skip
@overload
def sum(
    x: Other, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> Other: ...  # fmt: skip
def sum(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """The sum of the elements: integers in 64 bits, floats in pairwise order. NaT makes NaT."""
    return arithmetic(np.sum, Sum, x, axis, keepdims, target)


@overload
def prod(
    x: npt.NDArray[F], /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> F: ...  # fmt: skip
@overload
def prod(
    x: npt.NDArray[F], /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[F]: ...  # fmt: skip
@overload
def prod(
    x: npt.NDArray[F], /, *, axis: Axes, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[F]: ...  # fmt: skip
@overload
def prod(
    x: Counted, /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> Count: ...  # fmt: skip
@overload
def prod(
    x: Counted, /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[Count]: ...  # fmt: skip
@overload
def prod(
    x: Counted, /, *, axis: Axes, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[Count]: ...  # fmt: skip
@overload
def prod(
    x: HostArray | Nested, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> np.generic | HostArray: ...  # fmt: skip
@overload
def prod(
    x: Other, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> Other: ...  # fmt: skip
def prod(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """The product of the elements: integers in 64 bits, floats in pairwise order."""
    return arithmetic(np.prod, Product, x, axis, keepdims, target)


@overload
def min(
    x: npt.NDArray[G], /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> G: ...  # fmt: skip
@overload
def min(
    x: npt.NDArray[G], /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[G]: ...  # fmt: skip
@overload
def min(
    x: npt.NDArray[G], /, *, axis: Axes, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[G]: ...  # fmt: skip
@overload
def min(
    x: Nested, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> np.generic | HostArray: ...  # fmt: skip
@overload
def min(
    x: Other, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> Other: ...  # fmt: skip
def min(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """The least element; NaN or NaT where there is one."""
    return extreme(np.min, Extreme.LEAST, x, axis, keepdims, target)


@overload
def max(
    x: npt.NDArray[G], /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> G: ...  # fmt: skip
@overload
def max(
    x: npt.NDArray[G], /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[G]: ...  # fmt: skip
@overload
def max(
    x: npt.NDArray[G], /, *, axis: Axes, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[G]: ...  # fmt: skip
@overload
def max(
    x: Nested, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> np.generic | HostArray: ...  # fmt: skip
@overload
def max(
    x: Other, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> Other: ...  # fmt: skip
def max(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """The greatest element; NaN or NaT where there is one."""
    return extreme(np.max, Extreme.GREATEST, x, axis, keepdims, target)


@overload
def argmin(
    x: HostArray | Nested, /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> np.int64: ...  # fmt: skip
@overload
def argmin(
    x: HostArray | Nested, /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[np.int64]: ...  # fmt: skip
@overload
def argmin(
    x: HostArray | Nested, /, *, axis: int, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[np.int64]: ...  # fmt: skip
@overload
def argmin(
    x: Other, /, *, axis: int | None = None, keepdims: bool = False, target: str | Target = "auto"
) -> Other: ...  # fmt: skip
def argmin(x: object, /, *, axis: int | None = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """Where the least element stands: the first of equals; the first NaN or NaT where there is one."""
    return place(np.argmin, ArgMin, x, axis, keepdims, target)


@overload
def argmax(
    x: HostArray | Nested, /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> np.int64: ...  # fmt: skip
@overload
def argmax(
    x: HostArray | Nested, /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[np.int64]: ...  # fmt: skip
@overload
def argmax(
    x: HostArray | Nested, /, *, axis: int, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[np.int64]: ...  # fmt: skip
@overload
def argmax(
    x: Other, /, *, axis: int | None = None, keepdims: bool = False, target: str | Target = "auto"
) -> Other: ...  # fmt: skip
def argmax(x: object, /, *, axis: int | None = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """Where the greatest element stands: the first of equals; the first NaN or NaT where there is one."""
    return place(np.argmax, ArgMax, x, axis, keepdims, target)


@overload
def any(
    x: HostArray | Nested, /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> np.bool_: ...  # fmt: skip
@overload
def any(
    x: HostArray | Nested, /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[np.bool_]: ...  # fmt: skip
@overload
def any(
    x: HostArray | Nested, /, *, axis: Axes, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[np.bool_]: ...  # fmt: skip
@overload
def any(
    x: Other, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> Other: ...  # fmt: skip
def any(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """Whether an element is true, that is, not zero; NaN and NaT are true."""
    return truth(np.any, AnyTrue, x, axis, keepdims, target)


@overload
def all(
    x: HostArray | Nested, /, *, axis: None = None, keepdims: Whole = False, target: str | Target = "auto"
) -> np.bool_: ...  # fmt: skip
@overload
def all(
    x: HostArray | Nested, /, *, axis: None = None, keepdims: Literal[True], target: str | Target = "auto"
) -> npt.NDArray[np.bool_]: ...  # fmt: skip
@overload
def all(
    x: HostArray | Nested, /, *, axis: Axes, keepdims: bool = False, target: str | Target = "auto"
) -> npt.NDArray[np.bool_]: ...  # fmt: skip
@overload
def all(
    x: Other, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto"
) -> Other: ...  # fmt: skip
def all(x: object, /, *, axis: Axis = None, keepdims: bool = False, target: str | Target = "auto") -> object:
    """Whether every element is true, that is, not zero; NaN and NaT are true."""
    return truth(np.all, AllTrue, x, axis, keepdims, target)
