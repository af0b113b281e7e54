"""Conditions on what is loaded for all may guard barriers, on every target; others may not."""

from __future__ import annotations

import numpy as np
import pytest

from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.passes.uniform import check_uniform
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.targets.registry import target as target_of
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import U32

GROUP = 8


@kernel
def turn_if_asked(cx: Invocation, data: Storage[U32], tile: Workgroup[U32]) -> None:
    """Each group's first element says whether the group is turned around."""
    me = cx.global_id
    if cx.local_id == 0:
        tile[0] = data[me] % 2
    if cx.load_uniform(tile, 0) == 1:
        mine = data[me]
        tile[cx.local_id] = mine
        cx.barrier()
        data[me] = tile[GROUP - 1 - cx.local_id]


@kernel
def turn_if_odd(cx: Invocation, data: Storage[U32], tile: Workgroup[U32]) -> None:
    """Each group is turned around whose elements have an odd sum, and told how great it is."""
    me = cx.global_id
    mine = data[me]
    tile[cx.local_id] = U32(0)
    cx.barrier()
    tile.atomic_add(1, mine)
    for place in range(2):
        total = cx.load_uniform(tile, place)
        if total % 2 == 1:
            cx.barrier()
            tile[cx.local_id] = mine
            cx.barrier()
            data[me] = tile[GROUP - 1 - cx.local_id] + total


@kernel
def at_an_index_that_varies(cx: Invocation, data: Storage[U32], tile: Workgroup[U32]) -> None:
    tile[cx.local_id] = data[cx.local_id]
    data[cx.local_id] = cx.load_uniform(tile, cx.local_id)


@kernel
def from_storage(cx: Invocation, data: Storage[U32], tile: Workgroup[U32]) -> None:
    # the mistake under test
    tile[cx.local_id] = cx.load_uniform(data, 0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@kernel
def guarded_by_a_plain_load(cx: Invocation, data: Storage[U32], tile: Workgroup[U32]) -> None:
    if data[0] == 1:
        cx.barrier()
        data[cx.local_id] = U32(0)


def schedule_of(subject: Kernel[Storage[U32], Workgroup[U32]], groups: int) -> Schedule:
    data = Buffer("data", U32, groups * GROUP, Role.INOUT)
    return Schedule((data,), (subject.launch(Grid(groups, GROUP), data, Workgroup(U32, GROUP)),))


def test_what_all_load_may_have_been_added_up(target: str) -> None:
    """WGSL loads nothing for all from memory that has atomics."""
    x = np.arange(4 * GROUP, dtype=np.uint32)
    x[0], x[2 * GROUP] = 1, 18
    x[1], x[2 * GROUP + 1] = 2, 19
    expected = x.reshape(4, GROUP).copy()
    for row in expected:
        total = int(row.sum())
        if total % 2:
            row[:] = row[::-1] + total
    target_of(target).run(schedule_of(turn_if_odd, 4), {"data": x})
    np.testing.assert_array_equal(x.reshape(4, GROUP), expected)


def test_a_barrier_behind_what_all_have_loaded(target: str) -> None:
    x = np.arange(4 * GROUP, dtype=np.uint32)
    x[0], x[2 * GROUP] = 101, 103
    expected = x.reshape(4, GROUP).copy()
    for row in expected:
        if row[0] % 2:
            row[:] = row[::-1].copy()
    target_of(target).run(schedule_of(turn_if_asked, 4), {"data": x})
    np.testing.assert_array_equal(x.reshape(4, GROUP), expected)


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (at_an_index_that_varies, "expected an index that is the same for all"),
        (from_storage, r"expected workgroup memory of U32 and an index, e.g. `cx.load_uniform\(shared, 0\)`"),
        (guarded_by_a_plain_load, "expected a barrier that all invocations of the workgroup reach"),
    ],
)
def test_mistakes(subject: Kernel[Storage[U32], Workgroup[U32]], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        check_uniform(specialise(schedule_of(subject, 1).launches[0]).program)
