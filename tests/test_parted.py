"""Partitioning an array into buckets on every target, and sorts over ranks that part first: against one sort of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusort
from gpusort.algos.fit import fitted_partition
from gpusort.algos.partition import BUCKETS, partition
from gpusort.algos.sizes import LARGEST_U32
from gpusort.external.order import words_of
from gpusort.multi import sample_sort
from gpusort.multi.driving import Interrupts, drive_all, drive_one
from gpusort.multi.memory import Mark
from gpusort.multi.sample_sort import sort_by_samples
from gpusort.multi.shard import Work, merged
from gpusort.targets.base import Target
from gpusort.targets.registry import target as target_of
from gpusort.targets.simulator.target import Simulator
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from gpusort.types.params import ScanPolicy
from gpusort.types.specs import Memory
from tests.covering import examples, few_cases
from tests.reference import Array, assert_same_bits, sample
from tests.test_multi import CountingMemory, Threads, Traffic, of_all_ranks, rotated

SMALL = ScanPolicy(group_size=32, items=7, subgroups=True)
TILE = 32 * 7


@pytest.fixture(autouse=True)
def few_elements_suit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_LEAST": 1, "_SAMPLES": 256, "_POLICY": SMALL}.items():
        monkeypatch.setattr(sample_sort, name, value)


@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
def test_every_element_finds_its_bucket(target: str, dtype: str) -> None:
    if target == "cpu" and dtype != "f4":
        pytest.skip("each compiles for seconds there")
    lengths = (1, TILE - 1, TILE, 2 * TILE + 1) if target != "python" else (TILE + 1,)
    require_parted(target_of(target), dtype, lengths)


@pytest.mark.parametrize("lanes", [4, 64])
def test_so_it_does_in_workgroups_of_several_subgroups_and_less_than_one(lanes: int) -> None:
    require_parted(Simulator(lanes), "u4", (TILE + 1,))


def require_parted(runs_it: Target, dtype: str, lengths: tuple[int, ...]) -> None:
    for number, length in enumerate(lengths):
        x = sample(dtype, length, seed=number)
        order = SortOrder.DESCENDING if number % 2 else SortOrder.ASCENDING
        words = words_of(x, order, ranks=False)
        between = np.sort(np.resize(words, BUCKETS - 1))
        expected = np.searchsorted(between, words, side="right")
        counts = np.bincount(expected, minlength=BUCKETS)
        room = counts // (1 + np.arange(BUCKETS) % 2)  # every other bucket is too small
        ends = np.cumsum(room)
        rooms = np.stack([ends - room, ends], axis=1).astype(np.uint32)
        taken, results = np.zeros(BUCKETS, np.uint32), np.zeros(max(1, int(ends[-1])), x.dtype)
        key, unsigned = key_for(dtype), f"u{x.dtype.itemsize}"
        schedule = partition(key, length, results.size, order, fitted_partition(SMALL, key, runs_it.info))
        runs_it.run(
            schedule,
            {
                "data": x.view(unsigned), "between": between, "rooms": rooms.reshape(-1), "taken": taken,
                "results": results.view(unsigned),
            },
        )  # fmt: skip
        np.testing.assert_array_equal(taken, counts)
        for bucket, (start, stop) in enumerate(rooms.tolist()):
            found = np.sort(results[start:stop].view(unsigned)).tolist()
            whole = np.sort(x[expected == bucket].view(unsigned)).tolist()
            assert found == whole if len(found) == len(whole) else not set(found) - set(whole)


def test_as_many_elements_are_parted_as_indices_count() -> None:
    key = key_for("u4")
    assert partition(key, LARGEST_U32, LARGEST_U32, SortOrder.ASCENDING, SMALL).launches
    for length, room in ((LARGEST_U32 + 1, 1), (1, LARGEST_U32 + 1)):
        with pytest.raises(gpusort.InvalidArgumentError, match="expected no more than 4294967295 elements in all"):
            partition(key, length, room, SortOrder.ASCENDING, SMALL)


class DeviceLike(CountingMemory):
    """The host's memory, as if what is started there went on by itself."""

    where = Memory.CUDA

    def target(self) -> Target:
        return target_of("simulator")


def sorted_over(
    parts: Sequence[Array], sizes: Sequence[int] | None = None, descending: bool = False, traffic: Traffic | None = None
) -> list[Array]:
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    work, memory = Work(parts[0].dtype, order), DeviceLike(traffic or Traffic())
    lengths = [one.size for one in parts]
    shards = [sort_by_samples(work, memory, (one,), rank, lengths, sizes or lengths) for rank, one in enumerate(parts)]
    found = [merged(work, runs)[0] for runs in drive_all(shards, [memory] * len(parts))]
    assert [one.size for one in found] == list(sizes or lengths)
    return found


def test_each_rank_by_a_communicator() -> None:
    parts = [sample("f4", 2000 + rank, seed=rank) for rank in range(3)]
    lengths = [one.size for one in parts]
    work, memory = Work(parts[0].dtype), DeviceLike(Traffic())

    def sorted_by(comm: Threads) -> Array:
        shard = sort_by_samples(work, memory, (parts[comm.rank],), comm.rank, lengths, lengths)
        return merged(work, drive_one(shard, comm, memory, Interrupts()))[0]

    found = of_all_ranks(sorted_by, len(parts))
    assert [one.size for one in found] == lengths
    assert_same_bits(np.concatenate(found), gpusort.sort(np.concatenate(parts)))


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_ranks_together_have_the_whole(dtype: str, ranks: int) -> None:
    rng = np.random.default_rng(ranks)
    for round_, kind in enumerate(("even", "any", "ties", "apart", "own sizes")):
        lengths = [2000] * ranks if kind == "even" else rng.integers(1, 3000, ranks).tolist()
        parts = np.split(sample(dtype, sum(lengths), seed=round_), np.cumsum(lengths)[:-1])
        if kind == "ties":
            parts = [one[:1].repeat(one.size) for one in parts]
        if kind == "apart":
            parts = np.split(np.sort(np.concatenate(parts))[::-1].copy(), np.cumsum(lengths)[:-1])
        whole = np.concatenate(parts)
        sizes = [0] * (ranks - 1) + [whole.size] if kind == "own sizes" else None
        for descending in (False, True):
            found = sorted_over(parts, sizes, descending)
            assert_same_bits(np.concatenate(found), gpusort.sort(whole, descending=descending))


