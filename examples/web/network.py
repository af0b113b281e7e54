"""A schedule of one's own, as the page plays it: the bitonic network with a launch for every pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpusort import SortOrder
from gpusort.algos.bitonic import bitonic_step
from gpusort.kernel.language import U32, Buffer, Grid, Launch, Role, Schedule
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.indices import Pass, Stage
from gpusort.types.keys import SortableKey
from gpusort.types.params import BitonicParams

MOST = 128  # elements that can be told apart on a screen
_GROUP_SIZE = 64


def passes_of(length: int) -> Iterator[tuple[Stage, Pass]]:
    """The passes that sort so many elements, first to last."""
    for stage in range((length - 1).bit_length() if length else 0):
        for pass_ in range(stage + 1):
            yield Stage(U32(stage)), Pass(U32(pass_))


def network(key: SortableKey[Any, Any], order: SortOrder, length: int) -> Schedule:
    """Sorts a few elements in place."""
    if length > MOST:
        raise InvalidArgumentError(f"network: expected at most {MOST} elements, found {length}")
    data = Buffer("data", key.element, length, Role.INOUT)

    def launch(stage: Stage, pass_: Pass) -> Launch:
        params = BitonicParams(U32(length), U32(1), stage, pass_, order)
        return bitonic_step.launch(Grid(1, _GROUP_SIZE), key, data, params)

    return Schedule((data,), tuple(launch(stage, pass_) for stage, pass_ in passes_of(length)))
