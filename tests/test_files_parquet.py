"""Parquet files as they are written: as their sources are."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gpusort
from gpusort.external.crew import Crew
from gpusort.external.plans import LEAST
from tests.covering import few_cases
from tests.reference import sample

pytest.importorskip("pyarrow")
import pyarrow  # where it is here
from pyarrow import parquet

pa, pq = cast("Any", pyarrow), cast("Any", parquet)  # of which the stubs have less
PLAIN = ("int32", "int64", "uint32", "uint64", "float32", "float64", "date32", "time64us", "timestampus", "timestampms")


def numbers_of(count: int, seed: int) -> dict[str, Any]:
    """A column of each type of plain numbers, of any bits."""
    found: dict[str, Any] = {}
    for name in PLAIN:
        dtype = {"date32": "i4", "time64us": "i8", "timestampus": "i8", "timestampms": "i8"}.get(name, name)
        numbers = pa.array(sample(dtype, count, seed), from_pandas=False)
        match name:
            case "date32":
                numbers = numbers.cast(pa.date32())
            case "time64us":
                numbers = pa.array(np.abs(sample("i4", count, seed).astype("i8"))).cast(pa.time64("us"))
            case "timestampus" | "timestampms":
                numbers = numbers.view(pa.timestamp(name[-2:], "UTC" if name[-2:] == "us" else None))
            case _:
                pass
        found[name] = numbers
    return found


def same_table(path: Path, expected: Any) -> Any:
    """Reads a table; bits of floats are compared too."""
    found = pq.read_table(path)
    assert found.schema.equals(expected.schema, check_metadata=True)
    found.validate(full=True)
    for name in expected.column_names:
        one, other = found[name].combine_chunks(), expected[name].combine_chunks()
        if pa.types.is_floating(one.type):
            assert one.is_null().equals(other.is_null())
            one, other = (column.drop_null().to_numpy(zero_copy_only=False).tobytes() for column in (one, other))
            assert one == other
        else:
            if pa.types.is_dictionary(one.type):
                one, other = one.dictionary_decode(), other.dictionary_decode()
            assert one.equals(other), name
    return found


@few_cases(pairs=False)
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("is_nullable", [True, False])
def test_plain_numbers(codec: str, is_nullable: bool, tmp_path: Path) -> None:
    """In several row groups, with the statistics that pyarrow would write."""
    count = 3_000
    columns = numbers_of(count, 7)
    key = np.random.default_rng(1).permutation(count)
    whole = pa.table({"key": key, **columns})
    schema = pa.schema([field.with_nullable(is_nullable) for field in whole.schema])
    whole = whole.cast(schema)
    source, target = tmp_path / "x.parquet", tmp_path / "y.parquet"
    pq.write_table(whole, source, 1100, compression=codec, use_dictionary=False)
    for memory in (1 << 19, 1 << 27):  # in some runs, and at once
        gpusort.sort_file(source, target, by="key", memory=memory)
        same_table(target, whole.take(pa.array(np.argsort(key))))
    pq.write_table(pq.read_table(target), tmp_path / "z.parquet", 1100, compression=codec, use_dictionary=False)
    found, expected = (pq.read_metadata(tmp_path / name) for name in ("y.parquet", "z.parquet"))
    assert found.num_row_groups == expected.num_row_groups == 3
    for group in range(3):
        assert found.row_group(group).num_rows == expected.row_group(group).num_rows
        for number in range(found.num_columns):
            one, other = (meta.row_group(group).column(number) for meta in (found, expected))
            for name in ("path_in_schema", "physical_type", "num_values", "compression", "has_dictionary_page"):
                assert getattr(one, name) == getattr(other, name)
            assert set(one.encodings) == set(other.encodings)
            mine, theirs = one.statistics, other.statistics
            assert (mine.null_count, mine.has_min_max) == (theirs.null_count, theirs.has_min_max)
            if mine.has_min_max:
                assert (repr(mine.min_raw), repr(mine.max_raw)) == (repr(theirs.min_raw), repr(theirs.max_raw))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("memory", [LEAST, 1 << 20, 1 << 27])
def test_tables_of_all_sorts(memory: int, seed: int, tmp_path: Path) -> None:
    """Nested columns, text, dictionaries and nulls go along, in row groups of any length; metadata stays."""
    draw = np.random.default_rng(seed)
    count = int(draw.choice([0, 1, 2, 500, 2_200]))
    nulls = draw.random(count) < 0.3
    text = [None if i % 5 == 1 else f"row {i}" * (i % 9) for i in range(count)]
    columns = {
        "few": pa.array(draw.integers(0, 9, count), mask=nulls), "x": sample("f4", count, seed),
        "text": pa.array(text, pa.string()), "words": pa.array([f"word {i % 7}" for i in range(count)], pa.string()),
        "lists": pa.array([None if i % 7 == 0 else list(range(i % 4)) for i in range(count)], pa.list_(pa.int32())),
        "deep": pa.array([{"a": i, "b": [{"c": str(i)}]} for i in range(count)],
                         pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string())])))])),
        "map": pa.array([[("k", i)] for i in range(count)], pa.map_(pa.string(), pa.int64())),
        "kinds": pa.array([f"kind {i % 3}" for i in range(count)], pa.string()).dictionary_encode(),
        "bool": draw.random(count) < 0.5, "half": draw.random(count).astype("f2"),
        "seconds": pa.array(np.arange(count)).cast(pa.timestamp("s")), "none": pa.nulls(count),
        **{name: numbers for name, numbers in numbers_of(count, seed).items() if name != "date32"},
    }  # fmt: skip
    names = list(draw.permutation(list(columns)))
    table = pa.table({name: columns[name] for name in names})
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), "who": "nobody"})
    source, target = tmp_path / "x.parquet", tmp_path / "y.parquet"
    settings = {"compression": str(draw.choice(["none", "snappy", "zstd"])), "use_dictionary": bool(draw.integers(2))}
    pq.write_table(table, source, int(draw.choice([1, 7, 1000, 10_000])) if count < 2_200 else 900, **settings)
    whole = pq.read_table(source)
    gpusort.sort_file(source, target, by=["few", "int32"], memory=memory)
    keys = [whole["int32"].to_numpy(), np.where(nulls, 9, np.asarray(whole["few"].fill_null(9)))]
    same_table(target, whole.take(pa.array(np.lexsort(keys).astype(np.int64))))


def test_many_columns_and_short_row_groups(tmp_path: Path) -> None:
    """The footer does not grow beyond the rows: no fewer than 1000 to a row group."""
    table = pa.table({f"c{i}": np.random.default_rng(i).integers(0, 1 << 40, 2_500) for i in range(200)})
    pq.write_table(table, tmp_path / "x.parquet", 100)
    gpusort.sort_file(tmp_path / "x.parquet", tmp_path / "y.parquet", by=["c7", "c8"], memory="100M")
    same_table(tmp_path / "y.parquet", table.take(pa.array(np.argsort(table["c7"].to_numpy(), kind="stable"))))
    metadata = pq.read_metadata(tmp_path / "y.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [1000, 1000, 500]


def test_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([3, 1, 2]), pa.array([1, 2, 3]), pa.array([4, 5, 6])], ["key", "x", "x"])
    pq.write_table(table, tmp_path / "x.parquet", use_dictionary=False)
    gpusort.sort_file(tmp_path / "x.parquet", tmp_path / "y.parquet", by="key")
    found = pq.ParquetFile(tmp_path / "y.parquet").read()
    assert [column.to_pylist() for column in found.columns] == [[1, 2, 3], [2, 3, 1], [5, 6, 4]]


def test_the_index_of_pandas_is_kept(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"key": [3.5, 1.5, 2.5], "who": ["c", "a", "b"]}, index=pandas.Index([7, 8, 9], name="id"))
    frame.to_parquet(tmp_path / "x.parquet")
    gpusort.sort_file(tmp_path / "x.parquet", tmp_path / "y.parquet", by="key")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "y.parquet"), frame.sort_values("key"))


def test_a_call_that_is_made_holds_nothing() -> None:
    """A pipeline links its calls: what one held would be held to the end."""

    class Large:
        def __call__(self) -> int:
            return 1

    large = Large()
    seen = weakref.ref(large)
    crew = Crew(1)
    try:
        call = crew.submit(large)
        del large
        assert call.result() == 1
    finally:
        crew.close()
    assert seen() is None
