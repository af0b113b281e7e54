"""Parquet and Arrow files sorted by their columns, against NumPy's lexsort of their rows."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal, localcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpusort
from gpusort.external.plans import LEAST
from tests.covering import InTurn, examples, few_cases
from tests.new_process import PRINT_PEAK, printed, run_new, run_sort
from tests.reference import Array, sample

pytest.importorskip("pyarrow")
import pyarrow as pa  # where it is here
from pyarrow import parquet

from gpusort.external import tables
from gpusort.external.arrow_values import dtype_of, key_dtypes, values_of
from gpusort.external.table_files import ArrowRun, open_table
from gpusort.external.table_sinks import PyarrowSink

NUMBERS = ("u1", "i2", "u4", "i8", "f2", "f4", "f8", "?", "M8[us]")


def table_of(rows: int, seed: int) -> pa.Table:
    """Keys of few values, with and without nulls, and text to take along."""
    numbers = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    for dtype in NUMBERS:
        few = sample(dtype, 12, seed)
        if dtype == "?":
            few = few.view("u1").astype(bool)
        key = numbers.choice(few, rows)
        columns[dtype] = pa.array(key)
        columns[f"{dtype} or null"] = pa.array(key, mask=numbers.random(rows) < 0.2)
    columns["day"] = pa.array(numbers.integers(0, 9, rows).astype("M8[D]"))
    columns["text"] = pa.array([None if i % 7 == 0 else f"row {i}" for i in range(rows)], pa.string())
    return pa.table(columns)


def order_of(table: pa.Table, by: Sequence[str], descending: bool) -> Array:
    """Ranks of each column: equal ones share one, then come NaN and NaT, then nulls."""
    ranks: list[Array] = []
    for name in by:
        column = table[name].combine_chunks()
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        values = column.drop_null().to_numpy(zero_copy_only=False)
        rank = np.unique(values, return_inverse=True, equal_nan=True)[1].astype(np.int64)
        rank = np.where(values != values, 1 << 40, -rank if descending else rank)
        whole = np.full(len(column), 1 << 50)
        whole[~is_null] = rank
        ranks.append(whole)
    order: Array = np.lexsort(ranks[::-1]).astype(np.int64)
    return order


def write(table: pa.Table, path: Path, rows: int | None = None) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(table, path, rows)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, rows)


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return parquet.read_table(path)
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def assert_same_table(found: pa.Table, expected: pa.Table) -> None:
    assert found.schema.equals(expected.schema)
    assert found.num_rows == expected.num_rows
    for name in found.column_names:
        one, other = found[name].combine_chunks(), expected[name].combine_chunks()
        if pa.types.is_floating(one.type):  # NaN is to be NaN, and -0.0 itself
            assert one.is_null().equals(other.is_null())
            bits = [column.drop_null().to_numpy(zero_copy_only=False).tobytes() for column in (one, other)]
            assert bits[0] == bits[1]
        else:
            assert one.equals(other)


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_by_hypothesis(data: st.DataObject, tmp_path: Path) -> None:
    rows = data.draw(st.integers(0, 1200) | st.sampled_from((0, 1, 2)))
    table = table_of(rows, data.draw(st.integers(0, 99)))
    keys = [name for name in table.column_names if name != "text"]
    by = data.draw(st.lists(st.sampled_from(keys), min_size=1, max_size=3, unique=True))
    descending = data.draw(st.booleans())
    memory = data.draw(st.integers(LEAST, 1 << 21))
    source = tmp_path / data.draw(st.sampled_from(("source.parquet", "source.arrow")))
    target = tmp_path / data.draw(st.sampled_from(("target.parquet", "target.arrow")))
    write(table, source, data.draw(st.sampled_from((100, 5000))))
    before = source.read_bytes()
    gpusort.sort_file(source, target, by=by, descending=descending, memory=memory)
    expected = order_of(table, by, descending)
    assert_same_table(read(target), table.take(pa.array(expected)))
    gpusort.argsort_file(source, tmp_path / "places.npy", by=by, descending=descending, memory=memory)
    places = np.load(tmp_path / "places.npy")
    assert places.dtype == np.int64
    np.testing.assert_array_equal(places, expected)
    assert source.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} <= {
        "source.parquet", "source.arrow", "target.parquet", "target.arrow", "places.npy",
    }  # fmt: skip


@pytest.mark.parametrize(("dtype", "memory"), [*((dtype, LEAST) for dtype in NUMBERS), ("f8", 1 << 30)])
def test_a_column_alone(dtype: str, memory: int, tmp_path: Path) -> None:
    """What has nothing to take along is sorted without places."""
    table = table_of(5_000, 3).select([dtype])
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    write(table, source)
    for descending in (False, True):
        gpusort.sort_file(source, target, by=dtype, descending=descending, memory=memory)
        assert_same_table(read(target), table.take(pa.array(order_of(table, [dtype], descending))))


def test_an_argsort_is_resumed_in_its_last_pass(tmp_path: Path) -> None:
    keys = np.random.default_rng(1).permutation(100_000)
    source, target = tmp_path / "source.parquet", tmp_path / "places.npy"
    write(pa.table({"key": keys, "more": np.zeros(100_000)}), source)
    steps: list[str] = []

    def stop(progress: gpusort.Progress) -> None:
        steps.append(progress.step)
        if steps.count("buckets") == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gpusort.argsort_file(source, target, by="key", memory=LEAST, resume=True, progress=stop)
    later: list[str] = []
    gpusort.argsort_file(
        source, target, by="key", memory=LEAST, resume=True, progress=lambda progress: later.append(progress.step)
    )
    assert set(later) == {"buckets"}
    assert len(later) < steps.count("runs")
    np.testing.assert_array_equal(np.load(target), np.argsort(keys))


@pytest.mark.parametrize("columns", [["key"], ["key", "more"]])
def test_a_compressed_file_is_not_unpacked_as_a_whole(columns: list[str], tmp_path: Path) -> None:
    table = pa.table({"key": np.arange(100_000)[::-1] % 1000, "more": np.zeros(100_000)}).select(columns)
    source, target = tmp_path / "source.arrow", tmp_path / "target.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(source), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, 1000)
    before = pa.total_allocated_bytes()
    opened = open_table(source)
    assert opened.rows == 100_000
    assert opened.rows_near(50_500, 10, ("key",)).equals(table.select(["key"]).slice(50_500, 10).to_batches()[0])
    assert pa.total_allocated_bytes() - before < table.nbytes // 10
    gpusort.sort_file(source, target, by="key", memory="1M")
    assert_same_table(read(target), table.take(pa.array(order_of(table, ["key"], False))))


def test_the_target_is_written_as_the_source_is(tmp_path: Path) -> None:
    table = pa.table({"key": np.arange(9_000)[::-1], "word": ["a", "b", "c"] * 3_000})
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    parquet.write_table(table, source, 1000, compression={"key": "zstd", "word": "none"}, use_dictionary=["word"])
    gpusort.sort_file(source, target, by="key", memory="1M")
    found = parquet.ParquetFile(target).metadata
    assert found.row_group(0).num_rows <= 1000
    key, word = found.row_group(0).column(0), found.row_group(0).column(1)
    assert (key.compression, word.compression) == ("ZSTD", "UNCOMPRESSED")
    assert "RLE_DICTIONARY" in word.encodings
    assert "RLE_DICTIONARY" not in key.encodings


def test_a_dictionary_that_saves_nothing_is_not_written_again(tmp_path: Path) -> None:
    table = pa.table({"key": np.random.default_rng(1).standard_normal(9_000), "few": np.arange(9_000) % 5})
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    parquet.write_table(table, source)
    gpusort.sort_file(source, target, by="key")
    columns = [parquet.ParquetFile(target).metadata.row_group(0).column(i) for i in range(2)]
    assert ["RLE_DICTIONARY" in column.encodings for column in columns] == [False, True]
    assert_same_table(read(target), table.take(pa.array(order_of(table, ["key"], False))))


@pytest.mark.parametrize("memory", [LEAST, 1 << 26])
@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_views_of_text_are_taken_along(memory: int, suffix: str, tmp_path: Path) -> None:
    """As polars writes them. pyarrow takes no rows of them, and has casts of them since 18."""
    count = 3000
    text = [None if i % 9 == 0 else f"row {i} and more than a view has in it" for i in range(count)]
    view, plain = pa.string_view(), pa.large_string()
    kinds = {
        "view": view, "bytes": pa.binary_view(), "lists": pa.list_(view), "long": pa.large_list(view),
        "pairs": pa.list_(view, 2), "fields": pa.struct([("a", view), ("b", pa.int32())]), "map": pa.map_(view, view),
        "maps": pa.list_(pa.map_(pa.int32(), view)),
    }  # fmt: skip
    try:
        pa.array(["a"], view).cast(plain)
        if suffix == "parquet":
            kinds = {"view": view, "bytes": pa.binary_view()}
            write(pa.table({"a": pa.array(["a"], view)}), tmp_path / "a.parquet", 1)
    except pa.ArrowNotImplementedError as error:
        pytest.skip(f"this pyarrow has no views, or no code for them: {error}")
    made: dict[str, Any] = {
        "view": text, "bytes": [None if one is None else one.encode() for one in text],
        "lists": [[one] for one in text], "long": [[one, one] for one in text], "pairs": [[one, "x"] for one in text],
        "fields": [{"a": one, "b": i} for i, one in enumerate(text)], "map": [[("k", one)] for one in text],
        "maps": [[[(1, one)], []] for one in text],
    }  # fmt: skip
    key = np.random.default_rng(8).permutation(count)
    columns = {name: pa.array(made[name], kind) for name, kind in kinds.items()}
    if suffix == "arrow":
        words = pa.array([f"word {i % 7}" for i in range(count)]).dictionary_encode()
        columns["words"] = words.cast(pa.dictionary(pa.int32(), view))
    given = pa.table({"key": pa.array(key), **columns})
    source, target = tmp_path / f"x.{suffix}", tmp_path / f"y.{suffix}"
    write(given, source, 700)
    gpusort.sort_file(source, target, by="key", memory=memory)
    found, whole = read(target), read(source)
    assert found.schema.equals(whole.schema)
    order = np.argsort(key)
    rows = found.to_pydict()
    for name, expected in whole.to_pydict().items():
        assert rows[name] == [expected[i] for i in order.tolist()]


@pytest.mark.parametrize("dtype", [*NUMBERS, "i1", "u2", "i4", "u8", "M8[D]", "M8[s]", "M8[ns]", "m8[ms]"])
def test_values_of_columns_are_those_that_pyarrow_converts(dtype: str) -> None:
    numbers = sample(dtype, 77, 3)
    whole = numbers.view("u1").astype(bool) if dtype == "?" else numbers
    for column in (pa.array(whole), pa.array(whole, mask=np.arange(77) % 5 == 0), pa.array(whole[:0])):
        for start in (0, 3, 64):
            part = (
                pa.Table.from_arrays([column], names=["x"]).to_batches()[0].slice(start).column("x")
                if len(column)
                else column
            )
            expected = part.drop_null().to_numpy(zero_copy_only=False)
            found = values_of(part)
            assert found.dtype == expected.dtype == dtype_of(column.type)
            np.testing.assert_array_equal(found[~values_of(part.is_null())], expected)


def test_what_has_no_values() -> None:
    for kind in (pa.decimal128(9, 2), pa.string(), pa.list_(pa.int32()), pa.month_day_nano_interval()):
        assert dtype_of(kind) == np.dtype(object)
    for kind in (pa.string(), pa.list_(pa.int32()), pa.month_day_nano_interval()):
        assert not key_dtypes(kind)


def days_clocks_and_prices(count: int, suffix: str) -> pa.Table:
    """Times of day and decimals of every width, of both signs, near each other and far apart."""
    arrow = cast("Any", pa)  # of which the stub has less
    numbers = np.random.default_rng(12)
    seconds = numbers.integers(0, 86_400, count)
    columns: dict[str, Any] = {"row": np.arange(count)}
    for unit, width, scale in (("s", 32, 1), ("ms", 32, 10**3), ("us", 64, 10**6), ("ns", 64, 10**9)):
        kind = getattr(arrow, f"time{width}")(unit)
        columns[f"clock {unit}"] = arrow.array((seconds * scale).astype(f"i{width // 8}")).view(kind)
    since = 22 if suffix == "parquet" else 19  # of pyarrow's, the two narrow kinds
    narrow = [("decimal32", 9), ("decimal64", 18)] if int(pa.__version__.partition(".")[0]) >= since else []
    for name, digits in (*narrow, ("decimal128", 38), ("decimal256", 76)):
        signs, powers = numbers.integers(-1, 2, count).tolist(), numbers.integers(0, digits, count).tolist()
        small = numbers.integers(-5, 6, count).tolist()
        large = [sign * 10**power + near for sign, power, near in zip(signs, powers, small, strict=True)]
        with localcontext() as context:
            context.prec = 80
            values = [None if i % 13 == 5 else Decimal(number).scaleb(-2) for i, number in enumerate(large)]
        columns[name] = arrow.array(values, getattr(arrow, name)(digits, 2))
    return cast("pa.Table", arrow.table(columns))


@few_cases(pairs=False)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("memory", [LEAST, 1 << 30])
def test_times_of_day_and_decimals(memory: int, suffix: str, tmp_path: Path, in_turn: InTurn) -> None:
    source, target = tmp_path / f"x.{suffix}", tmp_path / f"y.{suffix}"
    write(days_clocks_and_prices(1_200, suffix), source, 300)
    whole = read(source)
    for name, descending in in_turn(whole.column_names[1:], (False, True)):
        gpusort.sort_file(source, target, by=name, descending=descending, memory=min(4 * memory, 1 << 30))
        values = cast("Any", whole[name]).to_pylist()
        some = [row for row, value in enumerate(values) if value is not None]
        order = sorted(some, key=lambda row: values[row], reverse=descending)  # stable in both directions
        expected = [*order, *(row for row, value in enumerate(values) if value is None)]
        assert_same_table(read(target), whole.take(pa.array(expected)))
        alone = cast("Any", whole.select([name]))
        write(alone, tmp_path / f"alone.{suffix}", 300)
        gpusort.sort_file(tmp_path / f"alone.{suffix}", target, by=name, descending=descending, memory=memory)
        assert read(target).equals(read(tmp_path / f"alone.{suffix}").take(pa.array(expected)))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_column_that_is_named_twice_counts_once(suffix: str, tmp_path: Path) -> None:
    """Also in runs, which have columns of keys and no two of a name."""
    table, source, target = table_of(1000, 1), tmp_path / f"x{suffix}", tmp_path / f"y{suffix}"
    write(table, source)
    for memory in (1 << 18, 1 << 28):
        gpusort.sort_file(source, target, by=["u1", "f4", "u1"], memory=memory)
        assert_same_table(read(target), table.take(pa.array(order_of(table, ["u1", "f4"], False))))


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8")
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_names_that_are_no_text(suffix: str, tmp_path: Path) -> None:
    source, target = (tmp_path / os.fsdecode(name + b"-caf\xe9." + suffix.encode()) for name in (b"from", b"to"))
    write(pa.table({"key": np.arange(3_000)[::-1], "row": np.arange(3_000)}), tmp_path / f"x.{suffix}")
    (tmp_path / f"x.{suffix}").rename(source)
    gpusort.sort_file(source, target, by="key", memory=LEAST)
    target.rename(tmp_path / f"x.{suffix}")
    assert np.array_equal(values_of(read(tmp_path / f"x.{suffix}")["key"].combine_chunks()), np.arange(3_000))


def test_pandas_is_not_imported_for_a_table(tmp_path: Path) -> None:
    """As pyarrow's own conversions do, which takes longer than most sorts."""
    pytest.importorskip("pandas")
    write(table_of(500, 4), tmp_path / "x.parquet")
    code = f"""
import sys, gpusort
source, target = {str(tmp_path / "x.parquet")!r}, {str(tmp_path / "y.")!r}
for memory in ({LEAST}, 1 << 26):
    gpusort.sort_file(source, target + "parquet", by=["f4 or null", "?", "day"], memory=memory)
    gpusort.argsort_file(source, target + "npy", by="M8[us] or null", memory=memory)
print("pandas" in sys.modules)
"""
    assert printed(code).strip() == "False"


