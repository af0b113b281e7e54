"""Reductions of host arrays: a closure for each function, dtype and axis, made once and called for every array.

Short arrays go straight to NumPy's loops, past the Python in front of them; what is longer goes to regrouped.py,
reduce_plans.py or arg_reduce.py. Which way an array takes, and so the order in which its floats are added, depends on
its shape, dtype and layout alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ....operations.base import checked_axes
from ....operations.monoids import result_dtype
from ....operations.reduce import Reducer
from ....types.errors import InvalidArgumentError
from ...base import HostArray
from ...counts import count_nonzero
from ..loops import Kernel
from .arg_reduce import PlaceFolding, places_of_bools, places_of_times
from .autotuned import Choices, Way, Ways
from .key_words import HALF, numbers_as
from .reduce_loops import can_fold, loop_for
from .reduce_plans import Route, constant_of, leaps, route_of
from .reducers import EXTREMES, LONG, TRUTHS, UFUNCS, HostCall, in_shape, rounded, silence, takes
from .regrouped import ADDED, LEAST_IN_LINES, LINE, Regrouped
from .strides import LoopNest, Routes, zeros_and_ones

Signed: TypeAlias = npt.NDArray[np.signedinteger[Any]]

# Floats whose extremes NumPy finds as soon as any: in so few of its inner loops, and so few bytes.
_FEW_LINES, _CACHED = 1 << 7, 1 << 20
_HEAD = 1 << 9  # elements that may settle what any and all ask
_MIDDLING = 1 << 12  # the same where some are kept
_FLAT = 1 << 16  # elements of which NumPy is done before anything else has begun
_LONG_HALVES = 1 << 13  # elements of float16, which NumPy looks at one after the other
_ADDED_HALVES = 1 << 16  # the same of sums and products, for which compiled loops are waited for


class Folding:
    """A reduction of elements of a dtype along some axes, of long arrays. Sums and products of many floats are the
    compiled loops' alone, of fewer NumPy's: which are added by which depends on an array's shape and layout. All else
    is the same bits whichever way it is found, so that the fastest is; sums in order are, too."""

    def __init__(self, fold: Reducer, dtype: np.dtype[np.generic], axes: tuple[int, ...], ndim: int) -> None:
        self._is_half = dtype == HALF
        self.least = LONG if len(axes) == ndim else _MIDDLING
        if ndim == 1 and not fold.adds and dtype.kind not in "mM":
            self.least = _FLAT
        if fold.adds and dtype.kind == "f" and len(axes) == ndim:
            self.least = ADDED // dtype.itemsize
        if self._is_half:
            self.least = _ADDED_HALVES if fold.adds else _LONG_HALVES
        self._counts = dtype.kind == "b" and fold.adds
        if dtype.kind == "b":  # bytes, of which all but zero are true
            fold = {Reducer.MIN: Reducer.ALL, Reducer.MAX: Reducer.ANY}.get(fold, fold)
        self._fold, self._dtype, self._axes = fold, dtype, axes
        self._is_time = dtype.kind in "mM"
        self._seen_as = dtype if self._is_time else numbers_as(dtype)
        self._made = result_dtype(fold.value, dtype) if self._counts or fold in TRUTHS else None
        self._waits, self._looks_at_bits = fold.adds and dtype.kind == "f", fold in EXTREMES and dtype.kind == "f"
        self._less = constant_of(fold, dtype) if self._looks_at_bits else 0
        self._loops: dict[bool, tuple[Kernel, np.dtype[np.generic]]] = {}  # those that were called
        self._ways, self._choices, self._had_zero_or_nan = Routes(self._choose), Choices(), False
        self._head: tuple[slice, ...] = ()  # what is looked at before all else
        if fold in TRUTHS and len(axes) == ndim:
            self._head = (slice(round(_HEAD ** (1 / ndim))),) * ndim

    def __call__(self, x: HostArray) -> HostArray | None:
        """The results, of the axes that stay; None where NumPy's loop is to give them."""
        if self._head and self._is_settled(x):
            return np.array(self._fold is Reducer.ANY)
        ways = self._ways.of(x)
        if ways is None:
            return None
        fastest = ways.choice.fastest
        if not fastest and not self._has_loops(x):
            fastest = "numpy"
        if fastest != "numpy":
            return ways(x)
        return ways.named[fastest](x) if self._looks_at_bits else None

    def _choose(self, x: HostArray) -> Ways | None:
        """None where NumPy's loop is the only way, or is known to take no longer."""
        nest = LoopNest.of(zeros_and_ones(x) if self._counts else x, self._axes)
        if len(nest.kept) > 2 or len(nest.reduced) > 2:
            return None
        if nest.length == 1 or (not self._is_half and self._suits_numpy(nest, x)):
            return None
        route = route_of(self._fold, self._seen_as, nest)
        named: dict[str, Way] = {"loops": partial(self._by_loops, route=route)}
        if not self._waits or (not self._is_half and route.is_in_order and self._goes_forwards(x)):
            named["numpy"] = partial(self._by_numpy, route=route)
        elif not self._is_half and x.nbytes < ADDED:
            return None
        return self._choices.among(nest.alike, **named)

    def _goes_forwards(self, x: HostArray) -> bool:
        """Whether elements that are reduced lie in memory in their order: that of NumPy's additions, too."""
        return all(x.strides[axis] >= 0 for axis in self._axes)

    def _suits_numpy(self, nest: LoopNest, x: HostArray) -> bool:
        """Whether floats that lie like this are left to NumPy's loop, so that which are added by which, and which zero
        or NaN is an extreme, depends on that alone."""
        if self._looks_at_bits:
            return x.size < _FEW_LINES * nest.nearest.length and x.nbytes < _CACHED
        return self._waits and leaps(nest)

    def _is_settled(self, x: HostArray) -> bool:
        """Whether the first elements say all."""
        head = x[self._head]
        count = count_nonzero(head)
        return count > 0 if self._fold is Reducer.ANY else count < head.size

    def _by_numpy(self, x: HostArray, route: Route) -> HostArray:
        """Zeros and NaNs, whose bits no value tells, are found by integers instead: at once where they were last."""
        if not self._looks_at_bits:
            return np.asarray(silence().run(UFUNCS[self._fold].reduce, x, self._axes, self._made))
        by_loops = self._had_zero_or_nan and self._has_loops(x)
        found = self._by_loops(x, route) if by_loops else silence().run(UFUNCS[self._fold].reduce, x, self._axes)
        self._had_zero_or_nan = is_special = _has_zero_or_nan(found)  # other threads may set it meanwhile
        if by_loops or not is_special:
            return np.asarray(found)
        return self._by_loops(x, route) if self._has_loops(x) else self._by_integers(x, np.asarray(found))

    def _has_loops(self, x: HostArray) -> bool:
        return can_fold(self._fold, self._seen_as, x.nbytes, is_few=x.size < LONG)

    def _by_integers(self, x: HostArray, found: HostArray) -> HostArray:
        """What the loops of extremes give, where they are not there yet: NumPy's, but for zeros and NaNs."""
        bits, reduce = cast("Signed", x.view(f"i{x.itemsize}")), UFUNCS[self._fold].reduce
        if not np.isnan(found).any():  # among others -0.0 is the least integer, and 0.0 above all if they are below
            words = np.asarray(reduce(bits, self._axes))
            is_minus = words < 0 if self._fold is Reducer.MAX else words == np.iinfo(bits.dtype).min
            return np.where(found == 0, np.where(is_minus, -0.0, 0.0).astype(found.dtype), found)
        ordered = _in_order(bits) - bits.dtype.type(self._less)
        return self._elements(np.asarray(reduce(ordered, self._axes)))

    def _by_loops(self, x: HostArray, route: Route) -> HostArray:
        x, ufunc = zeros_and_ones(x) if self._counts else x, UFUNCS[self._fold]
        memory = route.nest.span.place(x)
        loop, state = self._loops.get(route.in_rows) or self._loop(route.in_rows)
        found = [call.states(loop, state, ufunc, memory) for call in route.calls]
        states = found[0] if len(found) == 1 else silence().run(ufunc, *found)
        return route.nest.arranged(self._elements(states))

    def _loop(self, in_rows: bool) -> tuple[Kernel, np.dtype[np.generic]]:
        found = self._loops[in_rows] = loop_for(self._fold, self._seen_as, in_rows)
        return found

    def _elements(self, states: HostArray) -> HostArray:
        """What the loops leave as the result has it."""
        if self._looks_at_bits:
            if states.size == 1:  # as NumPy would, in a fifth of the time
                return np.array([_from_order(states.item() + self._less, states.dtype)], states.dtype).view(self._dtype)
            bits = cast("Signed", states)
            bits += bits.dtype.type(self._less)
            return _in_order(bits).view(self._dtype)
        if self._is_time:
            return np.add(states, self._fold is Reducer.MAX).view(self._dtype)  # as much as was taken from each
        if self._fold is Reducer.SUM and self._dtype.kind == "f":
            np.add(states, 0, states)  # -0.0 becomes 0.0, as in NumPy
        if self._waits and self._is_half:
            return silence().run(rounded, states, self._dtype)
        return states.astype(result_dtype(self._fold.value, self._dtype), copy=False)


