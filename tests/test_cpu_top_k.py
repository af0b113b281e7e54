"""Top-k of host arrays, compared with the first k of NumPy's stable argsort exactly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.api.plan import HostPlan
from gpusort.targets.cpu.host import top_k
from gpusort.targets.cpu.host.select_loops import MOST_SELECTED
from gpusort.targets.cpu.host.top_k import top_k_of_row, top_k_rows
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.indices import SortOrder
from tests.reference import DTYPES, Array, assert_same_bits, sample
from tests.test_argsort import stable_order
from tests.test_select import adverse

POLICY = HostSortPolicy()
LONG = (1 << 17) + 5


def check(x: Array, *ks: int) -> None:
    """Of rows of x, both ends: by the compiled loops, and without one or both."""
    before = x.copy()
    for order in SortOrder:
        whole = [stable_order(row, order is SortOrder.DESCENDING) for row in x]
        for k in ks:
            expected = np.array([row[:k] for row in whole], np.int64).reshape(len(x), k)
            for values, indices in ways(x, k, order):
                assert_same_bits(indices, expected)
                assert_same_bits(values, np.take_along_axis(x, expected, axis=1))
    assert_same_bits(x, before)


def ways(x: Array, k: int, order: SortOrder) -> Iterator[tuple[Array, Array]]:
    yield top_k_rows(x, k, order, POLICY)
    if len(x) == 1:
        values, indices = top_k_of_row(x[0], k, order, POLICY)
        yield values[np.newaxis], indices[np.newaxis]
    with pytest.MonkeyPatch.context() as patch:
        for loop in "selected_in_rows", "parted_in_rows":
            patch.setattr(top_k, loop, unsuited)
            yield top_k_rows(x, k, order, POLICY)
        if len(x) == 1:
            values, indices = top_k_of_row(x[0], k, order, POLICY)
            yield values[np.newaxis], indices[np.newaxis]


def unsuited(*given: object) -> None:
    return None


@pytest.mark.parametrize("dtype", DTYPES)
def test_short_rows(dtype: str) -> None:
    shapes = ((0, 3), (1, 1), (1, 7), (1, 500), (3, 50), (5, 200), (30, 333), (300, 700))
    for shape in (*shapes, (120, 90), (1, 8193), (2, 33_000)):
        length = shape[1]
        check(sample(dtype, shape, seed=3), *sorted({0, 1, min(5, length), min(40, length), length}))


@pytest.mark.parametrize("dtype", ["u1", "f2", "f8", ">i4", "M8[ns]"])
def test_rows_of_one_element(dtype: str) -> None:
    x = sample(dtype, (90, 30))
    for seen, axis in ((x[:, np.newaxis], 1), (x.T[np.newaxis], 0), (x[:, ::2, np.newaxis], -1)):
        values, indices = gpusort.top_k(seen, 1, axis=axis)
        assert_same_bits(values, seen)
        assert_same_bits(indices, np.zeros(seen.shape, np.int64))
        values[...] = seen.flat[0]  # which is no view of the array
    assert_same_bits(x, sample(dtype, (90, 30)))


@pytest.mark.parametrize("length", [33, 63, 64, 65, 128, 129, 1000])
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", "u4", "f4", "i8", "f8", "M8[ns]"])
def test_few_of_many_rows(dtype: str, length: int) -> None:
    """Rows that ascend, descend, and rise at last, of few values, all alike, and of little else than NaN or NaT."""
    x = sample(dtype, (90, length), seed=length)
    x[10:20].sort(axis=1)
    x[20:30] = np.sort(x[20:30], axis=1)[:, ::-1]
    x[30:40] = x[30, 0]
    x[40:50] = np.random.default_rng(length).integers(0, 3, (10, length)).astype(dtype)
    x[40:45].sort(axis=1)
    x[50:60, :-1] = np.sort(x[50:60, :-1], axis=1)[:, ::-1]
    if x.dtype.kind in "fM":
        x[60:80] = "NaT" if x.dtype.kind == "M" else np.nan
        x[70:75, 3], x[75:80, -1] = x[0, 0], x[0, 0]
    check(x, 1, 2, 16, 17, MOST_SELECTED, MOST_SELECTED + 1)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", "u4", "f4", "i8", "f8", "M8[ns]"])
def test_rows_as_long_as_what_is_wanted_of_them(dtype: str) -> None:
    for shape in ((1, 2), (3, 5), (10, 10), (7, 17), (1, 512), (1, 513), (60, 34)):
        check(sample(dtype, shape, seed=sum(shape)), *(k for k in (1, 4, 9, 16, 17) if k <= shape[1]))


def test_some_rows_that_are_sorted_and_not_chosen_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes, short ones, or of which much is wanted."""
    monkeypatch.delattr(top_k, "_parted")
    monkeypatch.delattr(top_k, "_not_behind")
    for dtype, shape, k in (
        ("u1", (12, 900), 64), ("u2", (1, 1000), 10), ("i4", (300, 30), 4), ("f8", (100, 151), 64),
        ("f8", (3, 5000), 1300), ("i4", (1, 5000), 600), ("i8", (3, 5000), 320), ("u2", (1, 5000), 320),
    ):  # fmt: skip
        check(sample(dtype, shape, seed=k), k)


