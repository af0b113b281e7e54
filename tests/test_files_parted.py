"""Files whose pieces are partitioned by common pivots: against sorts of the whole, resumed, and in place."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.api import engine
from gpusort.external import journal, maps, parting, runs, sort
from gpusort.external.direct import PAGE, Bytes
from gpusort.targets.cpu.host import partition
from tests.covering import few_cases
from tests.new_process import run_sort
from tests.reference import Array, assert_same_bits, sample

MEMORY, COUNT = 300_000, 200_003
BIG, LITTLE = 1 << 62, 0
FEW = 5  # steps, of which it may be that none is written


class Ways:
    """Which runs were made: "parted" and "sorted", as they came."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def noting(self, buckets: Callable[[Any], list[int]], name: str) -> Callable[[Any], list[int]]:
        def noted(made: runs.Runs) -> list[int]:
            self.taken.append(name)
            return buckets(made)

        return noted

    def __call__(self) -> list[str]:
        found, self.taken = self.taken, []
        return found


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """Everything is worth being partitioned."""
    monkeypatch.setattr(sort, "_WORTH_PARTING", 0)
    monkeypatch.setattr(engine, "_LITTLE", LITTLE)
    for most in "_MOST_ONE_BY_ONE", "_MOST_BESIDE_RADIX":  # on a processor that does not compress vectors
        monkeypatch.setattr(partition, most, 512)
    seen = Ways()
    kinds: list[tuple[type[runs.PartedRuns | runs.SortedRuns], str]] = [
        (runs.PartedRuns, "parted"),
        (runs.SortedRuns, "sorted"),
    ]
    for kind, name in kinds:
        monkeypatch.setattr(kind, "buckets", seen.noting(kind.buckets, name))
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


@few_cases(pairs=False)
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
    numbers, x = Random(0), np.zeros(COUNT, np.int64)
    length = COUNT // 256
    for look in range(256):
        start = COUNT * look // 256 + int(numbers.random() * (length - page + 1))
        x[start : start + page] = np.random.default_rng(look).integers(0, 1 << 40, page)
    return x


