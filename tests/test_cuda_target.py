"""The CUDA target at work.

Its host side and the source it generates run on stand-ins for cupy and the card; where there is a card,
the same cases run there too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, cast

import attrs
import numpy as np
import pytest

from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.reduce_axis import reduce_rows
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.machine import Capability
from gpusort.targets import binding
from gpusort.targets.cuda import plan as cuda_plan
from gpusort.targets.cuda.arrays import checked_arrays
from gpusort.targets.cuda.target import CudaTarget
from gpusort.types.errors import (
    CapabilityError,
    DeviceLostError,
    InvalidArgumentError,
    TargetUnavailableError,
)
from gpusort.types.indices import SortOrder
from gpusort.types.memory import Workgroup
from gpusort.types.monoids import Sum
from gpusort.types.numbers import UnsignedNumber
from gpusort.types.params import BitonicPolicy, ReducePolicy
from gpusort.types.scalars import U8, U32, U64
from tests import fake_cupy
from tests.cuda_cases import (
    SMALL,
    WORDS,
    N,
    Words,
    check_atomics,
    check_bytes,
    check_lanes,
    check_memories,
    check_random_program,
    count_values,
    keys,
    memories_case,
    schedule_of,
    wait_for_flag,
)


@attrs.frozen
class Pair:
    low: U8
    high: U64


# -- the host's side, on stand-ins ------------------------------------------------------------------------


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaTarget]:
    """The target on a card that is not there: kernels' sources run by plain Python."""
    fake_cupy.put_in_place(monkeypatch)
    fake_cupy.log.clear()
    yield CudaTarget()
    assert fake_cupy.current_device == [0]


def sorting(length: int) -> Schedule:
    return bitonic_sort(WORDS, 1, length, SortOrder.ASCENDING, SMALL)


def test_numpy_arrays_go_to_the_card_and_back(card: CudaTarget) -> None:
    data = keys(100)
    expected = np.sort(data)
    card.run(sorting(100), {"data": data})
    np.testing.assert_array_equal(data, expected)
    assert fake_cupy.log[:2] == ["alloc 400", "copy up 400"]
    assert fake_cupy.log[-2:] == ["copy down 400", "synchronize 0"]


def test_arrays_on_the_card_are_used_in_place_and_not_waited_for(card: CudaTarget) -> None:
    data = fake_cupy.on_card(keys(70))
    card.run(sorting(70), {"data": data})
    np.testing.assert_array_equal(data.host, np.sort(keys(70)))
    assert set(fake_cupy.log) == {"launch"}