def test_rows_that_are_chosen_from_though_much_is_wanted_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []

    def argsorted(source: Array, k: int, *given: object) -> Array:
        chosen.append(source.shape[1])
        return np.argsort(-source, axis=1, kind="stable")[:, :k]

    monkeypatch.setattr(top_k, "_argsorted", argsorted)
    for dtype, k in (("f4", 1250), ("f8", 1250), ("i4", 555), ("i8", 312)):
        x = sample(dtype, (3, 5000), seed=k)
        x = np.nan_to_num(x) if x.dtype.kind == "f" else x // 2
        values, _ = top_k.top_k_rows(x, k, SortOrder.DESCENDING, POLICY)
        np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :k])
    assert chosen == [1250, 1250, 555, 312], "of the rows' 5000 those that were chosen are sorted"


def test_rows_are_parted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no loop is compiled yet."""
    rows: list[int] = []
    parted = top_k._parted_by_numpy  # pyright: ignore[reportPrivateUsage]

    def noted(words: Array, k: int) -> Array:
        rows.append(len(words))
        return parted(words, k)

    for loop in "selected_in_rows", "parted_in_rows":
        monkeypatch.setattr(top_k, loop, unsuited)
    monkeypatch.setattr(top_k, "_parted_by_numpy", noted)
    for count, length, pieces in ((30, 1000, 1), (60, 1000, 2), (900, 1000, 28), (9, 50_000, 9)):
        x = np.random.default_rng(count).random((count, length))
        rows.clear()
        np.testing.assert_array_equal(top_k_rows(x, 10, SortOrder.ASCENDING, POLICY)[0], np.sort(x, axis=1)[:, :10])
        assert sum(rows) == count
        assert len(rows) == pieces


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f4", "f8", "M8[ns]"])
def test_a_long_row(dtype: str) -> None:
    check(sample(dtype, (1, LONG), seed=1), 1, 300, 9000)


@pytest.mark.parametrize("dtype", ["f2", "i4", "f8"])
def test_equals_wherever_the_first_of_them_stand(dtype: str) -> None:
    """At once, behind those that are looked at first, and too few of them without all that are looked at."""
    for first in (0, 1020, 3000, 8900, 39_995):
        x = np.zeros(40_000, dtype)
        x[first:] = 1
        x[[5, 39_000]] = 2
        check(x[np.newaxis], 1, 12, 100)


@pytest.mark.parametrize("dtype", ["u1", "f4", "i8", "f8"])
def test_adverse_rows(dtype: str) -> None:
    for x in adverse(dtype, LONG).values():
        check(x[np.newaxis], 1, 100)
    for x in adverse(dtype, 9000).values():
        check(x[np.newaxis], 1, 100)
    for x in adverse(dtype, 1000).values():
        check(np.stack([x] * 70), 1, 10, 100)


@pytest.mark.parametrize("dtype", ["i2", "i4", "f2", "f8", "M8[ns]"])
def test_short_rows_of_few_values(dtype: str) -> None:
    """The last that is taken has equals in no row, in some, or in all."""
    numbers = np.random.default_rng(4)
    for values in (1, 2, 5, 30, 10_000):
        x = numbers.integers(0, values, (60, 64)).astype(dtype)
        check(x, 1, 10, 31)
        x[5] = x[6, :40] = "NaT" if dtype[0] == "M" else np.nan if dtype[0] == "f" else 0
        check(x, 1, 10, 31)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4"])
def test_a_long_row_of_few_values(dtype: str) -> None:
    for values in (1, 2, 50):
        check(np.random.default_rng(values).integers(0, values, (2, LONG)).astype(dtype), 1, 30, 3000)


def test_more_nans_than_numbers() -> None:
    x = np.full((1, LONG), np.nan, "f4")
    x[0, 1000:1010] = 1
    check(x, 5, 50)
    check(x[:, : 70 * 1000].reshape(70, 1000), 5, 50)


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "i4", "f4", "f8", "M8[s]"])
def test_parts_of_a_long_row(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any elements; of few different ones; some of equals, or of NaNs alone; and a few elements behind them all."""
    monkeypatch.setattr(top_k, "_PART", 700)
    monkeypatch.setenv("GPUSORT_THREADS", "3")
    row = sample(dtype, 20_011, seed=5)
    few = row[np.random.default_rng(5).integers(0, 3, row.size)]
    mixed = row.copy()
    mixed[2000:9000], mixed[-11:] = row[7], np.sort(row)[-20:-9]
    if mixed.dtype.kind == "f":
        mixed[9000:19_000] = np.nan
    for x in (row, few, mixed):
        check(x[np.newaxis], 1, 10, MOST_SELECTED, 50, 1000)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "i8", "f8"])
