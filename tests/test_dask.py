"""Dask arrays in one process, against the sort of the whole array: bits, chunks, laziness, how many tasks, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, cast

import dask
import dask.array as da
import hypothesis
import numpy as np
import pytest
from dask.array.optimization import optimize
from hypothesis import strategies as st

import gpusort
import gpusort.dask
from tests.covering import examples, few_cases
from tests.new_process import printed
from tests.reference import DTYPES, SWAPPED, Array, assert_same_bits, sample, sorted_by_numpy
from tests.test_files import kinds_of_data

UNEVEN = (0, 1, 150, 0, 348, 1, 200)


@pytest.fixture(autouse=True)
def in_one_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def chunked(x: Array, lengths: Sequence[int] | int) -> da.Array:
    return da.from_array(x, chunks=lengths if isinstance(lengths, int) else (tuple(lengths),))


def assert_sorts(x: Array, lengths: Sequence[int] | int, *, descending: bool, exchange: str) -> None:
    """All that sorts a flat array, to the last bit, in chunks like those of the input."""
    given, numbers = chunked(x, lengths), np.arange(x.size, dtype=np.int32)
    for stable in (False, True):
        found = gpusort.dask.sort(given, descending=descending, stable=stable, exchange=exchange)
        assert found.chunks == given.chunks
        assert found.dtype == x.dtype
        assert_same_bits(found.compute(), gpusort.sort(x, descending=descending, stable=stable))
    places = gpusort.dask.argsort(given, descending=descending, exchange=exchange)
    assert places.chunks == given.chunks
    assert places.dtype == np.int64
    assert_same_bits(places.compute(), gpusort.argsort(x, descending=descending))
    pairs = gpusort.dask.sort_by_key(given, chunked(numbers, 100), descending=descending, exchange=exchange)
    expected = gpusort.sort_by_key(x, numbers, descending=descending)
    assert_all_computed(pairs, expected)


@few_cases(pairs=False)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, *SWAPPED])
def test_every_dtype(dtype: str, descending: bool) -> None:
    exchange = "tasks" if descending else "shared"
    assert_sorts(sample(dtype, 700, seed=1), UNEVEN, descending=descending, exchange=exchange)


@pytest.mark.parametrize("exchange", ["shared", "tasks"])
@pytest.mark.parametrize("kind", kinds_of_data(1))
def test_kinds_of_data(kind: str, exchange: str) -> None:
    x = kinds_of_data(700)[kind]
    for lengths in (UNEVEN, 100, 699):
        found = gpusort.dask.sort(chunked(x, lengths), stable=True, exchange=exchange)
        assert_same_bits(found.compute(), np.sort(x, kind="stable"))
        places = gpusort.dask.argsort(chunked(x, lengths), exchange=exchange)
        assert_same_bits(places.compute(), np.argsort(x, kind="stable"))


@pytest.mark.parametrize(("lengths", "exchange"), [((3,) * 70, "tasks"), ((2, 0, 3, 1) * 75, "shared")])
def test_many_chunks(lengths: tuple[int, ...], exchange: str) -> None:
    """So many that pieces travel in two steps, or that several tasks find the cuts."""
    assert_sorts(sample("f4", sum(lengths), seed=2), lengths, descending=False, exchange=exchange)


@hypothesis.settings(max_examples=examples(40), deadline=None)
@hypothesis.given(st.data())
def test_chunks_of_any_lengths(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(0, 90), min_size=2, max_size=6))
    dtype = data.draw(st.sampled_from(("u1", "f2", "f4", "i8")))
    x = sample(dtype, sum(lengths), data.draw(st.integers(0, 99)))
    given, descending = chunked(x, lengths), data.draw(st.booleans())
    with dask.config.set(scheduler="synchronous"):  # of a fixture Hypothesis knows nothing
        found = gpusort.dask.sort(given, descending=descending, stable=True)
        assert_same_bits(found.compute(), sorted_by_numpy(x, descending=descending))
        places = gpusort.dask.argsort(given, descending=descending)
        assert_same_bits(places.compute(), gpusort.argsort(x, descending=descending))


@few_cases(pairs=False)
@pytest.mark.parametrize("chunks", [(30, 40), (7, 40), (30, 9), (7, 9)])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_rows(axis: int | None, chunks: tuple[int, int]) -> None:
    x = sample("f4", (30, 40), seed=2)
    given = da.from_array(x, chunks=chunks)
    for limit in ("128MiB", "64B"):  # with the lesser one, rows in several chunks are sorted one by one
        with dask.config.set({"array.chunk-size": limit}):
            found = gpusort.dask.sort(given, axis=axis, stable=True)
            places = gpusort.dask.argsort(given, axis=axis, descending=True)
        assert axis is None or found.chunks == places.chunks == given.chunks
        assert_same_bits(found.compute(), gpusort.sort(x, axis=axis, stable=True))
        assert_same_bits(places.compute(), gpusort.argsort(x, axis=axis, descending=True))
    for k, largest in product((0, 1, 30), (True, False)):
        selected = gpusort.dask.top_k(given, k, axis=axis, largest=largest)
        expected = gpusort.top_k(x, k, axis=axis, largest=largest)
        assert [part.shape for part in selected] == [part.shape for part in expected]
        assert_all_computed(selected, expected)


def assert_all_computed(found: Sequence[da.Array], expected: Sequence[Array]) -> None:
    for computed, whole in zip(dask.compute(*found), expected, strict=True):
        assert_same_bits(computed, whole)


@pytest.mark.parametrize("lengths", [700, 100, UNEVEN])
@pytest.mark.parametrize("dtype", ["?", "f4", "i8", ">f8", "M8[ns]"])
def test_top_k_and_unique(dtype: str, lengths: Sequence[int] | int) -> None:
    x = sample(dtype, 700, seed=3)
    for k, largest in product((1, 20, 700), (True, False)):
        selected = gpusort.dask.top_k(chunked(x, lengths), k, largest=largest)
        assert_all_computed(selected, gpusort.top_k(x, k, largest=largest))
    found = gpusort.dask.unique(chunked(x, lengths))
    assert found.dtype == x.dtype
    # The first of those that are equal, to the last bit.
    in_order = np.sort(x, kind="stable")
    is_first = np.append(True, (in_order[1:] != in_order[:-1]) & (in_order[:-1] == in_order[:-1]))
    assert_same_bits(found.compute(), in_order[is_first].astype(dtype))


def test_rows_without_elements() -> None:
    empty = da.from_array(np.zeros((0, 5), np.float32), chunks=(1, 2))
    assert gpusort.dask.sort(empty, axis=0).compute().shape == (0, 5)
    assert gpusort.dask.sort(chunked(np.zeros(0), 3)).compute().shape == (0,)
    assert gpusort.dask.argsort(chunked(np.zeros(0), (0, 0, 0))).compute().dtype == np.int64
    whole = np.zeros((3, 0, 20), ">f4")
    for chunks in (((3, 0), (0, 0), (13, 7)), ((1, 2), (0,), (20,))):  # of several chunks along each axis, and of some
        x = da.from_array(whole, chunks=chunks)
        for axis in (None, 0, 1, 2):
            for ours, name in ((gpusort.dask.sort, "sort"), (gpusort.dask.argsort, "argsort")):
                found, expected = ours(x, axis=axis), getattr(np, name)(whole, axis=axis)
                assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                assert_same_bits(found.compute(), expected)
        assert gpusort.dask.unique(x).compute().shape == (0,)


def test_chunks_without_elements_are_flattened() -> None:
    """By dask they are not."""
    x = sample("f4", (3, 17), seed=4)
    given = da.from_array(x, chunks=((2, 1, 0), (0, 6, 8, 0, 3)))
    assert_same_bits(gpusort.dask.sort(given, axis=None).compute(), gpusort.sort(x, axis=None))
    assert_same_bits(gpusort.dask.argsort(given, axis=None).compute(), gpusort.argsort(x, axis=None))
    assert_all_computed(gpusort.dask.top_k(given, 5, axis=None), gpusort.top_k(x, 5, axis=None))


def test_lengths_that_are_not_known() -> None:
    whole = np.random.default_rng(1).integers(0, 50, 500)
    given = chunked(whole, 90)
    some, x = given[given > 30], whole[whole > 30]
    assert_same_bits(gpusort.dask.sort(some).compute(), np.sort(x))
    assert_same_bits(gpusort.dask.argsort(some).compute(), np.argsort(x, kind="stable"))
    assert_all_computed(gpusort.dask.sort_by_key(some, some), (np.sort(x), np.sort(x)))
    assert_same_bits(gpusort.dask.unique(some).compute(), np.unique(x))
    rows = da.stack([some, some])
    for axis in (1, None):
        with pytest.raises(gpusort.InvalidArgumentError, match="expected chunks of known sizes"):
            gpusort.dask.sort(rows, axis=axis)


# -- graphs -------------------------------------------------------------------------------------------------


def explode(block: Array) -> Array:
    raise AssertionError("nothing is computed while a graph is built")


def test_nothing_is_computed_when_a_graph_is_built() -> None:
    x = da.zeros(100, chunks=10).map_blocks(explode, dtype="f8", meta=np.zeros(0))
    gpusort.dask.sort(x)
    gpusort.dask.argsort(x)
    gpusort.dask.sort_by_key(x, x)
    gpusort.dask.top_k(x, 3)
    gpusort.dask.unique(x)
    assert gpusort.dask.sort(x).__dask_graph__().keys() == gpusort.dask.sort(x).__dask_graph__().keys()
    with pytest.raises(AssertionError, match="nothing is computed"):
        gpusort.dask.sort(x).compute()


def tasks_and_edges(x: da.Array) -> tuple[int, int]:
    """What is left to run, and how many results tasks ask for. An alias is no task."""
    graph = optimize(x.__dask_graph__(), [(x.name, number) for number in range(x.numblocks[0])])
    nodes = [node for node in graph.values() if type(node).__name__ != "Alias"]
    return len(nodes), sum(len(node.dependencies) for node in nodes)


@pytest.mark.parametrize(("exchange", "count"), [("shared", 300), ("p2p", 520), ("shared", 1000)])
def test_few_tasks_a_chunk(exchange: str, count: int) -> None:
    """Six, and those not asking for everything: a graph grows with the chunks, not with their square."""
    x = da.zeros(5 * count, chunks=5)
    for call in (gpusort.dask.sort, gpusort.dask.argsort, gpusort.dask.unique):
        found = call(x, exchange=exchange)
        tasks, edges = tasks_and_edges(found)
        assert tasks <= 6 * count
        assert edges <= 16 * count


def test_the_exchange_follows_the_scheduler() -> None:
    x = chunked(np.arange(30.0), 10)
    by_name = {name: gpusort.dask.sort(x, exchange=name).name for name in ("shared", "tasks")}
    assert gpusort.dask.sort(x).name == by_name["shared"]
    for scheduler, exchange in (("threads", "shared"), ("processes", "tasks")):
        with dask.config.set(scheduler=scheduler):
            assert gpusort.dask.sort(x).name == by_name[exchange]


# -- the way here -------------------------------------------------------------------------------------------


def test_functions_of_gpusort_lead_here() -> None:
    x = chunked(np.random.default_rng(2).random(100), 30)
    assert gpusort.sort(x, descending=True, stable=True).name == gpusort.dask.sort(x, descending=True, stable=True).name
    assert gpusort.sort(x, axis=None, target="cpu").name == gpusort.dask.sort(x, axis=None, target="cpu").name
    assert gpusort.argsort(x, descending=True).name == gpusort.dask.argsort(x, descending=True).name
    for found, expected in (
        (gpusort.sort_by_key(x, x, descending=True), gpusort.dask.sort_by_key(x, x, descending=True)),
        (gpusort.top_k(x, 3, largest=False), gpusort.dask.top_k(x, 3, largest=False)),
    ):
        assert [part.name for part in found] == [part.name for part in expected]


def test_dask_is_imported_by_the_caller_alone() -> None:
    printed("import sys, numpy, gpusort; gpusort.sort(numpy.arange(3)); assert 'dask' not in sys.modules")
    printed("import gpusort; assert gpusort.dask.sort.__module__ == 'gpusort.dask.sorting'")
    without = "import sys; sys.modules['dask'] = None\ntry:\n    import gpusort.dask\n"
    assert "pip install 'gpusort[dask]'" in printed(without + "except ModuleNotFoundError as error:\n    print(error)")


X = chunked(np.arange(30.0), 10)
HOST: Any = np.arange(30)  # what checkers would object to
NO: Any = "no"
TARGET: Any = gpusort.target("cpu")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: gpusort.dask.sort(HOST), TypeError, "x: expected a dask array, found ndarray"),
        (lambda: gpusort.dask.sort(X, exchange="mail"), ValueError, "exchange: expected one of auto, shared, p2p, ta"),
        (lambda: gpusort.dask.sort(X, axis=1), ValueError, "axis 1 is out of bounds"),
        (lambda: gpusort.dask.sort(X, descending=NO), TypeError, "descending: expected True or False"),
        (lambda: gpusort.dask.sort(X, target=TARGET), TypeError, "target: expected a name for dask"),
        (lambda: gpusort.dask.sort(X, target="tpu"), ValueError, "target: expected 'auto', 'cpu', .*, found 'tpu'"),
        (lambda: gpusort.dask.unique(X, target="tpu"), ValueError, "target: expected 'auto', 'cpu', .*, found 'tpu'"),
        (lambda: gpusort.dask.sort(chunked(np.zeros(3, complex), 1)), TypeError, "x: cannot order elements of dtype c"),
        (lambda: gpusort.dask.sort_by_key(X, X[:5]), ValueError, r"values: expected one for each key, .* \(5,\)"),
        (lambda: gpusort.dask.sort_by_key(X, HOST), TypeError, "values: expected a dask array"),
        (lambda: gpusort.dask.top_k(X, 31), ValueError, "k: expected 0 to the 30 elements of a row, found 31"),
        (lambda: gpusort.dask.top_k(X, -1), ValueError, "k: expected 0 or more"),
        (lambda: gpusort.sort(X, out=X), TypeError, "out: expected None for arrays of which nothing is computed"),
        (
            lambda: gpusort.sort(X, algorithm=gpusort.Bitonic()),
            TypeError,
            "dask arrays cannot be sorted by a k",
        ),
        (lambda: gpusort.sort_inplace(cast(Any, X)), TypeError, "dask arrays cannot be sorted in place"),
        (lambda: gpusort.plan(gpusort.sort, X), TypeError, "dask arrays cannot be planned for"),
        (lambda: gpusort.sum(X), TypeError, "x: sum takes no dask arrays; .compute"),
        (lambda: gpusort.cumsum(X), TypeError, "x: cumsum takes no dask arrays"),
        (lambda: gpusort.merge(X, X), TypeError, "dask arrays cannot be merged"),
        (lambda: gpusort.merge_by_key(X, X, X, X), TypeError, "dask arrays cannot be merged"),
    ],
)
def test_refusals(wrong: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


ONE: Any = da.from_array(np.array(3, np.float32))


def test_an_array_of_no_dimension_is_treated_as_numpys() -> None:
    array = np.array(3, np.float32)
    for axis in (-1, 0, None):
        found = gpusort.dask.argsort(ONE, axis=axis)
        assert found.shape == (1,)
        np.testing.assert_array_equal(found.compute(), gpusort.argsort(array, axis=axis))
    np.testing.assert_array_equal(gpusort.dask.unique(ONE), [3])


@pytest.mark.parametrize(
    ("name", "count", "settings"), [("argsort", 1, {"axis": 1}), ("sort", 1, {}), ("top_k", 1, {"k": 1}),
    ("sort_by_key", 2, {})],
)  # fmt: skip
def test_what_numpys_of_no_dimension_is_refused_for_so_is_dasks(
    name: str, count: int, settings: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match="dimension") as refused:
        getattr(gpusort, name)(*[np.array(3, np.float32)] * count, **settings)
    with pytest.raises(type(refused.value), match=f"^{re.escape(str(refused.value))}$"):
        getattr(gpusort.dask, name)(*[ONE] * count, **settings)


def test_chunks_of_another_dtype_than_the_others_are_refused() -> None:
    """Words of ints and of floats do not compare. Byte orders may differ, and a chunk of no elements has no dtype."""

    def of(*chunks: Array) -> da.Array:
        def chunk(at: Array) -> Array:
            return chunks[int(at[0])]

        lengths, empty = tuple(chunk.size for chunk in chunks), np.empty(0, chunks[0].dtype)
        made = chunked(np.arange(len(chunks)), 1).map_blocks(chunk, chunks=(lengths,), meta=empty)
        assert isinstance(made, da.Array)
        return made

    ints, floats, none = np.array([3, 1]), np.array([2.5, 0.5]), np.empty(0)
    for function in (gpusort.dask.sort, gpusort.dask.argsort, gpusort.dask.unique):
        with pytest.raises(
            TypeError, match=r"^x: expected one dtype in all chunks, found int64 and float64; make them alike"
        ):
            function(of(ints, none, floats)).compute()
    assert gpusort.dask.sort(of(ints, none, ints)).compute().tolist() == [1, 1, 3, 3]
    assert gpusort.dask.argsort(of(floats, floats.astype(">f8"))).compute().tolist() == [1, 3, 0, 2]
