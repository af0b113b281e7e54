"""Workgroup memories share a place only where a barrier parts their uses, and results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from gpusort.kernel import ir
from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.kernel.passes.overlay import overlaid, packed_bytes
from gpusort.kernel.specialise import specialise
from gpusort.targets.registry import target as target_of
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import F32, U32

GROUP = 8
Two = Kernel[[Storage[U32], Workgroup[U32], Workgroup[U32]]]


@kernel
def one_after_the_other(cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32]) -> None:
    a[cx.local_id] = data[cx.global_id]
    cx.barrier()
    mine = a[GROUP - 1 - cx.local_id]
    cx.barrier()
    b[cx.local_id] = mine + 1
    cx.barrier()
    data[cx.global_id] = b[(cx.local_id + 1) % GROUP]


def turn_twice(cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32]) -> None:
    """By one memory after the other."""
    a[cx.local_id] = data[cx.global_id]
    cx.barrier()
    mine = a[GROUP - 1 - cx.local_id]
    cx.barrier()
    b[cx.local_id] = mine * 3
    cx.barrier()
    data[cx.global_id] = b[GROUP - 1 - cx.local_id]


@kernel
def inside_a_branch(cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32]) -> None:
    if cx.num_groups > 0:
        turn_twice(cx, data, a, b)


@kernel
def inside_one_of_two_branches(
    cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32], c: Workgroup[U32]
) -> None:
    c[cx.local_id] = data[cx.global_id]
    if cx.num_groups > 0:
        turn_twice(cx, data, a, b)
    if cx.num_groups > 1:
        cx.barrier()
        data[cx.global_id] = c[GROUP - 1 - cx.local_id]


@kernel
def beside_a_branch(
    cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32], c: Workgroup[U32]
) -> None:
    if cx.num_groups > 0:
        c[cx.local_id] = data[cx.global_id]
        cx.barrier()
        data[cx.global_id] = c[GROUP - 1 - cx.local_id]
    turn_twice(cx, data, a, b)


@kernel
def without_a_barrier_between(cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32]) -> None:
    a[cx.local_id] = data[cx.global_id]
    cx.barrier()
    mine = a[GROUP - 1 - cx.local_id]
    b[cx.local_id] = mine + 1
    cx.barrier()
    data[cx.global_id] = b[GROUP - 1 - cx.local_id]


@kernel
def one_comes_back(cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32]) -> None:
    a[cx.local_id] = data[cx.global_id]
    cx.barrier()
    b[cx.local_id] = a[GROUP - 1 - cx.local_id]
    cx.barrier()
    data[cx.global_id] = a[cx.local_id] * 100 + b[cx.local_id]


@kernel
def around_a_loop(cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32]) -> None:
    for _ in dynamic_range(U32(0), U32(3)):
        a[cx.local_id] = data[cx.global_id]
        cx.barrier()
        mine = a[GROUP - 1 - cx.local_id]
        cx.barrier()
        b[cx.local_id] = mine + 1
        cx.barrier()
        data[cx.global_id] = b[(cx.local_id + 1) % GROUP]
        cx.barrier()


@kernel
def of_two_types(cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[F32]) -> None:
    a[cx.local_id] = data[cx.global_id]
    cx.barrier()
    mine = a[GROUP - 1 - cx.local_id]
    cx.barrier()
    b[cx.local_id] = F32(mine)
    cx.barrier()
    if b[GROUP - 1 - cx.local_id] > 3.0:
        data[cx.global_id] = mine


@kernel
def counted_and_loaded_for_all(cx: Invocation, data: Storage[U32], a: Workgroup[U32], b: Workgroup[U32]) -> None:
    if cx.local_id == 0:
        a[0] = data[cx.global_id]
    if cx.load_uniform(a, 0) < 1000:
        b[cx.local_id] = U32(0)
        cx.barrier()
        b.atomic_add(data[cx.global_id] % GROUP, U32(1))
        cx.barrier()
        data[cx.global_id] = b[cx.local_id]


@kernel
def with_names_that_join_alike(
    cx: Invocation,
    data: Storage[U32],
    a: Workgroup[U32],
    a_or_b: Workgroup[U32],
    b_or_c: Workgroup[U32],
    c: Workgroup[U32],
) -> None:
    a[cx.local_id] = data[cx.global_id]
    a_or_b[cx.local_id] = a[cx.local_id] + 1
    data[cx.global_id] = a_or_b[cx.local_id]
    cx.barrier()
    b_or_c[cx.local_id] = data[cx.global_id]
    c[cx.local_id] = b_or_c[cx.local_id] + 1
    data[cx.global_id] = c[cx.local_id]


def workgroup_memories(program: ir.Program) -> list[ir.Memory]:
    return [memory for memory in program.memories if memory.space is ir.Space.WORKGROUP]


def launched(subject: Two, data: Buffer[U32]) -> Launch:
    return subject.launch(Grid(4, GROUP), data, Workgroup(U32, GROUP), Workgroup(U32, 2 * GROUP))


DATA = Buffer("data", U32, 4 * GROUP, Role.INOUT)


@pytest.mark.parametrize("subject", [one_after_the_other, inside_a_branch], ids=lambda k: k.name)
def test_they_share_where_a_barrier_parts_them(subject: Two) -> None:
    program = specialise(launched(subject, DATA)).program
    assert [memory.name for memory in workgroup_memories(program)] == ["a", "b"]
    (shared,) = workgroup_memories(overlaid(program))
    assert (shared.name, shared.length) == ("a_or_b", 2 * GROUP)


def test_what_is_shared_has_a_name_of_its_own() -> None:
    program = specialise(with_names_that_join_alike.launch(Grid(4, GROUP), DATA, *[Workgroup(U32, GROUP)] * 4)).program
    assert [memory.name for memory in workgroup_memories(overlaid(program))] == ["a_or_b_or_c", "a_or_b_or_c_"]


def test_the_branch_in_which_most_end_is_looked_at() -> None:
    """Whatever was in use before another one. If one memory alone ends in it, it is no reason to part the others."""
    memories = [Workgroup(U32, GROUP), Workgroup(U32, GROUP), Workgroup(U32, GROUP)]
    for subject, names in ((inside_one_of_two_branches, {"a_or_b", "c"}), (beside_a_branch, {"a", "c_or_b"})):
        program = specialise(subject.launch(Grid(4, GROUP), DATA, *memories)).program
        assert {memory.name for memory in workgroup_memories(overlaid(program))} == names
        assert packed_bytes(program) == 2 * 4 * GROUP


@pytest.mark.parametrize(
    ("subject", "words"),
    [(one_after_the_other, 2), (inside_a_branch, 2), (without_a_barrier_between, 3), (one_comes_back, 3),
     (around_a_loop, 3)],
)  # fmt: skip
def test_memory_counts_once_where_it_is_shared(subject: Two, words: int) -> None:
    assert packed_bytes(specialise(launched(subject, DATA)).program) == words * 4 * GROUP


def test_memories_that_share_may_each_be_as_large_as_all_may(target: str) -> None:
    """On a target that overlays none, too."""
    on = target_of(target)
    tile = Workgroup(U32, on.info.limits.workgroup_bytes // 4)
    data = np.arange(4 * GROUP, dtype=np.uint32)
    on.run(Schedule((DATA,), (one_after_the_other.launch(Grid(4, GROUP), DATA, tile, tile),)), {"data": data})
    places = np.arange(4 * GROUP).reshape(4, GROUP)[:, ::-1]
    assert np.array_equal(data, np.roll(places, -1, axis=1).ravel() + 1)


@pytest.mark.parametrize("subject", [without_a_barrier_between, one_comes_back, around_a_loop], ids=lambda k: k.name)
def test_they_lie_apart_where_they_may_meet(subject: Two) -> None:
    program = specialise(launched(subject, DATA)).program
    assert len(workgroup_memories(overlaid(program))) == 2


def test_types_do_not_mix() -> None:
    launch = of_two_types.launch(Grid(4, GROUP), DATA, Workgroup(U32, GROUP), Workgroup(F32, GROUP))
    assert len(workgroup_memories(overlaid(specialise(launch).program))) == 2


def test_what_is_counted_in_is_not_what_is_loaded_for_all() -> None:
    """WGSL's uniform load takes no atomics, so one memory cannot be both."""
    program = specialise(launched(counted_and_loaded_for_all, DATA)).program
    assert len(workgroup_memories(overlaid(program))) == 2


@pytest.mark.parametrize(
    "subject",
    [
        one_after_the_other, inside_a_branch, without_a_barrier_between, one_comes_back, around_a_loop,
        counted_and_loaded_for_all,
    ],
    ids=lambda k: k.name,
)  # fmt: skip
def test_the_result_is_the_same(subject: Two, target: str) -> None:
    schedule = Schedule((DATA,), (launched(subject, DATA),))
    start = np.arange(4 * GROUP, dtype=np.uint32) * 7
    expected, found = start.copy(), start.copy()
    target_of("python").run(schedule, {"data": expected})
    target_of(target).run(schedule, {"data": found})
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(expected, start)
