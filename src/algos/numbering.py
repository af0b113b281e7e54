"""Indices of consecutive elements, for sorts that move them with their keys; and the grid of a loop over elements."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs

from ..kernel.language import *

P = TypeVar("P", U32, U64)

_MOST = Grid(1024, 256)


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
    launch = number_elements.launch(looping_grid(count), first, indices, Numbering(index, U32(count)))
    return Schedule((first, indices), (launch,))


def looping_grid(count: int, most: Grid = _MOST) -> Grid:
    """The grid of a kernel whose invocations each loop over elements: at most `most`, and one workgroup at least."""
    return Grid(max(1, min(most.groups, -(-count // most.group_size))), most.group_size)
