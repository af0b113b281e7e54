"""Reductions of long arrays along any axes: compiled loops where these beat NumPy's, in several threads.

The loops of integers, extrema and truths are loaded aside, while NumPy gives the same bits. Sums and products of floats
wait for theirs from `_ADDED` on: the order in which floats are combined depends on shape, dtype and layout alone. So
does, of equal zeros and of NaNs, which one is the extreme: here the least or greatest by its bits, as kernels have it.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from ....operations.reduce import Reducer
from ...base import HostArray
from ...counts import count_nonzero
from ..crew import threads_of_crew
from .reduce_loops import ReduceLoop, can_fold, loop_for
from .reduce_plans import CREW_BYTES, Route, constant_of, route_of
from .reducers import ARITHMETIC, EXTREMES, LONG, PLACES, TRUTHS, UFUNCS, in_shape, reducing, result_of
from .silence import silently
from .strides import Routes, Walk

Signed: TypeAlias = npt.NDArray[np.signedinteger[Any]]

_ADDED = 1 << 21  # bytes of floats: below, NumPy adds them
_MEMORY = 3 << 23  # bytes: longer arrays are read from memory, which two cores do faster than one
_WORKED_ON = 1 << 24  # the same of any and all, by which NumPy's loops are slower than memory
_ROW = 1 << 10  # bytes of neighbours that NumPy's loops need to be fast
_HEAD = 1 << 9  # elements that may settle what any and all ask


@attrs.frozen
class Folding:
    """A reduction of elements of a dtype along some axes."""

    fold: Reducer
    dtype: np.dtype[np.generic]
    axes: tuple[int, ...]
    ndim: int
    keepdims: bool
    _routes: Routes[Route] = attrs.field(init=False, eq=False)
    _head: tuple[slice, ...] = attrs.field(init=False, eq=False)  # what is looked at before all else
    _loops: dict[bool, ReduceLoop] = attrs.field(
        factory=dict[bool, ReduceLoop], init=False, eq=False
    )  # in rows, or not

    @classmethod
    def of(
        cls, fold: Reducer, dtype: np.dtype[np.generic], axes: tuple[int, ...], ndim: int, keepdims: bool
    ) -> Folding | None:
        """None where NumPy's loops are all there is."""
        if fold in PLACES or dtype.kind not in "iuf" or not dtype.isnative or not axes:
            return None
        if fold in ARITHMETIC and dtype == np.float16:
            return None
        return cls(fold, dtype, axes, ndim, keepdims)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_routes", Routes(self._route))
        object.__setattr__(self, "_head", (slice(round(_HEAD ** (1 / max(1, self.ndim)))),) * self.ndim)

    def __call__(self, x: HostArray) -> object | None:
        """The result; None where NumPy's loop is to give it."""
        if self.fold in TRUTHS and len(self.axes) == self.ndim and self._is_settled(x):
            return in_shape(np.array(self.fold is Reducer.ANY), x, self.axes, self.keepdims)
        route = self._routes.of(x)
        if route is None:
            return None
        loop = self._loops.get(route.leg.in_rows)
        if loop is None:
            if not self._waits and not can_fold(self.fold, self.dtype, x.nbytes):
                return self._by_numpy(x, route)
            loop = self._loops[route.leg.in_rows] = self.loaded(route)
        return self._by_route(x, route, loop)

    @property
    def least(self) -> int:
        """How many elements are worth a look whether NumPy's loop is to be called."""
        return LONG

    @property
    def _waits(self) -> bool:
        return self.fold in ARITHMETIC and self.dtype.kind == "f"

    def _route(self, x: HostArray) -> Route | None:
        """None where NumPy's loop takes no longer, or its axes lie in too many ways."""
        walk = Walk.of(x, self.axes)
        if walk is None or len(walk.kept) > 2 or len(walk.gone) > 2 or self._suits_numpy(walk, x.nbytes):
            return None
        return route_of(self.fold, self.dtype, walk)

    def _suits_numpy(self, walk: Walk, nbytes: int) -> bool:
        if self._waits:
            return nbytes < _ADDED
        if (
            self.dtype == np.float16
            or self.fold is Reducer.PROD
            or (self.fold is Reducer.SUM and self.dtype.itemsize < 8)
        ):
            return False
        near, most = walk.nearest, _WORKED_ON if self.fold in TRUTHS else _MEMORY
        most <<= 2 if self.dtype.itemsize == 1 else 0
        if threads_of_crew(nbytes):
            most = min(most, CREW_BYTES)
        return nbytes < most and near.stride == 1 and near.length * self.dtype.itemsize >= _ROW

    def _is_settled(self, x: HostArray) -> bool:
        """Whether the first elements say all."""
        head = x[self._head]
        count = count_nonzero(head)
        return count > 0 if self.fold is Reducer.ANY else count < head.size

    def _by_numpy(self, x: HostArray, route: Route) -> object | None:
        """What NumPy gives in place of loops that are not loaded; None where it is as well as they are."""
        if self.fold not in EXTREMES or self.dtype.kind != "f":
            return None
        found = np.asarray(silently(reducing(self.fold), x, self.axes, None, None, self.keepdims))
        if bool((np.abs(found) > 0).all()):  # values say all about the bits: not of zeros and NaNs
            return cast(object, found[()])
        return self._by_route(x, route, self.loaded(route))

    def loaded(self, route: Route) -> ReduceLoop:
        return loop_for(self.fold, self.dtype, route.leg.in_rows)

    def _by_route(self, x: HostArray, route: Route, loop: ReduceLoop) -> object:
        elements = self._elements(route.states(x, loop, UFUNCS[self.fold]))
        return in_shape(route.walk.arranged(elements), x, self.axes, self.keepdims)

    def _elements(self, states: HostArray) -> HostArray:
        """What the loops leave as the result has it."""
        if self.fold in EXTREMES and self.dtype.kind == "f":
            return _as_floats(cast("Signed", states), constant_of(self.fold, self.dtype)).view(self.dtype)
        if self.fold is Reducer.SUM and self.dtype.kind == "f":
            return cast(HostArray, np.add(states, self.dtype.type(0)))  # -0.0 becomes 0.0, as in NumPy
        return states.astype(result_of(self.fold, self.dtype), copy=False)


def _as_floats(states: Signed, constant: int) -> Signed:
    """The way back of what the loops of extremes do to each element."""
    word = states.dtype.type
    states += word(constant)
    bits = states >> word(8 * states.itemsize - 1)
    bits &= word((1 << (8 * states.itemsize - 1)) - 1)
    bits ^= states
    return bits
