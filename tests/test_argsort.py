"""`argsort` and `sort_by_key`, compared with NumPy exactly, on every target."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import gpusort
from gpusort.targets.cpu.host import argsort_path, fast_paths
from gpusort.targets.cpu.host.at_sight import places_at_sight
from gpusort.targets.cpu.host.numpy_sort import ascending, places_in_order
from gpusort.targets.cpu.host.signed_bits import are_ties_alike
from gpusort.types.indices import SortOrder
from tests.covering import few_cases
from tests.new_process import run_sort
from tests.reference import DTYPES, Array, assert_same_bits, sample
from tests.test_ties import by_words

LENGTHS = [0, 1, 2, 3, 255, 1000]


def stable_order(x: Array, descending: bool) -> Array:
    """NumPy's stable argsort of a row; descending, equals keep their order and NaN and NaT stay last."""
    if not descending:
        return np.argsort(x, kind="stable")
    backwards = len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    last = np.isnan(x[backwards]) if x.dtype.kind in "fmM" else np.zeros(len(x), np.bool_)
    return np.concatenate([backwards[~last], backwards[last]])


class Watched(np.ndarray[Any, np.dtype[Any]]):
    """An array that tells whose memory NumPy sorts, and from which it takes elements."""

    sorted_in: ClassVar[list[Array]] = []
    taken_from: ClassVar[list[Array]] = []

    def argsort(self, *given: Any, **named: Any) -> Any:
        self.sorted_in.append(self)
        return super().argsort(*given, **named)

    def take(self, *given: Any, **named: Any) -> Any:
        self.taken_from.append(self)
        return super().take(*given, **named)


@pytest.mark.parametrize("dtype", ["u1", "i2", "?"])
def test_numpy_counts_bytes_in_memory_that_no_other_thread_changes(dtype: str) -> None:
    """Else it would write the places of what is changed past the end of its own."""
    x = np.arange(600).reshape(3, 200).astype(dtype)
    for order in SortOrder:
        Watched.sorted_in.clear()
        places = places_in_order(ascending(x.view(Watched), order), 1)
        assert len(Watched.sorted_in) == 1
        assert not np.shares_memory(Watched.sorted_in[0], x)
        is_down = order is SortOrder.DESCENDING
        np.testing.assert_array_equal(places, [stable_order(row, is_down) for row in x])


@pytest.mark.parametrize(
    ("dtype", "length", "call"),
    [
        ("u1", 2000, "argsort(x, axis=None)"), ("u1", 2000, "top_k(x, 1900, largest=False)[1]"),
        ("u1", 200_000, "argsort(x)"), ("u1", 2_000_000, "argsort(x)"), ("i2", 200_000, "argsort(x)"),
    ],
)  # fmt: skip
def test_places_of_bytes_that_another_thread_changes_are_places(dtype: str, length: int, call: str) -> None:
    """In another process, which a write past the end of memory would end."""
    done = run_sort(
        f"""
import threading, time
import numpy as np
from gpusort import argsort, top_k

x, ends = np.zeros({length}, "{dtype}"), time.monotonic() + 0.5

def change():
    while time.monotonic() < ends:
        x.fill(127)
        x.fill(0)

threading.Thread(target=change).start()
while time.monotonic() < ends:
    places = {call}
    assert 0 <= places.min() <= places.max() < {length}
"""
    )
    assert done.returncode == 0, done.stderr


def lengths_for(target: str) -> list[int]:
    return [0, 1, 2, 17] if target == "python" else LENGTHS


@few_cases(whole=["cpu"], can=lambda case: case["length"] in lengths_for(str(case["target"])), pairs=False)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("length", [*LENGTHS, 17])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_dimension(target: str, dtype: str, length: int, descending: bool) -> None:
    x = sample(dtype, length, seed=length)
    before = x.copy()
    found = gpusort.argsort(x, descending=descending, target=target)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, stable_order(x, descending))
    assert x.tobytes() == before.tobytes()


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_axes(target: str, axis: Any) -> None:
    x = sample("f4", (3, 5, 4), seed=3)
    expected = np.argsort(x, axis=axis, kind="stable")
    np.testing.assert_array_equal(gpusort.argsort(x, axis=axis, target=target), expected)
    turned = x.transpose(2, 0, 1)
    np.testing.assert_array_equal(
        gpusort.argsort(turned, axis=axis, target=target), np.argsort(turned, axis=axis, kind="stable")
    )


