"""Which control flow is uniform over a workgroup, and what is said of a barrier in any other."""

from __future__ import annotations

import inspect
import re

import pytest

from gpusort.kernel import ir
from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role
from gpusort.kernel.passes.uniform import check_uniform
from gpusort.kernel.span import KernelError
from gpusort.kernel.specialise import specialise
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import U32


def program_of(of: Kernel[Storage[U32], U32]) -> ir.Program:
    return specialise(of.launch(Grid(2, 8), Buffer("data", U32, 16, Role.INOUT), U32(3))).program


def varying(of: Kernel[Storage[U32], U32]) -> set[str]:
    return {variable.name for variable in check_uniform(program_of(of)).varying}


def line_of(of: Kernel[Storage[U32], U32], text: str) -> int:
    """The number of the kernel's line that contains this text."""
    lines, first = inspect.getsourcelines(of.function)
    (found,) = [number for number, line in enumerate(lines, first) if text in line]
    return found


@kernel
def steered_by_the_group(cx: Invocation, data: Storage[U32], rounds: U32) -> None:
    steps = rounds + cx.group_id + data.length + cx.num_groups + cx.subgroup_size
    while steps > 0:
        if (steps & 1) == 0:
            cx.barrier()
        for at in dynamic_range(U32(0), steps):
            cx.barrier()
            if at > 4:
                break
        steps = steps >> 1
    if cx.local_id < 3:
        data[cx.local_id] = steps


def test_values_of_the_group_steer_barriers() -> None:
    assert "steps" not in varying(steered_by_the_group)


@kernel
def mixed(cx: Invocation, data: Storage[U32], limit: U32) -> None:
    same = limit * 2
    mine = cx.local_id + same
    loaded = U32(0)
    loaded = data[0] + loaded
    lane = U32(0)
    lane = cx.lane + lane
    sometimes = U32(0)
    if mine > 3:
        sometimes = limit
    late = U32(0)
    early = U32(0)
    for at in dynamic_range(U32(0), limit):
        late = early
        early = mine
        same = same + at
    data[cx.global_id] = same + loaded + lane + sometimes + late


def test_what_depends_on_the_invocation_varies() -> None:
    found = varying(mixed)
    assert {"loaded", "lane", "sometimes", "late", "early"} <= found
    assert "same" not in found


@kernel
def barrier_behind_a_load(cx: Invocation, data: Storage[U32], limit: U32) -> None:
    if data[0] > limit:
        cx.barrier()


@kernel
def barrier_behind_an_id(cx: Invocation, data: Storage[U32], limit: U32) -> None:
    if limit > 1:
        if cx.local_id > limit:
            data[0] = limit
        else:
            cx.barrier()


@kernel
def barrier_in_an_uneven_loop(cx: Invocation, data: Storage[U32], limit: U32) -> None:
    for _ in dynamic_range(cx.lane, limit):
        cx.barrier()


@kernel
def barrier_in_a_loop_that_some_leave(cx: Invocation, data: Storage[U32], limit: U32) -> None:
    for at in dynamic_range(U32(0), limit):
        cx.barrier()
        if data[cx.global_id] == at:
            break


@kernel
def barrier_in_a_while(cx: Invocation, data: Storage[U32], limit: U32) -> None:
    left = limit
    while left > 0:
        cx.barrier()
        if cx.local_id == left:
            left = U32(1)
        left = left - 1


@kernel
def barrier_before_some_leave(cx: Invocation, data: Storage[U32], limit: U32) -> None:
    while limit > 0:
        cx.barrier()
        if cx.local_id == 3:
            break


@kernel
def ballot_of_some(cx: Invocation, data: Storage[U32], limit: U32) -> None:
    if cx.lane > limit:
        data[cx.global_id] = cx.subgroup_add(limit)


@pytest.mark.parametrize(
    ("of", "what", "at", "because"),
    [
        (barrier_behind_a_load, "barrier", "cx.barrier()", "if data[0] > limit:"),
        (barrier_behind_an_id, "barrier", "cx.barrier()", "if cx.local_id > limit:"),
        (barrier_in_an_uneven_loop, "barrier", "cx.barrier()", "for _ in dynamic_range(cx.lane, limit):"),
        (barrier_in_a_loop_that_some_leave, "barrier", "cx.barrier()", "if data[cx.global_id] == at:"),
        (barrier_in_a_while, "barrier", "cx.barrier()", "while left > 0:"),
        (barrier_before_some_leave, "barrier", "cx.barrier()", "if cx.local_id == 3:"),
        (ballot_of_some, "subgroup operation (add)", "subgroup_add", "if cx.lane > limit:"),
    ],
    ids=lambda value: value.name if isinstance(value, Kernel) else "",
)
def test_a_barrier_that_some_miss_is_an_error(of: Kernel[Storage[U32], U32], what: str, at: str, because: str) -> None:
    with pytest.raises(KernelError) as caught:
        check_uniform(program_of(of))
    expected = (
        f"{inspect.getsourcefile(of.function)}:{line_of(of, at)}: "
        f"expected a {what} that all invocations of the workgroup reach, "
        f"but the condition in line {line_of(of, because)} may differ between them "
        f"(`{because}`), e.g. take the {what} out of it and leave only the guarded work inside"
    )
    assert str(caught.value).startswith(expected)
    assert re.search(r"\n    \S", str(caught.value)), "the offending line is shown"
