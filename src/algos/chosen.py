"""Candidates of the parts of a row beyond the largest buffer binding: how many a part leaves, and where in the row the
chosen ones are."""

from __future__ import annotations

import attrs

from ..kernel.language import *
from ..machine import Limits
from .fit import plain_grid
from .sizes import bound_together


def candidates_of(k: int, itemsize: int) -> int:
    """The candidates that a part of a row beyond the largest binding leaves: k, rounded up so that any device can bind
    those of the next part."""
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


def chosen_indices(rows: int, k: int, candidates: int, left: int, part: int, *, limits: Limits) -> Schedule:
    """Maps numbers of candidates, "chosen", to "indices" in the row; "candidates" has those in their parts."""
    places = Buffer("candidates", U64, rows * candidates, Role.INPUT)
    chosen = Buffer("chosen", U64, rows * k, Role.INPUT)
    indices = Buffer("indices", U64, rows * k, Role.OUTPUT)
    params = ChosenParams(U32(rows * k), U32(k), U32(candidates), U32(left), U32(part))
    placing = place_chosen.launch(plain_grid(rows * k, limits), places, chosen, indices, params)
    return Schedule((places, chosen, indices), (placing,))
