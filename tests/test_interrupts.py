"""Whatever strikes a sort in place, wherever: the array holds the elements it was given, and nobody is still at it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial

import attrs
import numpy as np
import pytest

import gpusort
from gpusort import Bitonic, Radix
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.arrays.host import NUMPY
from gpusort.kernel.launch import Schedule
from gpusort.targets.cpu.host.at_sight import few_words
from gpusort.targets.cpu.host.counting import sort_few
from gpusort.targets.cpu.host.sort import sort_rows
from gpusort.targets.cpu.host.sort_path import SortPath
from gpusort.targets.cpu.pool import shared_pool
from gpusort.targets.cpu.target import CpuTarget
from gpusort.targets.simulator.target import Simulator
from gpusort.types.indices import SortOrder
from gpusort.types.params import RadixPolicy
from tests.covering import few_cases
from tests.striking import Array, elements_of, events, places, strike

# Every way of sorting is taken, on arrays small enough to strike them at many places.
TARGET = CpuTarget(
    attrs.evolve(
        HostSortPolicy(), serial_below=1 << 10, part_bytes_from=1 << 12, few_bytes_from=1 << 13,
        count_bytes_from=1 << 11, count_pairs_from=1 << 11,
        chunk=1 << 9, block=1 << 8, sample=256,
    )
)  # fmt: skip
RNG = np.random.default_rng(10)
N = 6000


def integers(dtype: str, count: int = N) -> Array:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)


def floats(dtype: str, count: int = N) -> Array:
    x = RNG.standard_normal(count)
    x[::17] = 0
    return x.astype(dtype)


def specials(dtype: str, count: int = N) -> Array:
    x = floats(dtype, count)
    x[5::31], x[::9], x[3::50] = -0.0, np.nan, -np.nan
    return x


def times(count: int = N) -> Array:
    x = RNG.integers(-1 << 40, 1 << 40, count).view("M8[s]")
    x[::40] = "NaT"
    return x


CASES: dict[str, Array] = {
    "u4": integers("u4"),
    "i8": integers("i8"),
    "f4": floats("f4"),
    "f8 with specials": specials("f8"),
    "rows of i8": integers("i8").reshape(60, -1),
    "rows of f4": specials("f4").reshape(60, -1),
    "rows of u1": integers("u1").reshape(60, -1),
    "two long rows": integers("u4", 2 * N).reshape(2, -1),
    "short f4": specials("f4", 300),
    "short i8": integers("i8", 300),
    "short f2": specials("f2", 300),
    "short bool": integers("u1", 300) > 100,
    "few u4": RNG.integers(0, 9, N).astype("u4"),
    "few f4": RNG.choice(np.array([0, -0.0, np.nan, 3], "f4"), N),
    "200 i8": RNG.integers(0, 200, N),
    "nearly constant": np.where(np.arange(N) % 50 == 0, integers("i8"), 7),
    "mostly nan": np.where(np.arange(N) % 5 > 0, np.nan, specials("f8")),
    "times": times(),
    "times in order": np.sort(times()),
    "times by rows": times().reshape(60, -1),
    "bool": integers("u1") > 100,
    "u1": integers("u1"),
    "i2": integers("i2"),
    "f2": specials("f2"),
    "ascending u4": np.arange(N, dtype="u4"),
    "descending f4": -np.sort(-floats("f4")),
    "columns": specials("f4", 60_000).reshape(200, -1),
    "columns of i8": integers("i8", 60_000).reshape(200, -1),
}


@pytest.fixture(params=["2", "4"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd and an even number of passes."""
    monkeypatch.setenv("GPUSORT_THREADS", str(request.param))


def check_strikes(make: Callable[[], Array], sort: Callable[[Array], object], most: int, below: str = "") -> None:
    """Strikes a sort at many places: no element is lost, and nobody writes any more."""
    expected, whole = make(), make()
    sort(whole)
    kept = elements_of(expected)
    for place in places(events(partial(sort, make()), below), most):
        x = make()
        strike(partial(sort, x), place, below)
        then = x.copy()
        np.testing.assert_array_equal(elements_of(then), kept, f"lost, struck at {place}")
        if place % 8 == 0:
            time.sleep(0.001)
            assert x.tobytes() == then.tobytes(), f"still being written, struck at {place}"
    x = make()
    sort(x)
    assert x.tobytes() == whole.tobytes()


