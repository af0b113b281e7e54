"""Kernels that use subgroups, on a simulated machine with subgroups of each size that adapters have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.algos.batch import Batch, PairsAlgorithm
from gpusort.algos.reduce_axis import reduce_rows
from gpusort.algos.scan import scan_rows
from gpusort.algos.sorts import BitonicRows, Radix, RadixRows
from gpusort.kernel import ir
from gpusort.kernel.launch import Schedule
from gpusort.kernel.passes.walk import statements_in
from gpusort.kernel.specialise import specialise
from gpusort.targets.simulator.target import Simulator
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.errors import CapabilityError
from gpusort.types.indices import Placement, ScanKind, SortOrder
from gpusort.types.keys import RankKey
from gpusort.types.monoids import Sum
from gpusort.types.params import RadixPolicy, ReducePolicy, ScanPolicy
from gpusort.types.scalars import U64
from tests.covering import few_cases
from tests.reference import Array, sample

SIZES = (4, 8, 16, 32, 64)
UP = SortOrder.ASCENDING


@pytest.fixture(params=SIZES, name="machine")
def simulated(request: pytest.FixtureRequest) -> Simulator:
    return Simulator(request.param)


def _uses_subgroups(schedule: Schedule) -> bool:
    bodies = [specialise(launch).program.body for launch in schedule.launches]
    return any(isinstance(statement, ir.Subgroup) for body in bodies for statement in statements_in(body))


def _sorts(lanes: int) -> dict[str, tuple[Any, int]]:
    """Sorts by subgroups of a size, and the length of their rows."""
    return {
        "radix": (Radix(RadixPolicy(6, 64, 3, lanes)), 500),
        "sweeps": (Radix(RadixPolicy(6, 64, 3, lanes, count_group=64, sweeps=True)), 500),
        "rows in workgroup memory": (RadixRows(3, 64, 128, lanes, 6), 130),
        "rows in registers": (BitonicRows(lanes, 2, 4, 64), 4 * lanes - 3),
    }


@few_cases(pairs=False)
@pytest.mark.parametrize("way", _sorts(4))
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
def test_sorts(machine: Simulator, way: str, dtype: str) -> None:
    key, rows = key_for(dtype), 3
    algorithm, length = _sorts(machine.info.limits.subgroup_size)[way]
    x = sample(dtype, (rows, length), seed=length)
    schedule = algorithm.schedule(key, rows, length, UP, Placement.ELSEWHERE)
    assert _uses_subgroups(schedule)
    data, results = x.view(f"u{x.itemsize}").reshape(-1), np.zeros(x.size, f"u{x.itemsize}")
    machine.run(schedule, {"data": data, "results": results})
    np.testing.assert_array_equal(results.view(dtype).reshape(x.shape), np.sort(x, axis=1))

    pairs: PairsAlgorithm = algorithm
    places = np.zeros(x.size, np.uint64)
    machine.run(pairs.sort(Batch(RankKey(key), rows, length, UP, places=U64)), {"data": data, "places": places})
    np.testing.assert_array_equal(places.reshape(x.shape), np.argsort(x, axis=1, kind="stable"))


def _reduction(policy: ReducePolicy | ScanPolicy, length: int) -> Schedule:
    total: Any = Sum(number_for("i4"))
    if isinstance(policy, ReducePolicy):
        return reduce_rows(total, 1, length, policy)
    return scan_rows(total, 1, length, ScanKind.INCLUSIVE, policy)


@pytest.mark.parametrize(
    ("policy", "numpys"),
    [(ReducePolicy(64, 2, 8, subgroups=True), np.sum), (ScanPolicy(64, 3, 8, subgroups=True), np.cumsum)],
)
def test_reductions_and_scans(
    machine: Simulator, policy: ReducePolicy | ScanPolicy, numpys: Callable[[Array], Any]
) -> None:
    x = np.random.default_rng(1).integers(-99, 99, 1000).astype(np.int32)
    schedule = _reduction(policy, x.size)
    assert _uses_subgroups(schedule)
    expected = np.atleast_1d(numpys(x.astype(np.int64)))
    results = np.zeros(expected.size, np.int64)
    machine.run(schedule, {"data": x.view(np.uint32), "results": results})
    np.testing.assert_array_equal(results, expected)


@pytest.mark.parametrize("scanned", [False, True])
def test_few_columns_side_by_side_take_fewer_lanes_than_a_subgroup_has(machine: Simulator, scanned: bool) -> None:
    x = np.random.default_rng(2).integers(0, 99, (5, 9), np.uint32)
    total: Any = Sum(number_for("u4"))
    wished: Any = {"subgroups": True, "strand": 4, "side_by_side": True}
    found: Any
    if scanned:
        found = gpusort.scan(x, total, axis=0, target=machine, policy=ScanPolicy(64, 1, **wished))
    else:
        found = gpusort.reduce(x, total, axis=0, target=machine, policy=ReducePolicy(64, 2, **wished))
    np.testing.assert_array_equal(found, (np.cumsum if scanned else np.sum)(x, axis=0))


@pytest.mark.parametrize("lanes", SIZES[:-1])
def test_smaller_subgroups_than_a_sort_is_made_for_are_refused(lanes: int) -> None:
    x = np.zeros(500, np.uint32)
    for algorithm, length in _sorts(2 * lanes).values():
        schedule = algorithm.schedule(key_for("u4"), 1, length, UP, Placement.ELSEWHERE)
        with pytest.raises(CapabilityError, match=rf"subgroups of at least {2 * lanes} lanes, .* has some of {lanes}"):
            Simulator(lanes).run(schedule, {"data": x[:length], "results": x[:length].copy()})


def test_what_is_chosen_by_itself_fits_each_size(machine: Simulator) -> None:
    x = sample("f4", (3, 200))
    np.testing.assert_array_equal(gpusort.sort(x, target=machine), np.sort(x))
    np.testing.assert_array_equal(gpusort.argsort(x, target=machine), np.argsort(x, kind="stable"))
    assert gpusort.sum(x.view(np.int32), axis=0, target=machine).tolist() == np.sum(x.view(np.int32), axis=0).tolist()
