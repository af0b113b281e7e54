"""argmin and argmax of long arrays by compiled loops, along an axis or of all; of some rows by NumPy in threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ....operations.reduce import Reducer
from ...addresses import as_writable
from ...base import HostArray
from ..crew import threads_of_crew
from ..pool import shared_pool
from .autotuned import Choices, Way, Ways
from .copies import shared_across
from .key_words import Places
from .reduce_loops import can_fold, places_for
from .reduce_plans import LoopCall, loop_call_of
from .reducers import LONG, HostCall
from .strides import LoopNest, Routes, zeros_and_ones

_HALVES = 1 << 13  # elements of float16, which NumPy looks at one after the other
_COPIED = 1 << 17  # bytes of a read-only array, which NumPy copies before it looks
_LOOKED_AT = 1 << 8  # elements: of rows of one NumPy asks each for its place
_MIDDLING, _MANY_ROWS = 1 << 12, 1 << 11  # of fewer elements, in fewer rows, NumPy's loop is done by then
_ROW = 32  # elements in a row that are not looked at column by column
_FEW_ROWS = 16  # that are looked at one by one even if they lie side by side
_MOST = (1 << 31) - 1  # elements in a row whose places are found as 32 bits
_FLAT_BYTES = 3 << 23  # below, one core reads a flat array about as fast as it takes to wake another
_CREW_BYTES = 1 << 20  # the same where threads wait in compiled code
_SPREAD = 1 << 16  # elements of any other array, which NumPy packs first
_SPREAD_BYTES = 1 << 22  # the same of its rows
# elements of a flat array, and of so many rows, where a NaN is looked for first: NumPy stops at it
_BEGINNING, _NEAR, _ROWS = 1 << 12, 1 << 5, 8


class PlaceFolding:
    """argmin or argmax of elements of a dtype, along an axis or of all."""

    def __init__(self, fold: Reducer, dtype: np.dtype[np.generic], axis: int | None) -> None:
        self._fold, self._dtype, self._axis = fold, dtype, axis
        # how many elements are worth a look whether NumPy's loop is to be called
        self.least = _LOOKED_AT if axis is not None else _HALVES if dtype == np.float16 else _SPREAD
        self.least = min(self.least, _COPIED // dtype.itemsize)
        self._ways, self._choices = Routes(self._choose), Choices()
        self._method = cast("Callable[[HostArray, int | None], Places]", getattr(np.ndarray, fold.value))

    def __call__(self, x: HostArray) -> HostArray | None:
        """The results, of the axes that stay; None where NumPy's loop is to give them."""
        if x.nbytes < _COPIED or x.flags.writeable:
            return self._found(x)
        x = as_writable(x)
        found = self._found(x)
        return self._by_numpy(x) if found is None else found

    def _found(self, x: HostArray) -> HostArray | None:
        if self._axis is None:
            return self._of_all(x.reshape(-1) if x.flags.c_contiguous else x)
        size, length = x.size, x.shape[self._axis]
        if length == 1:
            return np.zeros(x.shape, np.intp).squeeze(self._axis)
        is_few = size < _MANY_ROWS * length
        if is_few and size < _MIDDLING:
            return None
        ways = self._ways.of(x)
        if ways is None:
            return self._in_threads(x) if _is_shared(x) else None
        return self._by(ways, x, is_few=is_few and size < LONG)

    def _of_all(self, x: HostArray) -> HostArray | None:
        """In C order; None where NumPy is as good."""
        is_packed = x.ndim == 1 and x.strides[0] == x.itemsize
        least = _CREW_BYTES if threads_of_crew(x.nbytes) else _FLAT_BYTES
        if is_packed and self._dtype != np.float16 and x.nbytes < least:
            return None
        if x.ndim == 1 and self._dtype.kind == "f":
            place = x[:_BEGINNING].argmax()  # the first NaN, if there is one
            if np.isnan(x[place]):
                return cast(Places, place)
        ways = self._ways.of(x)
        return None if ways is None else self._by(ways, x, is_few=x.size < LONG)

    def _by(self, ways: Ways, x: HostArray, *, is_few: bool) -> HostArray | None:
        fastest = ways.choice.fastest
        if not fastest and not can_fold(self._fold, self._dtype, x.nbytes, is_few=is_few):
            fastest = "numpy"
        return None if fastest == "numpy" else ways(x)

    def _choose(self, x: HostArray) -> Ways | None:
        """None where there are no loops for what lies like this."""
        axis = x.ndim - 1 if self._axis is None else self._axis
        nest = LoopNest.of(x, (axis,), forwards=True)
        if len(nest.kept) > 2 or len(nest.reduced) != 1 or nest.reduced[0].length > _MOST:
            return None
        named: dict[str, Way] = {}
        for name, suits, in_rows in (
            ("rows", nest.nearest_is_reduced or nest.rows < _FEW_ROWS, True),
            ("columns", not nest.nearest_is_reduced or nest.length < _ROW, False),
        ):
            if suits:
                call = loop_call_of(self._fold, self._dtype, nest.start, nest.kept, nest.reduced, in_rows)
                named[name] = partial(self._along, nest=nest, call=call, in_rows=in_rows)
        if not named:
            return None
        if self._axis is not None and _is_shared(x):
            named["threads"] = self._in_threads
        return self._choices.among((nest.alike, x.strides[axis] < 0), **named, numpy=self._by_numpy)

    def _by_numpy(self, x: HostArray) -> HostArray:
        return np.asarray(self._method(x, self._axis))

    def _along(self, x: HostArray, nest: LoopNest, call: LoopCall, in_rows: bool) -> HostArray:
        """By compiled loops; but NumPy soon ends at a NaN."""
        axis = self._axis
        if axis is not None and self._dtype.kind == "f" and nest.nearest_is_reduced:
            if _have_nan_soon(x.swapaxes(axis, -1)):
                return self._by_numpy(x)
        loop, state = places_for(self._fold, self._dtype, in_rows)
        best: HostArray = np.empty(call.parts * call.rows, state)
        where: npt.NDArray[np.int32] = np.empty(call.parts * call.rows, np.int32)
        call.run(loop, nest.span.place(x), best, where)
        best, found = (call.wanted(out).reshape(call.parts, -1) for out in (best, where))
        if call.parts > 1:  # of each row the first that is the best
            part = self._extremes(best, 0)[np.newaxis]
            best, found = (np.take_along_axis(out, part, 0) for out in (best, found))
        places = cast(Places, nest.arranged(found[0].astype(np.intp, copy=False)))
        if axis is not None:
            return places
        row = self._extremes(nest.arranged(best[0]), None)
        return np.asarray(places.reshape(-1)[row] + row * x.shape[-1])

    def _extremes(self, states: HostArray, axis: int | None) -> Places:
        return cast(Places, states.argmin(axis) if self._fold is Reducer.ARGMIN else states.argmax(axis))

    def _in_threads(self, x: HostArray) -> HostArray:
        """By NumPy's loop, threads taking slices along the longest of the other axes."""
        assert self._axis is not None
        axis, method = self._axis, getattr(np, self._fold.value)
        out: Places = np.empty([1 if other == axis else size for other, size in enumerate(x.shape)], np.intp)
        shared_across(x, axis, shared_pool(), lambda part: method(x[part], axis, out[part], keepdims=True))
        return out.squeeze(axis)


