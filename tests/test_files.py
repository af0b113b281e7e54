"""Files sorted in pieces, against NumPy's sort of the whole: dtypes, memory sizes, records, raw files, refusals."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpusort
from gpusort.api.engine import OwnEngine
from gpusort.external.direct import Bytes, DirectFile
from gpusort.external.disk_space import disk_full
from gpusort.external.formats import header_for, layout_of
from gpusort.external.pipeline import ahead, run_pipeline, slots_for
from gpusort.external.plans import LEAST, Plan, bytes_of, free_memory
from gpusort.external.work import FindIndices, FindPackedIndices, SortElements, SortRecords, finding_indices
from gpusort.types.indices import SortOrder
from tests.covering import examples, few_cases
from tests.reference import DTYPES, SWAPPED, Array, assert_same_bits, sample, sorted_by_numpy
from tests.striking import soon, threads


class Nobody:
    """Sorts nothing: for plans alone."""

    workers = 1

    @property
    def alone(self) -> Nobody:
        return self

    def sort(self, x: Array, out: Array, order: SortOrder, *, stable: bool) -> None:
        raise NotImplementedError

    def argsort(self, x: Array, order: SortOrder) -> Array:
        raise NotImplementedError

    def partition_for(self, dtype: np.dtype[np.generic]) -> None:
        raise NotImplementedError

    def foresee_sorts(self, dtype: np.dtype[np.generic], order: SortOrder, length: int) -> None:
        raise NotImplementedError


FLOATS = SortElements(np.dtype("f4"), SortOrder.ASCENDING, True, Nobody())
MANY_RUNS, FEW_RUNS, ONE_RUN = LEAST, 1 << 19, 1 << 25


def sorted_in_a_file(
    folder: Path, x: Array, *, descending: bool = False, stable: bool = True, memory: int = MANY_RUNS
) -> Array:
    source, target = folder / "source.npy", folder / "target.npy"
    np.save(source, x)
    before = source.read_bytes()
    gpusort.sort_file(source, target, descending=descending, stable=stable, memory=memory)
    assert source.read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["source.npy", "target.npy"]
    found: Array = np.load(target)
    return found


@few_cases(pairs=False)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, *SWAPPED])
def test_every_dtype(dtype: str, descending: bool, tmp_path: Path) -> None:
    x = sample(dtype, 9_000, seed=1)
    for memory in (MANY_RUNS, FEW_RUNS, ONE_RUN):
        found = sorted_in_a_file(tmp_path, x, descending=descending, memory=memory)
        assert_same_bits(found, sorted_by_numpy(x, descending=descending))
        places = tmp_path / "places.npy"
        gpusort.argsort_file(tmp_path / "source.npy", places, descending=descending, memory=memory)
        assert_same_bits(np.load(places), gpusort.argsort(x, descending=descending))
        places.unlink()


def unsigned_zeros_and_nans(x: Array) -> Array:
    """The bits, those of any NaN being one."""
    bits: Array = np.where(x == x, x, np.array(np.nan, x.dtype)).view(f"u{x.itemsize}")
    return bits


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_without_stable_floats_lie_by_their_bits(dtype: str, descending: bool, tmp_path: Path) -> None:
    """-0.0 before 0.0, or behind it, and NaNs in their order, also where they come from several runs."""
    nans = np.array([np.nan, -np.nan, np.nan], dtype)
    nans.view(f"u{nans.itemsize}")[2] += 1
    x = np.random.default_rng(5).choice(np.array([0.0, -0.0, 1.0, *nans, -np.inf], dtype), 9_000)
    bits = x.view(f"u{x.itemsize}")
    bits[::50] = nans.view(bits.dtype)[2]  # which no choice keeps
    found = sorted_in_a_file(tmp_path, x, descending=descending, stable=False)
    assert_same_bits(found, gpusort.sort(x, descending=descending))


def kinds_of_data(count: int) -> dict[str, Array]:
    numbers = np.random.default_rng(count)
    return {
        "equal": np.full(count, 7.5),
        "nan": np.full(count, np.nan),
        "sorted": np.arange(count, dtype=float),
        "reversed": np.arange(count, dtype=float)[::-1],
        "zipf": numbers.zipf(1.3, count).astype(float),
        "random": numbers.standard_normal(count),
    }


@pytest.mark.parametrize("count", [0, 1, 2, 512, 7_999])
@pytest.mark.parametrize("kind", kinds_of_data(1))
def test_kinds_of_data(kind: str, count: int, tmp_path: Path) -> None:
    x = kinds_of_data(count)[kind]
    for memory in (MANY_RUNS, ONE_RUN):
        assert_same_bits(sorted_in_a_file(tmp_path, x, memory=memory), np.sort(x, kind="stable"))


@pytest.mark.parametrize("length", [100, 999, 1024])
def test_the_last_run_may_have_one_element(length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs need not be whole pages."""
    monkeypatch.setattr(Plan, "within", lambda *_: Plan(length, 31))
    x = sample("f8", 4 * length + 1, seed=length)
    assert_same_bits(sorted_in_a_file(tmp_path, x), np.sort(x, kind="stable"))


