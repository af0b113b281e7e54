"""Schedules of no rows, and of rows of no elements: no kernel is launched, and all buffers are there to be bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpusort.algos.batch import Batch
from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.copy import Strided
from gpusort.algos.layout import Layout
from gpusort.algos.radix_serial import SerialRadixPolicy, serial_radix_sort
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.scan import scan_axis, scan_rows
from gpusort.algos.select import SelectByParts, top_k
from gpusort.algos.sorts import RadixRows
from gpusort.algos.ties import restore_ties
from gpusort.kernel.launch import Schedule
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.indices import ScanKind, SortOrder
from gpusort.types.monoids import Sum
from gpusort.types.params import BitonicPolicy, RadixPolicy, ScanPolicy
from gpusort.types.scalars import U32
from tests.plain_launches import copy_strided, take_rows

UP, UPTO = SortOrder.ASCENDING, ScanKind.INCLUSIVE
KEY, TOTAL = key_for("f4"), Sum(number_for("f4"))
FLOATS: Any = KEY
OF_ROWS: dict[str, Callable[[int, int], Schedule]] = {
    "bitonic": lambda rows, length: bitonic_sort(KEY, rows, length, UP, BitonicPolicy()),
    "radix": lambda rows, length: radix_sort(Batch(KEY, rows, length, UP), RadixPolicy(), 32),
    "radix by sweeps": lambda rows, length: radix_sort(Batch(KEY, rows, length, UP), RadixPolicy(sweeps=True), 32),
    "radix rows": lambda rows, length: RadixRows().sort(Batch(KEY, rows, length, UP)),
    "serial radix": lambda rows, length: serial_radix_sort(
        Batch(KEY, rows, length, UP), SerialRadixPolicy(), range(32)
    ),
    "ties": lambda rows, length: restore_ties(FLOATS, rows, length, UP, ScanPolicy()),
    "scan": lambda rows, length: scan_rows(TOTAL, rows, length, UPTO, ScanPolicy()),
    "scan of columns": lambda rows, length: scan_axis(
        TOTAL, Layout(1, length, rows, 0, rows, 1), UPTO, ScanPolicy()
    ),
    "top_k": lambda rows, length: top_k(KEY, rows, length, min(3, length), UP, SelectByParts()),
    "gather": lambda rows, length: take_rows(4, rows, 9, length),
    "copy": lambda rows, length: copy_strided(
        U32, (rows, length), Strided(0, (9, 2), 100), Strided(0, (9, 1), 100)
    ),
}  # fmt: skip


LAUNCHED_OF_NO_GROUPS = ("bitonic",)  # where targets see that there is nothing to do


@pytest.mark.parametrize("name", OF_ROWS)
def test_nothing_takes_no_launch(name: str) -> None:
    for rows, length in ((0, 5), (5, 0), (0, 0), (0, 1), (1, 0)):
        schedule = OF_ROWS[name](rows, length)
        assert schedule.launches == () or name in LAUNCHED_OF_NO_GROUPS
        assert not any(launch.grid.groups for launch in schedule.launches)
        assert len({buffer.name for buffer in schedule.buffers}) >= 1
    for rows, length in ((1, 2), (2, 3)):
        assert len(OF_ROWS[name](rows, length).launches) >= 1
