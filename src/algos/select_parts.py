"""Top-k of a row that no binding holds: the first of each part, and of those the first.

Parts leave more candidates than are asked for, a round number, so that each part's lie where any device binds.
"""

from __future__ import annotations

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.memory import Storage
from ..types.scalars import U32, U64
from .copy import copy_whole
from .sizes import bound_together

_GROUP_SIZE = 256


def candidates_of(k: int, itemsize: int) -> int:
    """How many a part leaves, if it has as many."""
    each = bound_together(itemsize)
    return -(-k // each) * each


@attrs.frozen
class ChosenParams:
    """Of rows of candidates, so many of each part; parts have so many elements, and k are chosen of each row."""

    num_chosen: U32
    k: U32
    candidates: U32  # of a row
    left: U32  # by a part
    part: U32


@kernel
def place_chosen(
    cx: Invocation, candidates: Storage[U64], chosen: Storage[U64], indices: Storage[U64], params: ChosenParams
) -> None:
    """Where in their rows the candidates stand that were chosen."""
    for i in dynamic_range(cx.global_id, params.num_chosen, cx.num_groups * cx.group_size):
        number = U32(chosen[i])
        place = U32(candidates[i // params.k * params.candidates + number])
        indices[i] = U64(place + number // params.left * params.part)


def placed_chosen(rows: int, k: int, candidates: int, left: int, part: int) -> Schedule:
    """From places in their parts, "candidates" (INPUT), and numbers of candidates, "chosen" (INPUT), to "indices"
    (OUTPUT)."""
    places = Buffer("candidates", U64, rows * candidates, Role.INPUT)
    chosen = Buffer("chosen", U64, rows * k, Role.INPUT)
    indices = Buffer("indices", U64, rows * k, Role.OUTPUT)
    params = ChosenParams(U32(rows * k), U32(k), U32(candidates), U32(left), U32(part))
    grid = Grid(-(-rows * k // _GROUP_SIZE), _GROUP_SIZE)
    return Schedule((places, chosen, indices), (place_chosen.launch(grid, places, chosen, indices, params),))


def first_places(count: int) -> Schedule:
    """So many places as they are, from "places" (INPUT) to "indices" (OUTPUT)."""
    places, indices = Buffer("places", U64, count, Role.INPUT), Buffer("indices", U64, count, Role.OUTPUT)
    return Schedule((places, indices), (copy_whole(places, indices),))