RECORDS = np.dtype([("id", "<i4"), ("price", ">f4"), ("name", "S5"), ("day", "M8[D]")])


@settings(
    max_examples=examples(50),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_by_hypothesis(data: st.DataObject, tmp_path: Path) -> None:
    count = data.draw(st.integers(0, 9_000) | st.sampled_from((0, 1, 4096)))
    memory = data.draw(st.integers(LEAST, 1 << 20))
    descending = data.draw(st.booleans())
    seed = data.draw(st.integers(0, 99))
    dtype = data.draw(st.sampled_from((*DTYPES, *SWAPPED, "records")))
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    if dtype != "records":
        x = sample(dtype, count, seed)
        assert_same_bits(
            sorted_in_a_file(tmp_path, x, descending=descending, memory=memory),
            sorted_by_numpy(x, descending=descending),
        )
        return
    records = records_of(count, seed)
    by = data.draw(st.lists(st.sampled_from(("id", "price", "day")), min_size=1, max_size=3, unique=True))
    np.save(source, records)
    gpusort.sort_file(source, target, by=by, descending=descending, memory=memory)
    assert_same_bits(np.load(target), records[places_by(records, by, descending)])
    gpusort.argsort_file(source, target, by=by, descending=descending, memory=memory)
    assert_same_bits(np.load(target), places_by(records, by, descending))


def records_of(count: int, seed: int) -> Array:
    records = np.zeros(count, RECORDS)
    for name in ("id", "price", "day"):
        few = sample(str(RECORDS[name].str), count, seed)
        records[name] = np.random.default_rng(seed).choice(few[:20], count) if count else few
    records["name"] = [f"{i:05d}" for i in range(count)]
    return records


def places_by(records: Array, by: Sequence[str], descending: bool) -> Array:
    """By NumPy's ranks of each field: equal ones share one, NaN and NaT come last."""
    ranks: list[Array] = []
    for name in by:
        key = records[name].astype(records[name].dtype.newbyteorder("="))
        rank = np.unique(key, return_inverse=True, equal_nan=True)[1].astype(np.int64)
        last = key != key
        ranks.append(np.where(last, np.iinfo(np.int64).max, -rank if descending else rank))
    places: Array = np.lexsort(ranks[::-1]).astype(np.int64)
    return places


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["f4", ">i4", "f2", "u1", "?"])
def test_indices_are_packed_beside_narrow_keys(dtype: str, descending: bool) -> None:
    """As far as they have room: at the end of the longest input, too, a key counts before its index."""
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    records = np.dtype([("other", "u2"), ("key", dtype)])
    x = np.zeros(3000, records)
    x["key"] = sample(dtype, 3000, seed=4)
    for fields, elements in (((), x["key"].copy()), (("key",), x)):
        most = 1 << (64 - 8 * np.dtype(dtype).itemsize)
        work = finding_indices(elements.dtype, most, fields, order, OwnEngine("cpu"))
        assert isinstance(work, FindPackedIndices)
        assert type(finding_indices(elements.dtype, most + 1, fields, order, OwnEngine("cpu"))) is FindIndices
        start, runs = most - 3000, np.empty(3000, work.spilled)
        for part in (slice(0, 1000), slice(1000, 3000)):
            work.to_run(elements[part].copy(), start + part.start, runs[part])
            assert (np.diff(work.words(runs[part]).astype(object)) > 0).all()
        found = np.empty(3000, work.result)
        work.to_bucket(runs, found)
        assert_same_bits(found - start, gpusort.argsort(x["key"], descending=descending))


def test_indices_of_wide_or_several_keys_lie_beside_them() -> None:
    records = np.dtype([("a", "u2"), ("b", "f8")])
    for dtype, fields in ((np.dtype("i8"), ()), (records, ("b",)), (records, ("a", "b"))):
        assert type(finding_indices(dtype, 9, fields, SortOrder.ASCENDING, OwnEngine("cpu"))) is FindIndices


def test_records_by_one_name(tmp_path: Path) -> None:
    records = records_of(5_000, 1)
    source, target = tmp_path / "source.npy", tmp_path / "target.npy"
    np.save(source, records)
    gpusort.sort_file(str(source), str(target), by="price", memory=MANY_RUNS)
    assert_same_bits(np.load(target), records[places_by(records, ["price"], False)])


