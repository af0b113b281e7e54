"""Dask arrays and dataframes on a cluster of two processes: p2p, tasks that fail once, and workers that are killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import gpusort
import gpusort.dask
from gpusort.dask import exchange as dask_exchange
from tests.covering import few_cases
from tests.documents import ROOT
from tests.reference import Array, assert_same_bits, sample

_OF_WORKERS = ("gpusort.api.sorting", "gpusort.algos.choice", "gpusort.targets.cpu.kernels", "llvmlite.binding")
LENGTHS = (0, 1, 400, 0, 600, 1, 499, 700)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    quiet = {
        "distributed.worker.memory.terminate": False, "distributed.admin.log-format": "%(message)s",
        "distributed.worker.multiprocessing-method": "forkserver",
    }  # fmt: skip
    with dask.config.set(quiet):
        # Imports are done once, and not by each worker: distributed asks for its own in the first call of this.
        method = import_module("distributed.utils").get_mp_context()
        method.set_forkserver_preload(["distributed", "dask.array", "dask.dataframe", "gpusort.dask", *_OF_WORKERS])
    with (
        dask.config.set(quiet),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        yield client


def chunked(x: Array) -> da.Array:
    return da.from_array(x, chunks=(LENGTHS,))


@few_cases(pairs=False)
@pytest.mark.parametrize("exchange", ["p2p", "tasks"])
@pytest.mark.parametrize("descending", [False, True])
def test_on_a_cluster(client: Client, descending: bool, exchange: str) -> None:
    x, numbers = sample("f4", sum(LENGTHS), seed=1), np.arange(sum(LENGTHS))
    found = gpusort.dask.sort(chunked(x), descending=descending, exchange=exchange)
    places = gpusort.dask.argsort(chunked(x), descending=descending, exchange=exchange)
    pairs = gpusort.dask.sort_by_key(chunked(x), chunked(numbers), descending=descending, exchange=exchange)
    computed = dask.compute(found, places, *pairs)
    expected = gpusort.sort(x, descending=descending), gpusort.argsort(x, descending=descending)
    for part, whole in zip(computed, (*expected, *gpusort.sort_by_key(x, numbers, descending=descending)), strict=True):
        assert_same_bits(part, whole)


def test_several_chunks_in_a_file_of_p2p(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from 129 chunks on."""
    monkeypatch.setattr(dask_exchange, "_FILES", 16)
    x = sample("i4", 121, seed=5)
    given = da.from_array(x, chunks=3)
    assert_same_bits(gpusort.dask.sort(given, exchange="p2p").compute(), gpusort.sort(x))


def test_the_byte_order_is_kept_by_p2p(client: Client) -> None:
    """Whose pickles of small arrays do not."""
    x, numbers = sample(">f4", sum(LENGTHS)), np.arange(sum(LENGTHS)).astype(">i8")
    found = gpusort.dask.sort(chunked(x), exchange="p2p")
    pairs = gpusort.dask.sort_by_key(chunked(x), chunked(numbers), exchange="p2p")
    for part, whole in zip(
        dask.compute(found, *pairs), (gpusort.sort(x), *gpusort.sort_by_key(x, numbers)), strict=True
    ):
        assert_same_bits(part, whole)


def test_the_exchange_follows_the_number_of_chunks(client: Client) -> None:
    for count, exchange in ((32, "tasks"), (33, "p2p")):
        x = da.zeros(2 * count, chunks=2)
        assert gpusort.sort(x).name == gpusort.dask.sort(x, exchange=exchange).name


def fails_once(block: Array, marker: Path, how: str, block_id: tuple[int, ...] = (0,)) -> Array:
    """A chunk, once its first task has failed or has killed its worker."""
    if block_id == (4,) and not marker.exists():
        marker.touch()
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError("a disk that is read at the second try")
    return block


