"""Sorts over several ranks, compared with sorting all together: in lockstep, and each in a thread of its own."""

from __future__ import annotations

import ctypes
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, cast

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusort
from gpusort import multi
from gpusort.api.call import forget_plans
from gpusort.arrays import cuda as cuda_arrays
from gpusort.external import cuts
from gpusort.external.cuts import held_cuts
from gpusort.multi import communicators
from gpusort.multi.communicators import NcclCommunicator
from gpusort.multi.driving import drive_all
from gpusort.multi.memory import CudaMemory, Mark, Memory
from gpusort.multi.shard import Gather, IndexWork, PairsWork, Shard, Swap, Work, merged, sort_shard
from gpusort.multi.sorting import Sizes, sizes_of
from gpusort.targets import registry as targets
from gpusort.targets.cuda.target import CudaTarget
from gpusort.types.indices import SortOrder
from gpusort.types.keys import RankKey, UnsignedKey
from gpusort.types.scalars import U8, U32
from tests import fake_cupy
from tests.array_classes import forget_classes
from tests.covering import examples, few_cases
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

    def gather(self, values: Array) -> list[Array]:
        return self._told(values)

    def exchange(self, pieces: Sequence[Array], received: Sequence[Array]) -> None:
        everyones: list[Any] = self._told(pieces)
        assert len(pieces[self.rank]) == len(received[self.rank]) == 0
        for other, room in enumerate(received):
            room[...] = everyones[other][self.rank].reshape(room.shape)
        self.barrier.wait()

    def _told(self, mine: Any) -> list[Any]:
        self.board[self.rank] = mine
        self.barrier.wait()
        found = list(self.board)
        self.barrier.wait()
        return found


def of_all_ranks(work: Callable[[Threads], Any], ranks: int, seconds: float = 60) -> list[Any]:
    board: list[Any] = [None] * ranks
    barrier = threading.Barrier(ranks, timeout=seconds)
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


class ProcessGroupOfThreads:
    """Of torch.distributed, as much as is used: a thread is a process, whose number is another one than its rank."""

    def __init__(self, comm: Threads, mail: dict[tuple[int, int], queue.Queue[Array]]) -> None:
        self.comm, self.mail = comm, mail
        self.rank, self.size = lambda: comm.rank, lambda: comm.size

    @classmethod
    def module(cls) -> ModuleType:
        torch = ModuleType("torch")
        distributed = SimpleNamespace(
            get_global_rank=cls.number, all_gather=cls.gathered, isend="send", irecv="receive",
            P2POp=cls.message, batch_isend_irecv=cls.sent, get_backend_config=cls.backends,
        )  # fmt: skip
        vars(torch).update(from_numpy=np.asarray, as_tensor=cls.tensor, distributed=distributed)
        vars(torch).update(empty_like=np.empty_like, stack=cls.stacked)
        return torch

    @staticmethod
    def backends(_: object) -> str:
        return "cpu:gloo,cuda:gloo"

    @staticmethod
    def tensor(values: Array, device: str) -> Array:
        assert device == "cpu"
        return values

    @staticmethod
    def stacked(arrays: list[Array]) -> SimpleNamespace:
        return SimpleNamespace(cpu=lambda: SimpleNamespace(numpy=lambda: np.stack(arrays)))

    @staticmethod
    def number(_: object, rank: int) -> int:
        return rank + 100

    @staticmethod
    def message(*told: object) -> tuple[object, ...]:
        return told

    @staticmethod
    def gathered(
        found: list[Array], values: Array, group: ProcessGroupOfThreads, async_op: Literal[True]
    ) -> SimpleNamespace:
        def wait() -> None:
            for array, told in zip(found, group.comm.gather(values), strict=True):
                array[:] = told  # of one length, else it raises

        looks = iter([False, False, True])
        return SimpleNamespace(is_completed=lambda: next(looks), wait=wait)

    @staticmethod
    def sent(messages: Sequence[tuple[str, Array, int, ProcessGroupOfThreads]]) -> list[Any]:
        def receive(array: Array, letters: queue.Queue[Array]) -> None:
            array[:] = letters.get(timeout=20)

        waits: list[Any] = []
        for what, array, there, group in messages:
            assert array.dtype == np.uint8
            if what == "send":
                group.mail[group.comm.rank, there - 100].put(array.copy())
            else:
                letters = group.mail[there - 100, group.comm.rank]
                waits.append(SimpleNamespace(wait=partial(receive, array, letters)))
        return waits