def _has_zero_or_nan(found: HostArray | np.floating[Any]) -> bool:
    if found.size == 1:
        return not abs(found.item()) > 0
    return not silence().run(np.minimum.reduce, np.abs(found), None) > 0


def _in_order(bits: Signed) -> Signed:
    """The bits of floats as integers in the order of the numbers, and the way back."""
    last = bits.dtype.type(8 * bits.itemsize - 1)
    flipped = bits >> last
    flipped &= bits.dtype.type((1 << int(last)) - 1)
    flipped ^= bits
    return flipped


def _from_order(number: int, dtype: np.dtype[np.generic]) -> int:
    """The bits of a float, as an integer of this dtype, from the number in order; which goes round."""
    half = 1 << (8 * dtype.itemsize - 1)
    number = (number + half) % (2 * half) - half
    return number if number >= 0 else number ^ (half - 1)


_SINGLE = np.dtype(np.float32)
Axes: TypeAlias = int | tuple[int, ...] | None


def host_reduction(
    fold: Reducer, dtype: np.dtype[np.generic], ndim: int, axis: Axes, keepdims: bool
) -> HostCall | None:
    """The reduction of host arrays of a dtype and number of dimensions, as NumPy's function of that name does it. It
    takes any shape and layout, returns scalars where NumPy does, and does not warn of overflow or NaN. An empty array
    without an answer raises InvalidArgumentError. None if there is no such reduction of these elements, or no such
    axis."""
    if not takes(fold, dtype) or (fold.finds_index and isinstance(axis, tuple)):
        return None
    try:
        axes = checked_axes(axis, ndim)
    except (np.exceptions.AxisError, InvalidArgumentError):  # which whoever makes a plan is told of
        return None
    made = partial(_reduction, ndim=ndim, axes=axes, axis=axis, keepdims=keepdims)
    if dtype.kind in "mM" and dtype.isnative and fold.finds_index:
        return places_of_times(fold, dtype, made)
    if dtype.kind == "b" and fold.finds_index and len(axes) < ndim:
        return places_of_bools(fold, axes[0], made)
    return made(fold, dtype)