def test_other_byte_orders_and_lists() -> None:
    x = sample(">i4", 100)
    np.testing.assert_array_equal(gpusort.argsort(x), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(gpusort.argsort([3, 1, 2]), [1, 2, 0])


@few_cases(pairs=False)
@pytest.mark.parametrize("value", ["u1", "f8", "M8[s]", "U3"])
@pytest.mark.parametrize("descending", [False, True])
def test_values_by_keys(target: str, value: str, descending: bool) -> None:
    length = 17 if target == "python" else 300
    keys = np.random.default_rng(1).integers(0, 20, length).astype(np.int32)
    values: Any = np.arange(length).astype(value)
    order = stable_order(keys, descending)
    found, moved = gpusort.sort_by_key(keys, values, descending=descending, target=target)
    np.testing.assert_array_equal(found, keys[order])
    np.testing.assert_array_equal(moved, values[order])
    assert moved.dtype == values.dtype


@few_cases(pairs=False)
@pytest.mark.parametrize("value", ["u1", "i4", "f8", "U3"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("descending", [False, True])
def test_float_keys_are_those_of_sort_on_every_target(target: str, dtype: str, value: str, descending: bool) -> None:
    """Zeros and NaNs that compare equal are told apart by their bits; of the same bits, values keep their order."""
    length = 17 if target == "python" else 9000
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, 1.5], dtype)
    keys = special[np.random.default_rng(7).integers(0, special.size, length)]
    values: Any = (np.arange(length) % 251).astype(value)
    found, moved = gpusort.sort_by_key(keys, values, descending=descending, target=target)
    words = f"u{keys.itemsize}"
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    np.testing.assert_array_equal(found.view(words), by_words(keys, order).view(words))
    for bits in np.unique(keys.view(words)):
        np.testing.assert_array_equal(moved[found.view(words) == bits], values[keys.view(words) == bits])


@pytest.mark.parametrize("value", ["f4", "O"])
def test_a_column_of_records_is_copied_once(value: str) -> None:
    """Each thread's call of `take` would copy all of it."""
    rows = np.empty(600_000, [("key", "u2"), ("value", value)])
    rows["key"], rows["value"] = np.random.default_rng(1).integers(0, 9, rows.size), np.arange(rows.size)
    order = np.argsort(rows["key"], kind="stable")
    given = rows["key"].view(Watched), rows["value"].view(Watched)
    Watched.taken_from.clear()
    for pair in (gpusort.sort_by_key(*given), fast_paths.sorted_pairs(*given, argsort=lambda _: order)):
        for found, name in zip(pair, ("key", "value"), strict=True):
            np.testing.assert_array_equal(found, rows[name][order])
    assert len(Watched.taken_from) > 1
    assert all(array.flags.c_contiguous for array in Watched.taken_from)


def test_few_floats_are_looked_at_for_ties_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def noted(source: Array) -> bool:
        looked.append(source.size)
        return are_ties_alike(source)

    monkeypatch.setattr(argsort_path, "are_ties_alike", noted)
    keys = np.array([0.0, -0.0, 3.0, -1.0])
    for descending, expected in ((False, [3, 1, 0, 2]), (True, [2, 0, 1, 3])):
        looked.clear()
        found, moved = gpusort.sort_by_key(keys, np.arange(4), descending=descending)
        assert_same_bits(found, keys[expected])
        assert moved.tolist() == expected
        assert looked == [4]


@pytest.mark.parametrize("dtype", [object, [("place", "u4"), ("name", object)]])
def test_values_that_hold_objects(target: str, dtype: Any) -> None:
    """Kernels move bytes, and Python counts who refers to an object: no target but the host's own ways takes them."""
    keys, values = np.array([3, 1, 2], np.uint32), np.empty(3, dtype)
    message = "^values: elements of dtype .* hold Python's objects, which no kernel moves; take them by their places"
    if target == "cpu":
        assert gpusort.sort_by_key(keys, values)[1].dtype == values.dtype
    else:
        with pytest.raises(gpusort.UnsupportedTypeError, match=message):
            gpusort.sort_by_key(keys, values, target=target)
    for count in (1, 4_000):
        keys, values = np.arange(count, dtype=np.uint32), np.empty(count, dtype)
        with pytest.raises(gpusort.UnsupportedTypeError, match=message):
            gpusort.merge_by_key(keys, values, keys, values, target=target)


def test_mistakes() -> None:
    with pytest.raises(gpusort.InvalidArgumentError, match=r"^values: .* found shapes \(3,\) and \(2,\)"):
        gpusort.sort_by_key(np.zeros(3), np.zeros(2))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^keys: cannot order"):
        gpusort.sort_by_key(np.zeros(3, "c8"), np.zeros(3))
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: cannot order"):
        gpusort.argsort(np.array(["a"]))
    x = np.array([b"fig", b"", b"apple"])
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"texts .* x\.astype\('S8'\)\.view\('>u8'\)$"):
        gpusort.argsort(x)
    assert gpusort.argsort(x.astype("S8").view(">u8")).tolist() == [1, 2, 0]


