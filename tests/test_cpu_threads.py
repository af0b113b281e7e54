"""The CPU target's promises about threads, forks and the cache of compiled kernels."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Grid, Launch, Role
from gpusort.targets.cpu import pool
from gpusort.targets.cpu.pool import MOST_THREADS, Pool, thread_count
from gpusort.targets.cpu.target import CpuTarget
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import U32
from tests.new_process import printed
from tests.reference import run_in_threads
from tests.small_schedules import buffer, plan

Array = npt.NDArray[np.generic]
TARGET = CpuTarget()


def run(*launches: Launch, **arrays: Array) -> None:
    TARGET.run(plan(*launches), arrays)


COUNT, GROUP = 1 << 18, 64


@kernel
def histogram(cx: Invocation, data: Storage[U32], counts: Storage[U32], tile: Workgroup[U32]) -> None:
    """Atomics of both kinds: workgroups count in their own memory, then add up in storage."""
    me = cx.local_id
    if me < 16:
        tile[me] = U32(0)
    cx.barrier()
    tile.atomic_add(data[cx.global_id] & 15, U32(1))
    cx.barrier()
    if me < 16:
        counts.atomic_add(me, tile[me])
        counts.atomic_max(U32(16), data[cx.global_id])
        counts.atomic_min(U32(17), data[cx.global_id])
        counts.atomic_xor(U32(18), me + cx.group_id)


def _count(values: Array) -> Array:
    counts = np.zeros(19, np.uint32)
    counts[17] = 0xFFFFFFFF
    data, found = buffer("data", U32, COUNT, Role.INPUT), buffer("counts", U32, 19)
    run(
        histogram.launch(Grid(COUNT // GROUP, GROUP), data, found, Workgroup(U32, 16)),
        data=values,
        counts=counts,
    )
    return counts


def _expected(values: npt.NDArray[np.uint32]) -> Array:
    seen = values.reshape(-1, GROUP)[:, :16]
    mixed = np.bitwise_xor.reduce((np.arange(16) + np.arange(len(seen))[:, None]).ravel())
    tail = np.array([seen.max(), seen.min(), mixed], np.uint32)
    return np.concatenate([np.bincount(values & 15, minlength=16).astype(np.uint32), tail])


VALUES = np.random.default_rng(5).integers(0, 1 << 32, COUNT, dtype=np.uint32)


@pytest.fixture
def four_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", "4")


@pytest.mark.usefixtures("four_threads")
def test_atomics_add_up_over_threads() -> None:
    for _ in range(20):
        np.testing.assert_array_equal(_count(VALUES), _expected(VALUES))


@pytest.mark.usefixtures("four_threads")
def test_several_python_threads_may_run_at_once() -> None:
    def work(seed: int) -> None:
        values = np.random.default_rng(seed).integers(0, 1 << 32, COUNT, dtype=np.uint32)
        for _ in range(5):
            np.testing.assert_array_equal(_count(values), _expected(values))

    run_in_threads(work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("four_threads")
def test_a_forked_child_runs_in_parallel_too() -> None:
    expected = _expected(VALUES)
    np.testing.assert_array_equal(_count(VALUES), expected)  # the pool is at work here
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(_count(VALUES), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(_count(VALUES), expected)


def test_what_a_helper_raises_reaches_the_caller_and_ends_the_job() -> None:
    started, failed = list[int](), threading.Event()

    def work(piece: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            failed.set()
            raise ArithmeticError("a helper's piece")
        assert failed.wait(20)
        time.sleep(0.001)
        started.append(piece)

    pool = Pool(3)
    with pytest.raises(ArithmeticError, match="a helper's piece"):
        pool.run(work, 1000)
    assert len(started) < 500
    done: list[int] = []
    pool.run(done.append, 100)
    assert sorted(done) == list(range(100))


@pytest.mark.parametrize(
    "asked", ["0", "-2", "many", "+3", "1_0", "4.0", "0x4", "\u0664", "\uff14", "4\u00a04", "\u00b2"]
)
def test_a_senseless_number_of_threads_is_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", asked)
    with pytest.raises(InvalidArgumentError, match="GPUSORT_THREADS: expected a number of threads"):
        thread_count()


@pytest.mark.parametrize("asked", ["", " ", "\t\n"])
def test_an_empty_number_of_threads_is_none(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUSORT_THREADS", raising=False)
    usual = thread_count()
    monkeypatch.setenv("GPUSORT_THREADS", asked)
    assert thread_count() == usual


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("3", 3), (" 3\n", 3), ("007", 7), ("1000000000", MOST_THREADS), ("9" * 5000, MOST_THREADS)],
)
def test_a_number_of_threads_is_capped(asked: str, meant: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", asked)
    assert thread_count() == meant
    assert TARGET.info.driver.endswith(f", {meant} threads")


def test_cores_are_counted_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, now = [0], [time.monotonic()]

    def count_cores() -> int:
        counted[0] += 1
        return 2 + counted[0]

    monkeypatch.setattr(pool, "core_count", count_cores)
    monkeypatch.setattr(pool, "monotonic", lambda: now[0])
    monkeypatch.setenv("GPUSORT_THREADS", "9")
    assert thread_count() == 9
    monkeypatch.delenv("GPUSORT_THREADS")
    assert [thread_count() for _ in range(5)] == [3] * 5
    now[0] += 10
    assert [thread_count() for _ in range(5)] == [4] * 5
    monkeypatch.setenv("GPUSORT_THREADS", "7")  # what it says is seen at once
    assert thread_count() == 7
    pool.forget()


# -- the cache --------------------------------------------------------------------------------------------

_CACHED = """
import sys
import numpy as np
sys.path.append({folder!r})
from gpusort.targets.cpu.compiler import loading
from {module} import COUNT, TARGET, _count, VALUES, _expected
assert (_count(VALUES) == _expected(VALUES)).all()
[loaded] = loading.loaded.values()
print(int(loaded.was_kept))
"""


def _in_a_new_process(*, cache: str = "", xdg: Path = Path()) -> list[str]:
    code = _CACHED.format(folder=str(Path(__file__).parent.parent), module=f"tests.{Path(__file__).stem}")
    two = "2"  # more might be woken by kernels of their own
    return printed(code, GPUSORT_CACHE_DIR=cache, XDG_CACHE_HOME=str(xdg), GPUSORT_THREADS=two).split()


def test_a_second_process_finds_the_kernel_compiled(tmp_path: Path) -> None:
    where = str(tmp_path / "kernels")
    assert _in_a_new_process(cache=where) == ["0"]
    assert _in_a_new_process(cache=where) == ["1"]
    (kept,) = Path(where, "cpu").iterdir()
    kept.write_bytes(b"damaged")
    assert _in_a_new_process(cache=where) == ["0"]
    assert _in_a_new_process(cache=where) == ["1"]


def test_a_cache_that_cannot_be_written_is_done_without() -> None:
    assert _in_a_new_process(cache="/dev/null/kernels") == ["0"]


def test_without_a_directory_of_its_own_the_cache_follows_xdg(tmp_path: Path) -> None:
    assert _in_a_new_process(xdg=tmp_path) == ["0"]
    assert sorted(path.name for path in (tmp_path / "gpusort").iterdir()) == ["cpu", "key"]
