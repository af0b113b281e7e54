"""Small kernels give on every target what they give under CPython, and what is written beside them."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.targets import registry
from gpusort.types.scalars import U32
from tests.reader_kernels import WORKS, SmallKernel

importlib.import_module("tests.reader_structs")  # its kernels join the list


@pytest.mark.parametrize(("subject", "expected"), WORKS, ids=[subject.name for subject, _expected in WORKS])
def test_small_kernels(subject: SmallKernel, expected: list[int], target: str) -> None:
    data, out = Buffer("data", U32, 4, Role.INPUT), Buffer("out", U32, 4, Role.INOUT)
    schedule = Schedule((data, out), (subject.launch(Grid(1, 4), data, out),))
    found = np.zeros(4, np.uint32)
    registry.target(target).run(schedule, {"data": np.arange(4, dtype=np.uint32), "out": found})
    np.testing.assert_array_equal(found, expected)