@pytest.mark.parametrize("offsets", [[4, 0], [0, 0]])
def test_records_whose_fields_lie_in_any_order(offsets: list[int], tmp_path: Path) -> None:
    """In raw files: the header of a .npy file has no words for them."""
    dtype = np.dtype({"names": ["a", "b"], "formats": ["<i4", ">u2"], "offsets": offsets, "itemsize": 8})
    raw, target = tmp_path / "x.bin", tmp_path / "y.bin"
    raw.write_bytes(np.random.default_rng(6).bytes(8 * 5_000))
    gpusort.sort_file(raw, target, dtype=dtype, by=["b", "a"], memory=MANY_RUNS)
    words, records = np.fromfile(raw, "u8"), np.fromfile(raw, dtype)
    assert_same_bits(np.fromfile(target, "u8"), words[np.lexsort((records["a"], records["b"]))])
    with pytest.raises(gpusort.InvalidArgumentError, match=r"target: \.npy files have no fields that overlap"):
        gpusort.sort_file(raw, tmp_path / "y.npy", dtype=dtype, by="a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bin", "y.bin"]


def test_raw_files_and_their_own_name(tmp_path: Path) -> None:
    """A file may be sorted over itself, and be named by a link."""
    x = sample("u2", 30_001, 4)
    source, link = tmp_path / "keys.bin", tmp_path / "link"
    x.tofile(source)
    link.symlink_to(source)
    gpusort.sort_file(link, link, dtype="u2", memory=MANY_RUNS)
    assert_same_bits(np.fromfile(source, "u2"), np.sort(x))
    assert link.is_symlink()
    gpusort.argsort_file(source, tmp_path / "places.raw", dtype="<u2", memory=MANY_RUNS)
    assert_same_bits(np.fromfile(tmp_path / "places.raw", "i8"), np.arange(x.size))


def test_scratch_elsewhere(tmp_path: Path) -> None:
    x = sample("f4", 30_000, 4)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    np.save(tmp_path / "x.npy", x)
    seen: list[list[str]] = []

    def look(progress: gpusort.Progress) -> None:
        seen.append([path.name for path in elsewhere.iterdir()])

    gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy", memory=MANY_RUNS, scratch=elsewhere, progress=look)
    assert all(len(names) == 1 and names[0].startswith("y.npy.") for names in seen)
    assert list(elsewhere.iterdir()) == []
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.sort(x))
    no_text = tmp_path / os.fsdecode(b"\xff.npy")
    gpusort.sort_file(tmp_path / "x.npy", no_text, memory=MANY_RUNS, scratch=elsewhere)
    np.testing.assert_array_equal(np.load(no_text), np.sort(x))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_what_is_replaced_is_for_whom_it_was(mode: int, tmp_path: Path) -> None:
    """A private file that is sorted over itself stays private, and so is all that lies there meanwhile."""
    path, places = tmp_path / "x.npy", tmp_path / "places.npy"
    np.save(path, sample("f4", 30_000, 5))
    path.chmod(mode)
    seen: set[int] = set()

    def look(progress: gpusort.Progress) -> None:
        seen.update(entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir() if entry != path)

    gpusort.sort_file(path, path, memory=MANY_RUNS, progress=look)
    assert seen <= {0o600, 0o700}
    assert path.stat().st_mode & 0o777 == mode
    gpusort.argsort_file(path, places)
    places.chmod(mode)
    gpusort.argsort_file(path, places)
    assert places.stat().st_mode & 0o777 == mode
    new, made = tmp_path / "new", tmp_path / "y.npy"
    new.touch()
    gpusort.sort_file(path, made)
    assert made.stat().st_mode == new.stat().st_mode


