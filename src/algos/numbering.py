"""Indices of consecutive elements, for sorts that move them with their keys."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs

from ..kernel.language import *

P = TypeVar("P", U32, U64)

_GRID = Grid(1024, 256)  # at most


@attrs.frozen
class Numbering(Generic[P]):
    index: type[P]
    num_elements: U32


@kernel
def number_elements(cx: Invocation, first: Storage[P], indices: Storage[P], params: Numbering[P]) -> None:
    """Counts from the element of `first` on."""
    for i in dynamic_range(cx.global_id, params.num_elements, cx.num_groups * cx.group_size):
        indices[i] = first[0] + params.index(i)


def numbered(count: int, index: type[Any]) -> Schedule:
    """Writes `count` indices from the one in `first` on."""
    first, indices = Buffer("first", index, 1, Role.INPUT), Buffer("indices", index, count, Role.OUTPUT)
    grid = Grid(max(1, min(_GRID.groups, -(-count // _GRID.group_size))), _GRID.group_size)
    return Schedule((first, indices), (number_elements.launch(grid, first, indices, Numbering(index, U32(count))),))
