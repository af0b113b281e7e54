"""Files whose pieces are partitioned by common pivots: against sorts of the whole, resumed, and in place."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.api import engine
from gpusort.external import passes, pivots, runs
from gpusort.external.direct import PAGE, DirectFile, buffer_for
from gpusort.external.parting import Ascending
from gpusort.targets.cpu.compiler.machine import machine
from gpusort.targets.cpu.host import partition
from gpusort.targets.cpu.host.partition import can_partition, partition_row
from gpusort.types.indices import SortOrder
from tests.reference import Array, assert_same_bits, sample

MEMORY, COUNT = 300_000, 200_003
BIG, LITTLE = 1 << 62, 0


class Ways:
    """Which runs were made: "parted" and "sorted", as they came."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def noting(self, cut: Callable[[Any], list[int]], name: str) -> Callable[[Any], list[int]]:
        def noted(made: runs.Runs) -> list[int]:
            self.taken.append(name)
            return cut(made)

        return noted

    def __call__(self) -> list[str]:
        found, self.taken = self.taken, []
        return found


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """Everything is worth being partitioned."""
    monkeypatch.setattr(passes, "_WORTH_PARTING", 0)
    monkeypatch.setattr(engine, "_LITTLE", LITTLE)
    seen = Ways()
    kinds: list[tuple[type[runs.PartedRuns | runs.SortedRuns], str]] = [
        (runs.PartedRuns, "parted"),
        (runs.SortedRuns, "sorted"),
    ]
    for kind, name in kinds:
        monkeypatch.setattr(kind, "cut", seen.noting(kind.cut, name))
    return seen


def keys_of(dtype: str, seed: int) -> Array:
    """Any bits, few of them alike."""
    numbers = np.random.default_rng(seed)
    native = np.dtype(dtype).newbyteorder("=")
    x = np.frombuffer(numbers.bytes(COUNT * native.itemsize), native).astype(dtype)
    x[::31] = sample(dtype, x[::31].size, seed)
    return x


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def sorted_in_a_file(folder: Path, x: Array, *, descending: bool = False, stable: bool = False) -> Array:
    np.save(folder / "source.npy", x)
    gpusort.sort_file(folder / "source.npy", folder / "target.npy", descending=descending, stable=stable, memory=MEMORY)
    assert names(folder) == ["source.npy", "target.npy"]
    found: Array = np.load(folder / "target.npy")
    return found


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["i4", "u4", "f4", "i8", "u8", "f8", ">i4", ">f8", "M8[us]", ">m8[s]"])
def test_every_dtype(dtype: str, descending: bool, tmp_path: Path, ways: Ways) -> None:
    """With NaNs of both signs and any payload, NaT, and zeros of both signs."""
    x = keys_of(dtype, 3)
    assert_same_bits(sorted_in_a_file(tmp_path, x, descending=descending), gpusort.sort(x, descending=descending))
    assert ways() == ["parted"]


def test_floats_that_tie_keep_their_order(tmp_path: Path, ways: Ways) -> None:
    for dtype, way in (("f8", "sorted"), ("i8", "parted")):
        x = keys_of(dtype, 4)
        assert_same_bits(sorted_in_a_file(tmp_path, x, stable=True), np.sort(x, kind="stable"))
        assert ways() == [way]


@pytest.mark.parametrize("dtype", ["f4", ">i4", "u2", "b1"])
def test_places(dtype: str, tmp_path: Path, ways: Ways) -> None:
    """Of ties too: words of keys and places are all different."""
    x = sample(dtype, COUNT, 5)
    np.save(tmp_path / "source.npy", x)
    for descending in (False, True):
        gpusort.argsort_file(tmp_path / "source.npy", tmp_path / "target.npy", descending=descending, memory=MEMORY)
        assert_same_bits(np.load(tmp_path / "target.npy"), gpusort.argsort(x, descending=descending))
        assert ways() == ["parted"]


