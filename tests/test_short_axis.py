"""Reductions and scans along short axes, an invocation for each column, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusort.algos.choice import choose_axis_reduction, choose_axis_scan
from gpusort.algos.cut import Arrangement, Columns, Cut
from gpusort.algos.layout import Layout
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.indices import ScanKind
from gpusort.types.monoids import Maximum, Monoid, RunningSum, Sum
from gpusort.types.params import ReducePolicy, ScanPolicy
from gpusort.types.scalars import U32
from gpusort.types.searches import ArgMin
from tests.reference import Array, whole_numbers
from tests.test_axes import reduced
from tests.test_axes_scan import scanned
from tests.test_policies import MEASURED

ALONE = ReducePolicy(8, 5, alone=True)


def _views(length: int) -> list[Array]:
    base = whole_numbers("f4", (7, length, 3), seed=length)
    return [base, base.swapaxes(1, 2).copy().swapaxes(1, 2), np.asfortranarray(base), np.repeat(base, 2, 1)[:, ::2]]


@pytest.mark.parametrize("length", range(1, 6))
def test_a_short_axis(target: str, length: int) -> None:
    monoids: list[tuple[Monoid[Any, Any], Any, Any]] = [
        (Sum(number_for("f4")), np.sum, "f4"),
        (Maximum(key_for("f4")), np.max, "f4"),
        (ArgMin(key_for("f4")), np.argmin, "i8"),
    ]
    for x in _views(length):
        for monoid, numpys, dtype in monoids:
            found = reduced(target, monoid, x, (1,), dtype, ALONE)
            assert found is not None
            np.testing.assert_array_equal(found, numpys(x, axis=1))
        for kind in ScanKind:
            running = scanned(target, RunningSum(number_for("f4")), x, 1, kind, ScanPolicy(8, 5, alone=True))
            if running is not None:  # of three loops at most
                wanted = np.cumsum(x, axis=1)
                np.testing.assert_array_equal(running, wanted if kind is ScanKind.INCLUSIVE else wanted - x)


@pytest.mark.parametrize("gpu", ["cuda", "wgsl"])
def test_a_gpu_takes_many_short_columns_so(gpu: str) -> None:
    info = MEASURED[gpu]
    for length, items in ((1, 2), (2, 2), (3, 4), (8, 8), (9, 16), (16, 16)):
        for layout in (Layout.rows(1 << 16, length), Layout(1, length, 1 << 16, 0, 1 << 16, 1)):
            reduction, scan = choose_axis_reduction(U32, layout, info, 2), choose_axis_scan(U32, layout, info)
            assert (reduction.alone, reduction.items) == (True, items)
            if layout.inner == 1 and length > 4:  # whose elements are no neighbours of the next row's
                assert (scan.alone, scan.strand) == (False, 2 if length <= 10 else 4)
            else:
                assert (scan.alone, scan.items) == (True, items)
    wide = Layout.rows(1 << 16, 16)
    cut = Cut.of(Columns.of(wide), choose_axis_reduction(U32, wide, info, 4), 4)
    assert cut.arrangement is not Arrangement.ALONE
    for layout in (Layout.rows(1 << 16, 17), Layout.rows((1 << 16) - 1, 3)):
        assert not choose_axis_reduction(U32, layout, info).alone
        assert not choose_axis_scan(U32, layout, info).alone


def test_rows_on_a_card_have_as_many_lanes_as_they_have_blocks() -> None:
    for length, itemsize, alone, strand in (
        (17, 4, True, 8), (31, 4, True, 8), (31, 1, True, 8), (17, 8, False, 8), (32, 4, False, 2), (63, 1, False, 2),
        (63, 8, False, 8), (64, 4, False, 4), (127, 2, False, 4), (128, 1, False, 8), (128, 8, False, 8),
    ):  # fmt: skip
        policy = choose_axis_reduction(U32, Layout.rows(1 << 16, length), MEASURED["cuda"], itemsize)
        assert (policy.alone, policy.strand) == (alone, strand), (length, itemsize)