@pytest.mark.parametrize(("at", "exchange"), [("before", "tasks"), ("behind", "p2p")])
def test_a_worker_is_killed(client: Client, at: str, exchange: str, tmp_path: Path) -> None:
    """While chunks are sorted, or while buckets are: what it had is lost, and done again by the other."""
    x = sample("f4", sum(LENGTHS), seed=2)
    given = chunked(x)
    kill = partial(fails_once, marker=tmp_path / "killed", how="killed")
    if at == "before":
        given = given.map_blocks(kill, dtype=x.dtype, meta=x[:0])
    found = gpusort.dask.argsort(given, exchange=exchange)
    if at == "behind":
        found = found.map_blocks(kill, dtype=np.int64, meta=np.empty(0, np.int64))
    assert_same_bits(found.compute(), gpusort.argsort(x))
    assert (tmp_path / "killed").exists()


def test_a_task_that_fails_is_done_again(client: Client, tmp_path: Path) -> None:
    x = sample("f4", sum(LENGTHS), seed=3)
    fail = partial(fails_once, marker=tmp_path / "failed", how="failed")
    with dask.annotate(retries=1), dask.config.set({"optimization.fuse.active": False}):
        found = gpusort.dask.sort(chunked(x).map_blocks(fail, dtype=x.dtype, meta=x[:0]))
        assert_same_bits(found.compute(retries=1), gpusort.sort(x))
    assert (tmp_path / "failed").exists()


# -- dataframes ---------------------------------------------------------------------------------------------


def rows(count: int) -> pd.DataFrame:
    numbers = np.random.default_rng(4)
    frame = pd.DataFrame({"price": numbers.integers(0, 20, count) / 4, "id": np.arange(count)})
    frame["price"] = np.where(frame["id"].to_numpy() % 17 == 0, np.nan, frame["price"].to_numpy())
    frame["volume"] = numbers.integers(0, 9, count)
    frame["name"] = [f"name {number}" for number in range(count)]
    frame["day"] = np.datetime64("2026-11-22") + numbers.integers(0, 5, count).astype("m8[D]")
    return frame


def assert_rows_sorted(**settings: Any) -> None:
    given = dd.from_pandas(rows(700), npartitions=6)
    whole = given.compute()
    for by, ascending in (("price", True), ("price", False), (["day", "volume"], [False, True])):
        found = gpusort.dask.sort_values(given, by, ascending=ascending, **settings)
        assert found.npartitions == given.npartitions
        assert found.compute().equals(whole.sort_values(by, ascending=ascending, kind="stable"))


def test_dataframes(client: Client) -> None:
    assert_rows_sorted()


def test_dataframes_in_one_process() -> None:
    with dask.config.set(scheduler="synchronous"):
        assert_rows_sorted(exchange="shared")
        one = dd.from_pandas(rows(50), npartitions=1)
        found = gpusort.dask.sort_values(one, "volume")
        assert found.compute().equals(one.compute().sort_values("volume", kind="stable"))


@pytest.mark.parametrize(
    "dtype", ["Int64", "UInt8", "Float32", "boolean", "int64[pyarrow]", "timestamp[us][pyarrow]", "date32[pyarrow]"]
)
@pytest.mark.parametrize("ascending", [False, True])
def test_nulls_of_a_column_come_last(dtype: str, ascending: bool) -> None:
    pytest.importorskip("pyarrow")
    pandas: Any = pd  # of which the stub has less
    numbers = np.random.default_rng(5).integers(0, 2 if dtype == "boolean" else 40, 300)
    key = pandas.Series(numbers).astype("boolean" if dtype == "boolean" else "Int64").mask(np.arange(300) % 7 == 3)
    if "[" in dtype:
        key = key.astype("int32[pyarrow]" if "date" in dtype else "int64[pyarrow]")
    key = key.astype(dtype)
    whole = pd.DataFrame({"key": key, "id": np.arange(300)})
    with dask.config.set(scheduler="synchronous"):
        for by in ("key", ["key", "id"]):
            found = gpusort.dask.sort_values(dd.from_pandas(whole, npartitions=5), by, ascending=ascending)
            expected = whole.sort_values(by, ascending=ascending, kind="stable")
            pandas.testing.assert_frame_equal(found.compute(), expected)


