"""argmin and argmax of long arrays: compiled loops along an axis, NumPy in threads over a whole array."""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt

from ....operations.reduce import Reducer
from ...base import HostArray
from ..alias import place_of
from ..pool import Pool, shared_pool
from .reduce_loops import can_fold, places_for
from .reduce_plans import Route, leg_of, run_tasks
from .reducers import LONG, in_shape
from .strides import Routes, Walk

Places = npt.NDArray[np.intp]

_SHARED = 1 << 19  # elements: below, waking a thread costs more than it saves
_ROW = 32  # elements that NumPy looks at as fast
_FEW, _FEW_BYTES = 16, 32  # neighbours, or bytes of them: of fewer NumPy makes rows
_MOST = (1 << 31) - 1  # elements in a row whose places are found as 32 bits
_FLAT_BYTES = 3 << 23  # below, one core reads a flat array about as fast as it takes to wake another
_SLAB = 1 << 18


@attrs.frozen
class PlaceFolding:
    """argmin or argmax of elements of a dtype, along an axis or of all."""

    fold: Reducer
    dtype: np.dtype[np.generic]
    axis: int | None
    ndim: int
    keepdims: bool
    _routes: Routes[Route] = attrs.field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_routes", Routes(self._route))

    @classmethod
    def of(
        cls, fold: Reducer, dtype: np.dtype[np.generic], axis: int | None, ndim: int, keepdims: bool
    ) -> PlaceFolding | None:
        """None where NumPy's loops are all there is."""
        if dtype.kind not in "iuf" or not dtype.isnative or not ndim:
            return None
        return cls(fold, dtype, None if ndim == 1 else axis, ndim, keepdims)

    def __call__(self, x: HostArray) -> object | None:
        """The result; None where NumPy's loop is to give it."""
        if self.axis is None:
            found = self._of_all(x) if type(x) is np.ndarray else None
            return None if found is None else in_shape(found, x, tuple(range(x.ndim)), self.keepdims)
        route = self._routes.of(x)
        if route is None or not can_fold(self.fold, self.dtype, x.nbytes):
            return None
        return in_shape(route.walk.arranged(self._along(x, route)), x, (self.axis,), self.keepdims)

    @property
    def least(self) -> int:
        """How many elements are worth a look whether NumPy's loop is to be called."""
        return LONG if self.axis is not None or self.dtype == np.float16 else _SHARED

    def _route(self, x: HostArray) -> Route | None:
        """None where NumPy's loop takes no longer, which looks at rows, or packs them first."""
        assert self.axis is not None
        walk = Walk.of(x, (self.axis,), forwards=True)
        if walk is None or len(walk.kept) > 2 or len(walk.gone) != 1 or walk.length > _MOST:
            return None
        suits_rows = walk.nearest_goes or walk.nearest.length < max(_FEW, _FEW_BYTES // self.dtype.itemsize)
        if self.dtype != np.float16 and suits_rows and walk.gone[0].length >= _ROW:
            return None
        return Route(walk, leg_of(self.fold, self.dtype, walk, walk.kept, walk.gone, in_rows=False), None)

    def _along(self, x: HostArray, route: Route) -> Places:
        loop, leg = places_for(self.fold, self.dtype), route.leg
        best: HostArray = np.empty(leg.parts * leg.rows, loop.state)
        where: npt.NDArray[np.int32] = np.empty(leg.parts * leg.rows, np.int32)
        places = (*route.walk.span.place(x), *place_of(best), *place_of(where), *place_of(leg.plan))
        run_tasks(loop.kernel, leg.tasks, places, x.nbytes if leg.is_shared else 0)
        if leg.beside:
            best, where = best.reshape(-1, leg.beside)[:, ::2], where.reshape(-1, leg.beside)[:, ::2]
        return self._first_best(best.reshape(leg.parts, -1), where.reshape(leg.parts, -1))

    def _first_best(self, best: HostArray, where: npt.NDArray[np.signedinteger[Any]]) -> Places:
        """Of each column of candidates, in their order, the place of the first that is the best."""
        if len(best) == 1:
            return cast(Places, where[0].astype(np.intp, copy=False))
        found = best.argmin(0) if self.fold is Reducer.ARGMIN else best.argmax(0)
        return cast(Places, np.take_along_axis(where, found[np.newaxis], 0)[0].astype(np.intp, copy=False))

    # -- of all: slabs by NumPy ---------------------------------------------------------------------------

    def _of_all(self, x: HostArray) -> Places | None:
        """In C order; None where one thread of NumPy's is as good."""
        flat = x.reshape(-1) if x.flags.c_contiguous else x
        is_half = self.dtype == np.float16
        is_packed = flat.ndim == 1 and flat.strides[0] == flat.itemsize
        if not is_half and (flat.nbytes < _FLAT_BYTES if is_packed else flat.size < _SHARED):
            return None
        inner = flat.size // len(flat)
        step = max(1, _SLAB // inner)
        count = -(-len(flat) // step)
        best: HostArray = np.empty(count, self.dtype)
        where: Places = np.empty(count, np.intp)

        def look(number: int) -> None:
            slab = flat[number * step : (number + 1) * step]
            packed = slab.astype(np.float32) if is_half else np.ascontiguousarray(slab)
            place = packed.argmin() if self.fold is Reducer.ARGMIN else packed.argmax()
            best[number] = packed.reshape(-1)[place]
            where[number] = number * step * inner + place

        (shared_pool() if flat.size >= _SHARED else Pool(1)).run(look, count)
        return self._first_best(best[:, np.newaxis], where[:, np.newaxis]).reshape(())
