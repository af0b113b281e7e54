"""What all reductions share: an array laid out in rows, the rows reduced by a target, the results in their shape."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, SupportsIndex, TypeVar, cast

import attrs
import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_tuple

from .algos.choice import fitting_reduction
from .algos.fit import fitted_reduce
from .algos.reduce import reduce_rows
from .api import checked_axis, rows_together
from .arrays import HostArray, HostOperand, Operand, operand
from .checks import check_monoid, checked_flag
from .kernel.launch import Schedule
from .quick_reduce import NumPyFunction, quick_reduce
from .signatures import Axis
from .targets.base import Capability, ChecksMonoids, Target, TargetInfo, loads_aside
from .targets.registry import choose
from .types.dtypes import ArrayKey, Extreme, Words, extremes_of, key_for, native, number_for
from .types.elements import dtype_of, encode, leaves
from .types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from .types.layout import Type
from .types.monoids import AllTrue, AnyTrue, ArgMax, ArgMin, Maximum, Minimum, MinMax, Monoid, Product, Sum
from .types.params import ReducePolicy
from .types.scalars import U8
from .types.truths import of_truths

E = TypeVar("E")
S = TypeVar("S")

_AXES = "an int, a tuple of ints or None"


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
        array, kept = operand("x", x), checked_flag("keepdims", keepdims)
        return cls(array, axis, checked_axes(axis, len(array.shape)), kept, choose(target, array.memory))

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
        info = self.target.info
        wished = None if policy is None else fitted_reduce(policy, monoid.state, info)
        if length == 0 or rows == 0:
            return np.full(rows, np.array(encode(monoid.identity()), state))
        require_floats(monoid, info)
        reading = as_read(self.array, monoid)
        limits = info.limits
        chosen = wished or fitting_reduction(monoid.state, length, info)
        with self.array.working():
            view = self.array.along(self.axes)
            work = view if view.is_packed else view.pack()
            together = rows_together("x", length, work.dtype.itemsize, 1, info.name, limits)
            found: list[HostArray] = []
            for first in range(0, rows, together):
                last = min(rows, first + together)
                results = work.empty(last - first, state)
                data = work.rows(first, last, length, dtype_of(monoid.element))
                schedule = _schedule(_Plan(reading, last - first, length, chosen))
                self.target.run(schedule, {"data": data, "results": results})
                found.append(work.to_host(results, state))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def by_numpy(self, function: NumPyFunction, monoid: Monoid[E, S], kinds: str) -> HostArray | None:
        """What NumPy's function gives while the target compiles; None where the target is ready, or always needed.

        `kinds` are those of the dtypes of which both give the same bits.
        """
        array, target, info = self.array, self.target, self.target.info
        if array.dtype.kind not in kinds or not isinstance(array, HostOperand) or not loads_aside(target):
            return None
        policy = fitting_reduction(monoid.state, self.length, info)
        schedule = _schedule(_Plan(as_read(array, monoid), self.rows, self.length, policy))
        if target.has_loaded(schedule, array.values.nbytes):
            return None
        with np.errstate(all="ignore"):
            found = np.asarray(function(array.values, axis=self.axis))
        return cast(HostArray, found.astype(result_dtype(function, array.dtype), copy=False))

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
    """Refuses what is no monoid, and an array whose elements are not its own, nor the bits of such."""
    check_monoid(monoid)
    found, wanted = native(array.dtype), dtype_of(monoid.element)
    if found != wanted and not (wanted.kind == "u" and found.itemsize == wanted.itemsize and found.kind in "biufmM"):
        raise UnsupportedTypeError(f"x: expected dtype {wanted}, as {type(monoid).__name__} takes, found {array.dtype}")


def as_read(array: Operand, monoid: Monoid[E, S]) -> Monoid[E, S] | Monoid[U8, S]:
    """The monoid that makes of an array's bytes what this one makes of its elements."""
    return of_truths(monoid) if array.dtype.kind == "b" else monoid


_LOOKED_AT = 12  # elements that a monoid is tried on


