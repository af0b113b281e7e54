"""Where elements come from in order, and values sorted by their keys."""

from __future__ import annotations

from typing import Any, SupportsIndex, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from .algos.choice import fitting_pairs
from .api import Shape, checked_axis
from .arrays import HostArray, Operand, kind_of, operand
from .checks import checked_flag, checked_flags, order_of
from .placing import VALUES, PairsPlan, PlacesPlan, pairs_schedule, placed_together, places_schedule, sorted_together
from .quick import quick_argsort, quick_sort_by_key
from .signatures import Other
from .targets.base import Target, sorts_rows
from .targets.cpu.ranks import bits_of, ordered_words
from .targets.registry import Memory, choose
from .types.dtypes import ArrayKey, key_for
from .types.elements import dtype_of
from .types.errors import InvalidArgumentError, UnsupportedTypeError
from .types.indices import SortOrder

D = TypeVar("D", bound=np.dtype[np.generic])
V = TypeVar("V", bound=np.dtype[np.generic])
_PLACE: np.dtype[np.generic] = np.dtype(np.int64)


@overload
def argsort(
    x: np.ndarray[Shape, D], /, *, axis: SupportsIndex = -1, descending: bool = False, stable: bool = True,
    target: str | Target = "auto",
) -> np.ndarray[Shape, np.dtype[np.int64]]: ...  # fmt: skip
@overload
def argsort(
    x: np.ndarray[Shape, D], /, *, axis: None, descending: bool = False, stable: bool = True,
    target: str | Target = "auto",
) -> np.ndarray[tuple[int], np.dtype[np.int64]]: ...  # fmt: skip
@overload
def argsort(
    x: Other, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = True,
    target: str | Target = "auto",
) -> Other: ...  # fmt: skip
@overload
def argsort(
    x: npt.ArrayLike, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = True,
    target: str | Target = "auto",
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]: ...  # fmt: skip
def argsort(
    x: object, /, *, axis: SupportsIndex | None = -1, descending: bool = False, stable: bool = True,
    target: str | Target = "auto",
) -> object:  # fmt: skip
    """Where the elements of the sorted array come from: int64 indices along an axis, as `np.argsort` gives them.

    Equal elements keep their order in both directions, and so do NaNs, which come last: that is what `stable` asks
    for, and what costs nothing to leave on. `axis=None` takes the flattened array.
    """
    descending, _ = checked_flags(descending, stable)
    found = quick_argsort(x, axis, descending, target)
    if found is not None:
        return found
    source, order = operand("x", x), order_of(descending)
    key = key_for(source.dtype, "x")
    chosen = choose(target, source.memory)
    if axis is None or source.shape == ():  # of no dimensions: NumPy takes it for a row of one
        source = source.flattened()
    along = checked_axis(-1 if axis is None else axis, len(source.shape))
    return _places(source, along, key, order, chosen).owner


def _places(
    source: Operand, axis: int, key: ArrayKey, order: SortOrder, target: Target, by_bits: bool = False
) -> Operand:
    """Where the elements come from along an axis, in a new array of the source's kind."""
    result = source.blank(_PLACE)
    with source.working():
        rows, places = source.along([axis]), result.along([axis])
        data = rows if rows.is_packed else rows.pack()
        work = places if places.is_packed else places.pack()
        _argsort_rows(data, work, key, order, target, by_bits)
        if work is not places:
            places.assign(work)
    return result


