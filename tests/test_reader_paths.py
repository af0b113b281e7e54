"""Kernels whose paths are easily read wrongly give on every target what they give under CPython."""

from __future__ import annotations

import numpy as np
import pytest

from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.targets import registry
from gpusort.types.scalars import U32
from tests.reader_paths import WORKS, PathKernel


@pytest.mark.parametrize(("subject", "expected"), WORKS, ids=[subject.name for subject, _ in WORKS])
def test_paths(subject: PathKernel, expected: list[int], target: str) -> None:
    data, out = Buffer("data", U32, 4, Role.INOUT), Buffer("out", U32, 4, Role.INOUT)
    schedule = Schedule((data, out), (subject.launch(Grid(1, 4), data, out),))
    found = np.zeros(4, np.uint32)
    registry.target(target).run(schedule, {"data": np.arange(4, dtype=np.uint32), "out": found})
    np.testing.assert_array_equal(found, expected)
