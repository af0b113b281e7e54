"""Columns of pandas, polars and pyarrow, where those are installed."""

from __future__ import annotations

import sys
import tracemalloc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import gpusort
from gpusort.arrays.kinds import Viewed
from gpusort.arrays.registry import recognised
from gpusort.types.errors import InvalidArgumentError, UnsupportedTypeError
from gpusort.types.monoids import MinMax, Sum
from gpusort.types.searches import ArgMin
from gpusort.types.specs import Memory
from tests.plan_keys import layout_of, signature_of

DTYPES = ("?", "i1", "u2", "i4", "u8", "f4", "f8", "M8[us]", "m8[ns]")
ALL = ("pandas.Series", "pandas.Index", "polars.Series", "pyarrow.array", "pyarrow.chunked_array")


def library_of(column: str) -> Any:
    name = column.partition(".")[0]
    return pytest.importorskip(name, reason=f"{name} is not installed")


def column_of(column: str, values: Any) -> Any:
    library = library_of(column)
    match column:
        case "pandas.Series":
            return library.Series(values, name="a", index=np.arange(len(values))[::-1])
        case "pandas.Index":
            return library.Index(values, name="a")
        case "polars.Series":
            return library.Series("a", values)
        case "pyarrow.array":
            return library.array(values)
        case _:
            return library.chunked_array([library.array(values)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("column", ALL)
def test_columns_are_read_where_they_lie_and_come_back_as_columns(column: str, dtype: str) -> None:
    values = np.arange(70)[::-1].astype(dtype)
    x = column_of(column, values)
    kind, array = recognised("x", x)
    assert array is x
    assert kind.is_host
    assert isinstance(kind, Viewed)
    spec, view = kind.spec("x", x), kind.view(x)
    np.testing.assert_array_equal(view, values)
    assert (spec.shape, spec.dtype, spec.memory, spec.strides) == ((70,), values.dtype, Memory.HOST, None)
    if dtype != "?" or column.startswith("pandas"):  # the others keep bits
        assert np.shares_memory(view, kind.view(x))
    assert kind.is_read_only(x)
    assert signature_of(kind, x) == signature_of(kind, column_of(column, values[:-1]))
    made = np.empty(70, values.dtype)
    np.copyto(made, np.sort(view))
    found: Any = kind.given_back(made, x)
    assert type(found) is type(x)
    assert kind.spec("found", found).dtype == values.dtype
    if column.startswith("py"):
        np.testing.assert_array_equal(np.asarray(found), np.sort(np.asarray(x)))
    np.testing.assert_array_equal(kind.view(found), np.sort(values))
    if not column.startswith("pyarrow"):
        assert found.name == "a"
    if column == "pandas.Series":
        assert list(found.index) == list(range(70))


@pytest.mark.parametrize("column", ALL)
def test_signatures_tell_dtypes_apart(column: str) -> None:
    columns = [column_of(column, np.arange(9).astype(dtype)) for dtype in DTYPES]
    kind, _ = recognised("x", columns[0])
    assert len({signature_of(kind, x) for x in columns}) == len(DTYPES)


@pytest.mark.parametrize("column", ALL)
def test_results_of_other_shapes_are_what_the_library_has_for_them(column: str) -> None:
    x = column_of(column, np.arange(5.0))
    kind, _ = recognised("x", x)
    assert isinstance(kind, Viewed)
    total: Any = kind.given_back(np.asarray(10.0), x)
    assert (total.as_py() if column.startswith("pyarrow") else total) == 10
    assert type(total) is (float if column == "polars.Series" else type(total))
    states = cast(Any, gpusort.reduce)(x, ArgMin(gpusort.key_for("f8")))
    assert states.dtype.names is not None
    indices: Any = kind.given_back(np.arange(5), x)
    assert type(indices) is type(column_of(column, np.arange(5)))


@pytest.mark.parametrize("column", ["polars.Series", "pyarrow.array", "pyarrow.chunked_array"])
def test_what_is_missing_is_refused_and_nan_is_a_number(column: str) -> None:
    for values in ([1, None, 3], [1.5, None], [True, None]):
        x = column_of(column, values)
        kind, _ = recognised("x", x)
        with pytest.raises(InvalidArgumentError, match=r"^x: found missing elements in .*; drop or fill them"):
            kind.spec("x", x)
    full, holed = column_of(column, [1, 2, 3]), column_of(column, [1, None, 3])
    kind, _ = recognised("x", full)
    signature_of(kind, full)
    with pytest.raises(InvalidArgumentError, match="found missing elements"):
        signature_of(kind, holed)  # a plan is not to be found for it
    assert isinstance(kind, Viewed)
    nans = column_of(column, np.array([2.0, np.nan, 1.0]))
    np.testing.assert_array_equal(kind.view(nans), [2.0, np.nan, 1.0])
    kind.spec("x", nans)


def test_nullable_dtypes_of_pandas() -> None:
    pandas = library_of("pandas")
    kind, _ = recognised("x", pandas.Series([1.5]))
    for name, dtype in (("Int64", "i8"), ("Float32", "f4"), ("boolean", "?"), ("UInt8", "u1")):
        x = pandas.Series([1, 0, 1], dtype=name, name="b")
        assert kind.spec("x", x).dtype == np.dtype(dtype)
        assert isinstance(kind, Viewed)
        found: Any = kind.given_back(np.sort(kind.view(x)), x)
        assert (found.dtype, found.name, found.tolist()) == (x.dtype, "b", [0, 1, 1])
        holed = pandas.Series([1, None, 1], dtype=name)
        with pytest.raises(InvalidArgumentError, match=r"^x: found missing elements in Series of "):
            kind.spec("x", holed)
    strided = pandas.Series(np.zeros(10)[::2], copy=False)
    assert kind.spec("x", strided).strides == (16,)
    assert layout_of(kind, strided) != layout_of(kind, pandas.Series(np.zeros(5)))


@pytest.mark.parametrize("name", ["Float64", "Float32", "double[pyarrow]", "float[pyarrow]"])
def test_nan_in_nullable_columns_of_pandas_stays_a_number(name: str) -> None:
    """Which pandas tells from what is missing, but not where it makes a column of NumPy's values."""
    pandas, pyarrow = library_of("pandas"), pytest.importorskip("pyarrow")
    dtype = pandas.Series([1.0]).astype(name).dtype
    values = np.array([2.0, np.nan, 1.0], dtype.numpy_dtype)
    if hasattr(dtype, "pyarrow_dtype"):
        held = pandas.arrays.ArrowExtensionArray(pyarrow.chunked_array([pyarrow.array(values)]))
    else:
        held = pandas.arrays.FloatingArray(values, np.zeros(3, np.bool_))
    x = pandas.Series(held, name="c")
    assert (x.dtype, x.isna().any()) == (dtype, False)
    for found in (cast(Any, gpusort.sort(x)), cast(Any, gpusort.top_k(x, 3, largest=False)[0])):
        assert (found.dtype, found.name, found.isna().any()) == (dtype, "c", False)
        np.testing.assert_array_equal(found.to_numpy(values.dtype), [1.0, 2.0, np.nan])


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", "Mm")
@pytest.mark.parametrize("chunked", [False, True])
def test_reductions_of_times_of_pyarrow(kind: str, unit: str, chunked: bool) -> None:
    pyarrow = library_of("pyarrow.array")
    if kind == "m" and unit == "D":
        pytest.skip("pyarrow has no durations of days")
    x = pyarrow.array(np.array([3, 1, 2]).astype(f"{kind}8[{unit}]"))
    given = pyarrow.chunked_array([x]) if chunked else x
    assert gpusort.max(given).equals(x[0])
    assert gpusort.min(given).equals(x[1])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_of_arrow_with_a_zone_are_refused(zone: str) -> None:
    """pandas names the same dtype of NumPy for them as for those without, and would read what comes back as local."""
    pandas, pyarrow = library_of("pandas"), pytest.importorskip("pyarrow")
    dtype = pandas.ArrowDtype(pyarrow.timestamp("us", tz=zone))
    x = pandas.Series(pandas.date_range("2026", periods=2, tz="UTC")).astype(dtype)
    for call in (gpusort.sort, gpusort.argsort, gpusort.max):
        with pytest.raises(UnsupportedTypeError, match=r"^x: expected a column of .* or timestamps without"):
            call(x)


def test_dates_of_arrow_of_both_types() -> None:
    """In pandas, and as they are."""
    pandas, pyarrow = library_of("pandas"), pytest.importorskip("pyarrow")
    for arrow in (pyarrow.date32(), pyarrow.date64(), pyarrow.timestamp("s"), pyarrow.duration("ns")):
        values = pyarrow.array(np.array([3, 1, 2]).astype("m8[ns]" if arrow == "duration[ns]" else "M8[D]")).cast(arrow)
        x = pandas.Series(pandas.arrays.ArrowExtensionArray(pyarrow.chunked_array([values])))
        found = cast(Any, gpusort.sort(x))
        assert found.dtype == x.dtype
        assert found.tolist() == x.sort_values().tolist()
        for given in (values, pyarrow.chunked_array([values])):
            taken = given.take(cast(Any, gpusort.argsort(given)))
            assert cast(Any, gpusort.sort(given)).equals(taken)
            assert cast(Any, gpusort.max(given)).equals(taken[-1])


def table_of(package: str) -> tuple[Any, Callable[[Any, Any], Any]]:
    """A table of a column 'a', and how its rows are taken."""
    library, columns = library_of(package), {"a": [3, 1, 2], "b": [1.0, 2.0, 3.0]}
    match package:
        case "pandas":
            return library.DataFrame(columns), lambda x, places: x.iloc[places]
        case "polars":
            return library.DataFrame(columns), lambda x, places: x[places]
        case _:
            return library.table(columns), lambda x, places: x.take(places)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_table_is_many_columns_and_says_how_rows_are_sorted(package: str) -> None:
    x, taken = table_of(package)
    name = type(x).__name__
    for call in (
        lambda: gpusort.sort(x), lambda: gpusort.sum(x), lambda: gpusort.top_k(x, 1), lambda: gpusort.sort_inplace(x),
        lambda: gpusort.sort_by_key(np.arange(3), x),
    ):  # fmt: skip
        with pytest.raises(
            UnsupportedTypeError, match=f"expected an array or one column of a table, found a {name} of"
        ):
            call()
    assert list(cast("Any", gpusort.sort)(x["a"]).to_numpy()) == [1, 2, 3]
    assert list(taken(x, gpusort.argsort(x["a"]))["b"].to_numpy()) == [2.0, 3.0, 1.0]  # as the message says


def test_dataframes_of_dask_are_not_computed() -> None:
    pandas = pytest.importorskip("pandas")
    dataframe = pytest.importorskip("dask.dataframe")
    frame = dataframe.from_pandas(pandas.DataFrame({"a": [3, 1, 2]}), npartitions=2)
    rows = r"gpusort\.dask\.sort_values\(x, 'a'\) sorts rows, x\['a'\]\.to_dask_array\(\) is a column"
    for x, said in (
        (frame, f"DataFrame of dask: {rows}"),
        (frame["a"], r"Series of dask: x\.to_dask_array\(\) is an array"),
        (frame.index, r"Index of dask: x\.to_dask_array\(\) is an array"),
    ):
        with pytest.raises(UnsupportedTypeError, match=f"found an? {said}$"):
            gpusort.sort(x)
    assert cast("Any", gpusort.sort)(frame["a"].to_dask_array(lengths=True)).compute().tolist() == [1, 2, 3]


def test_a_series_keeps_what_pandas_own_sort_does() -> None:
    pandas = pytest.importorskip("pandas")

    class Measured(pandas.Series):  # type: ignore[misc, name-defined]  # a class that is found at run time
        _metadata = ("_name", "unit")

        @property
        def _constructor(self) -> Any:
            return Measured

    x = Measured([3, 1, 2], name="a").set_flags(allows_duplicate_labels=False)
    x.unit = "m"
    x.attrs["of"] = "a wall"
    theirs = x.sort_values(ignore_index=True)
    moved = gpusort.sort_by_key(pandas.Series([2, 0, 1]), x)[1]
    for found in (gpusort.sort(x), gpusort.argsort(x), gpusort.cumsum(x), moved):
        assert type(found) is type(theirs) is Measured
        assert (found.name, found.unit, found.attrs) == ("a", "m", {"of": "a wall"})
        assert found.flags == theirs.flags
    assert list(gpusort.sort(x)) == list(theirs)


def test_what_stays_in_its_place_keeps_its_label() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [3, 1, 2, 5]}, index=list("wxyz"))
    x = frame[frame.a > 1].a
    own: Any = Sum(gpusort.number_for(np.int64))
    for found in (gpusort.cumsum(x), gpusort.scan(x, own)):
        pandas.testing.assert_series_equal(found, x.cumsum())
    frame["sums"] = gpusort.cumsum(x)
    assert frame.sums.dropna().to_dict() == {"w": 3, "y": 5, "z": 10}
    for found in (gpusort.cumsum(pandas.Index(x)), gpusort.cumsum(x.array)):  # which have none
        assert list(found) == [3, 5, 10]
    pairs: Any = gpusort.scan(x, cast("Any", MinMax(gpusort.key_for(np.int64))))
    assert isinstance(pairs, np.ndarray)  # states of several fields, which pandas has no dtype for
    assert list(gpusort.sort(x).index) == [0, 1, 2]


