"""Loops that threads in compiled code share out: each slice done once, and the same results as by the pool."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Generator, Sequence
from itertools import pairwise

import attrs
import numpy as np
import pytest

import gpusort
from gpusort import HostSort, HostSortPolicy
from gpusort.targets.cpu import crew as crews
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.crew import Crew, share_kernel
from gpusort.targets.cpu.host.packed_argsort import unpack
from gpusort.targets.cpu.host.partition import reverse
from gpusort.targets.cpu.loops import Kernel, numbers_for
from gpusort.targets.cpu.loops import compiled as compiled_loop
from gpusort.types.monoids import Maximum
from tests.covering import few_cases
from tests.reference import Array, assert_same_bits

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the pool's threads do them")


@pytest.fixture(autouse=True)
def compiled() -> Generator[None]:
    with background.off():
        yield


def number() -> Kernel:
    """Writes start, start + 1, …"""
    body = "    for index in range(start, stop):\n        places[index] = index"
    return compiled_loop("number", "start: i8, stop: i8, places: i8[]", body)


@pytest.mark.parametrize("threads", [1, 3, 64])
def test_slices_of_a_loop_are_all_done_once(threads: int) -> None:
    crew = Crew()
    for length in (1, 2, 63, 64, 65, 1000, 100_003):
        places = np.full(length, -1)
        assert crew.run(number(), length, numbers_for(places), threads)
        assert_same_bits(places, np.arange(length))
        assert crew.run(reverse(np.dtype(np.int64)), length // 2, numbers_for(places), threads)
        assert_same_bits(places, np.arange(length)[::-1])


def test_numbers_of_64_bits_reach_a_loop_whole() -> None:
    words, places = np.arange(1000, dtype=np.uint64) + np.uint64(1 << 63), np.empty(1000, np.uint64)
    assert Crew().run(unpack(), 1000, numbers_for(words, places, (1 << 64) - 3), 4)
    assert_same_bits(places, words & np.uint64((1 << 64) - 3))


def test_numbers_below_zero_reach_a_loop() -> None:
    body = "    for index in range(start, stop):\n        places[index] = index + by"
    places, kernel = np.empty(1000, np.intp), compiled_loop("moved", "start: i8, stop: i8, places: i8[], by: i8", body)
    for by in (-1, -(1 << 62), (1 << 62) + 3):
        assert Crew().run(kernel, places.size, [*numbers_for(places), by], 4)
        assert_same_bits(places, np.arange(places.size) + by)


@pytest.mark.parametrize("slices", [1, 10])
def test_a_loop_without_memory_is_an_error(slices: int) -> None:
    refuses = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64)(lambda start, _: int(start < slices))
    kernel = attrs.evolve(number(), address=ctypes.cast(refuses, ctypes.c_void_p).value or 0)
    crew = Crew()
    with pytest.raises(MemoryError):
        crew.run(kernel, 10, [], 3)
    assert crew.run(number(), 10, numbers_for(np.empty(10, np.intp)), 3)


@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_a_loop_with_too_many_arguments_is_the_pools(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit among the words of an order would not reach it."""
    monkeypatch.setenv("GPUSORT_THREADS", "4")
    monkeypatch.setattr(crews, "core_count", lambda: 4)
    orders: list[int] = []
    run = Crew.run

    def seen(crew: Crew, kernel: Kernel, length: int, arguments: Sequence[int], threads: int, first: int) -> bool:
        orders.append(len(arguments))
        return run(crew, kernel, length, arguments, threads, first)

    monkeypatch.setattr(Crew, "run", seen)
    count = crews.MOST_ARGUMENTS + more
    names = [f"n{place}" for place in range(count - 2)]  # behind an array, which is two
    body = f"    for index in range(start, stop):\n        places[index] = index + {' + '.join(names)}"
    takes = ", ".join(["start: i8", "stop: i8", "places: i8[]", *(f"{name}: i8" for name in names)])
    places, numbers = np.zeros(1 << 17, np.intp), [1 << place for place in range(len(names))]
    share_kernel(compiled_loop("with_many", takes, body), places.size, [*numbers_for(places), *numbers], places.nbytes)
    assert_same_bits(places, np.arange(places.size) + sum(numbers))
    assert orders == ([count] if more <= 0 else [])