def test_a_folder_that_goes_while_its_lock_is_waited_for_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is done removes its folder: who has opened the journal by then holds a lock on nothing."""
    x = sample("f4", 3_000, 7)
    np.save(tmp_path / "x.npy", x)
    lock, times = fcntl.flock, iter(range(9))

    def removed_first(journal: int, how: int) -> None:
        if next(times) < 2:
            shutil.rmtree(tmp_path / "y.npy.sorting")
        lock(journal, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")
    assert next(times) == 4  # the last locks the part
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.sort(x))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "y.npy"]


def test_a_file_that_may_not_grow_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", sample("f8", 30_000, 5))
    before = (tmp_path / "x.npy").read_bytes()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
    try:
        for target in ("y.npy", "x.npy"):
            with pytest.raises(
                OSError, match=r"a file of .* bytes is more than this process may write \(ulimit -f\), or"
            ):
                gpusort.sort_file(tmp_path / "x.npy", tmp_path / target, memory=MANY_RUNS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    assert (tmp_path / "x.npy").read_bytes() == before


def test_progress(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", sample("f4", 30_000, 4))
    seen: list[gpusort.Progress] = []
    gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy", memory=MANY_RUNS, progress=seen.append)
    assert [step.done for step in seen] == sorted({step.done for step in seen})
    assert seen[-1].done == seen[-1].total == 2 * 120_000
    assert [step.step for step in seen] == sorted((step.step for step in seen), reverse=True)
    assert seen[-1].seconds_left == 0 < seen[0].seconds_left < 60
    assert seen[-1].rate == pytest.approx(240_000 / seen[-1].seconds)


def test_another_target_sorts_the_pieces(tmp_path: Path) -> None:
    x = sample("f4", 3_000, 6)
    np.save(tmp_path / "x.npy", x)
    gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy", memory=MANY_RUNS, target_device="simulator")
    found = np.load(tmp_path / "y.npy")
    np.testing.assert_array_equal(unsigned_zeros_and_nans(found), unsigned_zeros_and_nans(gpusort.sort(x)))


# -- formats and memory -----------------------------------------------------------------------------------


FIELDS = tuple(f"field{i}" for i in range(600))


@pytest.mark.parametrize("names", [("a",), ("schlüssel", "名"), FIELDS[:400], FIELDS])
def test_headers_are_whole_pages_that_numpy_reads(names: tuple[str, ...], tmp_path: Path) -> None:
    dtype = np.dtype([(name, "<f4") for name in names])
    header = header_for(Path("x.npy"), dtype, 3)
    assert len(header) % 4096 == 0 or len(names) == 400  # of which NumPy would not read as many
    path = tmp_path / "x.npy"
    path.write_bytes(header + bytes(3 * dtype.itemsize))
    found = np.load(path, max_header_size=10_000 if len(names) <= 400 else 1 << 20)
    assert (found.dtype, found.shape) == (dtype, (3,))
    assert layout_of(path, None).start == len(header)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (1 << 20, 1 << 20),
        ("65536", 65536),
        ("600M", 600 << 20),
        ("1.5GiB", 3 << 29),
        ("64 kb", 65536),
        ("9" * 400, 1 << 60),
    ],
)
def test_sizes_of_memory(memory: int | str, expected: int) -> None:
    assert bytes_of(memory) == expected


def test_half_of_what_is_free_is_taken() -> None:
    assert 0 < bytes_of("auto") <= free_memory()


@pytest.mark.parametrize(("count", "memory"), [(10**6, 1 << 24), (10**9, 1 << 28), (10**9, 1 << 30), (10**12, 1 << 36)])
def test_plans_keep_to_the_memory(count: int, memory: int) -> None:
    plan = Plan.within(memory, count, FLOATS)
    runs = -(-count // plan.run)
    buffers = plan.run * 4 * (5 if runs > 1 else 3)
    assert buffers + 32 * (count // plan.gap) + 96 * runs * plan.gap <= memory
    assert runs == 1 or buffers > memory / 4


def test_long_records_keep_to_the_memory(tmp_path: Path) -> None:
    """Also those of odd lengths, as pictures with a label, of which a thousand fill whole pages."""
    numbers = np.random.default_rng(4)
    records = np.zeros(300, [("label", "u1"), ("picture", "V50000")])
    records["label"] = numbers.integers(0, 255, 300)
    records["picture"] = np.arange(300).astype("S50000").view("V50000")
    engine = FLOATS.engine
    plan = Plan.within(1 << 20, 100_000, SortRecords(records.dtype, ("label",), SortOrder.ASCENDING, engine))
    assert plan.run * 50_001 * (2 * (engine.workers + 1) + engine.workers) <= 1 << 25
    np.save(tmp_path / "x.npy", records)
    seen: list[gpusort.Progress] = []
    gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy", by="label", memory=1 << 20, progress=seen.append)
    assert len(seen) > 8
    assert_same_bits(np.load(tmp_path / "y.npy"), records[np.argsort(records["label"], kind="stable")])


def test_too_little_memory_for_the_samples_of_a_huge_file() -> None:
    with pytest.raises(gpusort.InvalidArgumentError, match="more for 1,000,000,000,000 elements, such as 16384M"):
        Plan.within(1 << 30, 10**12, FLOATS)
    assert Plan.within(1 << 34, 10**12, FLOATS).run


@pytest.mark.parametrize("mebibytes", [1, 4, 16, 64])
@pytest.mark.parametrize("memory", [1 << 16, 1 << 18, 1 << 20])
def test_with_hardly_any_memory_buckets_read_hardly_more_than_the_file(memory: int, mebibytes: int) -> None:
    """Each reads a page at least of each run. What is taken beyond the memory is little."""
    count = mebibytes << 18
    plan = Plan.within(memory, count, FLOATS)
    runs = -(-count // plan.run)
    assert runs * runs * 4096 <= max(32 * 32 * 4096, 2 * 4 * count)
    workers = FLOATS.engine.workers
    assert plan.run * 4 * (2 * (workers + 1) + workers) <= max(memory, 1 << 25)


# -- refusals ---------------------------------------------------------------------------------------------


def test_a_bucket_reads_a_run_but_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies where it may end and what lies before that come by the same read."""
    seen: list[tuple[int, int]] = []
    read = DirectFile.read

    def noted(self: DirectFile, buffer: Bytes, start: int, stop: int) -> Bytes:
        seen.append((start, stop))
        return read(self, buffer, start, stop)

    monkeypatch.setattr(DirectFile, "read", noted)
    x = np.random.default_rng(0).integers(0, 1 << 40, 1 << 18)
    np.testing.assert_array_equal(sorted_in_a_file(tmp_path, x, memory=MANY_RUNS), np.sort(x))
    runs = sum(stop - start > x.nbytes // 100 for start, stop in seen[: len(seen) // 2])
    assert runs > 16  # pieces of the source, read whole
    assert len(seen) <= runs + runs * runs


def test_refusals(tmp_path: Path) -> None:
    plain, table, records = tmp_path / "x.npy", tmp_path / "square.npy", tmp_path / "records.npy"
    raw, whole, text = tmp_path / "keys.bin", tmp_path / "short.npy", tmp_path / "text.npy"
    empty = tmp_path / "empty.npy"
    np.save(plain, np.arange(100.0))
    np.save(table, np.zeros((3, 3)))
    np.save(records, records_of(10, 1))
    np.save(text, np.array(["a", "b"]))
    raw.write_bytes(bytes(10))
    empty.touch()
    whole.write_bytes(plain.read_bytes()[:-1])
    longer, nothing = tmp_path / "longer.npy", tmp_path / "nothing.npy"
    longer.write_bytes(plain.read_bytes() * 2)
    np.save(nothing, np.zeros(0))
    nothing.write_bytes(nothing.read_bytes() + b"1")
    out = tmp_path / "out.npy"
    wrong: Callable[..., None] = gpusort.sort_file
    for source, arguments, error, message in (
        (tmp_path / "none.npy", {}, FileNotFoundError, "source: there is no file"),
        (table, {}, gpusort.InvalidArgumentError, r"source: expected an array of one dimension in .*, found \(3, 3\)"),
        (whole, {}, gpusort.InvalidArgumentError, "source: .* is no whole .npy file"),
        (
            longer,
            {},
            gpusort.InvalidArgumentError,
            "longer.npy is no whole .npy file: behind the 100 .*, found 928 more",
        ),
        (
            nothing,
            {},
            gpusort.InvalidArgumentError,
            "nothing.npy is no whole .npy file: behind the 0 .*, found 1 more",
        ),
        (empty, {}, gpusort.InvalidArgumentError, "source: .* is no whole .npy file"),
        (raw, {}, gpusort.InvalidArgumentError, "dtype: .* is a raw file, whose dtype must be given, e.g. 'f4'"),
        (raw, {"dtype": "f4"}, gpusort.InvalidArgumentError, "has 10 bytes, which is no multiple of float32's"),
        (raw, {"dtype": "S5"}, gpusort.UnsupportedTypeError, "source: cannot order elements of dtype |S5"),
        (raw, {"dtype": "O"}, gpusort.UnsupportedTypeError, "source: cannot order elements of dtype object"),
        (raw, {"dtype": "U1"}, gpusort.UnsupportedTypeError, "source: cannot order elements of dtype <U1"),
        (raw, {"dtype": [("a", "O")], "by": "a"}, gpusort.UnsupportedTypeError, "by: a: cannot order .* object"),
        (raw, {"dtype": "f4,O", "by": "f0"}, gpusort.UnsupportedTypeError, "source: records .* no Python objects"),
        (plain, {"dtype": "O"}, gpusort.InvalidArgumentError, "dtype: .*x.npy says its own dtype"),
        (raw, {"dtype": "no"}, gpusort.UnsupportedTypeError, "dtype: expected a dtype"),
        (plain, {"dtype": "f8"}, gpusort.InvalidArgumentError, "dtype: .*x.npy says its own dtype"),
        (text, {}, gpusort.UnsupportedTypeError, "source: cannot order elements of dtype <U1"),
        (plain, {"by": "a"}, gpusort.InvalidArgumentError, "by: elements of dtype float64 have no fields .*, found a$"),
        (records, {}, gpusort.InvalidArgumentError, "by: expected one or more of id, price, name, day, found nothing"),
        (records, {"by": ["id", "no"]}, gpusort.InvalidArgumentError, "by: expected one or more of id, price"),
        (records, {"by": 3}, gpusort.UnsupportedTypeError, "by: expected a name, or a list of names, found 3"),
        (records, {"by": {"id"}}, gpusort.UnsupportedTypeError, "by: expected a name, or a list of names, found {"),
        (records, {"by": [["id"]]}, gpusort.UnsupportedTypeError, "by: expected a name, or a list of names, found "),
        (records, {"by": "name"}, gpusort.UnsupportedTypeError, "by: name: cannot order elements of dtype"),
        (plain, {"memory": 100}, gpusort.InvalidArgumentError, "memory: expected at least 65536 bytes, found 100"),
        (plain, {"memory": "much"}, gpusort.InvalidArgumentError, "memory: expected a number of bytes"),
        (plain, {"memory": 1e9}, gpusort.UnsupportedTypeError, "memory: expected a number of bytes"),
        (plain, {"descending": "no"}, gpusort.UnsupportedTypeError, "descending: expected True or False"),
        (plain, {"resume": "no"}, gpusort.UnsupportedTypeError, "resume: expected True or False"),
        (plain, {"scratch": tmp_path / "none"}, gpusort.InvalidArgumentError, "scratch: expected an existing folder"),
        (plain, {"progress": 1}, gpusort.UnsupportedTypeError, "progress: expected a function"),
        (plain, {"target_device": "vulkan"}, gpusort.InvalidArgumentError, "target_device: expected 'auto'"),
        (b"x.npy", {}, gpusort.UnsupportedTypeError, "source: expected a path, found b"),
        (3, {}, gpusort.UnsupportedTypeError, "source: expected a path, found 3"),
        ("a\0b", {}, gpusort.InvalidArgumentError, "source: expected a path, found 'a.x00b': .*embedded null"),
        ("a" * 300, {}, gpusort.InvalidArgumentError, "source: expected a path, found 'aaa.*: .*too long"),
    ):
        with pytest.raises(error, match=message):
            wrong(source, out, **arguments)
    for target in (tmp_path, tmp_path / "none" / "x.npy", f"{tmp_path}/x/"):
        with pytest.raises(gpusort.InvalidArgumentError, match="target: expected a file in an existing folder"):
            gpusort.sort_file(plain, target)
    with pytest.raises(gpusort.InvalidArgumentError, match="target: expected another file than the source"):
        gpusort.argsort_file(plain, plain)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"target: expected \.npy or a raw file, found .*\.parquet"):
        gpusort.argsort_file(plain, tmp_path / "places.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "empty.npy", "keys.bin", "longer.npy", "nothing.npy", "records.npy", "short.npy", "square.npy", "text.npy",
        "x.npy",
    ]  # fmt: skip


