"""Where elements of a long row come up to a threshold: one reading by all threads, for the few that a top-k takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..background import background
from ..crew import loading, share
from ..loops import Loop, compiled, flag, name_of
from ..pool import shared_pool
from .key_words import Elements, Places

_PIECE = 1 << 16  # elements

# Few blocks have any. Those of different threads come as they are found.
_COME_UP_TO = """
    for first in range(start, stop, 256):
        end = min(first + 256, stop)
        hits = {count}(0)
        for index in range(first, end):
            hits += {count}(elements[index] {test} threshold[0])
        if hits != 0:
            at = fetch_add(found, 0, i8(hits))
            if at + i8(hits) <= len(places):
                for index in range(first, end):
                    if elements[index] {test} threshold[0]:
                        places[at] = index
                        at += 1
"""


def places_up_to(numbers: Elements, threshold: Any, is_least: bool, k: int, most: int) -> Places | None:
    """The places, as they lie, of all numbers that are at least as great as a threshold, or at most; if they are more
    than `most`, enough for the first k of them. None where these are fewer than k."""
    found = _all_up_to(numbers, threshold, is_least, most)
    if found is None:  # many are equal to the threshold
        beyond = _next_to(threshold, is_least)
        found = np.empty(0, np.intp) if beyond == threshold else _all_up_to(numbers, beyond, is_least, most)
        if found is not None and found.size < k:
            found = np.sort(np.concatenate([found, _first_equal(numbers, threshold, k - found.size)]))
    return found if found is not None and found.size >= k else None


def _all_up_to(numbers: Elements, threshold: Any, is_least: bool, most: int) -> Places | None:
    """None if there are more than `most`."""
    dtype = numbers.dtype
    if background.has(("top_k", dtype, is_least), partial(_loading, dtype, is_least), numbers.nbytes):
        places: Places = np.empty(most, np.intp)
        count, bound = flag(), np.array([threshold], dtype)
        share(come_up_to(dtype, is_least), numbers.size, shared_pool(), numbers, bound, places, count)
        return np.sort(places[: count[0]]) if count[0] <= most else None
    found = hits_of(numbers >= threshold if is_least else numbers <= threshold)
    return found if found.size <= most else None


def _next_to(threshold: Any, is_least: bool) -> Any:
    """The number after a threshold; the same one where there is none."""
    dtype = np.asarray(threshold).dtype
    if dtype.kind == "f":
        return np.nextafter(threshold, dtype.type(np.inf if is_least else -np.inf))
    ends = np.iinfo(dtype)
    step = 1 if is_least else -1
    return dtype.type(min(max(int(threshold) + step, int(ends.min)), int(ends.max)))


def _first_equal(numbers: Elements, threshold: Any, count: int) -> Places:
    found: list[Places] = []
    for start in range(0, numbers.size, _PIECE):
        equal = (numbers[start : start + _PIECE] == threshold).nonzero()[0][:count]
        found.append(equal + start)
        count -= equal.size
        if not count:
            break
    return np.concatenate(found)


@cache
def come_up_to(dtype: np.dtype[np.generic], is_least: bool) -> Loop:
    """(start, stop, elements, threshold, places, found): counts in `found` those that come up to a threshold, and
    writes where they stand, as far as there is room."""
    name = name_of(dtype)
    takes = f"start: i8, stop: i8, elements: {name}[], threshold: {name}[], places: i8[], found: i8[]"
    text = _COME_UP_TO.format(count=f"u{max(2, dtype.itemsize)}", test=">=" if is_least else "<=")
    return compiled("come_up_to", takes, text)


def _loading(dtype: np.dtype[np.generic], is_least: bool) -> Iterator[object]:
    yield from loading()
    yield come_up_to(dtype, is_least)


def hits_of(mask: npt.NDArray[np.bool_], at_least: int = 0) -> Places:
    """Where a flat mask is true: eight elements at a time, if that is hardly anywhere."""
    if at_least > mask.size >> 6:
        return mask.nonzero()[0]
    whole = mask.size & ~7
    eights = (mask[:whole].view(np.uint64) != 0).nonzero()[0]
    if eights.size > mask.size >> 6:
        return mask.nonzero()[0]
    inside = mask[:whole].reshape(-1, 8)[eights].reshape(-1).nonzero()[0]
    found = eights[inside >> 3] * 8 + (inside & 7)
    return found if whole == mask.size else np.concatenate([found, mask[whole:].nonzero()[0] + whole])
