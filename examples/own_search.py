"""A function of arrays of one's own with a kernel, as NumPy's searchsorted: where values belong in a sorted array.

It has a kernel, the schedule of its launch, and an operation: what comes out of arrays of these shapes and dtypes, and
how many values go to a launch. Array libraries, strides, batches, targets and `gpusort.plan` come with the base.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

import gpusort
from gpusort.api.call import call
from gpusort.kernel.language import (
    U32,
    U64,
    Buffer,
    E,
    Grid,
    Invocation,
    Role,
    Schedule,
    SortableKey,
    Storage,
    W,
    dynamic_range,
    kernel,
)  # fmt: skip
from gpusort.machine import TargetInfo
from gpusort.operations.base import INDEX, Operation, Output, Part, Work, Works, rows_together
from gpusort.types.dtypes import key_for, native
from gpusort.types.specs import HostArray, Spec

_GROUP_SIZE = 64


@kernel
def count_before(
    cx: Invocation, key: SortableKey[E, W], data: Storage[E], values: Storage[E], places: Storage[U64], count: U32
) -> None:
    """How many elements of sorted data are less than each value, by ranks: 0.0 and -0.0 are equal, and so are NaNs."""
    for i in dynamic_range(cx.global_id, count, cx.num_groups * cx.group_size):
        value = key.to_rank(values[i])
        low, high = U32(0), data.length
        for _ in dynamic_range(U32(0), U32(32)):  # as many halvings as a U32 has; a `while` would have to poll
            if low >= high:
                break
            middle = low + (high - low) // 2
            if key.to_rank(data[middle]) < value:
                low = middle + 1
            else:
                high = middle
        places[i] = U64(low)


def search(key: SortableKey[Any, Any], length: int, count: int) -> Schedule:
    """As plain data: what is read and written, and one launch, whose invocations share the values."""
    data, values = Buffer("data", key.element, length, Role.INPUT), Buffer("values", key.element, count, Role.INPUT)
    places = Buffer("places", U64, count, Role.OUTPUT)
    grid = Grid(min(1024, -(-count // _GROUP_SIZE)), _GROUP_SIZE)
    return Schedule((data, values, places), (count_before.launch(grid, key, data, values, places, U32(count)),))


@attrs.frozen
class SearchSorted(Operation):
    """Compares by value: it is part of a plan's key. A setting would be a field."""

    names = "data", "values"  # as the function has them, in its order
    like = (1,)  # in a table the result has the values' name

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        data, values = given
        key_for(data.dtype, "data")  # which refuses what has no order
        if len(data.shape) != 1:
            raise gpusort.InvalidArgumentError(f"data: expected one dimension, found shape {data.shape}")
        if native(values.dtype) != native(data.dtype):
            raise gpusort.InvalidArgumentError(f"values: expected dtype {data.dtype}, found {values.dtype}")
        return (Output(values.shape, INDEX, (), is_scalar=True),)  # of one value NumPy's scalar

    def answer(self, *given: Spec) -> tuple[HostArray, ...] | None:
        data, values = given
        return None if data.size and values.size else (np.zeros(values.shape, INDEX),)  # no kernel is run

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        data, values = given
        rows_together(data.size, data.nbytes, 1, info, "data")  # which refuses what no launch takes
        together = rows_together(1, INDEX.itemsize, 1, info, "values")  # each value is a row
        parts = {"data": Part(0, data.size, 0), "values": Part(1, 1), "places": Part(2, 1)}  # all data in every launch
        return Works((Work(values.size, together, lambda n: search(key_for(data.dtype), data.size, n), parts),))


def searchsorted(data: object, values: object, *, target: str = "auto") -> object:
    return call(SearchSorted, (), target, data, values)


def main(where: str = "cpu") -> None:
    generator = np.random.default_rng(1)
    numbers, searched = np.sort(generator.integers(0, 99, 200)), generator.integers(0, 99, (6, 7))
    for dtype in (np.uint8, np.float32, np.int64):
        data, values = numbers.astype(dtype), searched.astype(dtype)
        for given in (values, values.T, values[::2, ::-1], values[0, 0], values[:0]):
            assert np.array_equal(np.asarray(searchsorted(data, given, target=where)), np.searchsorted(data, given))
        assert np.array_equal(np.asarray(searchsorted(data[:0], values, target=where)), np.zeros((6, 7)))
    floats = np.array([-1, -0.0, 0, np.nan], np.float32)
    prepared = gpusort.plan(searchsorted, floats, floats, target=where)
    print(prepared(floats, floats), prepared.cost)


if __name__ == "__main__":
    main()