def test_a_file_that_is_not_there_is_named_as_the_system_does(tmp_path: Path) -> None:
    """By number and name, which a caller may look at."""
    missing = tmp_path / "none.npy"
    for call in (gpusort.sort_file, gpusort.argsort_file):
        with pytest.raises(FileNotFoundError, match="source: there is no file") as e:
            call(missing, tmp_path / "out.npy")
        assert (e.value.errno, e.value.filename) == (errno.ENOENT, str(missing.resolve()))


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".GZ", ".json"])
def test_a_known_format_is_not_taken_for_raw_elements(suffix: str, tmp_path: Path) -> None:
    """Neither to be read nor to be written, unless a dtype says that it is raw."""
    other, plain, x = tmp_path / f"x{suffix}", tmp_path / "x.npy", np.array([3, 1, 2], "i4")
    x.tofile(other)
    np.save(plain, x)
    said = f"{suffix.lower()} files are not supported; .npy, Parquet and Arrow files are"
    for call in (gpusort.sort_file, gpusort.argsort_file):
        with pytest.raises(gpusort.InvalidArgumentError, match=rf"^source: .*/x{suffix}: \{said}"):
            call(other, tmp_path / "out.npy")
        with pytest.raises(gpusort.InvalidArgumentError, match=rf"^target: .*/out{suffix}: \{said}"):
            call(plain, tmp_path / f"out{suffix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([other.name, "x.npy"])
    gpusort.sort_file(other, tmp_path / f"out{suffix}", dtype="i4")
    assert_same_bits(np.fromfile(tmp_path / f"out{suffix}", "i4"), np.sort(x))


_DEEP = "-" * 5000 + "1"


@pytest.mark.parametrize(
    "header",
    [
        "[1, 2", "{{}: 1}", pytest.param(_DEEP, id="deep"),
        *(f"{{'descr': {descr}, 'fortran_order': False, 'shape': ({length},)}}"
          for descr, length in (("'<f4'", 10**22), ("'<f4'", 1 << 62), ("'<f4'", True), ("('<f4',)", 1))),
    ],
)  # fmt: skip
def test_a_header_that_says_nothing_is_refused(tmp_path: Path, header: str) -> None:
    """Half a sentence, or a length that no memory has: NumPy's reader stumbles over them."""
    text = header.ljust(117) + "\n"
    (tmp_path / "x.npy").write_bytes(np.lib.format.magic(1, 0) + len(text).to_bytes(2, "little") + text.encode())
    with pytest.raises(gpusort.InvalidArgumentError, match=r"is no whole \.npy file of numbers or records"):
        gpusort.sort_file(tmp_path / "x.npy", tmp_path / "out.npy")


def test_memory_may_be_a_number_of_numpys(tmp_path: Path) -> None:
    memory = cast(int, np.int64(1 << 20))
    np.testing.assert_array_equal(sorted_in_a_file(tmp_path, np.arange(5)[::-1], memory=memory), np.arange(5))


def test_a_path_that_may_not_be_looked_at_is_refused_as_the_system_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path, strict: bool = False) -> Path:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "resolve", denied)
    with pytest.raises(PermissionError, match=r"x\.npy"):
        gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")


