"""What goes to other processes and is copied: values as they are, targets by their names; prepared calls refuse."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.algos.bitonic import bitonic_step
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.kernel.span import KernelError
from gpusort.targets.cpu.target import CpuTarget
from gpusort.targets.simulator.target import Simulator
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.monoids import Maximum, Sum
from gpusort.types.scalars import F32, U32, Bool
from gpusort.types.searches import ArgMax

VALUES: dict[str, object] = {
    "policies": (gpusort.BitonicPolicy(tile=512), gpusort.RadixPolicy(), gpusort.ReducePolicy(), gpusort.ScanPolicy()),
    "algorithms": (gpusort.Bitonic(), gpusort.Radix(), gpusort.RadixRows(), gpusort.SerialRadix(), gpusort.HostSort()),
    "keys": tuple(gpusort.key_for(dtype) for dtype in ("f2", "f4", "i8", "?", "M8[s]")),
    "monoids": (Sum(gpusort.number_for("f8")), Maximum(gpusort.key_for("i4")), ArgMax(gpusort.key_for("f4"))),
    "order": gpusort.SortOrder.DESCENDING,
    "scalars": (Bool(True), U32(7), F32(0.5)),
    "info": gpusort.target("cpu").info,
    "kernel": bitonic_step,
}
WAYS: dict[str, Callable[[Any], object]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@kernel
def doubles(cx: Invocation, data: Storage[U32]) -> None:
    data[cx.global_id] = data[cx.global_id] * 2


@kernel
def is_wrong(cx: Invocation, data: Storage[U32]) -> None:
    print(data[cx.global_id])


def of_four(which: Kernel[[Any]]) -> Schedule:
    data = Buffer("data", U32, 4, Role.INOUT)
    return Schedule((data,), (which.launch(Grid(1, 4), data),))


def run(schedule: Schedule, target: gpusort.Target) -> list[int]:
    data = np.arange(4, dtype=np.uint32)
    target.run(schedule, {"data": data})
    return [int(value) for value in data]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", VALUES)
def test_values_are_what_they_were(name: str, way: str) -> None:
    assert WAYS[way](VALUES[name]) == VALUES[name]


@pytest.mark.parametrize("way", WAYS)
def test_a_target_is_the_one_of_its_name(target: str, way: str) -> None:
    opened = gpusort.target(target)
    gpusort.sort(np.array([3, 1, 2], np.uint32), target=opened, algorithm=gpusort.Bitonic())  # it holds kernels now
    assert WAYS[way](opened) is opened


@pytest.mark.parametrize("way", WAYS)
def test_a_target_of_other_settings_has_them_still(way: str) -> None:
    found = WAYS[way](Simulator(subgroup_size=32))
    assert isinstance(found, Simulator)
    assert found.info == Simulator(subgroup_size=32).info
    processor = WAYS[way](CpuTarget(HostSortPolicy(serial_below=7)))
    assert isinstance(processor, CpuTarget)
    assert processor.policy.serial_below == 7


@pytest.mark.parametrize("way", WAYS)
def test_a_prepared_call_says_that_it_stays(target: str, way: str) -> None:
    prepared = gpusort.plan(gpusort.sort, np.arange(10), target=target)
    with pytest.raises(TypeError, match=r"a prepared call belongs to this process .*, and call gpusort\.plan there"):
        WAYS[way](prepared)


@pytest.mark.parametrize("way", WAYS)
def test_a_target_on_a_device_of_the_callers_says_that_it_stays(way: str) -> None:
    wgpu = pytest.importorskip("wgpu")
    try:
        device = wgpu.gpu.request_adapter_sync().request_device_sync()
    except (RuntimeError, OSError, AttributeError) as error:
        pytest.skip(f"no device of WebGPU is here: {error}")
    array = gpusort.webgpu.asarray(np.arange(4, dtype=np.uint32), device)
    prepared = gpusort.plan(gpusort.sort, array)
    with pytest.raises(TypeError, match="a prepared call belongs to this process"):
        WAYS[way](prepared)
    from gpusort.targets.webgpu import target_on_device

    with pytest.raises(TypeError, match="target 'wgsl' on a device of yours belongs to this process"):
        WAYS[way](target_on_device(device))


def test_workers_are_handed_schedules_and_targets_and_hand_back_errors() -> None:
    """A worker whose error cannot be read would leave who waits for it without an answer."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(run, of_four(doubles), gpusort.target("simulator")).result(120) == [0, 2, 4, 6]
        with pytest.raises(KernelError, match="expected no `print` in a kernel") as caught:
            pool.submit(run, of_four(is_wrong), gpusort.target("simulator")).result(120)
        assert caught.value.span.line == is_wrong.function.__code__.co_firstlineno + 2
