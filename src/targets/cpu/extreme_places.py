"""Where the extremes of long arrays are: by compiled loops along an axis, by NumPy in threads in a whole array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np
import numpy.typing as npt

from ..base import HostArray
from .folding import BLOCK, PARTS, ROW, SHARED, flat_of, in_shape, shared
from .folds import Fold
from .loops import can_fold
from .walk import Walk, Way

if TYPE_CHECKING:
    from .fold_kernels import PlaceKernel

Places = npt.NDArray[np.intp]

_FLAT_BYTES = 1 << 24  # below, one core reads a flat array about as fast as it takes to wake another
_SLAB = 1 << 16  # elements


@attrs.frozen
class PlaceFolding:
    """argmin or argmax of elements of a dtype, along an axis or of all."""

    fold: Fold
    dtype: np.dtype[np.generic]
    axis: int | None
    ndim: int
    keepdims: bool

    @classmethod
    def of(
        cls, fold: Fold, dtype: np.dtype[np.generic], axis: int | None, ndim: int, keepdims: bool
    ) -> PlaceFolding | None:
        """None where NumPy's loops are all there is."""
        if dtype.kind not in "iuf" or not dtype.isnative or not ndim:
            return None
        return cls(fold, dtype, None if ndim == 1 else axis, ndim, keepdims)

    def __call__(self, x: HostArray) -> object | None:
        """The result; None where NumPy's loop is to give it."""
        if type(x) is not np.ndarray:
            return None
        axes = tuple(range(x.ndim)) if self.axis is None else (self.axis,)
        if self.axis is None:
            found = self._of_all(x)
            return None if found is None else in_shape(found, x, axes, self.keepdims)
        walk = Walk.of(x, axes, self.seen_as, forwards=True)
        if walk is None or len(walk.kept) > 2 or len(walk.gone) != 1 or self._suits_numpy(walk):
            return None
        if not can_fold(self.fold, self.dtype, x.nbytes):
            return None
        found = self._along(walk).reshape(walk.shape).transpose(walk.order)
        return in_shape(found, x, axes, self.keepdims)

    @property
    def seen_as(self) -> np.dtype[np.generic]:
        """The dtype by which the loops take the elements."""
        return np.dtype(np.int16) if self.dtype == np.float16 else self.dtype

    def _suits_numpy(self, walk: Walk) -> bool:
        if self.dtype == np.float16 or not walk.nearest_goes:
            return False
        return walk.gone[0].length * self.dtype.itemsize >= ROW

    def _along(self, walk: Walk) -> Places:
        stay, go = [Way(1, 0)] * (2 - len(walk.kept)) + list(walk.kept), walk.gone[0]
        rows = stay[0].length * stay[1].length
        block = min(BLOCK, stay[1].length)
        tasks = stay[0].length * -(-stay[1].length // block)
        size = rows * go.length
        parts = min(PARTS, go.length // 16 or 1) if tasks < 8 and size >= SHARED else 1
        best: HostArray = np.empty(parts * rows, self.seen_as)
        where: Places = np.empty(parts * rows, np.intp)
        kernel, constant = _kernel(self.fold, self.dtype), _nan(self.fold)
        plan = np.array([walk.start, *flat_of([*stay, go, Way(1, 0)]), parts, block, constant], np.int64)
        shared(lambda first, last: kernel(walk.flat, best, where, plan, first, last), parts * tasks, size)
        return self._first_best(best.reshape(parts, rows), where.reshape(parts, rows))

    def _first_best(self, best: HostArray, where: Places) -> Places:
        """Of each column of candidates, in their order, the place of the first that is the best."""
        if len(best) == 1:
            return cast(Places, where[0])
        found = best.argmin(0) if self.fold is Fold.ARGMIN else best.argmax(0)
        return cast(Places, np.take_along_axis(where, found[np.newaxis], 0)[0])

    # -- of all: slabs by NumPy -------------------------------------------------------------------------------

    def _of_all(self, x: HostArray) -> Places | None:
        """In C order; None where one thread of NumPy's is as good."""
        flat = x.reshape(-1) if x.flags.c_contiguous else x
        is_half = self.dtype == np.float16
        if flat.nbytes < _FLAT_BYTES and not is_half and (flat.ndim == 1 and flat.strides[0] == flat.itemsize):
            return None
        inner = flat.size // len(flat)
        step = max(1, _SLAB // inner)
        count = -(-len(flat) // step)
        best: HostArray = np.empty(count, self.dtype)
        where: Places = np.empty(count, np.intp)

        def slabs(first: int, last: int) -> None:
            for number in range(first, last):
                slab = flat[number * step : (number + 1) * step]
                packed = slab.astype(np.float32) if is_half else np.ascontiguousarray(slab)
                place = packed.argmin() if self.fold is Fold.ARGMIN else packed.argmax()
                best[number] = packed.reshape(-1)[place]
                where[number] = number * step * inner + place

        shared(slabs, count, flat.size)
        return self._first_best(best[:, np.newaxis], where[:, np.newaxis]).reshape(())


def _nan(fold: Fold) -> int:
    """What NaNs of float16 are to be, as signed integers of 16 bits."""
    return -(1 << 15) if fold is Fold.ARGMIN else (1 << 15) - 1


def _kernel(fold: Fold, dtype: np.dtype[np.generic]) -> PlaceKernel:
    from . import fold_kernels

    if dtype == np.float16:
        least, greatest = fold_kernels.PLACE_OF_LEAST_HALF, fold_kernels.PLACE_OF_GREATEST_HALF
    else:
        least, greatest = fold_kernels.PLACE_OF_LEAST, fold_kernels.PLACE_OF_GREATEST
    return least if fold is Fold.ARGMIN else greatest


def rehearse(fold: Fold, dtype: np.dtype[np.generic]) -> Iterator[object]:
    """Compiles the loop."""
    seen = PlaceFolding(fold, dtype, 0, 2, False).seen_as
    plan = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0], np.int64)
    yield _kernel(fold, dtype)(np.zeros(1, seen), np.empty(1, seen), np.empty(1, np.intp), plan, 0, 1)
