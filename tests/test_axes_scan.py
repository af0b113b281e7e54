"""Prefix scans along any axis of arrays as they lie, on every target, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.algos.choice import choose_axis_scan
from gpusort.algos.cut import Columns, Cut
from gpusort.algos.layout import Layout, layout_to_scan
from gpusort.algos.scan import scan_axis
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import number_for
from gpusort.types.elements import dtype_of
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.finishes import finish_of
from gpusort.types.indices import ScanKind
from gpusort.types.monoids import Monoid, RunningSum, Sum
from gpusort.types.params import ScanPolicy
from tests.reference import Array, whole_numbers
from tests.test_axes import buffer_of, views
from tests.test_scan import Composition

SUM = Sum(number_for("u4"))
# Shares of several tiles, many ranks or one, lanes that are all there or not.
POLICIES = (
    ScanPolicy(8, 2, 5, line=8), ScanPolicy(16, 3, 40, line=32), ScanPolicy(8, 1, 3, side_by_side=True),
    ScanPolicy(16, 1, 200, line=4), ScanPolicy(8, 5, alone=True), ScanPolicy(8, 1, 40, side_by_side=True),
    ScanPolicy(16, 3, subgroups=True, strand=4), ScanPolicy(32, 1, subgroups=True, strand=2),
    ScanPolicy(8, 40, subgroups=True, strand=8),
)  # fmt: skip


def scanned(
    target: str, monoid: Monoid[Any, Any], x: Array, axis: int, kind: ScanKind = ScanKind.INCLUSIVE,
    policy: ScanPolicy | None = None,
) -> Array | None:  # fmt: skip
    """What a monoid makes of an array along an axis; None where it would have to be packed."""
    layout = layout_to_scan(x.shape, x.strides, x.itemsize, axis)
    if layout is None:
        return None
    finish = finish_of(monoid)
    chosen = policy or choose_axis_scan(monoid.state, layout, target_of(target).info)
    schedule = scan_axis(monoid, layout, kind, chosen, finish)
    data, results = buffer_of(x, layout.span).view(dtype_of(monoid.element)), np.zeros(x.size, dtype_of(finish.result))
    target_of(target).run(schedule, {"data": data, "results": results})
    return results.reshape(x.shape)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_sums_along_all_axes_of_all_layouts(policy: ScanPolicy) -> None:
    collapsed = 0
    for shape in ((5,), (70, 3), (3, 40), (2, 33, 7), (3, 20, 9), (1, 70, 1)):
        for x in views(np.random.default_rng(1).integers(0, 1 << 32, shape, np.uint32)):
            for axis in range(x.ndim):
                kind = ScanKind(collapsed % 2)
                found = scanned("simulator", SUM, x, axis, kind, policy)
                if found is not None:
                    expected = x.cumsum(axis=axis, dtype=np.uint64)
                    np.testing.assert_array_equal(found, expected - x * np.uint64(kind is ScanKind.EXCLUSIVE))
                    collapsed += 1
    assert collapsed > 40


@pytest.mark.parametrize("order", ["C", "F"])
def test_every_target_scans_along_every_axis(target: str, order: Any) -> None:
    shapes: list[tuple[tuple[int, ...], int]] = [
        ((1, 1), 0), ((3, 1), 1), ((1, 5), 0), ((4, 9, 2), 1), ((130, 3), 0), ((3, 130), 0), ((70, 70), 0), ((0, 3), 1),
    ]  # fmt: skip
    few = shapes[3:4] if order == "C" else []  # each of the CPU's kernels compiles for seconds
    for shape, axis in few + shapes[6:7] if target == "cpu" else shapes[:5] if target == "python" else shapes:
        x = np.asarray(np.random.default_rng(axis).integers(0, 1 << 32, shape, np.uint32), order=order)
        found = scanned(target, SUM, x, axis)
        if order == "C" or found is not None:
            assert found is not None
            np.testing.assert_array_equal(found, x.cumsum(axis=axis, dtype=np.uint64))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_order_of_elements_is_kept(policy: ScanPolicy) -> None:
    x = np.random.default_rng(4).integers(0, 1 << 32, (97, 3), np.uint32)
    found = scanned("simulator", Composition(), x, 0, policy=policy)
    assert found is not None
    for column in range(3):
        factor, offset = 1, 0
        for i in range(97):
            mine = int(x[i, column]) | 1
            factor, offset = factor * mine % 2**32, (offset * mine + i) % 2**32
            assert (int(found["factor"][i, column]), int(found["offset"][i, column])) == (factor, offset)


def test_strands_are_fitted_to_every_target(target: str) -> None:
    policy = ScanPolicy(64, 3, subgroups=True, strand=64)
    for rows, length in ((3, 40), (70, 20)) if target in ("cpu", "python") else ((3, 40), (70, 20), (500, 33)):
        x = np.random.default_rng(rows).integers(0, 1 << 32, (rows, length), np.uint32)
        for exclusive in (False, True):
            found = gpusort.scan(x, SUM, exclusive=exclusive, policy=policy, target=target)
            expected = x.cumsum(axis=1, dtype=np.uint64)
            np.testing.assert_array_equal(found, expected - x * np.uint64(exclusive))


def test_without_subgroups_there_are_no_strands() -> None:
    policy = ScanPolicy(32, 3, strand=4)
    x = np.arange(9 * 33, dtype=np.uint32).reshape(9, 33)
    found = scanned("simulator", SUM, x, 1, policy=policy)
    np.testing.assert_array_equal(found, x.cumsum(axis=1))
    assert policy.needs == ScanPolicy(32, 3).needs


@pytest.mark.parametrize("kind", ScanKind)
@pytest.mark.parametrize("length", [1, 2, 4, 5, 33, 97])
def test_strands_keep_the_order_of_rows(length: int, kind: ScanKind) -> None:
    """Of one more than a workgroup has strands for."""
    x = np.random.default_rng(4).integers(0, 1 << 32, (9, length), np.uint32)
    found = scanned("simulator", Composition(), x, 1, kind, ScanPolicy(32, 3, subgroups=True, strand=4))
    assert found is not None
    for row in range(9):
        factor, offset = 1, 0
        for i in range(length):
            before, mine = (factor, offset), int(x[row, i]) | 1
            factor, offset = factor * mine % 2**32, (offset * mine + i) % 2**32
            wanted = before if kind is ScanKind.EXCLUSIVE else (factor, offset)
            assert (int(found["factor"][row, i]), int(found["offset"][row, i])) == wanted


def test_sums_have_numpys_dtype_and_float16_is_rounded_once(target: str) -> None:
    for dtype in ["?", "i1", "i8", "f2", "f4"] if target == "simulator" else ["f2"]:
        x = whole_numbers(dtype, (6, 4) if target == "python" else (40, 9), seed=3)
        for axis in range(2):
            expected = x.cumsum(axis=axis)
            found = scanned(target, RunningSum(number_for(dtype)), x, axis)
            assert found is not None
            np.testing.assert_array_equal(found.view(expected.dtype), expected)


def test_what_32_bits_cannot_count_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="expected indices of no more than 4294967295"):
        scan_axis(SUM, Layout(1, 1 << 16, 1 << 16, 0, 1, 0), ScanKind.INCLUSIVE, ScanPolicy())


@pytest.mark.parametrize(("columns", "shares"), [(1 << 16, 1), (1 << 10, 1), (1 << 6, 1), (32, 8), (16, 16), (8, 32)])
def test_as_many_shares_as_there_are_workgroups_for(columns: int, shares: int) -> None:
    """Half of them, where these are many more than columns: of several shares all elements are read twice."""
    policy = ScanPolicy(64, 4, 64, line=32)
    layout = Layout(1, 1 << 14, columns, 1, columns, 1)
    assert Cut.of_scan(Columns.of(layout, scanned=True), policy, 4).shares == shares