def test_links_in_a_circle_are_no_path(tmp_path: Path) -> None:
    for name, other in ("ab", "ba"):
        (tmp_path / name).symlink_to(tmp_path / other)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^source: expected a path, found "):
        gpusort.sort_file(tmp_path / "a", tmp_path / "out.npy")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("linked", [False, True])
def test_a_target_that_is_no_file_is_not_replaced(tmp_path: Path, linked: bool) -> None:
    """A pipe here; a device, as /dev/null, is gone for the whole machine where root's result is renamed over it."""
    source, pipe, link = tmp_path / "x.npy", tmp_path / "pipe.npy", tmp_path / "link.npy"
    np.save(source, np.arange(5))
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for call in (gpusort.sort_file, gpusort.argsort_file):
        with pytest.raises(gpusort.InvalidArgumentError, match=r"^target: .*(pipe|link)\.npy is not a regular file"):
            call(source, link if linked else pipe)
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.npy", "pipe.npy", "x.npy"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux names what is open")
def test_a_target_where_nothing_can_be_made_is_refused(tmp_path: Path) -> None:
    """Neither a pipe that has no path, nor a folder that takes no others, is waited for."""
    np.save(tmp_path / "x.npy", np.arange(5))
    ends = os.pipe()
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^target: /proc/.* is not a regular file"):
        gpusort.sort_file(tmp_path / "x.npy", f"/proc/self/fd/{ends[1]}")
    with pytest.raises(OSError, match=r"/proc/self/fd/y\.npy\.sorting|/proc/.*/fd/y\.npy\.sorting"):
        gpusort.sort_file(tmp_path / "x.npy", "/proc/self/fd/y.npy")
    for end in ends:
        os.close(end)


