"""Sorts by threads that wait in compiled code: exact, under forks, signals, several callers and too few cores."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Generator

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.targets.cpu import crew as crews
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.crew import Crew
from gpusort.targets.cpu.host import numpy_pointer, partition_sort
from gpusort.targets.cpu.host.numpy_pointer import sort_address
from gpusort.targets.cpu.host.partition_sort import PartedRow, sort_by_crew
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.targets.cpu.pool import Pool
from gpusort.types.indices import SortOrder
from tests.reference import Array, assert_same_bits, run_in_threads, sample

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the pool's threads sort")

NUMBERS = ["uint32", "int32", "float32", "uint64", "int64", "float64"]
POLICY = HostSortPolicy(
    serial_below=2, part_bytes_from=4, crew_bytes_from=2, crew_thread_bytes=1 << 12, few_bytes_from=1 << 40, some=0,
    by_radix=False,
)  # fmt: skip


@pytest.fixture(autouse=True)
def compiled() -> Generator[None]:
    with background.off():
        yield


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the crew did them: jobs of eight threads, on as many cores as it takes."""
    monkeypatch.setenv("GPUSORT_THREADS", "8")
    monkeypatch.setattr(crews, "core_count", lambda: 64)
    done: list[bool] = []

    def seen(row: PartedRow, block: int, threads: int) -> bool:
        done.append(sort_by_crew(row, block, threads))
        return done[-1]

    monkeypatch.setattr(partition_sort, "sort_by_crew", seen)
    return done


def sorted_by(policy: HostSortPolicy, x: Array, order: SortOrder = SortOrder.ASCENDING) -> Array:
    results = np.empty_like(x)
    sort_rows(x[np.newaxis], results[np.newaxis], order, policy)
    return results


@pytest.mark.parametrize("dtype", [*NUMBERS, "datetime64[s]"])
@pytest.mark.parametrize("order", SortOrder)
def test_it_sorts_as_the_pool_does(dtype: str, order: SortOrder, jobs: list[bool]) -> None:
    for length in (5000, (1 << 15) + 1, 100_003):
        x = np.random.default_rng(length).permutation(sample(dtype, length))
        expected = sorted_by(attrs.evolve(POLICY, crew_bytes_below=0), x, order)
        assert not jobs
        assert_same_bits(sorted_by(POLICY, x, order), expected)
        assert jobs == [True]
        jobs.clear()
        sort_rows(x[np.newaxis], x[np.newaxis], order, POLICY)
        assert_same_bits(x, expected)
        jobs.clear()


