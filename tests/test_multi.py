"""Sorts over several ranks, compared with sorting all together: in lockstep, and each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusort
from gpusort import multi
from gpusort.external.agreed_cuts import HostArray, held_cuts
from gpusort.multi.driving import Traffic, drive_all
from gpusort.multi.memory import DeviceArray, HostMemory
from gpusort.multi.shard import sort_shard
from gpusort.multi.sorting import Sizes, sizes_of
from gpusort.multi.work import Work
from tests.reference import Array, assert_same_bits, sample

LENGTHS = [(5,), (0, 0), (1, 0, 1), (0, 17, 3), (300, 1, 0, 999, 50)]


def parts_of(dtype: str, lengths: Sequence[int], seed: int = 0) -> list[Array]:
    whole = sample(dtype, sum(lengths), seed)
    return np.split(whole, np.cumsum(lengths)[:-1])


@pytest.mark.parametrize(
    ("dtype", "sizes"), [("u1", "balanced"), ("f4", "kept"), ("M8[s]", "balanced"), (">f4", "kept")]
)
def test_ranks_together_have_the_whole(dtype: str, sizes: Sizes) -> None:
    for number, lengths in enumerate(LENGTHS):
        parts = parts_of(dtype, lengths, seed=number)
        whole = np.concatenate(parts)
        wanted = sizes_of(sizes, lengths)
        for descending in (False, True):
            stable = (number % 2 == 0) == descending
            found = multi.sort(parts, descending=descending, stable=stable, sizes=sizes)
            assert [part.size for part in found] == wanted
            assert_same_bits(np.concatenate(found), gpusort.sort(whole, descending=descending, stable=stable))
            indices = multi.argsort(parts, descending=descending, sizes=sizes)
            np.testing.assert_array_equal(np.concatenate(indices), gpusort.argsort(whole, descending=descending))
            values = [np.arange(part.size, dtype=np.uint16) for part in parts]
            keys, moved = multi.sort_by_key(parts, values, descending=descending, sizes=sizes)
            expected = gpusort.sort_by_key(whole, np.concatenate(values), descending=descending)
            assert_same_bits(np.concatenate(keys), expected[0])
            np.testing.assert_array_equal(np.concatenate(moved), expected[1])


@pytest.mark.parametrize("kind", ["one value", "two values", "sorted", "reversed", "all NaN", "apart"])
def test_adverse_data(kind: str) -> None:
    size = 6000
    ramp = np.arange(3 * size, dtype=np.float32)
    data = {
        "one value": np.full(3 * size, 2.0, np.float32), "two values": (ramp % 2), "sorted": ramp,
        "reversed": ramp[::-1].copy(), "all NaN": np.full(3 * size, np.nan, np.float32), "apart": np.roll(ramp, size),
    }[kind]  # fmt: skip
    parts = np.split(data, 3)
    found = multi.sort(parts)
    assert [part.size for part in found] == [size] * 3
    assert_same_bits(np.concatenate(found), gpusort.sort(data))
    np.testing.assert_array_equal(np.concatenate(multi.argsort(parts)), gpusort.argsort(data))


def test_sizes_of_ones_own() -> None:
    parts = parts_of("i4", (40, 60, 0))
    found = multi.sort(parts, sizes=[0, 1, 99])
    assert [part.size for part in found] == [0, 1, 99]
    assert_same_bits(np.concatenate(found), np.sort(np.concatenate(parts)))


@attrs.frozen
class Threads:
    """A communicator of threads."""

    rank: int
    board: list[Any]
    barrier: threading.Barrier

    @property
    def size(self) -> int:
        return len(self.board)

    def gather(self, values: HostArray) -> list[HostArray]:
        return self._told(values)

    def exchange(self, pieces: Sequence[DeviceArray], received: Sequence[DeviceArray]) -> None:
        everyones: list[Any] = self._told(pieces)
        for other, room in enumerate(received):
            np.copyto(np.asarray(room), np.asarray(everyones[other][self.rank]))
        self.barrier.wait()

    def _told(self, mine: Any) -> list[Any]:
        self.board[self.rank] = mine
        self.barrier.wait()
        found = list(self.board)
        self.barrier.wait()
        return found


def of_all_ranks(work: Callable[[Threads], Any], ranks: int) -> list[Any]:
    board: list[Any] = [None] * ranks
    barrier = threading.Barrier(ranks, timeout=60)
    results: list[Any] = [None] * ranks

    def run(rank: int) -> None:
        try:
            results[rank] = work(Threads(rank, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_a_process_a_rank(ranks: int) -> None:
    parts = parts_of("f8", [200 + 10 * rank for rank in range(ranks)])
    whole = np.concatenate(parts)
    found = of_all_ranks(lambda comm: multi.sort_shard(parts[comm.rank], comm), ranks)
    assert [part.size for part in found] == [part.size for part in parts]
    assert_same_bits(np.concatenate(found), gpusort.sort(whole))
    indices = of_all_ranks(lambda comm: multi.argsort_shard(parts[comm.rank], comm, sizes="balanced"), ranks)
    np.testing.assert_array_equal(np.concatenate(indices), gpusort.argsort(whole))
    pairs = of_all_ranks(lambda comm: multi.sort_by_key_shard(parts[comm.rank], parts[comm.rank], comm), ranks)
    for keys, values in pairs:
        assert_same_bits(keys, values)


def errors_of(work: Callable[[Threads], Any], ranks: int) -> list[str]:
    """What each rank's call raises, of gpusort's errors."""

    def told(comm: Threads) -> str:
        try:
            work(comm)
        except gpusort.GpusortError as error:
            return str(error)
        return ""

    return of_all_ranks(told, ranks)


OTHERWISE: dict[str, Callable[[Array, Threads], Any]] = {
    "dtype": lambda x, comm: multi.sort_shard(x.astype("f8" if comm.rank else "f4"), comm),
    "byte order": lambda x, comm: multi.sort_shard(x.astype(">f4" if comm.rank else "<f4"), comm),
    "order": lambda x, comm: multi.sort_shard(x, comm, descending=comm.rank == 0),
    "stable": lambda x, comm: multi.sort_shard(x, comm, stable=comm.rank == 0),
    "sizes": lambda x, comm: multi.sort_shard(x, comm, sizes="kept" if comm.rank else [10, 10, 10]),
    "values": lambda x, comm: multi.sort_by_key_shard(x, x.astype("f8" if comm.rank else "f4"), comm),
    "function": lambda x, comm: multi.sort_shard(x, comm) if comm.rank else multi.argsort_shard(x, comm),
}


@pytest.mark.parametrize("call", OTHERWISE.values(), ids=OTHERWISE)
def test_ranks_that_are_called_otherwise_are_told_so(call: Callable[[Array, Threads], Any]) -> None:
    """They exchanged bytes that meant something else to the others."""
    parts = parts_of("f4", (10, 10, 10))
    for told in errors_of(lambda comm: call(parts[comm.rank], comm), 3):
        assert "the same arguments but for the elements" in told


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 5), np.float32), np.zeros(3, np.complex64), [object()]], ids=["2-D", "complex", "objects"]
)
def test_a_rank_that_refuses_leaves_nobody_waiting(wrong: object) -> None:
    parts = [np.zeros(10, np.float32), wrong, np.zeros(10, np.float32)]
    told = errors_of(lambda comm: multi.sort_shard(parts[comm.rank], comm), 3)
    assert told[0] == told[2] == "communicator: rank 1 has refused its arguments"
    assert told[1].startswith("x: ")


@pytest.mark.parametrize(
    "wrong",
    [{"descending": "yes"}, {"stable": 2}, {"key": 3}, {"sizes": None}, {"sizes": "even"}, {"sizes": [9.5]}],
    ids=str,
)
def test_a_rank_that_refuses_an_argument_leaves_nobody_waiting(wrong: dict[str, Any]) -> None:
    x = np.zeros(10, np.float32)
    told = errors_of(lambda comm: multi.sort_shard(x, comm, **(wrong if comm.rank else {})), 2)
    assert told[0] == "communicator: rank 1 has refused its arguments"
    assert told[1].startswith(f"{next(iter(wrong))}: ")


@pytest.mark.parametrize("ranks", [2, 16])
def test_what_ranks_ask_of_each_other(ranks: int) -> None:
    """No element travels more than once, and what is agreed on is little: docs/scale.md counts on it."""
    each = 1 << 12
    parts = np.split(np.random.default_rng(1).integers(0, 1 << 32, ranks * each, dtype=np.uint32), ranks)
    memories, traffic = [HostMemory() for _ in parts], Traffic()
    work = Work(np.dtype(np.uint32))
    shards = [
        sort_shard(work, memory, (part,), rank, [each] * ranks, [each] * ranks)
        for rank, (part, memory) in enumerate(zip(parts, memories, strict=True))
    ]
    found = drive_all(shards, memories, traffic)
    assert_same_bits(
        np.concatenate([np.asarray(columns[0]) for columns in found]), np.sort(np.concatenate(parts))
    )  # fmt: skip
    expected = (ranks - 1) * each * 4  # uniform keys: a rank keeps its share
    assert abs(traffic.moved_bytes / expected - 1) < 0.05
    assert traffic.messages <= ranks * (ranks - 1)
    assert traffic.gathered_bytes < ranks * ranks * 512 * 8 * 4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=1, max_size=5), st.data())
def test_cuts_are_exact(runs: list[list[int]], data: st.DataObject) -> None:
    held = [np.sort(np.array(run, np.uint32)) for run in runs]
    total = sum(run.size for run in held)
    first = data.draw(st.integers(0, total))
    cuts = [*held_cuts(held, [first, total - first], lambda words: words)]
    order = sorted((int(word), run, at) for run, words in enumerate(held) for at, word in enumerate(words))
    expected = [sum(run == which for _, run, _ in order[:first]) for which in range(len(held))]
    assert cuts[1].tolist() == expected


def test_cuts_of_long_runs_take_rounds() -> None:
    rng = np.random.default_rng(2)
    held = [np.sort(rng.integers(0, values, 100_000).astype(np.uint64)) for values in (10, 1 << 40, 3000)]
    asked: list[int] = []

    def words(elements: HostArray) -> HostArray:
        asked.append(elements.size)
        return elements

    cuts = held_cuts(held, [123_456, 1, 176_543], words)
    together = np.concatenate(held)
    order = np.argsort(together, kind="stable")
    for row, rank in zip(cuts, (0, 123_456, 123_457, 300_000), strict=True):
        np.testing.assert_array_equal(row, np.bincount(order[:rank] // 100_000, minlength=3))
    assert sum(asked) < 30_000


def test_wrong_uses() -> None:
    x = np.arange(4)
    with pytest.raises(gpusort.UnsupportedTypeError, match="parts: expected a list of arrays"):
        multi.sort(cast(Any, x))
    with pytest.raises(gpusort.InvalidArgumentError, match="parts: expected one array or more"):
        multi.sort([])
    with pytest.raises(gpusort.InvalidArgumentError, match=r"parts\[1\]: expected int64 on host"):
        multi.sort([x, x.astype(np.int8)])
    with pytest.raises(gpusort.InvalidArgumentError, match=r"parts\[0\]: expected an array of one dimension"):
        multi.sort([x.reshape(2, 2)])
    with pytest.raises(gpusort.InvalidArgumentError, match="sizes: expected 2 numbers that add up to 8"):
        multi.sort([x, x], sizes=[4, 5])
    with pytest.raises(gpusort.InvalidArgumentError, match="sizes: expected 'kept', 'balanced' or numbers"):
        multi.sort([x, x], sizes=cast(Any, "even"))
    with pytest.raises(gpusort.InvalidArgumentError, match="values: expected 2 arrays, one for each of keys, found 1"):
        multi.sort_by_key([x, x], [x])
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"values\[1\]: expected one for each key"):
        multi.sort_by_key([x, x], [x, x[:2]])
    for call in (lambda: multi.sort([x.astype(complex)]), lambda: multi.argsort([x.astype(complex)])):
        with pytest.raises(
            gpusort.UnsupportedTypeError, match=r"parts\[0\]: cannot order elements of dtype complex128"
        ):
            call()
    with pytest.raises(gpusort.UnsupportedTypeError, match="communicator: expected cupy's NcclCommunicator"):
        multi.sort_shard(x, object())