def test_a_proxy_is_what_numpy_makes_of_it() -> None:
    pandas = pytest.importorskip("pandas")
    for x in (pandas.Series([3, 1, 2]), np.array([3, 1, 2]), np.array([3, 1, 2]).view(np.memmap)):
        proxy: Any = weakref.proxy(x)
        assert isinstance(proxy, type(x))
        found = gpusort.sort(proxy)
        assert type(found) is np.ndarray
        assert found.tolist() == [1, 2, 3]
    masked: Any = np.ma.array([1, 2])
    with pytest.raises(UnsupportedTypeError, match="masked"):
        gpusort.sort(weakref.proxy(masked))


def test_what_torch_traces_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Proxy:
        """Has whatever is asked for, as that of torch.fx."""

        def __getattr__(self, name: str) -> Proxy:
            return self

    monkeypatch.setitem(sys.modules, "torch.fx", cast("Any", SimpleNamespace(Proxy=Proxy)))
    with pytest.raises(UnsupportedTypeError, match=r"found a Proxy of torch: it has no elements .* torch\.fx\.wrap"):
        gpusort.sort(cast("Any", Proxy()))


def test_columns_that_hold_no_numbers_are_refused() -> None:
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    zoned = pandas.date_range("2026", periods=2, tz="UTC")
    for x in (
        pandas.Series(["a"], dtype="string"),
        pandas.Series([1], dtype="category"),
        pandas.Series(zoned),
        polars.Series(["a"]),
        polars.Series([[1]]),
        polars.Series(zoned.to_pydatetime().tolist()),
        pyarrow.array(["a"]),
        pyarrow.array(zoned),
        pyarrow.array([1]).dictionary_encode(),
    ):
        kind, _ = recognised("x", x)
        with pytest.raises(UnsupportedTypeError, match=r"^x: expected a column of numbers, bools, dates"):
            kind.spec("x", x)