def test_addresses_that_come_often_are_launched_as_a_graph(card: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    data, schedule = fake_cupy.on_card(keys(200)), sorting(200)
    launches = len(schedule.launches)
    assert launches > 1
    monkeypatch.setattr(cuda_plan, "RECORDING", 2 * launches * cuda_plan.LAUNCH)  # as long as two runs
    for expected in (*[["launch"] * launches] * 2, *[["graph on 0", *["launch"] * launches]] * 2):
        fake_cupy.log.clear()
        data.host[:] = keys(200)
        card.run(schedule, {"data": data})
        assert fake_cupy.log == expected
        np.testing.assert_array_equal(data.host, np.sort(keys(200)))
    other = fake_cupy.on_card(keys(200))
    fake_cupy.log.clear()
    card.run(schedule, {"data": other})
    assert fake_cupy.log == ["launch"] * launches
    np.testing.assert_array_equal(other.host, np.sort(keys(200)))


class Foreign:
    """Another library's array on the card."""

    def __init__(self, host: Words, **more: object) -> None:
        self._inside = fake_cupy.on_card(host)
        self.host: Words = self._inside.host
        self.__cuda_array_interface__ = {
            "shape": host.shape,
            "typestr": host.dtype.str,
            "data": (self._inside.data.ptr, False),
            "version": 3,
            **more,
        }


def test_other_libraries_arrays_are_kept_in_the_order_of_their_stream(card: CudaTarget) -> None:
    data = Foreign(keys(40), stream=99)
    card.run(sorting(40), {"data": data})
    np.testing.assert_array_equal(data.host, np.sort(keys(40)))
    assert fake_cupy.log[0] == "stream 0 waits for stream 99"
    assert fake_cupy.log[-1] == "stream 99 waits for stream 0"
    fake_cupy.log.clear()
    card.run(sorting(40), {"data": Foreign(keys(40), stream=1)})
    card.run(sorting(40), {"data": Foreign(keys(40), stream=None)})
    assert set(fake_cupy.log) == {"launch"}


def test_a_schedule_is_made_ready_once(card: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = sorting(40)
    card.run(schedule, {"data": keys(40)})

    def refuse(launch: Launch) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(binding, "specialise", refuse)
    data = keys(40)[::-1].copy()
    card.run(schedule, {"data": data})
    np.testing.assert_array_equal(data, np.sort(keys(40)))
    with pytest.raises(AssertionError, match="read again"):
        card.run(sorting(40), {"data": data})


@pytest.mark.parametrize("group_size", [5, 32, 48])
def test_lanes_on_the_stand_in(card: CudaTarget, group_size: int) -> None:
    check_lanes(card, group_size)


@pytest.mark.parametrize("tile", [N, 7000])
def test_memories_on_the_stand_in(card: CudaTarget, tile: int) -> None:
    check_memories(card, tile)
    assert ("attribute 8 56048" in fake_cupy.log) == (tile == 7000)


def test_atomics_on_the_stand_in(card: CudaTarget) -> None:
    check_atomics(card)


def test_bytes_on_the_stand_in(card: CudaTarget) -> None:
    check_bytes(card)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_on_the_stand_in(card: CudaTarget, seed: int) -> None:
    check_random_program(card, seed, group_size=(1, 5, 33, 40)[seed % 4])


def test_scratch_comes_from_the_pool_and_empty_launches_are_left_out(card: CudaTarget) -> None:
    policy = ReducePolicy(group_size=16, items=2, groups=4)
    total: Sum[U32, U64] = Sum(UnsignedNumber(U32))
    schedule = reduce_rows(total, 1, 300, policy)
    results = np.zeros(1, np.uint64)
    card.run(schedule, {"data": keys(300), "results": results})
    assert results[0] == keys(300).sum(dtype=np.uint64)
    assert "alloc 32" in fake_cupy.log, "partial sums of four workgroups"
    fake_cupy.log.clear()
    card.run(Schedule(schedule.buffers, ()), {"data": keys(300), "results": results})
    assert "launch" not in fake_cupy.log


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            None,
            r"arrays\['data'\]: expected a contiguous array of 40 x uint32, of NumPy, .*found nothing",
        ),
        ([1, 2], "found list"),
        (keys(41), "found 41 x uint32$"),
        (keys(40).view(np.float32), r"found 40 x float32; for its bits, array.view\('uint32'\)$"),
        (Foreign(keys(40), typestr="<f4"), "found 40 x float32"),
        (Foreign(keys(40), shape=(4, 10)), r"found shape \(4, 10\) of uint32"),
        (Foreign(keys(40), data=(17, False)), "not aligned"),
        (keys(80)[::2], "not contiguous"),
        (Foreign(keys(40), strides=(8,)), "not contiguous"),
        (Foreign(keys(40), data=(16, True)), "that can be written, found a read-only one"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(card: CudaTarget, array: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        card.run(sorting(40), {"data": array})
    assert fake_cupy.log == []


def test_bytes_are_taken_for_structs_of_which_cupy_has_no_dtype(card: CudaTarget) -> None:
    pairs = Buffer("pairs", Pair, 4, Role.INPUT)
    work = binding.Work((cast("Buffer[Any]", pairs),), ())
    data = fake_cupy.on_card(np.zeros(pairs.nbytes, np.uint8))
    assert checked_arrays(work, {"pairs": data})["pairs"].pointer == data.data.ptr
    short = fake_cupy.on_card(np.zeros(pairs.nbytes - 1, np.uint8))
    with pytest.raises(InvalidArgumentError, match=r"^arrays\['pairs'\]: .* found 63 x uint8$"):
        checked_arrays(work, {"pairs": short})


def test_a_read_only_array_is_refused_as_output(card: CudaTarget) -> None:
    data = keys(40)
    data.flags.writeable = False
    with pytest.raises(InvalidArgumentError, match="read-only"):
        card.run(sorting(40), {"data": data})


def test_arrays_on_two_cards_are_refused_and_one_on_the_second_runs_there(card: CudaTarget) -> None:
    data, out = Buffer("data", U32, 32, Role.INPUT), Buffer("counts", U32, 10, Role.INOUT)
    launch = count_values.launch(Grid(1, 32), data, out, Workgroup(U32, 1))
    values = np.zeros(32, np.uint32)
    arrays = {"data": fake_cupy.on_card(values, 1), "counts": fake_cupy.on_card(np.zeros(10, np.uint32), 0)}
    with pytest.raises(InvalidArgumentError, match="one device, found 'counts' on device 0, 'data' on device 1"):
        card.run(schedule_of(launch), arrays)
    arrays["counts"] = fake_cupy.on_card(np.zeros(10, np.uint32), 1)
    card.run(schedule_of(launch), arrays)
    assert arrays["counts"].host[0] == 32


def test_what_goes_beyond_the_card_is_refused(card: CudaTarget) -> None:
    schedule, arrays, _ = memories_case(40_000)
    with pytest.raises(
        CapabilityError, match=r"'through_memories' asks for 320048 bytes of workgroup memory, .* 232448"
    ):
        card.run(schedule, arrays)
    data, out = Buffer("data", U32, 2048, Role.INPUT), Buffer("counts", U32, 10, Role.INOUT)
    launch = count_values.launch(Grid(1, 2048), data, out, Workgroup(U32, 1))
    with pytest.raises(CapabilityError, match="2048 invocations in a workgroup, target 'cuda' has 1024"):
        card.run(schedule_of(launch), {"data": keys(2048), "counts": np.zeros(10, np.uint32)})


def test_a_card_that_stopped_working_is_reported(card: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    status = 700

    def fail(self: object) -> None:
        raise fake_cupy.CUDARuntimeError(status)

    monkeypatch.setattr(fake_cupy.Stream, "synchronize", fail)
    with pytest.raises(DeviceLostError, match="error 700"):
        card.run(sorting(40), {"data": keys(40)})
    status = 1
    with pytest.raises(fake_cupy.CUDARuntimeError, match="error 1"):
        card.run(sorting(40), {"data": keys(40)})


def test_the_card_says_who_it_is(card: CudaTarget) -> None:
    info = card.info
    assert (info.name, info.adapter) == ("cuda", "Card of the tests")
    assert "driver 13.0, runtime 13.2, compute capability 9.0" in info.driver
    assert info.limits.subgroup_size == 32
    assert info.capabilities == frozenset(Capability) - {Capability.HOST_SORT}


def test_without_cupy_or_a_card_the_target_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TargetUnavailableError, match=r"cupy is not installed .*gpusort\[cuda\]"):
        CudaTarget()
    module: Any = fake_cupy.module()
    monkeypatch.setitem(sys.modules, "cupy", module)
    module.cuda.runtime.getDeviceCount = lambda: 0
    with pytest.raises(TargetUnavailableError, match="no NVIDIA card was found"):
        CudaTarget()

    def no_driver() -> int:
        raise fake_cupy.CUDARuntimeError(35)

    module.cuda.runtime.getDeviceCount = no_driver
    with pytest.raises(TargetUnavailableError, match="no NVIDIA card with a driver for CUDA 13"):
        CudaTarget()


# -- the same on a real card ------------------------------------------------------------------------------


@pytest.mark.parametrize("group_size", [1, 5, 31, 32, 33, 48, 64, 1000])
def test_lanes_on_a_card(real_card: CudaTarget, group_size: int) -> None:
    check_lanes(real_card, group_size)


@pytest.mark.parametrize("tile", [N, 7000, 28_000])
def test_memories_on_a_card(real_card: CudaTarget, tile: int) -> None:
    check_memories(real_card, tile)


def test_atomics_on_a_card(real_card: CudaTarget) -> None:
    check_atomics(real_card)


def test_bytes_on_a_card(real_card: CudaTarget) -> None:
    check_bytes(real_card)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_on_a_card(real_card: CudaTarget, seed: int) -> None:
    check_random_program(real_card, seed, group_size=(1, 5, 33, 40, 64)[seed % 5])


def test_a_workgroup_waits_for_another_on_a_card(real_card: CudaTarget) -> None:
    flags, out = Buffer("flags", U32, 2, Role.INOUT), Buffer("out", U32, 2, Role.OUTPUT)
    schedule = schedule_of(wait_for_flag.launch(Grid(2, 1), flags, out))
    found = np.zeros(2, np.uint32)
    real_card.run(schedule, {"flags": np.array([3, 0], np.uint32), "out": found})
    assert found.tolist() == [3, 7]


@pytest.mark.parametrize("length", [1, 2, 1000, 4097, 1_000_003])
def test_sorting_on_a_card(real_card: CudaTarget, length: int) -> None:
    data = keys(length)
    real_card.run(bitonic_sort(WORDS, 1, length, SortOrder.ASCENDING, BitonicPolicy()), {"data": data})
    np.testing.assert_array_equal(data, np.sort(keys(length)))
