"""Long arrays reduced along any axes: by compiled loops where these are faster than NumPy's, by several threads.

The loops of integers, extrema and truths are loaded aside, while NumPy gives the same bits. Sums and products of floats
wait for theirs from `_ADDED` on: the order in which floats are combined depends on shape, dtype and layout alone. So
does, of equal zeros and of NaNs, which one is the extreme: here the least or greatest by its bits, as kernels have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np

from ...types.dtypes import Extreme, Words, extremes_of, key_for
from ..apart import import_apart
from ..base import HostArray
from .folds import ARITHMETIC, EXTREMES, PLACES, TRUTHS, UFUNCS, Fold, reducing, result_of
from .loops import can_fold
from .pool import shared_pool
from .silence import silently
from .walk import Walk, Way

if TYPE_CHECKING:
    from .fold_kernels import Kernel

LONG = 1 << 15  # elements: below, NumPy is done before anything else has begun
_ADDED = 1 << 21  # bytes of floats: below, NumPy adds them
SHARED = 1 << 18  # elements: below, waking a thread costs more than it saves
MEMORY = 1 << 22  # bytes: longer arrays are read from memory, where NumPy's loops have no lead
ROW = 1 << 10  # bytes of neighbours that NumPy's loops need to be fast
BLOCK = 1 << 10  # results that are kept at hand
_CHAIN = 1 << 12  # elements at most that are added up one after the other
PARTS = 16  # at most, where it is for threads
_HEAD = 1 << 12  # elements that may settle what any and all ask


@attrs.frozen
class Folding:
    """A reduction of elements of a dtype along some axes."""

    fold: Fold
    dtype: np.dtype[np.generic]
    axes: tuple[int, ...]
    ndim: int
    keepdims: bool

    @classmethod
    def of(
        cls, fold: Fold, dtype: np.dtype[np.generic], axes: tuple[int, ...], ndim: int, keepdims: bool
    ) -> Folding | None:
        """None where NumPy's loops are all there is."""
        if fold in PLACES or dtype.kind not in "iuf" or not dtype.isnative or not axes:
            return None
        if fold in ARITHMETIC and dtype == np.float16:
            return None
        return cls(fold, dtype, axes, ndim, keepdims)

    def __call__(self, x: HostArray) -> object | None:
        """The result; None where NumPy's loop is to give it."""
        if type(x) is not np.ndarray:
            return None
        if self.fold in TRUTHS and len(self.axes) == self.ndim and self._is_settled(x):
            return self._wrapped(np.full(1, self.fold is Fold.ANY), (), x)
        walk = Walk.of(x, self.axes, self.seen_as)
        if walk is None or len(walk.kept) > 2 or len(walk.gone) > 2 or self._suits_numpy(walk, x.nbytes):
            return None
        if self.fold in ARITHMETIC and self.dtype.kind == "f":
            import_apart("numba")
        elif not can_fold(self.fold, self.dtype, x.nbytes):
            return self._by_numpy(x)
        found = self._finished(self._states(walk))
        return self._wrapped(found, walk.shape, x, walk.order)

    @property
    def seen_as(self) -> np.dtype[np.generic]:
        """The dtype by which the loops take the elements."""
        size = self.dtype.itemsize
        if self.fold in TRUTHS:
            return np.dtype(f"u{size}")
        return np.dtype(f"i{size}") if self.fold in EXTREMES and self.dtype.kind == "f" else self.dtype

    def _suits_numpy(self, walk: Walk, nbytes: int) -> bool:
        """Whether NumPy's loop takes no longer."""
        if self.fold in ARITHMETIC and self.dtype.kind == "f":
            return nbytes < _ADDED
        if self.dtype == np.float16 or self.fold is Fold.PROD or (self.fold is Fold.SUM and self.dtype.itemsize < 8):
            return False
        near = walk.nearest
        return nbytes < MEMORY and near.stride == 1 and near.length * self.dtype.itemsize >= ROW

    def _by_numpy(self, x: HostArray) -> object | None:
        """What NumPy gives in place of loops that are not loaded; None where it is as well as they are."""
        if self.fold not in EXTREMES or self.dtype.kind != "f":
            return None
        found = np.asarray(silently(reducing(self.fold), x, self.axes, None, None, self.keepdims))
        if bool((np.abs(found) > 0).all()):  # values say all about the bits: not of zeros and NaNs
            return cast(object, found[()])
        import_apart("numba")
        walk = Walk.of(x, self.axes, self.seen_as)
        assert walk is not None, "it was looked at"
        return self._wrapped(self._finished(self._states(walk)), walk.shape, x, walk.order)

    def _is_settled(self, x: HostArray) -> bool:
        """Whether the first elements say all."""
        side = slice(round(_HEAD ** (1 / self.ndim)))
        head = x[(side,) * self.ndim]
        return bool(silently(head.any)) if self.fold is Fold.ANY else not silently(head.all)

    def _wrapped(self, found: HostArray, shape: tuple[int, ...], x: HostArray, order: tuple[int, ...] = ()) -> object:
        return in_shape(found.reshape(shape).transpose(order), x, self.axes, self.keepdims)

    # -- by compiled loops ------------------------------------------------------------------------------------

    def _states(self, walk: Walk) -> HostArray:
        """What the loops make of every row."""
        kernels = _kernels(self.fold, self.dtype)
        rows_kernel, in_rows = (
            kernels.rows,
            walk.nearest_goes and walk.nearest.length * self.dtype.itemsize >= ROW // 4,
        )
        if in_rows and rows_kernel is not None:
            return self._run(walk, rows_kernel, kernels, walk.gone, walk.kept, is_rows=True)
        virtual = self._virtual(walk, in_rows)
        if virtual is None:
            return self._run(walk, kernels.columns, kernels, walk.gone, walk.kept, is_rows=False)
        # Elements that go are worked on side by side, as if some of them stayed; then NumPy reduces these.
        count, split = virtual, walk.gone[-1]
        whole = split.length // count
        side = Way(count, split.stride)
        across = Way(whole, split.stride * count)
        last = walk.kept[-1:] if walk.kept and abs(walk.kept[-1].stride) < split.stride else ()
        others = walk.kept[: len(walk.kept) - len(last)]
        joined = (*others, *_merged(side, last))
        gone = (across, *walk.gone[:-1])
        found = self._run(walk, kernels.columns, kernels, gone, joined, is_rows=False)
        before, after = math.prod(way.length for way in others), math.prod(way.length for way in last)
        states = kernels.ufunc.reduce(found.reshape(before, count, after), 1)
        rest = split.length - whole * count
        if rest:
            start = walk.start + whole * count * split.stride
            tail = attrs.evolve(walk, start=start)
            gone = (*walk.gone[:-1], Way(rest, split.stride))
            more = self._run(tail, kernels.columns, kernels, gone, walk.kept, is_rows=False)
            states = kernels.ufunc(states.reshape(-1), more)
        return cast(HostArray, states.reshape(-1))

    def _virtual(self, walk: Walk, in_rows: bool) -> int | None:
        """How many elements that go to work on side by side, where too few neighbours stay."""
        if not walk.gone:
            return None
        last, beside = walk.gone[-1], 1
        if not walk.nearest_goes:
            near = walk.kept[-1]
            beside = near.length
            if last.stride != near.length * near.stride:
                return None
        elif not in_rows and walk.rows >= 64:
            return None
        if beside >= 128 or len(walk.kept) > 1 + (beside > 1):
            return None
        count = min(BLOCK // beside, last.length // 8)
        return count if count >= 4 else None

    def _run(
        self, walk: Walk, kernel: Kernel, kernels: Kernels, gone: tuple[Way, ...], kept: tuple[Way, ...], is_rows: bool
    ) -> HostArray:
        """The states of all rows, parts put together."""
        stay = [Way(1, 0)] * (2 - len(kept)) + list(kept)
        go = [Way(1, 0)] * (2 - len(gone)) + list(gone)
        if not is_rows and go[0].length < go[1].length:
            go = go[::-1]
        rows = stay[0].length * stay[1].length
        block = rows if is_rows else min(BLOCK, stay[1].length)
        tasks = rows if is_rows else stay[0].length * -(-stay[1].length // block)
        size = rows * go[0].length * go[1].length
        divided = go[1].length if is_rows else go[0].length
        parts = 1
        if tasks < 8 and size >= SHARED:
            parts = min(PARTS, divided // 16 or 1)
        if self.fold is Fold.SUM and self.dtype.kind == "f":
            chain = _CHAIN * (16 if is_rows else 1)
            parts = max(parts, min(divided, -(-go[0].length * go[1].length // chain)))
        out: HostArray = np.empty(parts * rows, kernels.state)
        plan = np.array([walk.start, *flat_of(stay), *flat_of(go), parts, block, kernels.constant], np.int64)
        shared(lambda first, last: kernel(walk.flat, out, plan, first, last), parts * tasks, size)
        if parts == 1:
            return out
        return cast(HostArray, silently(kernels.ufunc.reduce, out.reshape(parts, rows), 0))

    def _finished(self, states: HostArray) -> HostArray:
        """Elements from what the loops leave."""
        if self.fold in EXTREMES and self.dtype.kind == "f":
            word = np.dtype(f"u{self.dtype.itemsize}")
            words = states.view(word) ^ word.type(1 << (8 * word.itemsize - 1))
            end = Extreme.LEAST if self.fold is Fold.MIN else Extreme.GREATEST
            return extremes_of(key_for(self.dtype), cast(Words, words), end).view(self.dtype)
        if self.fold is Fold.SUM and self.dtype.kind == "f":
            return cast(HostArray, np.add(states, self.dtype.type(0)))  # -0.0 becomes 0.0, as in NumPy
        return states.astype(result_of(self.fold, self.dtype), copy=False)


@attrs.frozen
class Kernels:
    """The loops of a fold, and what they leave."""

    columns: Kernel
    rows: Kernel | None
    ufunc: np.ufunc  # of states
    state: np.dtype[np.generic]
    constant: int


def _kernels(fold: Fold, dtype: np.dtype[np.generic]) -> Kernels:
    from . import fold_kernels

    ufunc, size = UFUNCS[fold], dtype.itemsize
    match fold:
        case Fold.SUM | Fold.PROD:
            result = result_of(fold, dtype)
            columns, rows = fold_kernels.sums(result) if fold is Fold.SUM else fold_kernels.products(result)
            return Kernels(columns, rows, ufunc, result, 0)
        case Fold.MIN | Fold.MAX if dtype.kind == "f":
            pair = fold_kernels.extremes_of_floats(size)
            return Kernels(pair[fold is Fold.MAX], None, ufunc, np.dtype(f"i{size}"), _first(fold, dtype))
        case Fold.MIN | Fold.MAX:
            return Kernels(fold_kernels.LEAST if fold is Fold.MIN else fold_kernels.GREATEST, None, ufunc, dtype, 0)
        case _:
            kernel = fold_kernels.ANY if fold is Fold.ANY else fold_kernels.ALL
            counts = (1 << (8 * size - 1)) - 1 if dtype.kind == "f" else -1  # a float's sign alone makes it not true
            return Kernels(kernel, None, ufunc, np.dtype(np.uint8), counts)


def _first(fold: Fold, dtype: np.dtype[np.generic]) -> int:
    """What is to become the least of all signed integers, as one in the order of the numbers, less that least one: -inf
    where the greatest is looked for, for NaN is then greater than all; else the first NaN, which is less than all."""
    size = dtype.itemsize
    infinity = int(np.array(np.inf, dtype).view(f"i{size}")[()])
    least = -(1 << (8 * size - 1))
    return ~infinity - least if fold is Fold.MAX else infinity + 1 + least


def rehearse(fold: Fold, dtype: np.dtype[np.generic]) -> Iterator[object]:
    """Compiles the loops, one after the other."""
    kernels = _kernels(fold, dtype)
    seen = Folding(fold, dtype, (0,), 1, False).seen_as
    plan = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, kernels.constant], np.int64)
    for kernel in (kernels.columns, kernels.rows):
        if kernel is not None:
            kernel(np.zeros(1, seen), np.empty(1, kernels.state), plan, 0, 1)
            yield None


def in_shape(results: HostArray, x: HostArray, axes: tuple[int, ...], keepdims: bool) -> object:
    """Results in the order of the axes that stay, as NumPy gives them: a scalar where there is but one."""
    if keepdims:
        return results.reshape([1 if axis in axes else size for axis, size in enumerate(x.shape)])
    return cast(object, results[()])


def flat_of(ways: list[Way]) -> list[int]:
    return [number for way in ways for number in (way.length, way.stride)]


def _merged(side: Way, last: tuple[Way, ...]) -> tuple[Way, ...]:
    if last and side.stride == last[0].length * last[0].stride:
        return (Way(side.length * last[0].length, last[0].stride),)
    return (side, *last)


def shared(work: Callable[[int, int], None], tasks: int, size: int) -> None:
    """Calls work(first, last) for parts of 0 to `tasks`, on threads if so many elements are worth it."""
    pool = shared_pool()
    if size < SHARED or tasks < 2 or pool.threads < 2:
        work(0, tasks)
        return
    shares = min(tasks, 4 * pool.threads)
    pool.run(lambda n: work(tasks * n // shares, tasks * (n + 1) // shares), shares)
