"""What the caller can reach may be written to by another of its threads while it is sorted: then the result is
senseless, but nothing else. NumPy's sorts of 8 and 16 bits, of times, and of all where it has no vector code, may go
past the end of what changes meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.algos.host_sort import HostSortPolicy
from gpusort.operations.reduce import Reducer
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host import argsort, numpy_sort
from gpusort.targets.cpu.host.arg_reduce import PlaceFolding
from gpusort.targets.cpu.host.autotuned import Choice, Choices, Ways
from gpusort.targets.cpu.host.numpy_sort import keep_ties, restore_ties
from gpusort.targets.cpu.host.radix_sort import argsort_by_radix
from gpusort.targets.cpu.host.select_loops import parted_in_rows, selected_in_rows
from gpusort.targets.cpu.host.sort_path import SortPath
from gpusort.targets.cpu.host.top_k import top_k_rows
from gpusort.types.indices import SortOrder
from gpusort.types.specs import Spec


class Reachable(np.ndarray[Any, Any]):
    """Says so when the caller's memory is given to NumPy's sort."""

    whole: npt.NDArray[np.generic] | None = None

    def __array_finalize__(self, made_of: object) -> None:
        self.whole = getattr(made_of, "whole", None)

    def argpartition(self, *given: Any, **named: Any) -> Any:
        assert self.whole is not None
        assert not np.shares_memory(self, self.whole)
        return super().argpartition(*given, **named)

    def sort(self, axis: SupportsIndex = -1, kind: Any = None, order: object = None, *, stable: object = None) -> None:
        assert self.whole is not None
        # Times are merged, or sorted as integers by vector code: all else that NumPy has for them trusts a sentinel.
        is_of_times = self.whole.dtype.kind in "mM" and (kind == "stable" or self.dtype.kind == "i")
        assert is_of_times or not np.shares_memory(self, self.whole)
        super().sort(axis, kind)


def reachable(x: npt.NDArray[np.generic]) -> Reachable:
    found = x.view(Reachable)
    found.whole = x
    return found


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", ["u1", "i2", "?"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((30,), 0), ((600,), 0), ((70_000,), 0), ((300, 1000), 1), ((1000, 300), 0), ((5000, 40), 1)],
)
def test_narrow_elements_are_sorted_apart(
    shape: tuple[int, ...], axis: int, dtype: str, order: SortOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_sort, "radix_sorts_sooner", lambda length=0: True)  # as on most processors
    monkeypatch.setattr(numpy_sort, "numpy_sorts_slowly", lambda size: False)  # bytes are counted anywhere
    x = np.random.default_rng(1).integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
    expected = np.sort(x, axis) if order is SortOrder.ASCENDING else np.flip(np.sort(x, axis), axis)
    path = SortPath(HostSortPolicy(), Spec(shape, x.dtype), axis, order, stable=False)
    for in_place in (False, True):
        own = x.copy()
        source = reachable(own)
        out = source if in_place else reachable(np.empty_like(own))
        if path.into_short is None or not path.into_short(source, out):
            path.into((source,), (out,))
        np.testing.assert_array_equal(np.asarray(out), expected)


@pytest.mark.parametrize(
    ("dtype", "is_slow"), [("M8[s]", False), ("M8[s]", True), ("m8[ns]", False), ("i4", True), ("u8", True)]
)
@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), 0), ((40,), 0), ((300,), 0), ((900,), 0), ((3, 90), 1), ((90, 3), 0)]
)
def test_what_numpy_has_no_vector_code_for_is_sorted_apart(
    shape: tuple[int, ...], axis: int, dtype: str, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or by its merge sort, whose loops end whatever is written."""
    monkeypatch.setattr(numpy_sort, "numpy_sorts_slowly", lambda size: is_slow)
    x = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    for nats in (0, 2):
        if dtype[0] in "mM":
            x.reshape(-1)[1 : 1 + nats] = "NaT"
        path = SortPath(HostSortPolicy(), Spec(shape, x.dtype), axis, SortOrder.ASCENDING, stable=False)
        for in_place in (False, True):
            own = x.copy()
            source = reachable(own)
            out = source if in_place else reachable(np.empty_like(own))
            assert path.into_short is not None
            assert path.into_short(source, out)
            np.testing.assert_array_equal(np.asarray(out), np.sort(x, axis))


@pytest.mark.parametrize("written", [-0.0, np.nan, 1.0])
@pytest.mark.parametrize("put_back", [keep_ties, restore_ties])
def test_zeros_and_nans_that_come_or_go_meanwhile(put_back: Callable[..., None], written: float) -> None:
    """What is put back is then not as many as there were."""
    x = np.array([3, -0.0, np.nan, 0.0, -np.nan, 2], np.float32)
    results = np.sort(x)
    for place in range(x.size):
        x[place] = written
        put_back(x, results.copy(), *([SortOrder.ASCENDING] if put_back is restore_ties else []))


def test_places_are_counted_and_parted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they may be what lay in memory before; elements are taken from there."""
    x = np.random.default_rng(1).integers(0, 1 << 30, (2, 100_000)).astype(np.int32)
    given: list[npt.NDArray[np.generic]] = []

    def noted(row: npt.NDArray[np.generic], places: npt.NDArray[np.intp], threads: int) -> None:
        given.append(row)
        argsort_by_radix(row, places, threads)

    monkeypatch.setattr(argsort, "argsort_by_radix", noted)
    with background.off():
        places = argsort.argsort_rows(x[:1], HostSortPolicy(by_radix=True))
    np.testing.assert_array_equal(places, x[:1].argsort(axis=1, kind="stable"))
    assert given
    assert not np.shares_memory(given[0], x)
    monkeypatch.setattr(background, "has", lambda *given, **named: False)
    found = top_k_rows(reachable(x), 100, SortOrder.ASCENDING, HostSortPolicy())[1]
    np.testing.assert_array_equal(np.asarray(found), x.argsort(axis=1, kind="stable")[:, :100])


def check_places(find: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], rows: int, length: int) -> None:
    """Of rows that another thread writes to for a while: what is found are places in a row."""
    x = np.zeros((rows, length), np.int32)
    is_over = False

    def write() -> None:
        while not is_over:
            for number in (0, np.iinfo(x.dtype).max):
                x[:] = number

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            with background.off():
                places = find(x)
            assert 0 <= places.min() <= places.max() < length
    finally:
        is_over = True
        writer.join()


@pytest.mark.parametrize(("rows", "k"), [(1, 16), (16, 100)])
def test_places_of_a_selection_are_places_whatever_is_written(rows: int, k: int) -> None:
    def find(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        found = selected_in_rows(x, k, SortOrder.ASCENDING)
        places = parted_in_rows(x, k, SortOrder.ASCENDING) if found is None else found[1]
        assert places is not None
        return places

    check_places(find, rows, (1 << 17) // rows)


def test_places_of_extremes_are_places_whatever_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Choices, "among", lambda _, key, **named: Ways(named, Choice("rows")))
    argmax = PlaceFolding(Reducer.ARGMAX, np.dtype(np.int32), 1)

    def find(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        places = argmax(x)
        assert places is not None
        return places

    check_places(find, 16_000, 64)
