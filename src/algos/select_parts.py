"""Top-k of a row that exceeds the largest buffer binding: top-k of each part, then of the parts' candidates.

Parts leave k candidates rounded up, so that each part's start at an offset where any device can bind.
"""

from __future__ import annotations

import attrs

from ..kernel.language import *
from .copy import copy_whole
from .sizes import bound_together

_GROUP_SIZE = 256


def candidates_of(k: int, itemsize: int) -> int:
    """The candidates that a part leaves, if it has as many: k, rounded up to the alignment of bindings."""
    each = bound_together(itemsize)
    return -(-k // each) * each


@attrs.frozen
class ChosenParams:
    """The sizes of rows of candidates, of which k are chosen."""

    num_chosen: U32
    k: U32
    candidates: U32  # in a row
    left: U32  # candidates in a part
    part: U32  # elements in a part


@kernel
def place_chosen(
    cx: Invocation, candidates: Storage[U64], chosen: Storage[U64], indices: Storage[U64], params: ChosenParams
) -> None:
    """Maps the chosen candidates' numbers to their elements' indices in the row."""
    for i in dynamic_range(cx.global_id, params.num_chosen, cx.num_groups * cx.group_size):
        number = U32(chosen[i])
        place = U32(candidates[i // params.k * params.candidates + number])
        indices[i] = U64(place + number // params.left * params.part)


def chosen_indices(rows: int, k: int, candidates: int, left: int, part: int) -> Schedule:
    """Maps numbers of candidates, "chosen" (INPUT), to indices in the row, "indices" (OUTPUT); "candidates" (INPUT) has
    the candidates' indices in their parts."""
    places = Buffer("candidates", U64, rows * candidates, Role.INPUT)
    chosen = Buffer("chosen", U64, rows * k, Role.INPUT)
    indices = Buffer("indices", U64, rows * k, Role.OUTPUT)
    params = ChosenParams(U32(rows * k), U32(k), U32(candidates), U32(left), U32(part))
    grid = Grid(-(-rows * k // _GROUP_SIZE), _GROUP_SIZE)
    return Schedule((places, chosen, indices), (place_chosen.launch(grid, places, chosen, indices, params),))


def copy_indices(count: int) -> Schedule:
    """Copies `count` indices from "places" (INPUT) to "indices" (OUTPUT)."""
    places, indices = Buffer("places", U64, count, Role.INPUT), Buffer("indices", U64, count, Role.OUTPUT)
    return Schedule((places, indices), (copy_whole(places, indices),))
