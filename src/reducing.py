"""What all reductions share: an array laid out in rows, the rows reduced by a target, the results in their shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, cast

import attrs
import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_tuple

from .algos.choice import fitting_reduction
from .algos.reduce import reduce_rows
from .api import checked_axis, rows_together
from .arrays import HostArray, HostOperand, Operand, operand
from .kernel.launch import Schedule
from .quick_reduce import NumPyFunction, quick_reduce
from .targets.base import Capability, ChecksMonoids, Target, TargetInfo
from .targets.registry import choose
from .types.dtypes import Extreme, Words, extremes_of, key_for, native, number_for
from .types.elements import dtype_of, encode, leaves
from .types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from .types.layout import Type
from .types.monoids import AllTrue, AnyTrue, ArgMax, ArgMin, Maximum, Minimum, Monoid, Product, Sum
from .types.params import ReducePolicy

E = TypeVar("E")
S = TypeVar("S")
Axes: TypeAlias = int | tuple[int, ...]
Axis: TypeAlias = Axes | None


@attrs.frozen
class Reduction:
    """An array, the axes that go, and who works."""

    array: Operand
    axis: Axis  # as it was asked for
    axes: tuple[int, ...]  # in C order, so that an index along them is one into the flattened axes
    keepdims: bool
    target: Target

    @classmethod
    def of(cls, x: object, axis: Axis, keepdims: bool, target: str | Target) -> Reduction:
        array = operand("x", x)
        return cls(array, axis, checked_axes(axis, len(array.shape)), keepdims, choose(target, array.memory))

    @property
    def length(self) -> int:
        """Elements that become one."""
        return math.prod(self.array.shape[axis] for axis in self.axes)

    @property
    def rows(self) -> int:
        """Results."""
        return math.prod(size for axis, size in enumerate(self.array.shape) if axis not in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result."""
        sizes = enumerate(self.array.shape)
        if self.keepdims:
            return tuple(1 if axis in self.axes else size for axis, size in sizes)
        return tuple(size for axis, size in sizes if axis not in self.axes)

    def states(self, monoid: Monoid[E, S], policy: ReducePolicy | None = None) -> HostArray:
        """The state of every row."""
        state = dtype_of(monoid.state)
        length, rows = self.length, self.rows
        if length == 0 or rows == 0:
            return np.full(rows, np.array(encode(monoid.identity()), state))
        info = self.target.info
        require_floats(monoid, info)
        limits = info.limits
        chosen = policy or fitting_reduction(monoid.state, length, info)
        with self.array.working():
            view = self.array.along(self.axes)
            work = view if view.is_packed else view.pack()
            together = rows_together("x", length, work.dtype.itemsize, 1, info.name, limits)
            found: list[HostArray] = []
            for first in range(0, rows, together):
                last = min(rows, first + together)
                results = work.empty(last - first, state)
                data = work.rows(first, last, length, dtype_of(monoid.element))
                schedule = _schedule(_Plan(monoid, last - first, length, chosen))
                self.target.run(schedule, {"data": data, "results": results})
                found.append(work.to_host(results, state))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def result(self, values: HostArray) -> object:
        """One value a row, in the result's shape and the caller's kind of array; a scalar where there is but one."""
        return self.array.wrap(values.reshape(self.shape))

    def of_nothing(self, function: NumPyFunction) -> object:
        """The answer for an array without elements, which is NumPy's: its dtype, its shape, its errors."""
        empty = np.empty(self.array.shape, self.array.dtype)
        try:
            return self.array.wrap(np.asarray(function(empty, axis=self.axis, keepdims=self.keepdims)))
        except ValueError as error:
            raise InvalidArgumentError(str(error)) from error


def check_elements(array: Operand, monoid: Monoid[E, S]) -> None:
    """Refuses an array whose elements are not a monoid's, nor the bits of such."""
    found, wanted = native(array.dtype), dtype_of(monoid.element)
    if found != wanted and not (wanted.kind == "u" and found.itemsize == wanted.itemsize and found.kind in "biufmM"):
        raise UnsupportedTypeError(f"x: expected dtype {wanted}, as {type(monoid).__name__} takes, found {array.dtype}")


_LOOKED_AT = 12  # elements that a monoid is tried on


def check_monoid(array: Operand, axes: Sequence[int], monoid: Monoid[E, S], target: Target, commutes: bool) -> None:
    """Where the target looks for mistakes, it looks at the monoid first, on some elements of all the array."""
    if not isinstance(target, ChecksMonoids) or not isinstance(array, HostOperand) or array.values.size == 0:
        return
    rows = array.along(axes)
    assert isinstance(rows, HostOperand), "both are of one kind"
    length = math.prod(array.shape[axis] for axis in axes)
    places = np.unique(np.linspace(0, rows.values.size - 1, _LOOKED_AT).astype(np.intp))
    found = np.array(rows.values.flat[places], native(array.dtype)).view(dtype_of(monoid.element))
    target.check_monoid(monoid, found, [int(place) % length for place in places], commutes)