def _is_shared(x: HostArray) -> bool:
    """Whether threads may find something sooner than one."""
    return x.nbytes >= _SPREAD_BYTES and shared_pool().threads > 1


def _have_nan_soon(rows: HostArray) -> bool:
    """Whether NumPy soon comes to a NaN in each of the rows that are looked at."""
    first = rows[(0,) * (rows.ndim - 1)][:_NEAR]
    if not np.isnan(first[first.argmax()]):  # which is the first NaN, if there is one
        return False
    some: HostArray = rows[:: -(-len(rows) // _ROWS)]
    while some.ndim > 2:
        some = some[:, 0]
    return bool(np.isnan(some[..., :_NEAR]).any(-1).all())


# -- times and bools: by the loops of the integers that they are ---------------------------------------------

Make: TypeAlias = Callable[[Reducer, np.dtype[np.generic]], HostCall]  # the reduction of elements of a dtype

_NAT = np.int64(np.iinfo(np.int64).min)
_FEW_TIMES = 1 << 14  # NumPy has compared them by then
_HEAD, _OF_HEAD = 1 << 5, 1 << 3  # bools of each row that are looked at first, of so many times as many
_INT64, _BYTE, _BOOL = (np.dtype(name) for name in ("i8", "u1", "?"))


def places_of_times(fold: Reducer, dtype: np.dtype[np.generic], make: Make) -> HostCall:
    """NaT is the least integer, and yet the first one is the greatest of times, too: it is looked for."""
    by_numpy, of_extreme, of_least = make(fold, dtype), make(fold, _INT64), make(Reducer.ARGMIN, _INT64)
    least = make(Reducer.MIN, _INT64)

    def found(x: HostArray) -> object:
        if x.size < _FEW_TIMES:
            return by_numpy(x)
        ints = x.view(np.int64)
        places = of_extreme(ints)
        if fold is Reducer.ARGMAX:
            has_nat = np.equal(cast(HostArray, least(ints)), _NAT)
            if has_nat.any():
                return cast(object, np.where(has_nat, cast(HostArray, of_least(ints)), cast(HostArray, places))[()])
        return places

    return found


def places_of_bools(fold: Reducer, axis: int, make: Make) -> HostCall:
    """NumPy stops at the first bool in a row that settles it, but makes rows of columns before."""
    by_numpy, of_bytes, settles = make(fold, _BOOL), make(fold, _BYTE), fold is Reducer.ARGMAX
    begin = (*(slice(None),) * axis, slice(_HEAD))

    def found(x: HostArray) -> object:
        if x.size < LONG or abs(x.strides[axis]) <= min(map(abs, x.strides)):
            return by_numpy(x)
        if x.shape[axis] >= _OF_HEAD * _HEAD:
            head: HostArray = x[begin]
            if settles in head[(0,) * axis].T[(0,) * (x.ndim - 1 - axis)] and (head == settles).any(axis).all():
                return by_numpy(head)
        return of_bytes(zeros_and_ones(x))

    return found