def test_objects_of_pandas_are_refused_as_such() -> None:
    pandas = pytest.importorskip("pandas")
    texts, pairs = pandas.Series(["b", 1], dtype=object), pandas.MultiIndex.from_arrays([[1, 2], [3, 4]])
    for x in (texts, pairs):
        with pytest.raises(UnsupportedTypeError, match=r"^x: expected a column of numbers, .*; found \w+ of object"):
            gpusort.sort(x)


@pytest.mark.parametrize("length", [3, 10_000])
def test_chunks_are_put_together(length: int) -> None:
    pandas, pyarrow, polars = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "polars"))
    for dtype in ("i8", "f4", "?", "M8[us]", "M8[D]"):
        values = np.arange(length)[::-1].astype(dtype)
        parts = values[: length - 2], values[:0], values[length - 2 :]
        chunked = pyarrow.chunked_array([pyarrow.array(part) for part in parts])
        pieces = polars.concat([polars.Series("a", part) for part in parts], rechunk=False)
        for x in (chunked, pieces, pandas.Series(pandas.arrays.ArrowExtensionArray(chunked))):
            kind, _ = recognised("x", x)
            assert isinstance(kind, Viewed)
            np.testing.assert_array_equal(kind.view(x), values)


@pytest.mark.parametrize("name", ["Int64", "Float32", "boolean", "int64[pyarrow]", "datetime64[us]"])
def test_arrays_of_pandas_are_as_their_series(name: str) -> None:
    """NumPy would round integers beside a missing one to floats, and call it NaN."""
    pandas = library_of("pandas")
    if "pyarrow" in name:
        pytest.importorskip("pyarrow")
    x = pandas.Series([1, 0, 1]).astype(name).array
    found: Any = gpusort.sort(x)
    assert (type(found), found.dtype) == (type(x), x.dtype)
    assert list(found) == sorted(x)
    np.testing.assert_array_equal(np.asarray(gpusort.argsort(x)), [1, 0, 2])
    assert gpusort.argmax(x) == 0
    if name != "datetime64[us]":  # whose NaT is a number's like, and sorts last
        with pytest.raises(InvalidArgumentError, match=r"^x: found missing elements in .*Array of .*; drop or fill"):
            gpusort.argsort(x.take([0, -1], allow_fill=True))
    with pytest.raises(UnsupportedTypeError, match="found Categorical of category"):
        gpusort.sort(pandas.Categorical(["b", "a"]))


