"""Gather by index from an array that is given in pieces: each launch gathers from one piece."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.memory import Storage
from ..types.scalars import U32, U64, UNSIGNED

E = TypeVar("E")

_GROUP_SIZE = 256
_EACH = 4  # words for each invocation
_WORD = 8  # bytes: the largest word that is moved


@attrs.frozen
class WithinParams:
    """The piece: elements of the array from `first`, `count` of them, with `words` words each."""

    num_words: U32  # in the results
    words: U32
    first: U32
    count: U32


@kernel
def take_elements_within(
    cx: Invocation, source: Storage[E], indices: Storage[U64], target: Storage[E], params: WithinParams
) -> None:
    """Gathers the elements whose indices are in the piece; other results are unchanged."""
    for i in dynamic_range(cx.global_id, params.num_words, cx.num_groups * cx.group_size):
        number = i // params.words
        place = U32(indices[number]) - params.first  # wraps to beyond `count` for an index before the piece
        if place < params.count:
            target[i] = source[place * params.words + (i - number * params.words)]


def take_within(itemsize: int, first: int, count: int, taken: int) -> Schedule:
    """Gathers into "target" (INOUT) by "indices" (INPUT) from a piece of an array, "source" (INPUT): `count` elements
    from index `first`."""
    word = math.gcd(itemsize, _WORD)
    words, element = itemsize // word, UNSIGNED[word]
    source = Buffer("source", element, count * words, Role.INPUT)
    indices = Buffer("indices", U64, taken, Role.INPUT)
    target: Buffer[Any] = Buffer("target", element, taken * words, Role.INOUT)
    params = WithinParams(U32(taken * words), U32(words), U32(first), U32(count))
    grid = Grid(-(-taken * words // (_GROUP_SIZE * _EACH)), _GROUP_SIZE)
    launch = take_elements_within.launch(grid, source, indices, target, params)
    return Schedule((source, indices, target), (launch,))