def test_a_disk_without_any_room_is_told_of_as_any_full_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one that is quite full there is no room for the journal either. The header counts too."""
    np.save(tmp_path / "x.npy", np.arange(5))

    def full(_file: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(gpusort.DiskFullError, match=r"4,136 bytes more in .*, where .* are free"):
        gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("preadv", "x.npy"), ("pwritev", "y.npy.part"), ("fsync", "y.npy.sorting/journal"),
        ("write", "y.npy.sorting/journal"), ("ftruncate", "y.npy.sorting/journal"),
    ],
)  # fmt: skip
def test_what_a_disk_refuses_tells_the_file(
    call: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a scratch folder on another disk it says which disk fails."""
    np.save(tmp_path / "x.npy", np.arange(50_000))

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match=rf"Input/output error: '.*{name}'"):
        gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy", memory=1 << 18)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_has_room_and_gives_none(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", np.arange(5))

    def full(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(gpusort.DiskFullError, match=r"where .* are free now: a quota or the inodes may be used up"):
        gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")


def test_room_that_would_just_do_is_not_what_is_missing(tmp_path: Path) -> None:
    assert ["a quota or the inodes" in str(disk_full(tmp_path, 5, free, has_scratch=False)) for free in (4, 5, 6)] == [
        False,
        True,
        True,
    ]


def test_what_no_sort_has_left_stays(tmp_path: Path) -> None:
    """A folder, or a file, that has the name of ours."""
    x, folder = sample("f4", 100, 4), tmp_path / "y.npy.sorting"
    np.save(tmp_path / "x.npy", x)
    for is_folder in (True, False):
        if is_folder:
            folder.mkdir()
            (folder / "mine").touch()
        else:
            shutil.rmtree(folder)
            folder.touch()
        with pytest.raises(gpusort.InvalidArgumentError, match=r"target: .*y\.npy\.sorting is in the way"):
            gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")
        assert folder.exists()
    folder.unlink()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(gpusort.InvalidArgumentError, match=r"target: .*y\.npy\.sorting is in the way"):
        gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")
    folder.unlink()
    part = tmp_path / "y.npy.part"
    for make in (part.touch, part.mkdir):
        make()
        with pytest.raises(gpusort.InvalidArgumentError, match=r"target: .*y\.npy\.part is in the way"):
            gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")
        assert part.exists()
        assert not folder.exists()
        if part.is_file():
            part.unlink()


@pytest.mark.skipif(getattr(os, "geteuid", os.getpid)() != 0, reason="only root can give a folder to another user")
def test_runs_are_not_written_for_another_user_to_read(tmp_path: Path) -> None:
    """Who has made a folder of the name where all can; but where the folder above is his, too, so are all files."""
    x, folder = sample("f4", 100, 4), tmp_path / "y.npy.sorting"
    np.save(tmp_path / "x.npy", x)
    folder.mkdir()
    os.chown(folder, 12345, -1)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"sorting is in the way, which no sort of this user"):
        gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")
    assert [*folder.iterdir()] == []
    os.chown(tmp_path, 12345, -1)
    gpusort.sort_file(tmp_path / "x.npy", tmp_path / "y.npy")
    assert not folder.exists()