def _parted(x: Array, parts: int) -> PartedRow:
    results, spare = np.zeros_like(x), np.zeros_like(x)
    first, second = (results, spare) if parts.bit_length() % 2 == 0 else (spare, results)
    return PartedRow(x, first, second, results, np.sort(x)[[x.size * k // parts for k in range(1, parts)]])


@pytest.mark.parametrize("parts", [2, 4, 16, 64])
def test_any_number_of_threads_does_any_number_of_parts(parts: int) -> None:
    """Fewer threads than parts, more, and many more than cores; blocks of a vector and of a whole row."""
    x = np.random.default_rng(parts).integers(0, 1 << 64, 20_000, dtype=np.uint64)
    crew = Crew()
    for threads in (1, 2, 7, 64):
        for block in (64, 2048, 1 << 20):
            row = _parted(x, parts)
            assert sort_by_crew(row, block, threads, crew)
            assert_same_bits(row.results, np.sort(x))


def test_a_part_may_be_empty_or_hold_all() -> None:
    x = np.full(10_000, 7, np.uint32)
    for pivot in (0, 7, 8):
        row = attrs.evolve(_parted(x, 4), pivots=np.full(3, pivot, np.uint32))
        assert sort_by_crew(row, 2048, 4, Crew())
        assert_same_bits(row.results, x)


def test_job_after_job_is_right_however_late_threads_are() -> None:
    """Thirty-two threads on few cores: those that a short job woke come to a later one."""
    crew, rng = Crew(), np.random.default_rng(3)
    for number in range(300):
        x = rng.integers(0, 1 << 32, int(rng.integers(1000, 4000)), dtype=np.uint32)
        row = _parted(x, int(2 ** rng.integers(1, 6)))
        assert sort_by_crew(row, 512, int(rng.integers(1, 33)), crew), number
        assert_same_bits(row.results, np.sort(x))


def test_callers_at_once_are_all_served(jobs: list[bool]) -> None:
    wrong: list[object] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).integers(0, 1 << 32, 50_000, dtype=np.uint32)
        expected = np.sort(x)
        for _ in range(20):
            try:
                assert_same_bits(sorted_by(POLICY, x), expected)
            except BaseException as failure:
                wrong.append(failure)

    run_in_threads(work)
    assert not wrong
    assert len(jobs) == 160
    assert any(jobs)


def test_who_finds_it_busy_does_nothing_by_it() -> None:
    x = np.random.default_rng(1).integers(0, 1 << 32, 9000, dtype=np.uint32)
    crew, row, busy = Crew(), _parted(x, 4), crews.BUSY
    crew.memory[busy] = 1
    assert not sort_by_crew(row, 2048, 4, crew)
    assert not row.results.any()
    assert crew.memory[busy] == 1
    crew.memory[busy] = 0
    assert sort_by_crew(row, 2048, 4, crew)


def test_who_finds_it_busy_sorts_by_other_threads_or_alone(jobs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def is_busy(row: PartedRow, block: int, threads: int) -> bool:
        return False

    monkeypatch.setattr(partition_sort, "sort_by_crew", is_busy)
    x = np.random.default_rng(1).integers(0, 1 << 32, 30_000, dtype=np.uint32)
    short = attrs.evolve(POLICY, part_bytes_from=1 << 20)
    for policy in (POLICY, short):
        for order in SortOrder:
            assert_same_bits(sorted_by(policy, x, order), np.sort(x)[:: 1 if order is SortOrder.ASCENDING else -1])
    sort_rows(x[np.newaxis], x[np.newaxis], SortOrder.ASCENDING, short)
    assert (x[1:] >= x[:-1]).all()


def test_a_row_is_worth_as_many_threads_as_its_bytes() -> None:
    policy = HostSortPolicy()
    found = [policy.crew_for(nbytes, 16, 16) for nbytes in (1 << 17, 1 << 18, 1 << 19, 1 << 25, 1 << 26)]
    assert found == [0, 8, 16, 16, 0]
    assert [policy.crew_for(1 << 20, threads, 8) for threads in (2, 3, 4, 8, 9)] == [0, 0, 4, 8, 0]
    assert [policy.crew_for(nbytes, 2, 2, 2) for nbytes in (1 << 18, 1 << 19)] == [0, 2]
    assert [policy.crew_for(1 << 20, threads, cores, 2) for threads, cores in ((1, 2), (3, 2), (3, 3))] == [0, 0, 3]


@pytest.mark.usefixtures("no_threads")
def test_without_threads_the_caller_sorts_alone() -> None:
    row = _parted(np.random.default_rng(1).random(9000), 8)
    assert sort_by_crew(row, 2048, 8, Crew())
    assert_same_bits(row.results, np.sort(row.source))


def test_more_threads_than_cores_are_the_pools(jobs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Which come late, where the crew's would be waited for."""
    x = np.random.default_rng(1).permutation(30_000).astype(np.uint32)
    monkeypatch.setattr(crews, "core_count", lambda: 7)
    assert_same_bits(sorted_by(POLICY, x), np.sort(x))
    monkeypatch.setattr(crews, "core_count", lambda: 8)
    assert_same_bits(sorted_by(attrs.evolve(POLICY, crew_bytes_below=120_000), x), np.sort(x))
    assert not jobs


# -- NumPy's sort as a function of C's ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numpys_sort_is_found(dtype: str) -> None:
    assert sort_address(np.dtype(dtype))


def test_no_other_dtype_has_one() -> None:
    for dtype in (">u4", "M8[s]", "c8", "S4", "O"):
        assert not sort_address(np.dtype(dtype))


_TAKES = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)


@pytest.mark.parametrize("result", [0, -1])
def test_a_function_that_sorts_nothing_is_not_taken(
    result: int, jobs: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = _TAKES(lambda *_: result)
    _refused(lambda _: ctypes.cast(idle, ctypes.c_void_p).value or 0, jobs, monkeypatch)


def test_the_sort_of_another_dtype_is_not_taken(jobs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    other = sort_address(np.dtype(np.int64))
    assert other
    _refused(lambda _: other, jobs, monkeypatch)


def test_code_outside_of_numpys_library_is_not_taken(jobs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    is_in = numpy_pointer.is_in
    idle = _TAKES(lambda *_: 0)
    assert not is_in(np.__file__, ctypes.cast(idle, ctypes.c_void_p).value or 0)

    def is_elsewhere(file: str, address: int) -> bool:
        return is_in(f"{file}.other", address)

    monkeypatch.setattr(numpy_pointer, "is_in", is_elsewhere)
    _refused(numpy_pointer.found_address, jobs, monkeypatch)


def _refused(found: Callable[[np.dtype[np.generic]], int], jobs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool sorts where no sort of C's is known."""
    monkeypatch.setattr(numpy_pointer, "found_address", found)
    sort_address.cache_clear()
    try:
        assert not sort_address(np.dtype(np.uint64))
        x = np.random.default_rng(1).integers(0, 1 << 64, 9000, dtype=np.uint64)
        assert_same_bits(sorted_by(POLICY, x), np.sort(x))
        assert not jobs
    finally:
        sort_address.cache_clear()


def test_the_processes_crew_is_made_once() -> None:
    crews.crews.clear()
    found: list[Crew] = []
    row = _parted(np.random.default_rng(1).random(5000), 2)

    def look(_: int) -> None:
        sort_by_crew(attrs.evolve(row, results=np.empty(5000), first=np.empty(5000)), 2048, 2)
        found.append(crews.crews["crew"])

    run_in_threads(look)
    assert len(set(map(id, found))) == 1


@pytest.mark.parametrize(("threads", "long_alone"), [("2", True), ("3", True), ("4", False)])
def test_few_threads_share_long_work_alone(threads: str, long_alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To wake one of Python's threads takes as long as two save in an array of some hundred KiB."""
    runs: list[int] = []
    run = Pool.run

    def seen(pool: Pool, work: Callable[[int], None], count: int) -> None:
        runs.append(count)
        run(pool, work, count)

    monkeypatch.setattr(Pool, "run", seen)
    monkeypatch.setattr(crews, "core_count", lambda: 1)  # so that none waits in compiled code
    monkeypatch.setenv("GPUSORT_THREADS", threads)
    calls: dict[str, Callable[[Array], object]] = {
        "rows": lambda x: gpusort.sort(x.reshape(-1, 100)),
        "short rows": lambda x: gpusort.sort(x.reshape(-1, 10)),
        "places in short rows": lambda x: gpusort.argsort(x.reshape(-1, 4)),
        "selected of rows": lambda x: gpusort.top_k(x.reshape(-1, 200), 3),
    }
    with background.off():
        for few, is_alone in ((80_000, long_alone), (2_000_000, False)):
            x = np.random.default_rng(few).standard_normal(few).astype(np.float32)
            for name, call in calls.items():
                runs.clear()
                call(x)
                assert (sum(runs) < 2) is is_alone, (few, name)