def test_what_samples_do_not_show(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is too long is seen in the first pass, which begins anew; progress never tells of more than all."""
    monkeypatch.setattr(parting, "_MOST", float("inf"))
    seen: list[gpusort.Progress] = []
    x = misleading()
    np.save(tmp_path / "source.npy", x)
    tried: list[int] = []
    make = runs.PartedRuns.make

    def noted(self: runs.PartedRuns, run: int, piece: Array, out: Array) -> None:
        tried.append(run)
        make(self, run, piece, out)

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
        left = names(folder)
        has_none = (
            left == ["source.npy"] and step < FEW
        )  # what is worked on may not be written yet, and nothing is kept
        assert has_none or left == ["source.npy", "target.npy.part", "target.npy.sorting"]
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


def test_gone_on_with_by_more_threads(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which have a slot each, also where there are more buckets than the two runs of a call with one thread."""
    x = keys_of("f4", 9)
    np.save(tmp_path / "source.npy", x)
    monkeypatch.setattr(f"{__name__}.MEMORY", 22 * COUNT)
    for cores, step in ((1, 2), (4, 0)):
        monkeypatch.setattr(engine, "core_count", partial(int, cores))
        stopped_at(tmp_path, step)
    assert_same_bits(np.load(tmp_path / "target.npy"), gpusort.sort(x))
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


def test_a_sorted_run_that_no_line_tells_of_voids_the_parted_one_below_it(
    tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a call that can partition again."""
    x = keys_of("i8", 12)
    np.save(tmp_path / "source.npy", x)
    stopped_at(tmp_path, 7)
    told, mark = list[str](), journal.Journal.mark

    def stop(self: journal.Journal, step: str, sync: Callable[[], object], *, now: bool = False) -> None:
        if step.startswith("run "):  # which is written by now
            told.append(step)
            raise Stopped
        mark(self, step, sync, now=now)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_LITTLE", BIG)
        patch.setattr(journal.Journal, "mark", stop)
        stopped_at(tmp_path, 0)
    assert told
    stopped_at(tmp_path, 0)
    assert_same_bits(np.load(tmp_path / "target.npy"), np.sort(x))
    assert set(ways()) == {"sorted"}


def test_stopped_where_samples_misled(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parting, "_MOST", float("inf"))
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
from gpusort.external import journal, sort
sort._WORTH_PARTING, engine._LITTLE = 0, int(sys.argv[2])
mark, left = journal.Journal.write, [int(sys.argv[1])]
def write(self, line):
    mark(self, line)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
journal.Journal.write = write
if sys.argv[3] == "file":
    gpusort.sort_file("source.npy", "target.npy", memory=300_000, resume=True)
else:
    os.environ["GPUSORT_MEMORY"] = "300000"
    gpusort.sort_inplace(np.load("source.npy", mmap_mode="r+"))
"""


def killed(folder: Path, at: int, what: str, little: int = LITTLE) -> int:
    done = run_sort(KILLED, str(at), str(little), what, cwd=folder)
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


@few_cases()
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["u4", ">i4", "f8", "M8[us]"])
def test_a_map_that_fails_in_place(
    dtype: str, descending: bool, tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its elements come back as they were before they were changed to be partitioned."""
    monkeypatch.setenv("GPUSORT_MEMORY", str(MEMORY))
    x = keys_of(dtype, 13)
    np.save(tmp_path / "x.npy", x)
    write, written = maps.InPlaceEndpoint.write, list[int]()

    def stop(self: maps.InPlaceEndpoint, buffer: Bytes, nbytes: int, offset: int) -> None:
        if len(written) == 4:
            raise KeyboardInterrupt
        written.append(offset)
        write(self, buffer, nbytes, offset)

    monkeypatch.setattr(maps.InPlaceEndpoint, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_inplace(np.load(tmp_path / "x.npy", mmap_mode="r+"), descending=descending)
    assert ways() == ["parted"]
    assert_same_bits(gpusort.sort(np.load(tmp_path / "x.npy")), gpusort.sort(x))


def test_maps(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_MEMORY", str(MEMORY))
    x = keys_of("f8", 12)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r+")
    assert_same_bits(np.asarray(gpusort.sort(mapped, descending=True)), gpusort.sort(x, descending=True))
    gpusort.sort_inplace(mapped)
    assert_same_bits(np.asarray(mapped), gpusort.sort(x))
    assert ways() == ["parted", "parted"]


def test_no_more_parts_are_made_than_is_worth_it(tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    x = keys_of("f8", 14)
    for most, way in ((512, "parted"), (8, "sorted")):
        monkeypatch.setattr(partition.RowPartition, "most_parts", most)
        assert_same_bits(sorted_in_a_file(tmp_path, x), gpusort.sort(x))
        assert ways() == [way]


@few_cases()
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8", "M8[us]"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_table_of_one_column(
    suffix: str, dtype: str, descending: bool, tmp_path: Path, ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose floats keep their order where they tie; with too many of those it is sorted."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from gpusort.external import columns
    from gpusort.external.arrow_values import values_of

    x = keys_of(dtype, 8)
    if dtype == "M8[us]":
        x[np.isnat(x)] = 0
    table = pa.table({"x": pa.array(x, from_pandas=False)})
    source, target = tmp_path / f"source.{suffix}", tmp_path / f"target.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, source, 9_000)
    else:
        with pa.OSFile(str(source), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, 9_000)
    expected = gpusort.sort(x, descending=descending, stable=True)
    for most, way in ((1 << 21, ["parted"]), (3, ["sorted"] if dtype.startswith("f") else ["parted"])):
        monkeypatch.setattr(columns, "_MOST_NOTED", most)
        gpusort.sort_file(source, target, by="x", descending=descending, memory=MEMORY)
        assert ways() == way
        found = parquet.read_table(target) if suffix == "parquet" else pa.ipc.open_file(str(target)).read_all()
        assert_same_bits(values_of(found["x"].combine_chunks()), expected)
    assert names(tmp_path) == [source.name, target.name]


def test_a_column_of_floats_that_is_killed(tmp_path: Path, ways: Ways) -> None:
    """What was noted of its ties is lost with the process: its pieces are partitioned again."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from gpusort.external.arrow_values import values_of

    x = keys_of("f4", 9)
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    parquet.write_table(pa.table({"x": x}), source, 9_000)
    steps: list[str] = []

    def stop(progress: gpusort.Progress) -> None:
        steps.append(progress.step)
        if len(steps) in (7, 30):
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            gpusort.sort_file(
                tmp_path / "source.parquet",
                tmp_path / "target.parquet",
                by="x",
                memory=MEMORY,
                resume=True,
                progress=stop,
            )
    gpusort.sort_file(tmp_path / "source.parquet", tmp_path / "target.parquet", by="x", memory=MEMORY, resume=True)
    assert set(ways()) == {"parted"}
    assert_same_bits(values_of(parquet.read_table(target)["x"].combine_chunks()), gpusort.sort(x, stable=True))
    assert names(tmp_path) == ["source.parquet", "target.parquet"]