def test_a_process_group_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ProcessGroupOfThreads.module())
    parts = parts_of("f8", (0, 300, 5))
    mail = {(one, other): queue.Queue[Array]() for one in range(3) for other in range(3)}
    values = [np.arange(part.size, dtype=np.uint16) for part in parts]

    def work(comm: Threads) -> Any:
        group = ProcessGroupOfThreads(comm, mail)
        return multi.sort_by_key_shard(parts[comm.rank], values[comm.rank], group, sizes="balanced")

    keys, moved = (np.concatenate(found) for found in zip(*of_all_ranks(work, 3), strict=True))
    expected = gpusort.sort_by_key(np.concatenate(parts), np.concatenate(values))
    assert_same_bits(keys, expected[0])
    np.testing.assert_array_equal(moved, expected[1])


class Nccl:
    """What NCCL does with addresses, between threads."""

    def __init__(self, comm: Threads) -> None:
        self.comm = comm
        self.rank_id, self.size = lambda: comm.rank, lambda: comm.size
        self.sent: dict[int, bytes] = {}
        self.wanted: list[tuple[int, int, int]] = []

    def allGather(self, given: int, out: int, size: int, kind: int, stream: int) -> None:
        for rank, found in enumerate(self.comm.gather(cast(Any, ctypes.string_at(given, size)))):
            ctypes.memmove(out + rank * size, cast(Any, found), size)

    def send(self, address: int, size: int, kind: int, other: int, stream: int) -> None:
        self.sent[other] = ctypes.string_at(address, size)

    def recv(self, address: int, size: int, kind: int, other: int, stream: int) -> None:
        self.wanted.append((address, size, other))

    def finish(self) -> None:
        everyones: Any = self.comm.gather(cast(Any, self.sent))
        for address, size, other in self.wanted:
            assert len(everyones[other][self.comm.rank]) == size
            ctypes.memmove(address, everyones[other][self.comm.rank], size)


def test_what_nccl_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy.put_in_place(monkeypatch)
    fake_cupy.forget()
    cuda: Any = sys.modules["cupy"].cuda
    cuda.nccl = SimpleNamespace(groupStart=lambda: None, groupEnd=lambda: None)

    def work(comm: Threads) -> Any:
        nccl = Nccl(comm)
        communicator = NcclCommunicator(nccl)
        told = communicator.gather(np.full(comm.rank + 1, comm.rank, np.uint8))
        told += communicator.gather(np.full(200 * comm.rank, 9, np.uint8))  # more than the first collective takes
        # To each rank as many elements as its number, which say from where they come.
        pieces: Any = [fake_cupy.asarray(np.full(other, 10 * comm.rank + other, np.int32)) for other in range(3)]
        received: Any = [fake_cupy.ndarray((comm.rank,), np.dtype(np.int32)) for _ in range(3)]
        communicator.exchange(pieces, received)
        nccl.finish()
        return [one.tolist() for one in told], [one.get().tolist() for one in received]

    for rank, (told, received) in enumerate(of_all_ranks(work, 3)):
        assert told == [[0], [1, 1], [2, 2, 2], [], [9] * 200, [9] * 400]
        assert received == [[10 * other + rank] * rank for other in range(3)]


@pytest.fixture(name="cards")
def stand_in_for_two_cards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def copy(target: int, there: int, source: int, here: int, size: int, stream: int) -> None:
        assert fake_cupy.current_device == [there]
        fake_cupy.log.append(f"copy {here} to {there}")
        ctypes.memmove(target, source, size)

    def forget() -> None:
        fake_cupy.forget()
        forget_classes()
        cuda_arrays.device_count.cache_clear()
        forget_plans()

    fake_cupy.put_in_place(monkeypatch)
    runtime: Any = sys.modules["cupy"].cuda.runtime
    runtime.memcpyPeerAsync, runtime.deviceCanAccessPeer = copy, max
    runtime.deviceEnablePeerAccess = fake_cupy.log.append
    forget()
    monkeypatch.setattr(targets, "_opened", {"cuda": CudaTarget()})
    yield
    forget()