@attrs.frozen
class LateMemory(DeviceLike):
    """As if each copy were done no sooner than whom it is for waits for it."""

    late: dict[object, tuple[Array, Array]] = attrs.field(factory=dict[object, tuple[Array, Array]])
    awaited: list[object] = attrs.field(factory=list[object])

    def copy(self, target: Array, source: Array, after: tuple[Mark, Mark]) -> Mark:
        mark: Any = object()
        self.late[mark] = target, source
        return cast(Mark, mark)

    def wait(self, mark: Mark) -> None:
        self.awaited.append(mark)
        if mark in self.late:
            np.copyto(*self.late.pop(mark))


def test_copies_are_waited_for_by_both_ranks() -> None:
    """By the one that reads what has come, and by the one whose memory is read."""
    parts = [np.random.default_rng(rank).integers(0, 1 << 32, 20_000, dtype=np.uint32) for rank in range(3)]
    lengths, work = [part.size for part in parts], Work(parts[0].dtype)
    memories = [LateMemory(Traffic()) for _ in parts]
    shards = [
        sort_by_samples(work, memory, (part,), rank, lengths, lengths)
        for rank, (part, memory) in enumerate(zip(parts, memories, strict=True))
    ]
    found = [merged(work, runs)[0] for runs in drive_all(shards, memories)]
    assert_same_bits(np.concatenate(found), np.sort(np.concatenate(parts)))
    assert not any(memory.late for memory in memories)
    waits = Counter(mark for memory in memories for mark in set(memory.awaited))
    assert len(waits) > 3 * 2  # of each rank several buckets
    assert {*waits.values()} == {2}


def test_keys_of_ones_own_are_merged() -> None:
    """Buckets are parted by the dtype's own words."""
    key = rotated(7)
    parts = [np.random.default_rng(rank).integers(0, 1 << 32, 3000, dtype=np.uint32) for rank in range(2)]
    lengths, memory = [3000, 3000], DeviceLike(Traffic())
    work = Work(parts[0].dtype, key=key)
    shards = [sort_by_samples(work, memory, (one,), rank, lengths, lengths) for rank, one in enumerate(parts)]
    found = [merged(work, runs)[0] for runs in drive_all(shards, [memory] * 2)]
    assert_same_bits(np.concatenate(found), gpusort.sort(np.concatenate(parts), key=key))


@pytest.mark.parametrize("step", [2, -1])
def test_parts_with_a_step(step: int) -> None:
    parts = [sample("f4", 3000, seed=rank)[::step] for rank in range(2)]
    found = sorted_over(parts)
    assert_same_bits(np.concatenate(found), gpusort.sort(np.concatenate(parts)))


def test_elements_travel_once_and_a_few_twice() -> None:
    parts = [np.random.default_rng(rank).integers(0, 1 << 32, 40_000, dtype=np.uint32) for rank in range(2)]
    traffic = Traffic()
    found = sorted_over(parts, traffic=traffic)
    assert_same_bits(np.concatenate(found), np.sort(np.concatenate(parts)))
    half = parts[0].nbytes
    assert 0.9 * half < traffic.moved_bytes < 1.2 * half
    assert traffic.messages <= 7  # three pieces each way, and what evens out


def test_what_samples_do_not_show() -> None:
    """Every element that is looked at is small, and all others are equal and large: all of them are one bucket's."""
    parts = [np.full(1 << 14, 1 << 20, np.uint32) for _ in range(2)]
    for rank, one in enumerate(parts):
        one[:: (1 << 14) // 256] = np.arange(256) * 2 + rank
    found = sorted_over(parts)
    assert_same_bits(np.concatenate(found), np.sort(np.concatenate(parts)))


def test_more_room_than_can_be_counted_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_sort, "LARGEST_U32", 1000)
    traffic = Traffic()
    parts = [sample("u4", 900, seed=rank) for rank in range(2)]
    assert_same_bits(np.concatenate(sorted_over(parts, traffic=traffic)), np.sort(np.concatenate(parts)))
    assert traffic.messages == 2  # what merging exchanges


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=40), min_size=2, max_size=4), st.booleans())
def test_any_ranks(lists: list[list[int]], descending: bool) -> None:
    parts = [np.array(one, np.int16) for one in lists]
    found = sorted_over(parts, descending=descending)
    assert_same_bits(np.concatenate(found), gpusort.sort(np.concatenate(parts), descending=descending))


def test_a_bucket_that_overflows_by_one_is_not_held() -> None:
    most = np.full((2, BUCKETS), 3)
    plan = sample_sort._Plan(np.empty(0), BUCKETS // 2, most)
    sizes = [2 * most.size, 2 * most.size]
    assert plan.has_held(most, sizes)
    for rank, bucket in ((0, 0), (1, BUCKETS - 1)):
        counts = most.copy()
        counts[rank, bucket] += 1
        assert not plan.has_held(counts, sizes)