@pytest.mark.parametrize("ascending", [False, True])
def test_times_with_a_zone(ascending: bool) -> None:
    """In the order of UTC: of the hour that clocks go back in, too."""
    pandas: Any = pd
    minutes = np.random.default_rng(6).permutation(400) * np.timedelta64(1, "m")
    utc = pandas.Series(np.datetime64("2026-10-24T22:00") + minutes).dt.tz_localize("UTC")
    times = utc.dt.tz_convert("Europe/Berlin")
    whole = pd.DataFrame({"key": times.mask(times.index % 9 == 4), "id": np.arange(400)})
    with dask.config.set(scheduler="synchronous"):
        found = gpusort.dask.sort_values(dd.from_pandas(whole, npartitions=5), "key", ascending=ascending)
        pandas.testing.assert_frame_equal(found.compute(), whole.sort_values("key", ascending=ascending, kind="stable"))


@pytest.mark.parametrize("count", [0, 1, 2, 5, 40])
def test_few_rows_by_several_columns(count: int) -> None:
    """Of most partitions nothing is left to decide where they are cut."""
    given = dd.from_pandas(rows(count), npartitions=4)
    with dask.config.set(scheduler="synchronous"):
        found = gpusort.dask.sort_values(given, ["volume", "price"])
        assert found.compute().equals(given.compute().sort_values(["volume", "price"], kind="stable"))


def test_categories_that_partitions_differ_in_are_united() -> None:
    """As those of columns that `read_csv` is told are of categories."""
    pandas: Any = pd
    parts = [
        pandas.DataFrame({"key": [2, 0, 1], "kind": pandas.Categorical(list(kinds)), "id": [at, at + 1, at + 2]})
        for at, kinds in ((0, "aab"), (3, "bcb"), (6, "ddd"))
    ]
    given = dd.from_map(lambda part: parts[part], range(3), meta=parts[0][:0])
    with dask.config.set(scheduler="synchronous"):
        found, expected = gpusort.dask.sort_values(given, "key").compute(), given.compute()
    pandas.testing.assert_frame_equal(found, expected.sort_values("key", kind="stable"), check_categorical=False)
    assert found["kind"].dtype == "category"


def test_columns_have_labels_of_any_kind() -> None:
    labels: list[Any] = [0, ("a", 1), "b"]
    whole = pd.DataFrame(dict(zip(labels, ([3, 1, 2], [1, 1, 0], [0.5, np.nan, 0.25]), strict=True)))
    given = dd.from_pandas(whole, npartitions=2)
    with dask.config.set(scheduler="synchronous"):
        for by, numbers in ((0, [1, 2, 3]), (("a", 1), [2, 3, 1]), ([("a", 1), 0], [2, 1, 3]), (("b",), [2, 3, 1])):
            assert gpusort.dask.sort_values(given, by).compute()[0].to_numpy().tolist() == numbers
        wrong: list[Any] = [None, 3, [["b"]], np.array([7, 8]), ("a", 2)]
        for by in wrong:
            with pytest.raises(ValueError, match=r"^by: expected one or more of 0, "):
                gpusort.dask.sort_values(given, by)