def _argsort_rows(
    data: Operand, places: Operand, key: ArrayKey, order: SortOrder, target: Target, by_bits: bool
) -> None:
    length = data.shape[-1]
    rows = int(np.prod(data.shape[:-1], dtype=np.int64))
    if length == 0 or rows == 0:
        return
    if data.memory is Memory.HOST and sorts_rows(target):
        shape, flat = (rows, length), cast(HostArray, data.rows(0, rows, length, data.dtype))
        found = cast("np.ndarray[Any, np.dtype[np.intp]]", places.rows(0, rows, length, np.dtype(np.intp)))
        if by_bits and flat.dtype.kind == "f":
            flat, order = ordered_words(key, bits_of(flat), order), SortOrder.ASCENDING
        merged = target.argsort_runs(flat, order) if rows == 1 else None
        if merged is not None:
            found[...] = merged
        else:
            target.argsort_rows(flat.reshape(shape), found.reshape(shape), order)
        return
    sweeping = fitting_pairs(target.info, key, rows, length, 4)
    itemsize = data.dtype.itemsize
    if sweeping is not None:
        together = sorted_together(sweeping, length, target)
    else:
        together = placed_together(length, itemsize, target)
    element = dtype_of(key.element)
    for first in range(0, rows, together):
        last = min(rows, first + together)
        plan = PlacesPlan(sweeping, key, last - first, length, order, target.info.limits, by_bits)
        arrays = {
            "data": data.rows(first, last, length, element),
            "places": places.rows(first, last, length, np.dtype(np.uint64)),
        }
        target.run(places_schedule(plan), arrays)


# -- values by their keys ---------------------------------------------------------------------------------


@overload
def sort_by_key(
    keys: np.ndarray[tuple[int], D], values: np.ndarray[tuple[int], V], /, *, descending: bool = False,
    target: str | Target = "auto",
) -> tuple[np.ndarray[tuple[int], D], np.ndarray[tuple[int], V]]: ...  # fmt: skip
@overload
def sort_by_key(
    keys: Other, values: Other, /, *, descending: bool = False, target: str | Target = "auto"
) -> tuple[Other, Other]: ...
@overload
def sort_by_key(
    keys: npt.ArrayLike, values: npt.ArrayLike, /, *, descending: bool = False, target: str | Target = "auto"
) -> tuple[HostArray, HostArray]: ...
def sort_by_key(
    keys: object, values: object, /, *, descending: bool = False, target: str | Target = "auto"
) -> tuple[object, object]:
    """Sorted keys, and the values in the order of their keys: two new arrays, of one dimension.

    The keys are those of `sort`: -0.0 before 0.0, and NaNs last, by their bits. Keys of the same bits keep the order of
    their values.
    """
    descending = checked_flag("descending", descending)
    found = quick_sort_by_key(keys, values, descending, target)
    if found is not None:
        return found
    source, beside, order = operand("keys", keys), operand("values", values), order_of(descending)
    key = key_for(source.dtype, "keys")
    if type(source) is not type(beside):
        raise UnsupportedTypeError(
            f"values: expected an array of the keys' kind, {kind_of(source.owner)}, found {kind_of(values)}"
        )
    if len(source.shape) != 1 or source.shape != beside.shape:
        raise InvalidArgumentError(
            f"values: expected one for each key, in one dimension; found shapes {source.shape} and {beside.shape}"
        )
    chosen, length = choose(target, source.memory), source.shape[0]
    value = VALUES.get(beside.dtype.itemsize)
    sweeping = None if value is None else fitting_pairs(chosen.info, key, 1, length, beside.dtype.itemsize)
    if sweeping is None:
        ordering = _places(source, 0, key, order, chosen, by_bits=True)
        return source.taken(ordering).owner, beside.taken(ordering).owner
    results, moved = source.blank(source.dtype), beside.blank(beside.dtype)
    with source.working():
        given = [rows if rows.is_packed else rows.pack() for rows in (source, beside)]
        element, held = dtype_of(key.element), dtype_of(value)
        arrays = {
            name: array.rows(0, 1, length, dtype)
            for name, array, dtype in (
                ("data", given[0], element), ("values", given[1], held), ("results", results, element),
                ("moved", moved, held),
            )
        }  # fmt: skip
        chosen.run(pairs_schedule(PairsPlan(sweeping, key, value, length, order)), arrays)
    return results.owner, moved.owner