# -- pieces side by side ----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_pieces_are_kept_in_order(count: int, workers: int) -> None:
    """However long each takes; and no slot is in use for two at once."""
    kept: list[int] = []
    told: list[int] = []
    loaded, made = [-1] * slots_for(workers), [-1] * slots_for(workers)

    def load(piece: int, slot: int) -> int:
        loaded[slot] = piece
        return piece

    def work(piece: int, found: int, slot: int) -> int:
        time.sleep(0.002 * (piece % 3))
        assert loaded[slot] == found == piece
        assert made[slot] == -1
        made[slot] = piece
        return piece

    def keep(piece: int, found: int, slot: int) -> None:
        assert made[slot] == found == piece
        made[slot] = -1
        kept.append(piece)

    run_pipeline(range(count), load, work, keep, told.append, workers)
    assert kept == told == list(range(count))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stage", ["load", "work", "keep"])
@pytest.mark.parametrize("at", [0, 3, 5])
def test_the_first_error_is_told_of(at: int, stage: str, workers: int) -> None:
    def fail(where: str, piece: int) -> None:
        if where == stage and piece >= at:
            raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match=f"piece {at}"):
        run_pipeline(
            range(6), lambda piece, _: fail("load", piece), lambda piece, _, __: fail("work", piece),
            lambda piece, _, __: fail("keep", piece), workers=workers,
        )  # fmt: skip


class Loaded:
    """Memory that a slot gives up for another."""


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_piece_is_let_go_when_its_slot_takes_another(workers: int) -> None:
    """Calls that wait for one another hold neither each other nor what they were made with."""
    seen: list[weakref.ref[Loaded]] = []
    most = 0

    def load(piece: int, slot: int) -> Loaded:
        nonlocal most
        loaded = Loaded()
        seen.append(weakref.ref(loaded))
        most = max(most, sum(one() is not None for one in seen))
        return loaded

    def nothing(piece: int, loaded: object, slot: int) -> None:
        pass

    run_pipeline(range(40), load, nothing, nothing, workers=workers)
    assert most <= slots_for(workers) + 2  # the caller's last one, and one that has just been made


def test_values_are_made_ahead() -> None:
    """One while its predecessor is used; not the second next."""
    made: list[int] = []

    def values() -> Iterator[int]:
        for value in range(5):
            made.append(value)
            yield value
        raise ValueError("value 5")

    before, found = threads(), ahead(values())
    assert made == []
    for value in range(3):
        assert next(found) == value
        assert soon(partial(made.__contains__, value + 1))
        assert made == [*range(value + 2)]
    found.close()
    assert soon(lambda: threads() == before)
    assert made == [0, 1, 2, 3]
    found = ahead(values())
    assert [next(found) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="value 5"):
        next(found)