class WithoutDescriptor(pa.OSFile):
    """As pyarrow before 25 has files."""

    def fileno(self) -> int:
        raise AttributeError("'pyarrow.lib.OSFile' object has no attribute 'handle'")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_pyarrow_need_not_tell_the_descriptor_of_a_file(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pa, "OSFile", WithoutDescriptor)
    source, target = tmp_path / f"x.{suffix}", tmp_path / f"y.{suffix}"
    table = table_of(300, 5)
    write(table, source, 100)
    gpusort.sort_file(source, target, by="u4")
    assert_same_table(read(target), table.take(pa.array(order_of(table, ["u4"], False))))


def test_what_pyarrow_cannot_write_is_named(tmp_path: Path) -> None:
    kind = pa.month_day_nano_interval()
    table = pa.table({"key": pa.array([2, 1]), "step": pa.array([(1, 2, 3), (0, 0, 1)], kind)})
    write(table, tmp_path / "x.arrow")
    gpusort.sort_file(tmp_path / "x.arrow", tmp_path / "y.arrow", by="key")
    assert read(tmp_path / "y.arrow").to_pydict()["key"] == [1, 2]
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^source: pyarrow .* cannot sort or write some column of "):
        gpusort.sort_file(tmp_path / "x.arrow", tmp_path / "y.parquet", by="key")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.arrow", "y.arrow"]


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_disk_that_fills(is_alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which the writer of a table tells in its own way."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(mount)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        table = pa.table({"key": np.random.default_rng(1).standard_normal(50_000), "value": np.arange(50_000)})
        write(table.select(["key"]) if is_alone else table, tmp_path / "x.parquet")
        monkeypatch.setattr(tables, "require_disk_space", str)  # that there was room, and somebody else takes it
        for target, where in ((mount / "y.parquet", tmp_path), (tmp_path / "y.parquet", mount)):
            with pytest.raises(gpusort.DiskFullError, match=f"more in {mount}"):
                gpusort.sort_file(tmp_path / "x.parquet", target, by="key", memory="200K", scratch=where)
            assert list(mount.iterdir()) == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["small", "x.parquet"]
    finally:
        subprocess.run(["umount", mount], check=True)


def test_killed_and_resumed(tmp_path: Path) -> None:
    """Runs are not sorted again; the last pass is."""
    table = table_of(20_000, 5)
    write(table, tmp_path / "source.parquet")
    code = (
        "import os, signal, sys, gpusort\n"
        "steps = []\n"
        "def count(progress):\n"
        "    steps.append(progress.step)\n"
        "    if len(steps) == int(sys.argv[1]):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "gpusort.sort_file('source.parquet', 'target.parquet', by='f4 or null', memory='1M', resume=True,"
        " progress=count)\n"
        "print(steps.count('runs'), steps.count('buckets'))"
    )
    printed = ""
    for at in (3, 12, 0):
        done = run_sort(code, str(at), cwd=tmp_path)
        assert done.returncode == (-9 if at else 0), done.stderr
        assert at == 0 or not (tmp_path / "target.parquet").exists()
        printed = done.stdout
    runs, buckets = map(int, printed.split())
    assert runs < buckets - 5
    assert_same_table(read(tmp_path / "target.parquet"), table.take(pa.array(order_of(table, ["f4 or null"], False))))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.parquet", "target.parquet"]


def test_refusals(tmp_path: Path) -> None:
    source, numbers = tmp_path / "x.parquet", tmp_path / "x.npy"
    write(table_of(10, 1), source)
    np.save(numbers, np.arange(3))
    (tmp_path / "no.parquet").write_text("no")
    (tmp_path / "no.arrow").write_text("no")
    out = tmp_path / "out.parquet"
    for file, where, by, error, message in (
        (source, out, None, gpusort.InvalidArgumentError, "by: expected one or more of u1, .*, found nothing"),
        (source, out, "x", gpusort.InvalidArgumentError, "by: expected one or more of u1"),
        (source, out, ["u1", "text"], gpusort.UnsupportedTypeError, "by: cannot order the column 'text' of string"),
        (source, tmp_path / "out.npy", "u1", gpusort.InvalidArgumentError, r"target: expected a table, as \.parquet"),
        (numbers, out, None, gpusort.InvalidArgumentError, r"source: expected a table, as \.parquet"),
        (tmp_path / "no.parquet", out, "u1", gpusort.InvalidArgumentError, "source: .* is no Parquet file"),
        (tmp_path / "no.arrow", out, "u1", gpusort.InvalidArgumentError, "source: .* is no Arrow file"),
    ):
        with pytest.raises(error, match=message):
            gpusort.sort_file(file, where, by=by)
    arrow = cast("Any", pa)  # of which the stub has less
    odd = arrow.table({
        "tags": [["a"]], "kind": arrow.array(["a"]).dictionary_encode(), "raw": arrow.array([b"a"]),
    })  # fmt: skip
    write(odd, tmp_path / "odd.arrow")
    kinds = {"tags": "list<", "kind": "dictionary<", "raw": "binary"}
    for name, kind in kinds.items():
        said = f"by: cannot order the column '{name}' of {kind}.*; columns of bools, integers, .* can be"
        with pytest.raises(gpusort.UnsupportedTypeError, match=said):
            gpusort.sort_file(tmp_path / "odd.arrow", tmp_path / "out.arrow", by=name)
    twice = pa.Table.from_arrays([pa.array([2, 1]), pa.array([3, 4])], names=["key", "key"])
    write(twice, tmp_path / "twice.arrow")
    with pytest.raises(gpusort.InvalidArgumentError, match="by: expected names of one column each"):
        gpusort.sort_file(tmp_path / "twice.arrow", tmp_path / "out.arrow", by="key")
    with pytest.raises(gpusort.InvalidArgumentError, match=r"target: expected \.npy or a raw file"):
        gpusort.argsort_file(source, out, by="u1")
    with pytest.raises(gpusort.InvalidArgumentError, match="dtype: expected none for tables, found 'f4'"):
        gpusort.sort_file(source, out, by="u1", dtype="f4")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux names what is open")
def test_many_runs_are_one_open_file(tmp_path: Path) -> None:
    source, target = tmp_path / "x.parquet", tmp_path / "y.parquet"
    table = table_of(5_000, 1)
    write(table, source)
    opened: list[int] = []
    gpusort.sort_file(
        source, target, by="u1", memory=LEAST, progress=lambda _: opened.append(len(os.listdir("/proc/self/fd")))
    )
    assert len(opened) >= 2 * 20
    assert max(opened) - min(opened) < 10
    assert_same_table(read(target), table.take(pa.array(order_of(table, ["u1"], False))))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_damaged_table_is_named(suffix: str, tmp_path: Path) -> None:
    source = tmp_path / f"x{suffix}"
    write(table_of(5_000, 1), source)
    content = source.read_bytes()
    source.write_bytes(content[:100] + b"\xff" * 50_000 + content[50_100:])
    with pytest.raises(gpusort.InvalidArgumentError, match=rf"source: .*x\{suffix}.* is damaged: "):
        gpusort.sort_file(source, tmp_path / f"y{suffix}", by="u1", memory=LEAST)
    assert list(tmp_path.iterdir()) == [source]


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(table_of(10, 1), tmp_path / "x.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(gpusort.InvalidArgumentError, match=r"pyarrow is needed: pip install 'gpusort\[tables\]'"):
        gpusort.sort_file(tmp_path / "x.parquet", tmp_path / "y.parquet", by="u1")


@few_cases(pairs=False)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(("has_text", "memory"), [(False, 64 << 20), (True, 96 << 20)], ids=["numbers", "text"])
def test_what_is_resident_keeps_to_the_memory(has_text: bool, memory: int, suffix: str, tmp_path: Path) -> None:
    """Also where all rows are one batch."""
    count = 1 << 21
    numbers = np.random.default_rng(1)
    columns: dict[str, Any] = {"key": numbers.standard_normal(count), "value": np.arange(count)}
    if has_text:
        names = np.array([f"name {i}" for i in range(100_000)])
        columns["text"] = pa.array(names[numbers.integers(0, names.size, count)], pa.string())
    table = pa.table(columns)
    source, target = tmp_path / f"source.{suffix}", tmp_path / f"target.{suffix}"
    write(table, source)

    def beside() -> int:
        """Bytes that were resident at most besides what the sort may take."""
        done = run_new(
            f"import gpusort; gpusort.sort_file({str(source)!r}, {str(target)!r}, by='key', memory={memory})"
            + PRINT_PEAK
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout) - memory

    # Arrow's allocator gives memory back when it likes: now and then later than the next batch comes.
    assert any(beside() < 90 << 20 for _ in range(3))
    assert read(target).equals(table.take(pa.array(np.argsort(columns["key"]))))


def test_a_slice_of_a_run_keeps_no_other_rows_in_memory(tmp_path: Path) -> None:
    table = pa.table({"key": np.arange(10_000), "text": [f"name {i}" for i in range(10_000)]})
    ends: list[int] = []
    for _ in range(2):
        with PyarrowSink.of_arrow(tmp_path / "runs", table.schema, 4096, "ab") as sink:
            sink.write(table)
        ends.append((tmp_path / "runs").stat().st_size)
    with pa.OSFile(str(tmp_path / "runs")) as file:
        for run in (ArrowRun(file, end, 4096, ["key"]) for end in ends):
            for start, stop in (5, 9), (4000, 4100), (0, 10_000):
                found = run.read(start, stop)
                assert pa.Table.from_batches(found).equals(table.slice(start, stop - start))
                assert pa.Table.from_batches(run.read(start, stop, of_keys=True)).column_names == ["key"]
                assert sum(batch.get_total_buffer_size() for batch in found) <= 32 * (stop - start) + 1000


def test_a_disk_that_is_full_is_no_damaged_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwritev", full)
    parquet.write_table(pa.table({"a": np.arange(100_000)}), tmp_path / "x.parquet")
    with pytest.raises(gpusort.DiskFullError, match="804,096 bytes more"):
        gpusort.argsort_file(tmp_path / "x.parquet", tmp_path / "y.npy", by="a")
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_rows_are_as_long_as_later_ones(suffix: str, tmp_path: Path) -> None:
    """Of a column that the first rows have not filled, and that is a file's most."""
    texts = [None] * 70_000 + [f"{number:05} {'x' * 400}" for number in range(30_000)]
    table = pa.table({"key": np.arange(100_000)[::-1].copy(), "text": texts})
    source, target = tmp_path / f"x.{suffix}", tmp_path / f"y.{suffix}"
    write(table, source, 10_000)
    steps: list[gpusort.Progress] = []
    gpusort.sort_file(source, target, by="key", memory=8 << 20, progress=steps.append)
    assert steps[-1].total > table.nbytes  # which is more than fits
    assert read(target).equals(table.take(pa.array(np.arange(100_000)[::-1])))


def test_with_much_memory_a_long_table_is_sorted_in_pieces_that_take_little_of_it() -> None:
    """And of a run there is enough for each bucket. A table that is not long has few runs, as there were."""
    plan_within = tables._plan_within  # pyright: ignore[reportPrivateUsage]
    long = plan_within(8 << 30, 1 << 28, 8, 36, 2)
    assert long.run * 8 <= 64 << 20
    assert long.run**2 >= 100_000 << 28
    assert plan_within(8 << 30, 1 << 24, 300, 36, 2).run >= (1 << 24) // 12
    assert plan_within(1 << 28, 1 << 22, 40, 36, 2).run == 1 << 19


def test_a_table_that_cannot_be_closed_is_told(tmp_path: Path) -> None:
    """As of a full disk, where the footer is written; after another error, that one is."""

    def fail() -> None:
        raise OSError("no room for the footer")

    def written(sink: PyarrowSink, inside: Exception | None) -> None:
        with sink:
            if inside is not None:
                raise inside

    for inside, told in ((None, "no room for the footer"), (ValueError("of the block"), "of the block")):
        sink = PyarrowSink.of_arrow(tmp_path / "x.arrow", pa.table({"a": [1]}).schema, 1000)
        broken = attrs.evolve(sink, writer=cast(Any, SimpleNamespace(close=fail)))
        with pytest.raises((OSError, ValueError), match=told):
            written(broken, inside)
        assert cast(Any, sink.file).closed