@pytest.mark.parametrize("dtype", ["u4", "f4", "i8", "f8", "M8[s]"])
@pytest.mark.parametrize("length", [255, 256, 2047, 2048, 5000, 300_001])
def test_runs_are_merged_as_numpy_does(dtype: str, length: int) -> None:
    """In order, backwards, up and down, a few runs, equal elements among them, NaNs at the seams."""
    ramp = np.sort(sample(dtype, length, seed=length))
    up_and_down = np.concatenate([ramp[::2], ramp[1::2][::-1]])
    runs = np.concatenate([np.sort(part) for part in np.array_split(sample(dtype, length, seed=1), 5)])
    for x in (ramp, ramp[::-1].copy(), up_and_down, runs, np.repeat(ramp[: length // 4 + 1], 4)[:length]):
        for descending in (False, True):
            found = gpusort.argsort(x, descending=descending)
            np.testing.assert_array_equal(found, stable_order(x, descending))


@pytest.mark.parametrize("dtype", ["i2", "i4", "f2", "f4", "f8", "M8[s]"])
def test_rows_of_few_elements_and_runs_are_seen_as_such(dtype: str) -> None:
    """And those that only seem to be."""
    found = set[str]()
    for length in (600, 3000, 20_000):
        ramp, two = np.sort(sample(dtype, length)), np.resize([5, 9, 5], length).astype(dtype)
        rows = {"ramp": ramp, "back": ramp[::-1].copy(), "equals": np.full_like(two, two[1]), "two": two}
        rows["three"] = np.where(np.arange(length) % 7 == 1, two[1] - (two[1] - two[0]) // 2, two).astype(dtype)
        rows["one more"] = two.copy()
        rows["one more"][length // 3 + 1] = rows["three"][1]
        if ramp.dtype.kind == "f":
            nans = np.full(length, np.nan, dtype)
            rows |= {"nans": nans, "zeros": np.copysign(np.zeros_like(two), np.resize([1, -1], length)).astype(dtype)}
            rows["nans of both signs"] = np.copysign(nans, rows["zeros"])
            rows["nans among two"] = np.where(np.arange(length) % 3 == 1, nans, two)
        for name, x in rows.items():
            for row in (x, np.repeat(x, 2)[::2]):
                for order in SortOrder:
                    descends = order is SortOrder.DESCENDING
                    expected = stable_order(row, descends)
                    np.testing.assert_array_equal(gpusort.argsort(row, descending=descends), expected, name)
                    places = places_at_sight(ascending(row, order))
                    if places is not None:
                        np.testing.assert_array_equal(places, expected, name)
                        found.add(name)
    assert {"equals", "two", "three"} <= found
    assert "one more" not in found
    if dtype in ("f2", "f4", "f8"):
        assert {"nans", "zeros", "nans of both signs", "nans among two"} <= found
    if dtype == "i4":
        assert {"ramp", "back"} <= found


def test_an_array_of_no_dimensions_is_a_row_of_one(target: str) -> None:
    for axis in (-1, 0, None):
        found = gpusort.argsort(np.array(5, "u4"), axis=axis, target=target)
        assert_same_bits(found, np.argsort(np.array(5, "u4"), axis=axis))
    with pytest.raises(np.exceptions.AxisError):
        gpusort.argsort(np.array(5, "u4"), axis=1, target=target)


@pytest.mark.parametrize("order", list(SortOrder))
@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", ">f8"])
def test_many_rows_that_lie_apart_on_the_host(dtype: str, order: SortOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix's columns, which threads bring together."""
    monkeypatch.setenv("GPUSORT_THREADS", "2")
    x = sample(dtype, (9, 40_000))
    places = gpusort.argsort(x, axis=0, descending=order is SortOrder.DESCENDING, target="cpu")
    for column in range(0, 40_000, 97):
        expected = stable_order(x[:, column], order is SortOrder.DESCENDING)
        np.testing.assert_array_equal(places[:, column], expected)
