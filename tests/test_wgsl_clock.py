"""How long a device was at a schedule, by its own clock."""

from __future__ import annotations

import numpy as np
import pytest

from gpusort.algos.bitonic import bitonic_sort
from gpusort.targets.registry import target
from gpusort.targets.wgsl.target import WgslTarget
from gpusort.types.dtypes import key_for
from gpusort.types.errors import CapabilityError
from gpusort.types.indices import SortOrder
from gpusort.types.params import BitonicPolicy
from tests.opened import or_skip


def wgsl() -> WgslTarget:
    found = or_skip(target, "wgsl")
    assert isinstance(found, WgslTarget)
    return found


def test_the_time_is_the_devices_and_grows_with_the_work() -> None:
    device, seconds = wgsl(), dict[int, float]()
    for length in (1 << 10, 1 << 18):
        x = np.random.default_rng(length).integers(0, 1 << 32, length, np.uint32)
        schedule = bitonic_sort(key_for("u4"), 1, length, SortOrder.ASCENDING, BitonicPolicy())
        found: list[float] = []
        for _ in range(3):
            data = x.copy()
            try:
                found.append(device.device_seconds(schedule, {"data": data}))
            except CapabilityError as error:
                pytest.skip(str(error))
            np.testing.assert_array_equal(data, np.sort(x))
        seconds[length] = min(found)
    assert 0 < seconds[1 << 10] < seconds[1 << 18] < 60