def kinds_of_data() -> dict[str, tuple[Array, list[str]]]:
    """And how they are sorted."""
    numbers = np.random.default_rng(7)
    few_nans = numbers.standard_normal(COUNT)
    few_nans[::100] = -np.nan
    some_nans = few_nans.copy()
    some_nans[::3] = np.nan
    return {
        "sorted": (np.arange(COUNT), ["parted"]),
        "reversed": (np.arange(COUNT)[::-1] * 0.5, ["parted"]),
        "equal": (np.full(COUNT, 7), ["sorted"]),
        "few": (numbers.integers(0, 9, COUNT), ["sorted"]),
        "zipf": (numbers.zipf(1.3, COUNT).astype(float), ["sorted"]),
        "NaN": (np.full(COUNT, np.nan), ["sorted"]),
        "some NaNs": (some_nans, ["sorted"]),
        "few NaNs": (few_nans, ["parted"]),
        "two of each": (np.repeat(numbers.permutation(COUNT), 2), ["parted"]),
        "far apart": (numbers.standard_normal(COUNT) * 10.0 ** numbers.integers(-300, 300, COUNT), ["parted"]),
    }


@pytest.mark.parametrize("kind", kinds_of_data())
def test_kinds_of_data(kind: str, tmp_path: Path, ways: Ways) -> None:
    x, expected = kinds_of_data()[kind]
    assert_same_bits(sorted_in_a_file(tmp_path, x), gpusort.sort(x))
    assert ways() == expected