@pytest.mark.parametrize("k", [50, 1024, 1025, 5000])
def test_more_is_kept_than_there_is_room_for(dtype: str, k: int) -> None:
    """Each element precedes all before it, or none does, and some are equal where the others are dropped."""
    x = np.sort(np.random.default_rng(k).integers(0, 1 << 30, (2, 90_000)), axis=1).astype(dtype)
    x[1] = x[1, ::-1]
    check(x, k)


def test_more_is_wanted_than_loops_have_room_for() -> None:
    x = np.random.default_rng(1).integers(0, 1 << 30, 900_000, np.int32)
    order = stable_order(x, descending=True)
    for k in (1 << 16, (1 << 16) + 1, 290_000):
        values, indices = top_k_of_row(x, k, SortOrder.DESCENDING, POLICY)
        assert_same_bits(indices, order[:k])
        assert_same_bits(values, x[order[:k]])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_columns_of_nothing_but_nan(dtype: str) -> None:
    """Of those that a row is looked at in, every second one, or all but so few that these give no threshold."""
    for length in (9000, LONG):
        x = sample(dtype, (1, length), seed=length)
        x[0, ::2] = np.nan
        check(x, 1, 20, 100)
        few = np.full_like(x, np.nan)
        few[0, : length // 2 : 64] = x[0, 1::2][: len(few[0, : length // 2 : 64])]
        check(few, 1, 20, 100)


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "M8[ns]"])
def test_most_are_equal_to_the_best(dtype: str) -> None:
    """There may be none better than these."""
    x = sample(dtype, (1, LONG), seed=3)
    numbers = x[x == x]
    for best in numbers.min(), numbers.max(), np.inf if dtype == "f4" else numbers[0]:
        often = x.copy()
        often[0, 100:-300] = best
        check(often, 1, 300)


@pytest.mark.parametrize("dtype", ["u1", "f2", "i4", "f4", "f8", "M8[s]"])
def test_rows_whose_first_are_equal_or_that_are_hardly_numbers(dtype: str) -> None:
    two = np.resize([7, 3, 7], 2500).astype(dtype)
    rows = [two, np.full_like(two, two[0])]
    if two.dtype.kind == "f":
        nans = np.full(2500, np.nan, dtype)
        rows += [
            nans,
            np.copysign(nans, two - two[1] - 1),
            np.copysign(np.zeros_like(two), np.resize([1, -1, 1], 2500)),
        ]
        nans = nans.copy()
        nans[[7, 900, 901]] = two[:3]
        rows.append(nans)
    for row in rows:
        check(row[np.newaxis], 1, 10, 64)


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8"])
def test_some_long_rows_of_which_many_elements_are_wanted(dtype: str) -> None:
    """Few are looked at one by one, more together."""
    for rows in (3, 8, 9):
        x = sample(dtype, (rows, 900), seed=rows)
        x[1] = x[1, 0]
        x[2, 10:] = x[2, :1]
        check(x, 20, 64, 200)


def test_rows_of_new_lengths_need_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left to refuse is refused all the same."""
    x: Array = np.arange(50)
    gpusort.top_k(x, 3)
    monkeypatch.setattr(HostPlan, "_plan", None)
    assert np.array_equal(gpusort.top_k(x[:-1], 3)[0], np.sort(x[:-1])[:-4:-1])
    monkeypatch.undo()
    assert gpusort.top_k(x[:0].reshape(0, 5), 3)[0].shape == (0, 3)
    with pytest.raises(InvalidArgumentError, match="expected 0 to the 2 elements of a row, found 3"):
        gpusort.top_k(x[:2], 3)


@pytest.mark.parametrize("shape", [(300,), (5000,), (LONG,), (300, 7), (300, 40), (40, 5000)])
def test_results_hold_no_memory_of_what_was_not_chosen(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).random(shape, np.float32)
    for k in (1, shape[-1] // 3, shape[-1] * 3 // 4, shape[-1]):
        for found in gpusort.top_k(x, k):
            assert found.base is None or found.base.nbytes == found.nbytes
