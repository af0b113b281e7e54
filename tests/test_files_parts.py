"""What sorts of files by partitioned runs are made of: rows in parts, keys that ascend, writes anywhere in a file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import gpusort
from gpusort.external import runs
from gpusort.external.direct import PAGE, DirectFile, buffer_for
from gpusort.external.parting import Ascending
from gpusort.targets.cpu.compiler.machine import machine
from gpusort.targets.cpu.host import partition
from gpusort.targets.cpu.host.partition import can_partition
from gpusort.types.indices import SortOrder
from tests.reference import assert_same_bits, sample


@pytest.mark.parametrize("parts", [2, 8, 32, 128])
@pytest.mark.parametrize("dtype", ["i4", "u4", "f4", "i8", "u8", "f8"])
def test_a_row_in_parts(dtype: str, parts: int) -> None:
    for count in (0, 1, 15, 16, 17, 4_000, 100_001):
        x = sample(dtype, count, parts)
        bounds = np.sort(sample(dtype, 4 * parts, 1))[: parts - 1]  # some alike; NaNs come last
        out = np.empty_like(x)
        ends = partition.RowPartition(x.dtype)(x.copy(), out, bounds)
        assert ends[0] == 0
        assert ends[-1] == count
        assert_same_bits(gpusort.sort(out), gpusort.sort(x))
        belong = np.searchsorted(bounds, out, side="right")
        assert np.array_equal(belong, np.repeat(np.arange(parts), np.diff(ends)))


@pytest.mark.parametrize(
    ("dtype", "compresses", "is_slow", "most"),
    [("f4", True, True, 512), ("f4", False, False, 32), ("u4", False, True, 8), ("i8", False, True, 512)],
)
def test_parts_that_are_worth_it(
    dtype: str, compresses: bool, is_slow: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where elements are parted one by one a pass takes a nanosecond for each, of any size."""

    def sorts_slowly(itemsize: int) -> bool:
        return is_slow

    monkeypatch.setattr(partition, "numpy_sorts_slowly", sorts_slowly)
    monkeypatch.setattr(type(machine()), "compresses", compresses)
    assert partition.RowPartition(np.dtype(dtype)).most_parts == most


def test_what_is_partitioned() -> None:
    assert all(can_partition(np.dtype(dtype)) for dtype in ("i4", "u8", "f4", "f8"))
    swapped = np.dtype(np.int32).newbyteorder()
    assert not any(can_partition(np.dtype(dtype)) for dtype in ("i2", "f2", "?", "u1", swapped))


@pytest.mark.parametrize("order", list(SortOrder))
@pytest.mark.parametrize("dtype", ["i4", "u8", "f4", "M8[s]", "m8[D]"])
def test_changed_keys_ascend_and_come_back(dtype: str, order: SortOrder) -> None:
    x = gpusort.sort(sample(dtype, 2_000, 2), descending=order is SortOrder.DESCENDING)
    change, keys = Ascending(x.dtype, order), x.copy()
    numbers = change.apply(keys)
    some = numbers[numbers == numbers]
    assert (some[1:] >= some[:-1]).all()
    assert not np.isnan(numbers[: np.count_nonzero(numbers == numbers)]).any()  # they come last
    change.flip(keys, -1)
    assert_same_bits(keys, x)


def test_bytes_anywhere_in_a_file(tmp_path: Path) -> None:
    """Written one behind the other, by one process or by another that goes on."""
    content = np.random.default_rng(3).integers(0, 256, 5 * PAGE + 77, np.uint8)
    ends = [0, 10, PAGE - 1, PAGE + 5, PAGE + 6, 3 * PAGE, 5 * PAGE - 3, content.size]
    for reopened in (False, True):
        path = tmp_path / f"{reopened}"
        file = DirectFile(path, write=True)
        file.reserve(6 * PAGE)
        for start, stop in pairwise(ends):
            if reopened:
                file.close()
                file = DirectFile(path, write=True)
            buffer, lead = buffer_for(6 * PAGE), file.lead(start)
            buffer[lead : lead + stop - start] = content[start:stop]
            file.write(buffer, stop - start, start)
        file.cut_off(content.size)
        file.close()
        assert np.array_equal(np.fromfile(path, np.uint8), content)


def test_a_part_is_never_longer_than_a_run() -> None:
    assert runs.grouped([3, 3, 3, 3, 1, 9], 9) == [0, 3, 5, 6]
    assert runs.grouped([0, 0, 5], 9) == [0, 3]
    assert list(runs.parted_lines({"run 1", "run 2 0 5 9", "runs sorted", "bucket 1 of parts"})) == [2]
