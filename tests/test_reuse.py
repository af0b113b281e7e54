"""A long result lies in the memory of one that nobody holds any more, and never in memory that somebody does."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.arrays import recycled as reuse
from gpusort.arrays import shelf
from gpusort.external import plans
from gpusort.types import environment
from gpusort.types.errors import InvalidArgumentError
from tests.reference import run_in_threads

LONG = 1 << 21  # of float64: 16 MB, the least that is kept
DOUBLE = np.dtype(np.float64)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    gc.collect()
    reuse.KEPT.clear()
    reuse.LARGE.clear()
    yield
    reuse.KEPT.clear()
    reuse.LARGE.clear()


def test_memory_comes_back_when_the_array_goes() -> None:
    first = reuse.new_array((LONG,), DOUBLE)
    address = first.ctypes.data
    del first
    assert reuse.new_array((LONG,), DOUBLE).ctypes.data == address
    assert reuse.new_array((2, LONG // 2), np.dtype(np.int64)).ctypes.data == address


def test_a_view_keeps_the_memory() -> None:
    first = reuse.new_array((LONG,), DOUBLE)
    view = first[5:7].view(np.int64).reshape(2, 1)
    address = first.ctypes.data
    del first
    second = reuse.new_array((LONG,), DOUBLE)
    assert second.ctypes.data != address
    view[:] = 7
    second[:] = 1.0
    assert view.ravel().tolist() == [7, 7]


def test_live_results_never_share_memory() -> None:
    rng = np.random.default_rng(1)
    held: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
    for step in range(15):
        x = rng.random(LONG + int(rng.integers(0, LONG)))
        held.append((gpusort.sort(x), x))
        if step % 3 == 2:
            held.pop(int(rng.integers(0, len(held))))
    for found, x in held[-4:]:
        np.testing.assert_array_equal(found, np.sort(x))
    spans = sorted((found.ctypes.data, found.ctypes.data + found.nbytes) for found, _ in held)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_results_are_arrays_like_any_other() -> None:
    x = np.random.default_rng(2).random(LONG)
    found = gpusort.sort(x)
    assert type(found) is np.ndarray
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert found.flags.aligned
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    places = gpusort.argsort(x)
    assert places.dtype == np.int64
    np.testing.assert_array_equal(x[places], found)


def test_only_the_last_two_are_kept_and_only_for_results_of_their_size() -> None:
    arrays = [reuse.new_array((LONG * (1 + 2 * number),), DOUBLE) for number in range(3)]
    addresses = [array.ctypes.data for array in arrays]
    while arrays:
        arrays.pop(0)
    small = reuse.new_array((LONG,), DOUBLE)  # less than half of either that is kept
    assert small.ctypes.data not in addresses[1:]
    assert reuse.new_array((5 * LONG,), DOUBLE).ctypes.data == addresses[2]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [("0", False), (str(8 * LONG), True), (str(8 * LONG - 1), False), ("", True), (" 0 ", False), ("9" * 5000, True)],
)
def test_the_environment_says_how_much_is_kept(monkeypatch: pytest.MonkeyPatch, asked: str, kept: bool) -> None:
    monkeypatch.setenv("GPUSORT_KEEP_BYTES", asked)
    array = reuse.new_array((LONG,), DOUBLE)
    assert (array.base is not None) == kept


@pytest.mark.parametrize("asked", ["all", "-1", "1e9", "\u0660"])
def test_another_word_in_the_environment_is_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_KEEP_BYTES", asked)
    with pytest.raises(InvalidArgumentError, match="GPUSORT_KEEP_BYTES: expected a number of bytes"):
        reuse.new_array((LONG,), DOUBLE)


def test_threads_take_memory_side_by_side() -> None:
    def work(seed: int) -> None:
        for step in range(40):
            mine = reuse.new_array((LONG,), DOUBLE)
            mine[::512] = seed * 1000 + step
            assert (mine[::512] == seed * 1000 + step).all()
            del mine

    run_in_threads(work)


def test_a_longer_one_is_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "_MOST", 16 << 20)
    monkeypatch.setattr(shelf, "SECONDS", 0.2)
    first, other = (reuse.new_array((3 * LONG,), DOUBLE) for _ in range(2))
    address = first.ctypes.data
    del first
    again = reuse.new_array((2 * LONG,), DOUBLE)
    assert again.ctypes.data == address
    del again
    gone = [weakref.ref(array.base.base) for array in (other,) if array.base is not None]
    time.sleep(0.1)
    del other  # which comes back later, and takes the other's place
    assert gone[0]() is not None
    deadline = time.monotonic() + 5
    while gone[0]() is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gone[0]() is None


@pytest.mark.parametrize(("length", "kept"), [(LONG, 2), (3 * LONG, 1)])
def test_as_many_are_kept_as_documented(length: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "_MOST", 17 << 20)
    arrays = [reuse.new_array((length,), DOUBLE) for _ in range(4)]
    blocks = [weakref.ref(array.base.base) for array in arrays if array.base is not None]
    assert all(block() is not None for block in blocks)
    arrays.clear()
    assert sum(block() is not None for block in blocks) == kept


def test_what_is_asked_to_be_kept_is_all_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_KEEP_BYTES", "17000000")
    assert type(reuse.new_array((3 * LONG,), DOUBLE).base) is type(None)
    assert reuse.new_array((LONG,), DOUBLE).base is not None


GROUPS: dict[str, tuple[str, dict[str, str], list[tuple[int, int]]]] = {
    "version 2": (
        "0::/user/one\n",
        {"user/one/memory.max": "max\n", "user/memory.max": "1000\n", "user/memory.current": "400\n",
         "memory.max": "2000000\n", "memory.current": "1500000\n", "memory/memory.limit_in_bytes": "1\n",
         "memory.stat": "anon 700000\nfile 800000\nactive_file 100000\ninactive_file 600000\n"},
        [(1000, 400), (2000000, 800000)],
    ),
    "of a container": ("0::/\n", {"memory.max": "1000000\n"}, [(1000000, 0)]),
    "version 1, by a name of the host's": (
        "3:cpu,cpuacct:/limited\n2:memory:/docker/f00\n",
        {"memory/memory.limit_in_bytes": "5000\n", "memory/memory.usage_in_bytes": "6000\n", "memory.max": "1\n",
         "memory/memory.stat": "active_file 1\ninactive_file 2\ntotal_active_file 1000\ntotal_inactive_file 2000\n",
         "memory/limited/memory.limit_in_bytes": "2\n"},
        [(5000, 3000)],
    ),
    "no limit": ("0::/\n", {"memory.max": "max\n"}, []),
    "no groups": ("", {}, []),
}  # fmt: skip


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_a_container_has_the_memory_that_it_is_allowed(
    groups: tuple[str, dict[str, str], list[tuple[int, int]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, files, expected = groups
    for name, said in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(said)
    (tmp_path / "told").write_text(told)
    limits = environment.memory_limits(str(tmp_path / "told"), str(tmp_path))
    assert limits == expected

    def memory(limits: list[tuple[int, int]]) -> tuple[int, int]:
        for module in (environment, plans):
            monkeypatch.setattr(module, "memory_limits", lambda: limits)
        environment.memory_bytes.cache_clear()
        return environment.memory_bytes(), plans.free_memory()

    of_the_machine, _ = memory([])
    assert of_the_machine > 1 << 20
    allowed, free = memory(limits)
    environment.memory_bytes.cache_clear()
    assert allowed == min([of_the_machine, *(limit for limit, _ in expected)])
    if expected:
        assert free == max(0, min(limit - used for limit, used in expected))


@pytest.mark.usefixtures("no_threads")
def test_where_no_thread_is_to_be_had_a_long_array_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "_MOST", 16 << 20)
    monkeypatch.setattr(shelf, "SECONDS", 0.0)
    assert reuse.new_array((3 * LONG,), DOUBLE).size == 3 * LONG