def test_nan_in_a_wrapped_array_of_numpy_is_a_number() -> None:
    pandas = library_of("pandas")
    x = pandas.Series([2.0, np.nan, 1.0]).array
    found: Any = gpusort.sort(x)
    assert type(found) is type(x)
    np.testing.assert_array_equal(np.asarray(found), [1.0, 2.0, np.nan])
    np.testing.assert_array_equal(np.asarray(gpusort.argsort(x)), [2, 0, 1])
    assert type(gpusort.argsort(x)) is np.ndarray  # of another dtype


def test_extrema_of_times_of_polars_are_pythons() -> None:
    for dtype in ("M8[us]", "m8[us]", "M8[D]"):
        values = np.array([3, 7], dtype)
        found = cast(Any, gpusort.max)(column_of("polars.Series", values))
        assert (type(found), found) == (type(values[1].item()), values[1].item())


@pytest.mark.parametrize("dtype", ["Datetime", "Duration"])
def test_times_of_polars_that_numpy_takes_for_nat_are_not_lost(dtype: str) -> None:
    """polars would look for them in what is made of NumPy's times, which takes many times as long as its own cast."""
    polars = library_of("polars")
    least = -(2**63)
    x = polars.Series("a", [5, least, 3]).cast(getattr(polars, dtype)("us"))
    found = cast(Any, gpusort.sort(x))
    assert (found.dtype, found.name, found.null_count()) == (x.dtype, "a", 0)
    assert found.to_physical().to_list() == [3, 5, least]


def test_nothing_as_long_as_a_column_of_arrow_tells_what_is_missing() -> None:
    pandas, pyarrow = library_of("pandas"), pytest.importorskip("pyarrow")
    x = pandas.Series(pandas.arrays.ArrowExtensionArray(pyarrow.chunked_array([np.arange(1e6)])))
    kind, _ = recognised("x", x)
    kind.spec("x", x)
    tracemalloc.start()
    try:
        kind.spec("x", x)
        assert tracemalloc.get_traced_memory()[1] < 1e5  # a byte for each element would be a million
    finally:
        tracemalloc.stop()
