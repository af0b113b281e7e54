"""Compiled loops over rows that are in order already, or the other way round."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..loops import Loop, compiled, name_of

_IS_MONOTONIC = """
    for begin in range(start, stop, 4096):
        if load_acquire(missed, 0) != 0:
            break
        end = min(begin + 4096, stop)
        right = 0
        for index in range(begin, end):
            right += i8(source[index] {test} source[index + 1])
        if right < end - begin:
            missed[0] = 1
            break
"""
_NUMBER = """
    for index in range(start, stop):
        places[index] = index
"""
_REVERSE = """
    last = len(values) - 1
    for index in range(start, stop):
        low = values[index]
        values[index] = values[last - index]
        values[last - index] = low
"""
_NUMBER_BACKWARDS = """
    for first in range(start, stop, 4096):
        end = min(first + 4096, stop)
        ties = 0
        for index in range(max(first - 1, 0), min(end, len(source) - 1)):
            ties += i8(source[index] == source[index + 1])
        if ties == 0:
            for index in range(first, end):
                places[len(source) - 1 - index] = index
        else:
            at = first
            while True:
                if at == 0:
                    break
                if at >= end:
                    break
                if source[at] != source[at - 1]:
                    break
                at += 1
            while True:
                if at >= end:
                    break
                past = at + 1
                while True:
                    if past >= len(source):
                        break
                    if source[past] != source[at]:
                        break
                    past += 1
                for index in range(at, past):
                    places[len(source) - past + index - at] = index
                at = past
"""


@cache
def is_monotonic(dtype: np.dtype[np.generic], test: str) -> Loop:
    """(start, stop, source, missed): sets `missed` if one of the elements start to stop, compared with the next one, is
    not as it should be, and looks no further where it is set."""
    return compiled(
        "is_monotonic",
        f"start: i8, stop: i8, source: {name_of(dtype)}[], missed: i8[]",
        _IS_MONOTONIC.format(test=test),
    )


@cache
def number() -> Loop:
    """(start, stop, places): writes start, start + 1, …"""
    return compiled("number", "start: i8, stop: i8, places: i8[]", _NUMBER)


@cache
def reverse(dtype: np.dtype[np.generic]) -> Loop:
    """(start, stop, values): swaps each of the elements start to stop with the one as far from the other end."""
    return compiled("reverse", f"start: i8, stop: i8, values: {name_of(dtype)}[]", _REVERSE)


@cache
def number_backwards(dtype: np.dtype[np.generic]) -> Loop:
    """(start, stop, source, places): writes where elements come from that are to be reversed, but for equal ones, which
    keep their order.

    Those from start to stop, or as far as elements are equal to these; the first ones that are equal to the one before
    are left out.
    """
    takes = f"start: i8, stop: i8, source: {name_of(dtype)}[], places: i8[]"
    return compiled("number_backwards", takes, _NUMBER_BACKWARDS)