@pytest.mark.parametrize("left_after", [0, 1, 3, None])
def test_a_long_loop_is_several_jobs(left_after: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between which an interrupt is heard. What is left when another caller takes the crew, the pool does."""
    monkeypatch.setenv("GPUSORT_THREADS", "4")
    monkeypatch.setattr(crews, "core_count", lambda: 4)
    monkeypatch.setattr(crews, "_JOB_BYTES", 1 << 17)
    jobs: list[tuple[int, int]] = []
    run = Crew.run

    def seen(crew: Crew, kernel: Kernel, length: int, arguments: Sequence[int], threads: int, first: int) -> bool:
        if len(jobs) == left_after:
            return False
        jobs.append((first, length))
        return run(crew, kernel, length, arguments, threads, first)

    monkeypatch.setattr(Crew, "run", seen)
    places = np.zeros(100_003, np.intp)
    share_kernel(number(), places.size, numbers_for(places), places.nbytes)
    assert_same_bits(places, np.arange(places.size))
    ends = [100_003 * job // 6 for job in range(7)]
    assert jobs == [(first, end - first) for first, end in pairwise(ends)][:left_after]
    jobs.clear()
    share_kernel(number(), 20, numbers_for(places), places.nbytes)  # no fewer slices than threads are given
    assert jobs == [(0, 20)][:left_after]


_BY_RADIX = HostSortPolicy(by_radix=True)
_CALLS: dict[str, Callable[[Array], object]] = {
    "argsort": lambda x: gpusort.argsort(x.reshape(-1)),
    "argsort, descending": lambda x: gpusort.argsort(x.reshape(-1), descending=True),
    "argsort, reversed": lambda x: gpusort.argsort(np.sort(x.reshape(-1)), descending=True),
    "sort, descending": lambda x: gpusort.sort(x.reshape(-1), descending=True),
    "sort of short rows": lambda x: gpusort.sort(x.reshape(-1, 14), axis=1),
    "argsort of short rows": lambda x: gpusort.argsort(x.reshape(-1, 14), axis=1),
    "sort of five long rows": lambda x: gpusort.sort(x.reshape(-1)[:280_000].reshape(5, -1) - 500_000, axis=1),
    "argsort of five long rows": lambda x: gpusort.argsort(x.reshape(-1)[:280_000].reshape(5, -1).astype(np.float32)),
    "sum": lambda x: gpusort.sum(x[:, ::3], axis=0),
    "max": lambda x: gpusort.max(x[:, ::2], axis=1),
    "argmin": lambda x: gpusort.argmin(x, axis=0),
    "max of all": gpusort.max,
    "cumsum": lambda x: gpusort.cumsum(x.astype(np.float32), axis=1),
    "kernels of a radix sort": lambda x: gpusort.sort(x.reshape(-1), algorithm=gpusort.Radix()),
    "serial kernels of a radix sort": lambda x: gpusort.sort(x.reshape(-1), algorithm=HostSort(_BY_RADIX)),
    "kernels of a scan": lambda x: gpusort.scan(x.reshape(-1), Maximum(gpusort.key_for(x.dtype))),
    "cumsum of a row": lambda x: gpusort.cumsum(x.astype(np.float32).reshape(-1)),
}


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["uint32", "int64", "float32", "float64"])
@pytest.mark.parametrize("call", _CALLS)
def test_loops_shared_out_give_what_the_pools_give(call: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", "8")
    runs: list[bool] = []
    run = Crew.run

    def seen(crew: Crew, kernel: Kernel, length: int, arguments: Sequence[int], threads: int, first: int = 0) -> bool:
        runs.append(run(crew, kernel, length, arguments, threads, first))
        return runs[-1]

    monkeypatch.setattr(Crew, "run", seen)
    rng = np.random.default_rng(7)
    x = rng.integers(0, 10**6, (1200, 1820)).astype(dtype)  # long enough for all to be shared out, and with ties
    monkeypatch.setattr(crews, "core_count", lambda: 64)
    by_crew = np.asarray(_CALLS[call](x))
    assert any(runs)
    runs.clear()
    monkeypatch.setattr(crews, "core_count", lambda: 2)  # fewer than threads: none of the crew's
    assert_same_bits(by_crew, np.asarray(_CALLS[call](x)))
    assert not runs