def _reduction(
    fold: Reducer, dtype: np.dtype[np.generic], ndim: int, axes: tuple[int, ...], axis: Axes, keepdims: bool
) -> HostCall:
    """By NumPy's loops and compiled ones."""
    has_loops = dtype.kind in ("iufmM" if fold in EXTREMES else "iuf") and dtype.isnative and ndim > 0
    if fold.finds_index:
        along = None if axis is None or ndim == 0 else axes[0]
        method = cast(Callable[..., object], np.ndarray.argmin if fold is Reducer.ARGMIN else np.ndarray.argmax)
        call = partial(method, keepdims=True) if keepdims else method
        long_place = PlaceFolding(fold, dtype, None if ndim == 1 else along) if has_loops else None
        return _guarded(call, (along, None), axes, keepdims, long_place)
    reduce = cast(Callable[..., object], UFUNCS[fold].reduce)  # of array, axes, dtype, out and keepdims
    made = np.dtype(np.bool_) if fold in TRUTHS else None
    settings = (axes[0] if len(axes) == 1 else axes, made, None, keepdims)
    has_loops |= dtype.kind == "b" and (fold.adds or len(axes) < ndim)
    long = Folding(fold, dtype, axes, ndim) if has_loops and axes else None
    if dtype.kind == "f" and dtype.itemsize == 2 and fold.adds:
        return _guarded(partial(_halves, reduce), (axes, keepdims), axes, keepdims, long, is_silent=True)
    regrouped = Regrouped.of(fold, dtype, axes, ndim)
    # NumPy's loops of floats warn of what is no mistake
    return _guarded(reduce, settings, axes, keepdims, long, regrouped, is_silent=dtype.kind == "f")


# -- short arrays -----------------------------------------------------------------------------------------


def _halves(reduce: Callable[..., object], x: HostArray, axes: tuple[int, ...], keepdims: bool) -> object:
    """In 32 bits, rounded once."""
    return cast(HostArray, reduce(x, axes, _SINGLE, None, keepdims)).astype(HALF)


def _guarded(
    call: Callable[..., object], settings: tuple[object, ...], axes: tuple[int, ...], keepdims: bool,
    long: Folding | PlaceFolding | None = None, regrouped: Regrouped | None = None, *, is_silent: bool = False,
) -> HostCall:  # fmt: skip
    """With other ways for long arrays and for short lines, and errors of our own kind for arrays of nothing."""

    least = LONG if long is None else long.least
    regroup_from = 0 if regrouped is None else regrouped.least
    looks = regrouped is not None and regrouped.finds_extremes  # also at lines of arrays in Fortran's order

    def guarded(x: HostArray) -> object:
        size = x.size
        found: HostArray | None = None
        if (
            size >= LEAST_IN_LINES and regrouped is not None
            and (size >= regroup_from or (shape := x.shape)[-1] <= LINE or (looks and shape[0] <= LINE and x.flags.fnc))
        ):  # fmt: skip
            found = regrouped(x)
        if found is None and size >= least and long is not None:
            found = long(x)
        if found is not None:
            return in_shape(found, x, axes, keepdims)
        try:
            return silence().run(call, x, *settings) if is_silent else call(x, *settings)
        except ValueError as error:
            raise InvalidArgumentError(f"x: {error}") from error

    return guarded