def test_refusals_of_dataframes() -> None:
    given = dd.from_pandas(rows(50), npartitions=2)
    with pytest.raises(TypeError, match="frame: expected a dask dataframe, found DataFrame"):
        gpusort.dask.sort_values(rows(3), "id")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="by: expected one or more of price, id, volume, name, day, found 'size'"):
        gpusort.dask.sort_values(given, "size")
    for unordered in ({"price"}, frozenset(["price"])):
        with pytest.raises(ValueError, match=r"by: expected one or more of .*, found .*\{'price'\}"):
            gpusort.dask.sort_values(given, cast(Any, unordered))
    with pytest.raises(ValueError, match="by: expected one or more of"):
        gpusort.dask.sort_values(given, [])
    pandas: Any = pd
    twice = pandas.DataFrame([[1, 2, 3]], columns=["id", "id", "price"])
    with pytest.raises(ValueError, match="by: expected one or more of price, found 'id'"):
        gpusort.dask.sort_values(dd.from_pandas(twice, npartitions=1), "id")
    with pytest.raises(ValueError, match="exchange: expected one of auto"):
        gpusort.dask.sort_values(dd.from_pandas(rows(3), npartitions=1), "id", exchange="mail")
    with pytest.raises(TypeError, match="by: cannot order the column 'name' of dtype str"):
        gpusort.dask.sort_values(given, "name")
    with pytest.raises(ValueError, match="ascending: expected one for each of 2 columns, found 1"):
        gpusort.dask.sort_values(given, ["id", "price"], ascending=[True])
    with pytest.raises(TypeError, match="ascending: expected True or False, found 'no'"):
        gpusort.dask.sort_values(given, "id", ascending=cast(Any, "no"))


def of_partitions(*parts: dict[str, Any]) -> dd.DataFrame:
    """A frame that says of all partitions what is true of the first."""
    frames = [pd.DataFrame(part) for part in parts]
    library: Any = dd

    def part(number: int) -> pd.DataFrame:
        return frames[number]

    made: dd.DataFrame = library.from_map(part, range(len(frames)), meta=frames[0].iloc[:0])
    return made


def test_partitions_of_another_dtype_than_the_frame_says_are_refused() -> None:
    """Of floats in a column of ints, as files with blanks have, the ints below them would be compared."""
    pandas: Any = pd
    ints, floats, none = {"a": [4, 1]}, {"a": [3.7, 3.2]}, {"a": np.empty(0)}
    with dask.config.set(scheduler="synchronous"):
        for other, message in (
            (
                floats,
                r"^frame: expected int64 in the column 'a' of every .* found float64, e\.g\. `frame\.astype\(\{'a': ",
            ),
            (
                {"a": pandas.array([3, None], dtype="Int64")},
                r"^frame: expected int64 in the column 'a' .* found Int64, ",
            ),
        ):
            for parts in ((ints, other), (ints, none, other)):
                with pytest.raises(TypeError, match=message):
                    gpusort.dask.sort_values(of_partitions(*parts), "a").compute()
        mixed: Any = of_partitions(ints, floats)
        for given in (of_partitions(floats, ints), mixed.astype({"a": "float64"}), of_partitions(floats, none, ints)):
            found: Any = gpusort.dask.sort_values(given, "a").compute()
            assert found["a"].tolist() == [1, 3.2, 3.7, 4]
        narrow: Any = gpusort.dask.sort_values(of_partitions(ints, {"a": np.array([3, -2], np.int8)}), "a").compute()
        assert narrow["a"].tolist() == [-2, 1, 3, 4]


@pytest.mark.parametrize("exchange", ["shared", "p2p"])
def test_few_tasks_a_partition(exchange: str) -> None:
    """Of a dataframe seven and a few, with what reads it."""
    count = 300
    whole = pd.DataFrame({"key": np.arange(4 * count)})
    found: Any = gpusort.dask.sort_values(dd.from_pandas(whole, npartitions=count), "key", exchange=exchange)
    graph: dict[object, object] = dict(found.optimize().dask)
    assert sum(type(task).__name__ != "Alias" for task in graph.values()) <= 8 * count


@pytest.mark.filterwarnings("ignore:Port 8787")  # which the other cluster has
def test_the_example_is_right_though_a_worker_is_killed(
    client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On workers of its own, which `client` has seen to that they import nothing."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples"), *sys.path])  # which workers have, too
    import_module("sort_with_dask").main()
    assert capsys.readouterr().out == "200,000 keys in 20 chunks; a process was killed, and no key lost\n"