def misleading(page: int = PAGE // 8) -> Array:
    """Random numbers where samples are taken, and hardly any elsewhere."""
    numbers, x = np.random.default_rng(0), np.zeros(COUNT, np.int64)
    length = COUNT // 256
    for look in range(256):
        start = COUNT * look // 256 + int(numbers.integers(length - page + 1))
        x[start : start + page] = np.random.default_rng(look).integers(0, 1 << 40, page)
    return x


def test_what_samples_do_not_show(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is too long is seen in the first pass, which begins anew; progress never tells of more than all."""
    monkeypatch.setattr(pivots, "_MOST", float("inf"))
    seen: list[gpusort.Progress] = []
    x = misleading()
    np.save(tmp_path / "source.npy", x)
    tried: list[int] = []
    make = runs.PartedRuns.make

    def noted(self: runs.PartedRuns, run: int, piece: Array, start: int, out: Array) -> None:
        tried.append(run)
        make(self, run, piece, start, out)

    monkeypatch.setattr(runs.PartedRuns, "make", noted)
    gpusort.sort_file(tmp_path / "source.npy", tmp_path / "target.npy", memory=MEMORY, progress=seen.append)
    assert_same_bits(np.load(tmp_path / "target.npy"), np.sort(x))
    assert tried
    assert ways() == ["sorted"]
    assert seen[-1].done == seen[-1].total == 2 * x.nbytes
    assert all(progress.done <= progress.total for progress in seen)


# -- resumed ----------------------------------------------------------------------------------------------


class Stopped(Exception):
    pass


def stopped_at(folder: Path, step: int, *, argsort: bool = False) -> int:
    """Stops a call when it has done so many steps, 0 for never. How many it did."""
    steps: list[gpusort.Progress] = []

    def stop(progress: gpusort.Progress) -> None:
        steps.append(progress)
        if len(steps) == step:
            raise Stopped

    call = gpusort.argsort_file if argsort else gpusort.sort_file
    try:
        call(folder / "source.npy", folder / "target.npy", memory=MEMORY, resume=True, progress=stop)
    except Stopped:
        assert names(folder) == ["source.npy", "target.npy.part", "target.npy.sorting"]
    return len(steps)


@pytest.mark.parametrize("argsort", [False, True])
def test_stopped_again_and_again(argsort: bool, tmp_path: Path, ways: Ways) -> None:
    """Buckets begin and end anywhere in a page, also where a call goes on."""
    x = keys_of("f4", 8)
    np.save(tmp_path / "source.npy", x)
    for step in (3, 5, 30):
        assert stopped_at(tmp_path, step, argsort=argsort) == step
    calls = 1
    while stopped_at(tmp_path, 1, argsort=argsort):
        calls += 1
    assert calls > 3
    expected = gpusort.argsort(x) if argsort else gpusort.sort(x)
    assert_same_bits(np.load(tmp_path / "target.npy"), expected)
    assert set(ways()) == {"parted"}


@pytest.mark.parametrize("step", [7, 60])
def test_gone_on_with_by_what_cannot_partition(
    step: int, tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that are not all there are sorted anew; if they are, their parts are sorted as they are."""
    x = keys_of("i8", 9)
    np.save(tmp_path / "source.npy", x)
    stopped_at(tmp_path, step)
    has_all = "parted" in ways()
    monkeypatch.setattr(engine, "_LITTLE", BIG)
    stopped_at(tmp_path, 5)
    monkeypatch.setattr(engine, "_LITTLE", LITTLE)  # and back
    stopped_at(tmp_path, 0)
    assert_same_bits(np.load(tmp_path / "target.npy"), np.sort(x))
    assert set(ways()) == {"parted" if has_all else "sorted"}
    assert has_all is (step == 60)


def test_stopped_where_samples_misled(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pivots, "_MOST", float("inf"))
    x = misleading()
    np.save(tmp_path / "source.npy", x)
    for step in (1, 2, 30, 30):
        stopped_at(tmp_path, step)
    stopped_at(tmp_path, 0)
    assert_same_bits(np.load(tmp_path / "target.npy"), np.sort(x))
    assert set(ways()) == {"sorted"}


# Kills itself when it has told its journal so many steps.
KILLED = """
import os, signal, sys
import numpy as np
import gpusort
from gpusort.api import engine
from gpusort.external import passes, scratch
passes._WORTH_PARTING, engine._LITTLE = 0, int(sys.argv[2])
mark, left = scratch.Scratch._write, [int(sys.argv[1])]
def write(self, line):
    mark(self, line)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
scratch.Scratch._write = write
if sys.argv[3] == "file":
    gpusort.sort_file("source.npy", "target.npy", memory=300_000, resume=True)
else:
    os.environ["GPUSORT_MEMORY"] = "300000"
    gpusort.sort_inplace(np.load("source.npy", mmap_mode="r+"))
"""


def killed(folder: Path, at: int, what: str, little: int = LITTLE) -> int:
    call = [sys.executable, "-c", KILLED, str(at), str(little), what]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_killed_again_and_again(dtype: str, tmp_path: Path) -> None:
    x = keys_of(dtype, 10)
    np.save(tmp_path / "source.npy", x)
    for at in (5, 30, 10, 11):
        assert killed(tmp_path, at, "file")
    assert killed(tmp_path, 0, "file") == 0
    assert names(tmp_path) == ["source.npy", "target.npy"]
    assert_same_bits(np.load(tmp_path / "target.npy"), gpusort.sort(x))


@pytest.mark.parametrize("little", [LITTLE, BIG])
def test_a_map_killed_in_place(little: int, tmp_path: Path) -> None:
    """Before it was written to and after that, when nothing but the runs is whole; gone on with by a call that has less
    memory, and so cannot partition, too."""
    x = keys_of("f4", 11)
    np.save(tmp_path / "source.npy", x)
    for at in (20, 90, 10):
        assert killed(tmp_path, at, "map")
    assert not np.array_equal(np.sort(np.load(tmp_path / "source.npy")), np.sort(x), equal_nan=True)
    assert killed(tmp_path, 0, "map", little) == 0
    assert names(tmp_path) == ["source.npy"]
    assert_same_bits(np.load(tmp_path / "source.npy"), gpusort.sort(x))


def test_maps(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_MEMORY", str(MEMORY))
    x = keys_of("f8", 12)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r+")
    assert_same_bits(np.asarray(gpusort.sort(mapped, descending=True)), gpusort.sort(x, descending=True))
    gpusort.sort_inplace(mapped)
    assert_same_bits(np.asarray(mapped), gpusort.sort(x))
    assert ways() == ["parted", "parted"]


# -- its parts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [2, 8, 32, 128])
@pytest.mark.parametrize("dtype", ["i4", "u4", "f4", "i8", "u8", "f8"])
def test_a_row_in_parts(dtype: str, parts: int) -> None:
    for count in (0, 1, 15, 16, 17, 4_000, 100_001):
        x = sample(dtype, count, parts)
        bounds = np.sort(sample(dtype, 4 * parts, 1))[: parts - 1]  # some alike; NaNs come last
        out = np.empty_like(x)
        ends = partition_row(x.copy(), out, bounds)
        assert ends[0] == 0
        assert ends[-1] == count
        assert_same_bits(gpusort.sort(out), gpusort.sort(x))
        belong = np.searchsorted(bounds, out, side="right")
        assert np.array_equal(belong, np.repeat(np.arange(parts), np.diff(ends)))


def test_no_more_parts_are_made_than_is_worth_it(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    x = keys_of("f8", 14)
    for most, way in ((512, "parted"), (8, "sorted")):
        monkeypatch.setattr(partition.RowPartition, "most_parts", most)
        assert_same_bits(sorted_in_a_file(tmp_path, x), gpusort.sort(x))
        assert ways() == [way]


@pytest.mark.parametrize(
    ("dtype", "compresses", "is_slow", "most"),
    [("f4", True, True, 512), ("f4", False, False, 32), ("u4", False, True, 8), ("i8", False, True, 512)],
)
def test_parts_that_are_worth_it(
    dtype: str, compresses: bool, is_slow: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where elements are parted one by one a pass takes a nanosecond for each, of any size."""

    def sorts_slowly(itemsize: int) -> bool:
        return is_slow

    monkeypatch.setattr(partition, "numpy_sorts_slowly", sorts_slowly)
    monkeypatch.setattr(type(machine()), "compresses", compresses)
    assert partition.RowPartition(np.dtype(dtype)).most_parts == most


def test_what_is_partitioned() -> None:
    assert all(can_partition(np.dtype(dtype)) for dtype in ("i4", "u8", "f4", "f8"))
    swapped = np.dtype(np.int32).newbyteorder()
    assert not any(can_partition(np.dtype(dtype)) for dtype in ("i2", "f2", "?", "u1", swapped))


@pytest.mark.parametrize("order", list(SortOrder))
@pytest.mark.parametrize("dtype", ["i4", "u8", "f4", "M8[s]", "m8[D]"])
def test_changed_keys_ascend_and_come_back(dtype: str, order: SortOrder) -> None:
    x = gpusort.sort(sample(dtype, 2_000, 2), descending=order is SortOrder.DESCENDING)
    change, keys = Ascending(x.dtype, order), x.copy()
    numbers = change.apply(keys)
    some = numbers[numbers == numbers]
    assert (some[1:] >= some[:-1]).all()
    assert not np.isnan(numbers[: np.count_nonzero(numbers == numbers)]).any()  # they come last
    change.undo(keys)
    assert_same_bits(keys, x)


def test_bytes_anywhere_in_a_file(tmp_path: Path) -> None:
    """Written one behind the other, by one process or by another that goes on."""
    content = np.random.default_rng(3).integers(0, 256, 5 * PAGE + 77, np.uint8)
    ends = [0, 10, PAGE - 1, PAGE + 5, PAGE + 6, 3 * PAGE, 5 * PAGE - 3, content.size]
    for reopened in (False, True):
        path = tmp_path / f"{reopened}"
        file = DirectFile(path, write=True)
        file.reserve(6 * PAGE)
        for start, stop in pairwise(ends):
            if reopened:
                file.close()
                file = DirectFile(path, write=True)
            buffer, lead = buffer_for(6 * PAGE), file.lead(start)
            buffer[lead : lead + stop - start] = content[start:stop]
            file.write(buffer, stop - start, start)
        file.cut_off(content.size)
        file.close()
        assert np.array_equal(np.fromfile(path, np.uint8), content)


def test_a_part_is_never_longer_than_a_run() -> None:
    assert runs.grouped([3, 3, 3, 3, 1, 9], 9) == [(0, 3), (3, 5), (5, 6)]
    assert runs.grouped([0, 0, 5], 9) == [(0, 3)]
    assert list(runs.parted_lines({"run 1", "run 2 0 5 9", "runs sorted", "bucket 1 of parts"})) == [2]
