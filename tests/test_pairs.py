"""Values that go along with sorted keys, and argsort, compared with NumPy exactly, in both forms of radix sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.algos.batch import Batch
from gpusort.algos.radix_sorts import radix_sort
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from gpusort.types.keys import RankKey
from gpusort.types.scalars import U8, U16, U32, U64
from tests.covering import few_cases
from tests.reference import sample
from tests.test_radix import TILE, able, policy_for

Array = npt.NDArray[Any]
LENGTHS = [0, 1, 2, 17, TILE - 1, TILE, TILE + 1, 5 * TILE + 3]
VALUES: dict[str, type[Any]] = {"u1": U8, "u2": U16, "u4": U32, "u8": U64}


def stable_order(x: Array, order: SortOrder) -> Array:
    """NumPy's stable argsort; descending, equals keep their order and NaN and NaT stay last."""
    if order is SortOrder.ASCENDING:
        return np.argsort(x, kind="stable")
    backwards = len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    last = np.isnan(x[backwards]) if x.dtype.kind in "fM" else np.zeros(len(x), np.bool_)
    return np.concatenate([backwards[~last], backwards[last]])


@few_cases(can=able("u1", "f4"), pairs=False)
@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i4", "f2", "f4", "f8", "M8[s]"])
def test_argsort(target: str, sweeps: bool, dtype: str, length: int, order: SortOrder) -> None:
    x = sample(dtype, length, seed=length)
    index: Any = U32 if length % 3 == 2 else U64
    schedule = radix_sort(
        Batch(RankKey(key_for(dtype)), 1, length, order, places=index),
        policy_for(target, sweeps=sweeps),
        8 * x.itemsize,
    )
    places = np.zeros(length, index.numpys)
    target_of(target).run(schedule, {"data": x.view(f"u{x.itemsize}"), "places": places})
    np.testing.assert_array_equal(places, stable_order(x, order))


@pytest.mark.parametrize("order", SortOrder)
def test_argsort_and_values_by_passes_that_share_their_kernels(order: SortOrder) -> None:
    for dtype, length in (("u1", 300), ("f4", 1000)):
        x, policy = sample(dtype, length), policy_for("simulator")
        places, moved, found = np.zeros(length, np.uint32), np.zeros(length, np.uint32), np.zeros_like(x)
        own, key, bits = np.arange(length, dtype=np.uint32)[::-1].copy(), RankKey(key_for(dtype)), 8 * x.itemsize
        words, expected = f"u{x.itemsize}", stable_order(x, order)
        schedule = radix_sort(Batch(key, 1, length, order, places=U32), policy, bits, shares=True)
        target_of("simulator").run(schedule, {"data": x.view(words), "places": places})
        np.testing.assert_array_equal(places, expected)
        schedule = radix_sort(Batch(key, 1, length, order, value=U32), policy, bits, shares=True)
        arrays = {"data": x.view(words), "values": own, "results": found.view(words), "moved": moved}
        target_of("simulator").run(schedule, arrays)
        np.testing.assert_array_equal(moved, own[expected])
        np.testing.assert_array_equal(found, x[expected])


@few_cases(
    can=lambda case: able("u1")(case) and not (case["target"] == "cpu" and case["value"] in ("u1", "u4")), pairs=False
)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("dtype", ["u1", "u4", "i8"])
def test_values_go_along(target: str, sweeps: bool, dtype: str, value: str, length: int) -> None:
    x = sample(dtype, length, seed=length)
    values = np.random.default_rng(length).integers(0, 256, length * np.dtype(value).itemsize, np.uint8).view(value)
    schedule = radix_sort(
        Batch(key_for(dtype), 1, length, SortOrder.ASCENDING, value=VALUES[value]),
        policy_for(target, sweeps=sweeps),
        8 * x.itemsize,
    )
    words, found, moved = f"u{x.itemsize}", np.zeros_like(x), np.zeros_like(values)
    arrays = {"data": x.view(words), "values": values, "results": found.view(words), "moved": moved}
    target_of(target).run(schedule, arrays)
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(found, x[order])
    np.testing.assert_array_equal(moved, values[order])