def try_laws(array: Operand, axes: Sequence[int], monoid: Monoid[E, S], target: Target, commutes: bool) -> None:
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
            return tuple(sorted(normalize_axis_tuple([operator.index(number) for number in axis], ndim, "axis")))
        except np.exceptions.AxisError:
            raise
        except ValueError as error:
            raise InvalidArgumentError(f"axis: {error}") from error
        except TypeError as error:
            raise UnsupportedTypeError(f"axis: expected {_AXES}, found {axis!r}") from error
    if ndim == 0 and type(axis) is int and axis in (0, -1):  # NumPy lets this pass
        return ()
    return (checked_axis(axis, ndim, _AXES),)


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
    found = asked.by_numpy(function, make(number), "biu")
    if found is not None:
        return asked.result(found)
    states = asked.states(make(number))
    if dtype.kind != "f":  # integers are added modulo 2**64, so the bits are right for signed ones too
        values = states.view(dtype)
        return asked.result(_with_nat(asked, values) if dtype.kind == "m" else values)
    with np.errstate(over="ignore"):
        return asked.result(states.astype(dtype))


def _with_nat(asked: Reduction, sums: HostArray) -> HostArray:
    """Sums of times, modulo two to the 64, as NumPy has them: NaT where an element is, or where the sum so far is.

    The sum so far comes by NaT's bits only if it leaves 64 bits, and then the order of adding decides: NumPy adds.
    """
    key = key_for(asked.array.dtype, "x")
    both = cast("npt.NDArray[np.void]", asked.states(MinMax(key)))
    least = extremes_of(key, cast(Words, both["low"]), Extreme.LEAST).view(np.int64)
    greatest = extremes_of(key, cast(Words, both["high"]), Extreme.GREATEST).view(np.int64)
    missing = least == np.iinfo(np.int64).min
    most = np.iinfo(np.int64).max // asked.length
    if np.any(~missing & ((least < -most) | (greatest > most))):
        assert isinstance(asked.array, HostOperand), "no card has times"
        return cast(HostArray, np.asarray(np.sum(asked.array.values, axis=asked.axis)))
    sums[missing] = np.array("NaT", sums.dtype)
    return sums


def extreme(
    function: NumPyFunction, end: Extreme, x: object, axis: Axis, keepdims: bool, target: str | Target
) -> object:
    found = quick_reduce(function, x, axis, keepdims, target)
    if found is not None:
        return found
    asked = Reduction.of(x, axis, keepdims, target)
    key = key_for(asked.array.dtype, "x")
    if asked.length == 0 or asked.rows == 0:
        return asked.of_nothing(function)
    found = asked.by_numpy(function, _extreme(key, end), "biufmM")
    if found is not None and _is_told_by_value(found):
        return asked.result(found)
    return asked.result(_extremes(asked, end).astype(result_dtype(function, asked.array.dtype), copy=False))


def _extreme(key: ArrayKey, end: Extreme) -> Monoid[Any, Any]:
    return Minimum(key) if end is Extreme.LEAST else Maximum(key)


def _is_told_by_value(found: HostArray) -> bool:
    """Whether values say all about an extreme's bits: not of zeros and NaNs, of which NumPy takes any."""
    return found.dtype.kind != "f" or bool((np.abs(found) > 0).all())


def _extremes(asked: Reduction, end: Extreme) -> HostArray:
    """The extreme element of every row."""
    key = key_for(asked.array.dtype, "x")
    states = asked.states(_extreme(key, end))
    return extremes_of(key, cast(Words, states), end).view(native(asked.array.dtype))


def place(
    function: NumPyFunction, make: type[ArgMin[Any, Any]] | type[ArgMax[Any, Any]], x: object,
    axis: SupportsIndex | None, keepdims: bool, target: str | Target,
) -> object:  # fmt: skip
    if axis is not None and type(axis) is not int:
        checked_axis(axis, 1 << 10)  # of one kind at least; which there are is asked below
    found = quick_reduce(function, x, axis, keepdims, target)
    if found is not None:
        return found
    asked = Reduction.of(x, axis, keepdims, target)
    key = key_for(asked.array.dtype, "x")
    if asked.length == 0 or asked.rows == 0:
        return asked.of_nothing(function)
    found = asked.by_numpy(function, make(key), "biufmM")
    if found is not None:
        return asked.result(found)
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
    found = asked.by_numpy(function, make(key), "biuf")
    if found is not None:
        return asked.result(found)
    return asked.result(asked.states(make(key)).astype(np.bool_))