def checked_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes that go, counted from the front, in order."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple):
        try:
            return tuple(sorted(normalize_axis_tuple(axis, ndim, "axis")))
        except np.exceptions.AxisError:
            raise
        except ValueError as error:
            raise InvalidArgumentError(f"axis: {error}") from error
        except TypeError as error:
            raise UnsupportedTypeError(f"axis: expected an int, a tuple of ints or None, found {axis!r}") from error
    if ndim == 0 and axis in (0, -1):  # NumPy lets this pass
        return ()
    return (checked_axis(axis, ndim),)


@attrs.frozen
class _Plan:
    """All that a schedule depends on."""

    monoid: Monoid[Any, Any]
    rows: int
    length: int
    policy: ReducePolicy


@lru_cache(maxsize=512)
def _schedule(plan: _Plan) -> Schedule:
    """Kept, so that a target can keep what it has made of it."""
    return reduce_rows(plan.monoid, plan.rows, plan.length, plan.policy)


def require_floats(monoid: Monoid[Any, Any], info: TargetInfo) -> None:
    """Refuses arithmetic that the target lacks before anything is compiled for it."""
    if Capability.FLOAT64 in info.capabilities:
        return
    if any(leaf.type is Type.F64 for element in (monoid.element, monoid.state) for leaf in leaves(element)):
        raise CapabilityError(
            f"x: {type(monoid).__name__} of float64 needs {Capability.FLOAT64.value}, which target {info.name!r} "
            f"({info.adapter}) lacks; use target='cpu', or convert to float32"
        )


@lru_cache(maxsize=512)
def result_dtype(function: NumPyFunction, dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The dtype that NumPy's function gives for arrays of a dtype."""
    try:
        return np.asarray(function(np.zeros((1, 1), dtype), axis=1)).dtype
    except TypeError as error:
        raise UnsupportedTypeError(f"x: {error}") from error


# -- a state for every row, and what becomes of it ---------------------------------------------------------


def arithmetic(
    function: NumPyFunction, make: type[Sum[Any, Any]] | type[Product[Any, Any]], x: object, axis: Axis, keepdims: bool,
    target: str | Target,
) -> object:  # fmt: skip
    found = quick_reduce(function, x, axis, keepdims, target)
    if found is not None:
        return found
    asked = Reduction.of(x, axis, keepdims, target)
    number = number_for(asked.array.dtype, "x")
    dtype = result_dtype(function, asked.array.dtype)
    if asked.length == 0 or asked.rows == 0:
        return asked.of_nothing(function)
    states = asked.states(make(number))
    if dtype.kind != "f":  # integers are added modulo 2**64, so the bits are right for signed ones too
        values = states.view(dtype)
        if dtype.kind == "m":
            values[np.isnat(_extremes(asked, Extreme.LEAST))] = np.array("NaT", dtype)
        return asked.result(values)
    with np.errstate(over="ignore"):
        return asked.result(states.astype(dtype))


def extreme(
    function: NumPyFunction, end: Extreme, x: object, axis: Axis, keepdims: bool, target: str | Target
) -> object:
    found = quick_reduce(function, x, axis, keepdims, target)
    if found is not None:
        return found
    asked = Reduction.of(x, axis, keepdims, target)
    key_for(asked.array.dtype, "x")
    if asked.length == 0 or asked.rows == 0:
        return asked.of_nothing(function)
    return asked.result(_extremes(asked, end).astype(result_dtype(function, asked.array.dtype), copy=False))


def _extremes(asked: Reduction, end: Extreme) -> HostArray:
    """The extreme element of every row."""
    key = key_for(asked.array.dtype, "x")
    states = asked.states(Minimum(key) if end is Extreme.LEAST else Maximum(key))
    return extremes_of(key, cast(Words, states), end).view(native(asked.array.dtype))


def place(
    function: NumPyFunction, make: type[ArgMin[Any, Any]] | type[ArgMax[Any, Any]], x: object, axis: int | None,
    keepdims: bool, target: str | Target,
) -> object:  # fmt: skip
    if isinstance(axis, tuple):
        raise UnsupportedTypeError(f"axis: expected an int or None, found {axis!r}")
    found = quick_reduce(function, x, axis, keepdims, target)
    if found is not None:
        return found
    asked = Reduction.of(x, axis, keepdims, target)
    key = key_for(asked.array.dtype, "x")
    if asked.length == 0 or asked.rows == 0:
        return asked.of_nothing(function)
    ranked = cast("npt.NDArray[np.void]", asked.states(make(key)))
    return asked.result(ranked["index"].astype(np.int64))


def truth(
    function: NumPyFunction, make: type[AnyTrue[Any, Any]] | type[AllTrue[Any, Any]], x: object, axis: Axis,
    keepdims: bool, target: str | Target,
) -> object:  # fmt: skip
    found = quick_reduce(function, x, axis, keepdims, target)
    if found is not None:
        return found
    asked = Reduction.of(x, axis, keepdims, target)
    key = key_for(asked.array.dtype, "x")
    if asked.length == 0 or asked.rows == 0:
        return asked.of_nothing(function)
    return asked.result(asked.states(make(key)).astype(np.bool_))
