"""Elements taken by their places, of a whole array or of each row."""

from __future__ import annotations

from functools import cache

import numpy as np

from ....arrays.host import is_packed
from ....arrays.recycled import new_array
from ...addresses import address_of
from ..background import background
from ..crew import share_rows
from ..loops import Kernel, compiled, inside, place_of, text_of
from ..pool import shared_pool
from .copies import packed
from .key_words import Elements, Places

_SHARED = 1 << 17  # elements: below, waking a thread saves nothing
_FEW_IN_ROWS = 1 << 12  # elements that NumPy takes sooner than a loop begins


def taken(x: Elements, places: Places) -> Elements:
    """The elements of a flattened array at these places, many by all threads: each waits for memory."""
    if places.size < _SHARED:
        return x.take(places)
    flat = packed(x.reshape(-1))  # once, such as a column of records: each call of `take` would copy all of it
    found = new_array(places.shape, x.dtype)
    wanted, to = places.reshape(-1), found.reshape(-1)

    def take(own: slice) -> None:
        flat.take(wanted[own], None, to[own], "wrap")  # which writes at once, where "raise" would look first

    shared_pool().over(wanted.size, take, least=_SHARED >> 2)
    return found


def taken_in_rows(rows: Elements, places: Places) -> Elements:
    """The elements at these places of each row. NumPy's function for that takes as long as a short row."""
    found = _taken_by_loop(rows, places, None)
    return _taken_by_numpy(rows, places) if found is None else found


def taken_with_places(rows: Elements, places: Places) -> tuple[Elements, Places]:
    """The same, and the places packed, which may be the first ones of longer rows."""
    if is_packed(places):
        return taken_in_rows(rows, places), places
    if places.size <= _FEW_IN_ROWS:
        places = places.copy()
        return _taken_by_numpy(rows, places), places
    kept: Places = new_array(places.shape, places.dtype)
    found = _taken_by_loop(rows, places, kept)
    if found is None:
        kept[...] = places
        return _taken_by_numpy(rows, kept), kept
    return found, kept


def _taken_by_numpy(rows: Elements, places: Places) -> Elements:
    if len(rows) == 1:
        return taken(rows, places)
    length: int = rows.shape[1]
    starts: Places = np.arange(0, rows.size, length)
    return taken(rows, places + starts[:, np.newaxis])


def _taken_by_loop(rows: Elements, places: Places, kept: Places | None) -> Elements | None:
    """What is taken, with the places in `kept` if it is given; None where other ways suit."""
    size, (number, count), step = rows.itemsize, places.shape, places.strides[0] // places.itemsize
    if places.size <= _FEW_IN_ROWS or number < 2 or size > 8 or not is_packed(rows) or places.strides[1] != 8:
        return None
    if not background.has((take_in_rows, size), places.nbytes):
        return None
    found = new_array(places.shape, rows.dtype)
    both = *place_of(rows), address_of(places), number * step, *place_of(found)
    where = *both, *((0, 0) if kept is None else place_of(kept)), rows.shape[1], step, count, int(kept is not None)
    share_rows(take_in_rows(size), number, count, where, places.nbytes)
    return found


@cache
def take_in_rows(size: int) -> Kernel:
    """(start, stop, elements, places, values, kept, length, step, count, keep): so many elements of each row of a
    length, by places that begin so far apart for each, and are kept packed if `keep` is 1."""
    word = f"i{size}"
    each = [
        "place = places[begin + index]",
        "values[goal + index] = elements[row * length + place]",
        *inside("if keep != 0:", ["kept[goal + index] = place"]),
    ]
    row = ["begin = row * step", "goal = row * count", *inside("for index in range(count):", each)]
    arrays = f"elements: {word}[], places: i8[], values: {word}[], kept: i8[]"
    takes = f"start: i8, stop: i8, {arrays}, length: i8, step: i8, count: i8, keep: i8"
    return compiled("take_in_rows", takes, text_of(inside("for row in range(start, stop):", row)))