@pytest.mark.usefixtures("cards")
def test_arrays_on_several_devices_and_several_on_one() -> None:
    hosts, devices = parts_of("i4", (5, 0, 4)), (0, 1, 0)
    parts: list[Any] = [fake_cupy.on_card(host, device) for host, device in zip(hosts, devices, strict=True)]
    whole = np.concatenate(hosts)

    def joined(found: list[Any]) -> Array:
        assert [part.data.device_id for part in found] == list(devices)
        return np.concatenate([part.get() for part in found])

    assert_same_bits(joined(multi.sort(parts, descending=True)), gpusort.sort(whole, descending=True))
    assert "copy 0 to 0" in fake_cupy.log
    keys, values = multi.sort_by_key(parts, parts, sizes=[2, 5, 2])
    assert {"copy 0 to 1", "copy 0 to 0"} <= {*fake_cupy.log}
    assert_same_bits(joined(keys), joined(values))


@attrs.frozen
class ThreadsOfACard(Threads):
    """Whose arrays are on one card, as NCCL's must be."""

    def exchange(self, pieces: Sequence[Any], received: Sequence[Any]) -> None:
        everyones: list[Any] = self._told([piece.get() for piece in pieces])
        for other, room in enumerate(received):
            come = everyones[other][self.rank]
            assert come.nbytes == room.nbytes
            ctypes.memmove(room.data.ptr, come.ctypes.data, come.nbytes)
        self.barrier.wait()


@pytest.mark.usefixtures("cards")
def test_processes_that_share_a_device() -> None:
    hosts = parts_of("i4", (50, 0, 40))
    parts = [fake_cupy.on_card(host, 0) for host in hosts]

    def work(comm: Threads) -> Any:
        card = ThreadsOfACard(comm.rank, comm.board, comm.barrier)
        return multi.sort_shard(parts[comm.rank], card, sizes="balanced").get()

    found = of_all_ranks(work, 3)
    assert [part.size for part in found] == [30, 30, 30]
    assert_same_bits(np.concatenate(found), np.sort(np.concatenate(hosts)))


