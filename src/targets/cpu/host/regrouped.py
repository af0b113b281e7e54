"""Reductions of arrays in which few neighbours lie together, regrouped so that NumPy's inner loops are long.

NumPy calls an inner loop for each line of neighbours: 100,000 lines of 3 elements are 100,000 calls of some 15 ns.
Where lines are reduced, or added up, their elements are taken column by column, each column of all lines at once. Where
lines stay, several are taken as one long line, and what is left of it is reduced again; where there are gaps between
them, each column is reduced for itself. Nothing is compiled, so the first call is as fast as any, and compiled loops
take as long or longer until the array leaves the caches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np

from ....arrays.recycled import new_array
from ....operations.monoids import result_dtype
from ....operations.reduce import Reducer
from ....types.specs import order_of_axes
from ...base import HostArray
from .reducers import EXTREMES, LONG, UFUNCS, silence
from .strides import Routes

Regroup: TypeAlias = Callable[[HostArray], HostArray]

_einsum = cast("Callable[[str, HostArray], HostArray]", np.einsum)

ADDED = 1 << 21  # bytes of floats: below, no compiled loop adds them, as their sums must not depend on what is loaded
_LEAST = 1 << 11  # elements: of fewer, those are worth a look whose last axis is as short as a line
LEAST_IN_LINES = 1 << 8
LINE = 1 << 3  # elements of lines to be reduced, which each column reads anew
_LINES = 40  # for each of their elements: what a column's call of NumPy's is worth
_CALL_OF_ALL, _CALL_APART = 60, 110  # the same of columns with gaps: together, and each for itself
_NEAR_BYTES = 1 << 9  # of lines that stay
_NEAR_LINES = 1 << 5
_CALLS = 1 << 9  # of inner loops: fewer take no longer than what it takes to regroup them
_LONG_LINE = 1 << 9  # elements of a line that is made of several
_SHORT_ROW, _LONG_ROW = 1 << 7, 1 << 10  # floats in a row at most that einsum adds in one go
_FROM_SHORT, _FROM_LONG = 1 << 13, 1 << 15  # floats in all of such rows, where that is faster
_FROM_FLAT = 1 << 16  # of longer rows, in 32 bits
_CHAIN = 1 << 9  # floats of such a row that it adds at a time: the longer, the less exact
_SERIAL = 1 << 13  # floats of a line that NumPy multiplies one after the other
_SIDE, _SIDE_LEFT = 1 << 8, 1 << 5  # products that go on side by side instead, and then of these
_CACHED = 1 << 15  # elements that each column's turn finds in a cache
_EXACT = 1 << 18  # elements of which NumPy's loops make as much as compiled ones, whose results are the same


class Regrouped:
    """A reduction along neighbouring axes, some of an array's or all."""

    def __init__(self, fold: Reducer, dtype: np.dtype[np.generic], axes: tuple[int, ...], ndim: int) -> None:
        self._fold, self._axes = fold, axes
        self._size, self._ufunc, self._made = dtype.itemsize, UFUNCS[fold], result_dtype(fold.value, dtype)
        self._is_silent, self.finds_extremes = dtype.kind == "f", fold in EXTREMES
        self._adds_zero = fold is Reducer.SUM and self._is_silent  # -0.0 becomes 0.0, as in NumPy
        self.least = _LEAST  # elements
        if len(axes) == ndim:
            self.least = _SERIAL if fold is Reducer.PROD else _FROM_FLAT
        self._most = LONG
        if fold.adds and self._is_silent:
            self._most = ADDED // self._size
        elif dtype.kind in "biu" and (self._made == dtype or fold in EXTREMES):
            self._most = _EXACT
        self._routes = Routes(self._regroup)

    @classmethod
    def of(cls, fold: Reducer, dtype: np.dtype[np.generic], axes: tuple[int, ...], ndim: int) -> Regrouped | None:
        """None if axes do not lie side by side, or there is nothing to regroup."""
        are_beside = bool(axes) and axes[-1] - axes[0] == len(axes) - 1
        if not are_beside or dtype.kind not in "biuf" or not dtype.isnative:
            return None
        if len(axes) == ndim and not (fold.adds and dtype.kind == "f"):
            return None
        return cls(fold, dtype, axes, ndim)

    def __call__(self, x: HostArray) -> HostArray | None:
        """The results, of the axes that stay; None where NumPy takes no longer, or a compiled loop is to do it."""
        run = self._routes.of(x)
        if run is None:
            return None
        return silence().run(run, x) if self._is_silent else run(x)

    def _regroup(self, x: HostArray) -> Regroup | None:
        """For arrays whose last axis lies together, or else whose first axis does; or that are not packed."""
        is_c, first, last = x.flags.c_contiguous, self._axes[0], self._axes[-1] + 1
        if x.size >= self._most:
            return None
        if not x.flags.forc:
            return self._apart(x)
        lengths = x.shape[:first], x.shape[first:last], x.shape[last:]
        seen_as = outer, length, near = tuple(map(math.prod, lengths if is_c else lengths[::-1]))
        reduce = self._way(outer, length, near)
        if reduce is None:
            return None
        made = (*lengths[0], *lengths[2])
        if is_c:
            return lambda x: reduce(x.reshape(seen_as)).reshape(made)
        return lambda x: reduce(x.T.reshape(seen_as)).reshape(made[::-1]).T

    def _way(self, outer: int, length: int, near: int) -> Regroup | None:
        if near == 1:
            if length <= LINE:
                suits = outer >= _LINES * length > _LINES
                return (lambda x: self._combined(x.swapaxes(0, 1))) if suits else None
            return self._way_along(outer * length, length) if self._is_silent else None
        has_few = near * self._size > _NEAR_BYTES or length < _NEAR_LINES or outer * length < _CALLS
        return None if has_few else self._lines

    def _way_along(self, size: int, length: int) -> Regroup | None:
        """Of longer lines that are reduced, of floats."""
        match self._fold:
            case Reducer.PROD:
                return self._side_by_side if length >= _SERIAL else None
            case Reducer.SUM:
                if length > _LONG_ROW:
                    return self._by_einsum if size >= _FROM_FLAT and self._size < 8 else None
                return self._by_einsum if size >= (_FROM_SHORT if length <= _SHORT_ROW else _FROM_LONG) else None
            case _:
                return None

    def _apart(self, x: HostArray) -> Regroup | None:
        """For arrays with gaps between lines, or between their elements. None where lines are long, or few, or where
        lines stay side by side."""
        *farther, near = order_of_axes(x.shape, x.strides)
        others = sorted(farther)
        length, count = x.shape[near], x.size // x.shape[near]
        if not 1 < length <= LINE or len(self._axes) == x.ndim:
            return None
        call = _CALL_OF_ALL if near in self._axes else _CALL_APART
        if length * (call + count // x.shape[farther[-1]]) > count:  # inner loops, and those of NumPy's
            return None
        if near not in self._axes and farther[-1] not in self._axes:
            return None
        gone = tuple(place for place, axis in enumerate(others) if axis in self._axes)
        kept = [1 if axis in self._axes else size for axis, size in enumerate(x.shape)]
        made = [size for axis, size in enumerate(x.shape) if axis not in self._axes]

        def reduce_lines(x: HostArray) -> HostArray:
            found = self._combined(x.transpose(near, *others))
            return (self._ufunc.reduce(found, gone, self._made) if gone else found).reshape(made)

        def reduce_columns(x: HostArray) -> HostArray:
            found: HostArray = np.empty(kept, self._made)
            for column, results in zip(x.transpose(near, *others), found.transpose(near, *others), strict=True):
                self._ufunc.reduce(column, gone, self._made, results, keepdims=True)
            return found.reshape(made)

        return reduce_lines if near in self._axes else reduce_columns

    def _combined(self, columns: HostArray) -> HostArray:
        """Columns that are reduced to one: of lines of (outer, length, 1) their elements by turns."""
        found = cast(HostArray, self._ufunc(columns[0], columns[1], dtype=self._made))
        for column in columns[2:]:
            self._ufunc(found, column, out=found)
        if self._adds_zero:
            np.add(found, 0.0, found)
        return found

    def _lines(self, x: HostArray) -> HostArray:
        """Lines that stay: of (outer, length, near)."""
        outer, length, near = x.shape
        count = min(_LONG_LINE // near, math.isqrt(length))
        whole = length // count * count
        several = self._reduced(x[:, :whole].reshape(outer, -1, count * near))
        return self._with_rest(self._reduced(several.reshape(outer, count, near)), x[:, whole:])

    def _side_by_side(self, x: HostArray) -> HostArray:
        """Lines that are reduced: as if several stayed, which are reduced then."""
        outer, whole = len(x), x.shape[1] // _SIDE * _SIDE
        found = self._reduced(x[:, :whole].reshape(outer, -1, _SIDE)).reshape(outer, -1, _SIDE_LEFT)
        return self._with_rest(self._reduced(self._reduced(found)), x[:, whole:, 0])

    def _by_einsum(self, x: HostArray) -> HostArray:
        """Sums of lines that are reduced: by einsum, whose loops have less to do before they begin, and add several at
        once; and what it gives of parts of a long line, by NumPy's pairwise sum."""
        outer, length, _ = x.shape
        if length <= _LONG_ROW:
            return _einsum("ij->i", x[:, :, 0])
        whole = length // _CHAIN * _CHAIN
        found = _einsum("ijk->ij", x[:, :whole].reshape(outer, -1, _CHAIN))
        return self._with_rest(self._reduced(found), x[:, whole:, 0])

    def _with_rest(self, found: HostArray, rest: HostArray) -> HostArray:
        return cast(HostArray, self._ufunc(found, self._reduced(rest), out=found)) if rest.shape[1] else found

    def _reduced(self, x: HostArray) -> HostArray:
        return cast(HostArray, self._ufunc.reduce(x, 1, self._made))


def has_short_lines(x: HostArray, axis: int) -> bool:
    """Whether NumPy's loops along an axis are so short, and so many, that `accumulated` is faster."""
    length = x.shape[axis]
    return 1 < length <= LINE and x.size >= 2 * _LINES * length * length


def accumulated(x: HostArray, axis: int, made: np.dtype[np.generic]) -> HostArray:
    """Cumulative sums along an axis of a few elements: each column of all lines at once, in the order of NumPy's
    additions."""
    axis %= x.ndim
    if x.flags.fnc and x.ndim > 2:  # whose results lie as it does
        return accumulated(x.T, x.ndim - 1 - axis, made).T
    if x.flags.c_contiguous and axis > 1:
        return accumulated(x.reshape(-1, x.shape[axis], math.prod(x.shape[axis + 1 :])), 1, made).reshape(x.shape)
    results: HostArray = new_array(x.shape, made)
    if axis < 2:
        columns, sums = x.swapaxes(0, axis), results.swapaxes(0, axis)
    else:  # neighbours stay such
        axes = (axis, *range(axis), *range(axis + 1, x.ndim))
        columns, sums = x.transpose(axes), results.transpose(axes)
    inner = max(1, x.size // (len(columns) * columns.shape[1]))
    step = max(1, _CACHED // (len(columns) * inner))
    for first in range(0, columns.shape[1], step):
        some = slice(first, first + step)
        sums[0, some] = columns[0, some]
        for column in range(1, len(columns)):
            np.add(sums[column - 1, some], columns[column, some], out=sums[column, some])
    return results