@few_cases(pairs=False)
@pytest.mark.parametrize("order", list(SortOrder), ids=lambda order: order.name.lower())
@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.usefixtures("threads")
def test_no_element_is_lost_and_nobody_goes_on(name: str, order: SortOrder) -> None:
    given = CASES[name]
    columns = SortPath(TARGET.policy, NUMPY.spec("x", given), 0, order, stable=False)

    def sort(x: Array) -> None:
        if name.startswith("columns"):
            columns.into((x,), (x,))
        else:
            rows = x if x.ndim == 2 else x.reshape(1, -1)
            sort_rows(rows, rows, order, TARGET.policy)

    check_strikes(given.copy, sort, 14)
    done: list[int] = []
    shared_pool().run(done.append, 100)
    assert sorted(done) == list(range(100))


@pytest.mark.usefixtures("threads")
def test_a_few_others_are_put_around_one_word_at_once() -> None:
    given = np.where(np.arange(N) % 50 == 25, integers("i8"), 7)  # which no glance sees

    def sort(x: Array) -> None:
        assert sort_few(x, x, SortOrder.ASCENDING, TARGET.policy, shared_pool())

    few = few_words(given, SortOrder.ASCENDING)
    assert few is not None
    assert few.words.size == 1
    check_strikes(given.copy, sort, 1000, os.path.join("targets", "cpu", "host", "counting.py"))


@pytest.mark.usefixtures("no_threads")
def test_no_thread_is_needed_to_sort_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller works alone."""
    monkeypatch.setenv("GPUSORT_THREADS", "5")  # a pool that no test has used
    for name in ("u4", "f8 with specials", "few u4"):
        given = CASES[name].reshape(1, -1)

        def sort(x: Array) -> None:
            sort_rows(x, x, SortOrder.DESCENDING, TARGET.policy)

        check_strikes(given.copy, sort, 10)


# -- by the API -------------------------------------------------------------------------------------------


def rows_of_floats() -> Array:
    return np.array([[1, -0.0, np.nan, 0.0, 5, -0.0, 2, 7], [3, 2, 1, 0, -1, -2, -3, -np.nan]], "f4")


WAYS: dict[str, Callable[[Array, str], object]] = {
    "in place": lambda x, target: gpusort.sort_inplace(x, target=target),
    "descending": lambda x, target: gpusort.sort_inplace(x, descending=True, target=target),
    "stable": lambda x, target: gpusort.sort_inplace(x, stable=True, target=target),
    "other axis": lambda x, target: gpusort.sort_inplace(x, axis=0, target=target),
    "backwards": lambda x, target: gpusort.sort_inplace(x[:, ::-1], target=target),
    "out": lambda x, target: gpusort.sort(x, out=x, target=target),
    "bitonic": lambda x, target: gpusort.sort_inplace(x, algorithm=Bitonic(), target=target),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_on_every_target_no_element_is_lost(target: str, way: str) -> None:
    if target == "cuda":
        pytest.skip("an array of the host is sorted in a copy; test_interrupted_targets.py has those on a card")
    check_strikes(rows_of_floats, lambda x: WAYS[way](x, target), 12 if target == "cpu" else 2)


@pytest.mark.parametrize("name", ["u4", "i8", "f8 with specials", "few u4"])
@pytest.mark.usefixtures("threads")
def test_a_result_that_is_the_array_by_another_view_is_in_place(name: str) -> None:
    """As an array of another library's is seen as NumPy's, twice."""
    given = CASES[name]
    path = SortPath(TARGET.policy, NUMPY.spec("x", given), 0, SortOrder.ASCENDING, stable=False)
    check_strikes(given.copy, lambda x: path.into((x,), (x[:],)), 14)


@pytest.mark.parametrize("length", [301, 1 << 17])
def test_what_overlaps_its_result_is_written_at_once(length: int) -> None:
    """A part of the array is overwritten, by all of the result or by nothing."""
    given = specials("f4", length)

    def sort(memory: Array) -> None:
        gpusort.sort(memory[1:], out=memory[:-1])

    whole = given.copy()
    sort(whole)
    for place in places(events(lambda: sort(given.copy())), 60):
        memory = given.copy()
        strike(partial(sort, memory), place)
        assert memory.tobytes() in (given.tobytes(), whole.tobytes()), f"struck at {place}"


class _Stops(Simulator):
    """Fails between two launches."""

    after = 0

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        super().run(attrs.evolve(schedule, launches=schedule.launches[: self.after]), arrays)
        if len(schedule.launches) > self.after:
            raise RuntimeError("stopped")


@pytest.mark.parametrize("after", range(1, 10))
def test_kernels_that_stop_between_two_launches_leave_every_element(after: int) -> None:
    x, target = floats("f4", 1000), _Stops()
    before, target.after = elements_of(x), after
    with pytest.raises(RuntimeError, match="stopped"):
        gpusort.sort_inplace(x, algorithm=Radix(RadixPolicy(digit_bits=4, group_size=32, items=4)), target=target)
    np.testing.assert_array_equal(elements_of(x), before)