@pytest.mark.usefixtures("cards")
def test_copies_have_ended_where_memory_is_freed_by_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Any] = [fake_cupy.on_card(host, device) for device, host in enumerate(parts_of("i4", (20, 20)))]

    def interrupted(self: CudaMemory, mark: Mark) -> None:
        fake_cupy.log.clear()
        raise KeyboardInterrupt

    monkeypatch.setattr(CudaMemory, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        multi.sort(parts)
    assert sum(line.startswith("synchronize") for line in fake_cupy.log) == 2


@pytest.mark.parametrize("most", [0, 1, 247, 248, 249, 250, 600])
def test_bytes_that_just_fit_into_the_first_gather(most: int) -> None:
    values = [np.arange(1, 1 + size).astype("u1") for size in (most // 2, most)]
    found = of_all_ranks(
        lambda comm: communicators._gather_bytes(lambda room: np.array(comm.gather(room)), values[comm.rank]), 2
    )
    for rank in found:
        for mine, expected in zip(rank, values, strict=True):
            assert_same_bits(mine, expected)


def errors_of(work: Callable[[Threads], Any], ranks: int) -> list[str]:
    """What each rank's call raises, of gpusort's errors."""

    def told(comm: Threads) -> str:
        try:
            work(comm)
        except gpusort.GpusortError as error:
            return str(error)
        return ""

    return of_all_ranks(told, ranks)


@attrs.frozen
class RotatedKey(UnsignedKey[U32, U32]):
    """Words of which other bits count first, as the key says."""

    by: int = attrs.field(kw_only=True)
    more: tuple[object, ...] = attrs.field(default=(), kw_only=True)

    def to_word(self, element: U32) -> U32:
        return (element << self.by) | (element >> (32 - self.by))

    def from_word(self, word: U32) -> U32:
        return (word >> self.by) | (word << (32 - self.by))


def rotated(by: int, *more: object) -> RotatedKey:
    return RotatedKey(U32, U32, 32, by=by, more=more)


OTHERWISE: dict[str, Callable[[Array, Threads], Any]] = {
    "dtype": lambda x, comm: multi.sort_shard(x.astype("f8" if comm.rank else "f4"), comm),
    "byte order": lambda x, comm: multi.sort_shard(x.astype(">f4" if comm.rank else "<f4"), comm),
    "order": lambda x, comm: multi.sort_shard(x, comm, descending=comm.rank == 0),
    "stable": lambda x, comm: multi.sort_shard(x, comm, stable=comm.rank == 0),
    "key": lambda x, comm: multi.sort_shard(x, comm, key=rotated(3) if comm.rank else None),
    "a key's field": lambda x, comm: multi.argsort_shard(x, comm, key=rotated(3 + comm.rank)),
    "a key's scalar": lambda x, comm: multi.argsort_shard(x, comm, key=rotated(3, U32(comm.rank))),
    "a key's choice": lambda x, comm: multi.argsort_shard(x, comm, key=rotated(3, [*SortOrder][comm.rank > 0])),
    "a key's type": lambda x, comm: multi.argsort_shard(x, comm, key=rotated(3, U8 if comm.rank else U32)),
    "a key's key": lambda x, comm: multi.sort_shard(x, comm, key=RankKey(rotated(3 + comm.rank))),
    "sizes": lambda x, comm: multi.sort_shard(x, comm, sizes="kept" if comm.rank else [10, 10, 10]),
    "values": lambda x, comm: multi.sort_by_key_shard(x, x.astype("f8" if comm.rank else "f4"), comm),
    "function": lambda x, comm: multi.sort_shard(x, comm) if comm.rank else multi.argsort_shard(x, comm),
}


def test_keys_that_are_alike_may_be_made_by_each_rank() -> None:
    parts = parts_of("u4", (10, 0, 30))
    found = of_all_ranks(lambda comm: multi.sort_shard(parts[comm.rank], comm, key=rotated(3, object(), U8, 2.5)), 3)
    assert_same_bits(np.concatenate(found), gpusort.sort(np.concatenate(parts), key=rotated(3)))


@pytest.mark.parametrize("lengths", [(3, 0, 4), (300, 1, 2000)])
@pytest.mark.parametrize("descending", [False, True])
def test_ranks_have_the_order_of_a_key(descending: bool, lengths: tuple[int, ...]) -> None:
    """In which most numbers lie otherwise than in NumPy's."""
    parts, key = parts_of("u4", lengths), rotated(13)
    whole = np.concatenate(parts)
    for stable in (False, True):
        found = multi.sort(parts, key=key, descending=descending, stable=stable)
        assert_same_bits(np.concatenate(found), gpusort.sort(whole, key=key, descending=descending))
    indices = multi.argsort(parts, key=key, descending=descending)
    np.testing.assert_array_equal(np.concatenate(indices), gpusort.argsort(whole, key=key, descending=descending))


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


def outcomes(work: Callable[[Threads], Any], ranks: int) -> list[Any]:
    """What each rank's call returns or raises. One that waits for others for ever breaks the barrier."""

    def told(comm: Threads) -> Any:
        try:
            return work(comm)
        except BaseException as error:
            return error

    return of_all_ranks(told, ranks, seconds=20)


PLACES = {"sort": (PairsWork, "sorted"), "words": (Memory, "to_host"), "room": (Memory, "empty")}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_a_rank_that_fails_leaves_nobody_waiting(
    ranks: int, place: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = parts_of("f4", [100 * rank for rank in range(ranks)])
    owner, name = PLACES[place]
    failing: int | None = None

    def fails(original: Any) -> Any:
        def either(*given: Any, **named: Any) -> Any:
            if threading.get_ident() == failing:
                raise error("boom")
            return original(*given, **named)

        return either

    monkeypatch.setattr(owner, name, fails(getattr(owner, name)))

    def work(comm: Threads) -> Any:
        nonlocal failing
        if comm.rank == ranks - 1:
            failing = threading.get_ident()
        return multi.sort_by_key_shard(parts[comm.rank], parts[comm.rank], comm)

    *others, failed = outcomes(work, ranks)
    assert type(failed) is error
    for told in others:
        assert isinstance(told, gpusort.RankFailedError)
        assert str(told) == f"communicator: rank {ranks - 1} has failed: {error.__name__}: boom"


def test_others_need_no_rank_that_fails_in_its_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = parts_of("i4", (50, 60, 70))
    failing: list[int] = []

    def merges(self: Work, first: Any, second: Any) -> Any:
        if threading.get_ident() in failing:
            raise MemoryError("boom")
        return merged_by_work(self, first, second)

    merged_by_work = Work.merged
    monkeypatch.setattr(Work, "merged", merges)

    def work(comm: Threads) -> Any:
        if comm.rank == 0:
            failing.append(threading.get_ident())
        return multi.sort_shard(parts[comm.rank], comm)

    failed, *found = outcomes(work, 3)
    assert type(failed) is MemoryError
    assert_same_bits(np.concatenate(found), np.sort(np.concatenate(parts))[50:])


@attrs.define
class Traffic:
    """How much ranks tell and send one another."""

    told_bytes: int = 0  # received by all ranks to find the cuts
    collectives: int = 0  # of all ranks, to find the cuts
    moved_bytes: int = 0  # between ranks in exchanges, in all
    messages: int = 0  # of exchanges, in all

    def counted(self, shard: Shard) -> Shard:
        step = next(shard)
        while True:
            reply = yield step
            if isinstance(step, Gather | Swap):
                self.told_bytes += sum(piece.nbytes for piece in reply)
                self.collectives += 1
            try:
                step = shard.send(reply)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # typeshed has it as Any


@attrs.frozen
class CountingMemory(Memory):
    traffic: Traffic

    def copy(self, target: Array, source: Array, after: tuple[Mark, Mark]) -> Mark:
        self.traffic.moved_bytes += source.nbytes
        self.traffic.messages += 1
        return super().copy(target, source, after)


@pytest.mark.parametrize("ranks", [2, 16, 64])
def test_what_ranks_ask_of_each_other(ranks: int) -> None:
    """No element travels more than once, and what is agreed on is little: docs/scale.md counts on it."""
    each = 1 << 13
    parts = np.split(np.random.default_rng(1).integers(0, 1 << 32, ranks * each, dtype=np.uint32), ranks)
    traffic, work = Traffic(), Work(np.dtype(np.uint32))
    memory = CountingMemory(traffic)
    shards = [
        traffic.counted(sort_shard(work, memory, (part,), rank, [each] * ranks, [each] * ranks))
        for rank, part in enumerate(parts)
    ]
    found = [merged(work, runs)[0] for runs in drive_all(shards, [memory] * ranks)]
    assert_same_bits(np.concatenate(found), np.sort(np.concatenate(parts)))
    expected = (ranks - 1) * each * 4  # uniform keys: a rank keeps its share
    assert abs(traffic.moved_bytes / expected - 1) < 0.05
    assert traffic.messages <= ranks * (ranks - 1)
    rounds = 2
    words = max(8192, 64 * ranks)
    assert traffic.collectives == ranks * (2 * rounds + 1)
    rounded_up = 4 * ranks  # a word more of each run
    assert traffic.told_bytes <= ranks * (rounds * (words * 4 + rounded_up + 24 * ranks) + 8 * ranks)


RUNS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "apart": lambda rng, rank: rng.integers(rank * 1000, rank * 1000 + 3000, rng.integers(0, 400)).astype("i8"),
    "ties": lambda rng, rank: rng.integers(-1, 2, rng.integers(0, 400)).astype("i1"),
    "one value": lambda rng, rank: np.full(rng.integers(0, 400), 7, "u4"),
    "one run": lambda rng, rank: rng.standard_normal(20_000 if rank == 1 else 0),
    "NaN": lambda rng, rank: np.where(rng.random(300) < 0.3, -np.nan, rng.integers(-2, 2, 300) * 0.0).astype("f4"),
}
MANY = ((33, "ties"), (33, "one run"), (64, "NaN"))  # where each has something to tell each other, which takes long


@few_cases(can=lambda case: (case["ranks"], case["kind"]) in MANY or int(str(case["ranks"])) < 33)
@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("ranks", [2, 3, 8, 33, 64])
def test_many_ranks_agree_in_rounds(ranks: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some have nothing, or get nothing."""
    monkeypatch.setattr(cuts, "_ENOUGH", 32)
    monkeypatch.setattr(cuts, "_ENOUGH_OF_A_RUN", 8)
    rng = np.random.default_rng(ranks)
    parts = [RUNS[kind](rng, rank) for rank in range(ranks)]
    whole = np.concatenate(parts)
    ends = np.sort(rng.integers(0, whole.size + 1, ranks - 1))
    sizes = np.diff([0, *ends, whole.size]).tolist()
    indices = multi.argsort(parts, descending=ranks == 8, sizes=sizes)
    assert [part.size for part in indices] == sizes
    np.testing.assert_array_equal(np.concatenate(indices), gpusort.argsort(whole, descending=ranks == 8))
    found = of_all_ranks(lambda comm: multi.sort_shard(parts[comm.rank], comm, sizes=sizes), ranks)
    assert [part.size for part in found] == sizes
    assert_same_bits(np.concatenate(found), gpusort.sort(whole))


@settings(max_examples=examples(60), deadline=None)
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

    def words(elements: Array) -> Array:
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
    with pytest.raises(gpusort.InvalidArgumentError, match=r"sizes: expected 2 .*, found \[-1, 9\]"):
        multi.sort([x, x], sizes=[-1, 9])
    with pytest.raises(gpusort.InvalidArgumentError, match="sizes: expected 2 numbers that add up to 8"):
        multi.sort([x, x], sizes=[4, 5])
    with pytest.raises(gpusort.InvalidArgumentError, match="sizes: expected 'kept', 'balanced' or numbers"):
        multi.sort([x, x], sizes=cast(Any, "even"))
    with pytest.raises(gpusort.InvalidArgumentError, match="values: expected 2 arrays, one for each of keys, found 1"):
        multi.sort_by_key([x, x], [x])
    with pytest.raises(gpusort.InvalidArgumentError, match=r"values\[1\]: expected one for each key"):
        multi.sort_by_key([x, x], [x, x[:2]])
    for call in (lambda: multi.sort([x.astype(complex)]), lambda: multi.argsort([x.astype(complex)])):
        with pytest.raises(
            gpusort.UnsupportedTypeError, match=r"parts\[0\]: cannot order elements of dtype complex128"
        ):
            call()
    for values, why in (
        (x.astype(complex), "expected elements of 1, 2, 4, 8 bytes"),
        (x.astype(object), "elements of"),
    ):
        with pytest.raises(gpusort.UnsupportedTypeError, match=f"values: {why}"):
            multi.sort_by_key([x, x], [values, values])
        np.testing.assert_array_equal(multi.sort_by_key([x[::-1]], [values])[1][0], values[::-1])  # is not merged
    lazy: Any = pytest.importorskip("dask.array").from_array(x)
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"parts\[0\]: expected an array on the host or .* Array"):
        multi.sort([lazy])
    with pytest.raises(gpusort.UnsupportedTypeError, match="communicator: expected cupy's NcclCommunicator"):
        multi.sort_shard(x, object())


def test_values_that_are_not_merged_are_refused_before_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Threads, "exchange", pytest.fail)
    keys = np.arange(4)
    told = errors_of(lambda comm: multi.sort_by_key_shard(keys, keys.astype(complex), comm), 2)
    assert all(text.startswith("values: expected elements of 1, 2, 4, 8 bytes") for text in told)


@pytest.mark.usefixtures("cards")
def test_arrays_of_the_host_and_of_a_card_are_not_sorted_together() -> None:
    host = np.arange(9, dtype="i4")[::-1].copy()
    card = fake_cupy.on_card(host, 0)
    with pytest.raises(
        gpusort.InvalidArgumentError, match=r"parts.1.: expected int32 on host memory, .* on a CUDA device"
    ):
        multi.sort([host, card])
    with pytest.raises(gpusort.InvalidArgumentError, match=r"values.*: expected one for each key, on the same device"):
        multi.sort_by_key([host], [card])


def test_indices_behind_more_elements_than_32_bits_count() -> None:
    keys, indices = IndexWork(np.dtype("i4")).sorted((np.array([3, 1, 2], "i4"),), 1 << 33)
    assert_same_bits(keys, np.array([1, 2, 3], "i4"))
    assert_same_bits(indices, np.array([1, 2, 0]) + (1 << 33))
