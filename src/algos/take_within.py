"""Taking by index from an array that is given in pieces, of which a kernel sees one."""

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
_EACH = 4  # elements an invocation
_WORD = 8  # the most bytes that are moved as one


@attrs.frozen
class WithinParams:
    """Which elements of the array are seen, and of how many words one is."""

    num_words: U32  # of the results
    words: U32
    first: U32
    count: U32


@kernel
def take_elements_within(
    cx: Invocation, source: Storage[E], indices: Storage[U64], target: Storage[E], params: WithinParams
) -> None:
    """The elements at these places, where they are among those that are seen; the other results stay."""
    for i in dynamic_range(cx.global_id, params.num_words, cx.num_groups * cx.group_size):
        number = i // params.words
        place = U32(indices[number]) - params.first  # of one that stands before, beyond all
        if place < params.count:
            target[i] = source[place * params.words + (i - number * params.words)]


def take_within(itemsize: int, first: int, count: int, taken: int) -> Schedule:
    """Results in "target" (INOUT) for places in "indices" (INPUT), of elements of which "source" (INPUT) holds so many
    from the first on."""
    word = math.gcd(itemsize, _WORD)
    words, element = itemsize // word, UNSIGNED[word]
    source = Buffer("source", element, count * words, Role.INPUT)
    indices = Buffer("indices", U64, taken, Role.INPUT)
    target: Buffer[Any] = Buffer("target", element, taken * words, Role.INOUT)
    params = WithinParams(U32(taken * words), U32(words), U32(first), U32(count))
    grid = Grid(-(-taken * words // (_GROUP_SIZE * _EACH)), _GROUP_SIZE)
    launch = take_elements_within.launch(grid, source, indices, target, params)
    return Schedule((source, indices, target), (launch,))
