"""Top-k schedules, compared with the first k of NumPy's stable argsort exactly, on every target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.algos.select import ArgsortAndTake, SelectByParts, Selection, top_k
from gpusort.algos.select_rows import PartPolicy
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for
from gpusort.types.elements import dtype_of
from gpusort.types.indices import SortOrder
from tests.reference import DTYPES, Array, assert_same_bits, sample
from tests.test_argsort import stable_order


def selected(target: str, selection: Selection, x: Array, k: int, largest: bool) -> tuple[Array, npt.NDArray[np.int64]]:
    """What a target makes of rows of x."""
    key, (rows, length) = key_for(x.dtype), x.shape
    order = SortOrder.DESCENDING if largest else SortOrder.ASCENDING
    values = np.zeros((rows, k), x.dtype)
    indices = np.full((rows, k), -1, np.int64)
    schedule = top_k(key, rows, length, k, order, selection)
    element = dtype_of(key.element)
    arrays = {
        "data": x.reshape(-1).view(element), "values": values.reshape(-1).view(element),
        "indices": indices.reshape(-1).view(np.uint64),
    }  # fmt: skip
    target_of(target).run(schedule, arrays)
    return values, indices


def check(target: str, selection: Selection, x: Array, k: int, largest: bool) -> None:
    before = x.copy()
    values, indices = selected(target, selection, x, k, largest)
    expected = np.stack([stable_order(row, largest)[:k] for row in x])
    np.testing.assert_array_equal(indices, expected)
    assert_same_bits(values, np.take_along_axis(x, expected, axis=1))
    assert_same_bits(x, before)


def fitted(target: str, selection: ArgsortAndTake, dtype: str) -> ArgsortAndTake:
    return selection.fitted(key_for(dtype), target_of(target).info)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_argsort_and_take(target: str, dtype: str, largest: bool) -> None:
    if target == "cpu" and (dtype not in ("u1", "f4", "f8") or largest):
        pytest.skip("each kernel compiles for seconds there")
    selection = fitted(target, ArgsortAndTake(), dtype)
    for rows, length, k in ((1, 1, 1), (3, 9, 9), (2, 9, 1)) if target == "python" else ((1, 1, 1), (3, 300, 17)):
        check(target, selection, sample(dtype, (rows, length), seed=k), k, largest)


def test_edges_of_k() -> None:
    key = key_for("f4")
    assert top_k(key, 3, 5, 0, SortOrder.ASCENDING, ArgsortAndTake()).launches == ()
    assert top_k(key, 0, 5, 2, SortOrder.ASCENDING, ArgsortAndTake()).launches == ()
    for k in (-1, 6):
        with pytest.raises(gpusort.InvalidArgumentError, match=r"k: expected 0 to the 5 elements of a row"):
            top_k(key, 3, 5, k, SortOrder.ASCENDING, ArgsortAndTake())


SMALL = SelectByParts(PartPolicy(group_size=16, items=2, sets=8, kept=12))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts(target: str, dtype: str, largest: bool) -> None:
    if target == "cpu" and (dtype not in ("u1", "f4", "f8") or largest):
        pytest.skip("each kernel compiles for seconds there")
    selection = SelectByParts(PartPolicy(4, 2, 4, 5)) if target == "python" else SMALL
    for rows, length, k in ((3, 9, 3), (2, 8, 1)) if target == "python" else ((1, 1, 1), (3, 300, 8), (2, 32, 3)):
        check(target, selection, sample(dtype, (rows, length), seed=k), k, largest)


def adverse(dtype: str, length: int) -> dict[str, Array]:
    """What a guess at a threshold may be wrong about."""
    ramp = np.sort(sample(dtype, length, seed=5))
    columns = np.zeros(length, dtype)
    columns[5::8] = np.arange(len(columns[5::8])) % 120 + 1
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "f8") if ramp.dtype.kind == "f" else ramp[:3]
    return {
        "constant": np.full(length, 7, dtype), "ascending": ramp, "descending": ramp[::-1].copy(),
        "ten values": (np.arange(length) * 7919 % 10).astype(dtype), "columns": columns,
        "special": np.resize(special, length).astype(dtype),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["u1", "f4", "i8", "f8"])
def test_parts_of_adverse_rows(target: str, dtype: str) -> None:
    if target == "python" or (target == "cpu" and dtype != "f4"):
        pytest.skip("takes too long there")
    rows = np.stack([*adverse(dtype, 100).values()])
    for k in (1, 7, 8):
        for largest in (False, True):
            check(target, SMALL, rows, k, largest)
