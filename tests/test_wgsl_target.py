"""The WGSL target on whatever adapter is here: kernels mean what they mean elsewhere, limits are kept, errors
are ours."""

from __future__ import annotations

import multiprocessing
import os
import re
from typing import cast

import attrs
import numpy as np
import numpy.typing as npt
import pytest

from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.kernel.specialise import specialise
from gpusort.machine import Capability
from gpusort.targets.python.target import PlainPython
from gpusort.targets.render import plain_name
from gpusort.targets.wgsl import operations as wgsl_operations
from gpusort.targets.wgsl.kernel import lower_to_wgsl
from gpusort.targets.wgsl.memory import Pool, Staging, size_class
from gpusort.targets.wgsl.names import RESERVED_NAMES
from gpusort.targets.wgsl.target import WgslTarget
from gpusort.types.errors import (
    CapabilityError,
    DeviceLostError,
    GpusortError,
    InvalidArgumentError,
    TargetUnavailableError,
)
from gpusort.types.intrinsics import bitcast, dynamic_range, select
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import F32, I32, I64, U8, U16, U32, U64, Bool
from tests.new_process import run_new
from tests.opened import or_skip
from tests.reference import run_in_threads

Array = npt.NDArray[np.generic]
Words = npt.NDArray[np.uint32]
GROUP = 32


@pytest.fixture(scope="module")
def target() -> WgslTarget:
    return or_skip(WgslTarget)


def words(name: str, count: int, role: Role = Role.INOUT) -> Buffer[U32]:
    return Buffer(name, U32, count, role)


def plan(*launches: Launch) -> Schedule:
    """A schedule of these launches, with the buffers that they name."""
    arguments = [argument for launch in launches for argument in launch.arguments]
    buffers = [cast("Buffer[object]", argument) for argument in arguments if isinstance(argument, Buffer)]
    return Schedule(tuple({buffer.name: buffer for buffer in buffers}.values()), launches)


# -- kernels -----------------------------------------------------------------------------------------------


@attrs.frozen
class Everything:
    """A parameter of every type that a host can pass."""

    word: U32
    flag: Bool
    long: U64
    signed: I32
    long_signed: I64
    real: F32
    other: Bool
    last: U32


@kernel
def echo(cx: Invocation, out: Storage[U64], first: U32, params: Everything) -> None:
    out[0] = U64(first)
    out[1] = U64(params.word)
    out[2] = U64(params.flag)
    out[3] = params.long
    out[4] = U64(params.signed)
    out[5] = bitcast(U64, params.long_signed)
    out[6] = U64(bitcast(U32, params.real))
    out[7] = U64(params.other)
    out[8] = U64(params.last)
    out[9] = U64(out.length)
    out[10] = U64(cx.num_groups)


@kernel
def mark_group(cx: Invocation, out: Storage[U32]) -> None:
    if cx.local_id == 0:
        out[cx.group_id] = cx.group_id * 3 + cx.num_groups


@kernel
def reverse_long(cx: Invocation, data: Storage[U64], tile: Workgroup[U64]) -> None:
    tile[cx.local_id] = data[cx.global_id]
    cx.barrier()
    data[cx.global_id] = tile[cx.group_size - cx.local_id - 1] + 1


@kernel
def reverse_narrow(cx: Invocation, data: Storage[U8], out: Storage[U16], flags: Storage[Bool]) -> None:
    i = cx.global_id
    if i < data.length:
        value = U32(data[data.length - i - 1])
        out[i] = U16(value * 5)
        flags[i] = value % 3 == 0


@kernel
def histogram(cx: Invocation, data: Storage[U32], out: Storage[U32], bins: Workgroup[U32]) -> None:
    if cx.local_id < bins.length:
        bins.atomic_store(cx.local_id, U32(0))
    cx.barrier()
    for i in dynamic_range(cx.global_id, data.length, cx.num_groups * cx.group_size):
        bins.atomic_add(data[i] % bins.length, U32(1))
    cx.barrier()
    if cx.local_id < bins.length:
        out.atomic_add(cx.local_id, bins.atomic_load(cx.local_id))


@kernel
def collatz(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    value = data[cx.global_id]
    steps = U32(0)
    while value != 1:
        if steps == 200:
            break
        value = value * 3 + 1 if value % 2 == 1 else value // 2
        steps = steps + 1
    kept: Registers[U32] = Registers(U32, 4)
    for i in dynamic_range(U32(0), U32(4)):
        kept[i] = steps + i
    out[cx.global_id] = kept[steps % 4]


@kernel
def lanes(cx: Invocation, data: Storage[U32], out: Storage[U64], flags: Storage[Bool]) -> None:
    word = data[cx.global_id]
    at = cx.global_id * 12
    out[at] = U64(cx.exclusive_add(word))
    out[at + 1] = U64(cx.subgroup_add(word))
    out[at + 2] = cx.ballot((word & 1) != 0)
    out[at + 3] = cx.match(word % 5)
    out[at + 4] = cx.match(word & 3)
    out[at + 5] = U64(cx.shuffle(word, word >> 3))
    out[at + 6] = cx.shuffle_xor(U64(word) * U64(word), U32(3))
    out[at + 7] = U64(cx.shuffle_up(word, word % 4))
    out[at + 8] = U64(cx.shuffle_down(word, U32(3)))
    out[at + 9] = U64(cx.lane + cx.subgroup_id * 256 + cx.subgroup_size * 65536)
    out[at + 10] = U64(cx.shuffle_down(word, U32(0xFFFFFFFF)))
    out[at + 11] = U64(bitcast(U32, cx.shuffle(F32(word), U32(1))))
    flags[cx.global_id] = cx.shuffle(word % 2 == 0, cx.lane ^ 1)


@kernel
def odd_floats(cx: Invocation, data: Storage[F32], out: Storage[U32]) -> None:
    value = data[cx.global_id]
    out[cx.global_id * 6] = bitcast(U32, value)
    out[cx.global_id * 6 + 1] = bitcast(U32, select(value < 0.0, F32(float("inf")), F32(float("-inf"))))
    out[cx.global_id * 6 + 2] = bitcast(U32, select(value < 0.0, F32(-0.0), F32(1e-40)))
    out[cx.global_id * 6 + 3] = U32(value < F32(float("inf")))
    out[cx.global_id * 6 + 4] = bitcast(U32, F32(0.1) + F32(1e20))
    out[cx.global_id * 6 + 5] = bitcast(U32, select(value < 0.0, I32(-2147483648), I32(-7)))


@kernel
def reserved_words(cx: Invocation, array: Storage[U32], var: Storage[U32], fn: U32) -> None:
    let = array[cx.global_id] + fn
    min = let + 1
    parameters = min + cx.local_id
    var[cx.global_id] = parameters


@kernel
def names_of_the_writers_own(
    cx: Invocation, bits_7f800000: Storage[F32], out: Storage[F32], broadcast: Workgroup[U32]
) -> None:
    workgroupUniformLoad = cx.local_id
    broadcast[cx.local_id] = workgroupUniformLoad
    cx.barrier()
    broadcast.atomic_add(0, U32(5))
    cx.barrier()
    found = F32(cx.load_uniform(broadcast, 0))
    out[cx.local_id] = found if bits_7f800000[workgroupUniformLoad] < float("inf") else F32(0)


@kernel
def add_one(cx: Invocation, data: Storage[U32]) -> None:
    if cx.global_id < data.length:
        data[cx.global_id] = data[cx.global_id] + 1


@kernel
def copy(cx: Invocation, source: Storage[U32], into: Storage[U32]) -> None:
    for i in dynamic_range(cx.global_id, source.length, cx.num_groups * cx.group_size):
        into[i] = source[i]


@kernel
def large_tile(cx: Invocation, data: Storage[U32], tile: Workgroup[U64]) -> None:
    tile[cx.local_id] = U64(data[cx.local_id])
    cx.barrier()
    data[cx.local_id] = U32(tile[cx.local_id])


@kernel
def turned_flags(cx: Invocation, data: Storage[U32], flags: Workgroup[Bool], tile: Workgroup[F32]) -> None:
    kept: Registers[Bool] = Registers(Bool, 2)
    kept[cx.local_id & 1] = data[cx.local_id] > 5
    tile[cx.local_id] = F32(data[cx.local_id])
    flags[cx.local_id] = kept[cx.local_id & 1]
    cx.barrier()
    other = cx.group_size - 1 - cx.local_id
    data[cx.local_id] = U32(flags[other]) + U32(tile[other] == 5.0) * 2


# -- what they mean ----------------------------------------------------------------------------------------


def test_the_device_sees_the_parameters_that_the_host_packed(target: WgslTarget) -> None:
    """The target's own view of the layout: every field comes back."""
    given = Everything(U32(0xFFFFFFFE), Bool(True), U64((1 << 63) + 5), I32(-7), I64(-(1 << 40)), F32(-1.25),
                       Bool(False), U32(99))  # fmt: skip
    out = np.zeros(11, np.uint64)
    launch = echo.launch(Grid(1, 1), Buffer("out", U64, 11, Role.OUTPUT), U32(17), given)
    target.run(plan(launch, launch), {"out": out})
    mask = (1 << 64) - 1
    real = int(np.float32(-1.25).view(np.uint32))
    assert out.tolist() == [
        17,
        0xFFFFFFFE,
        1,
        (1 << 63) + 5,
        -7 & mask,
        -(1 << 40) & mask,
        real,
        0,
        99,
        11,
        1,
    ]


def test_each_launch_has_parameters_of_its_own(target: WgslTarget) -> None:
    total = words("data", 100)
    data = np.zeros(100, np.uint32)
    target.run(plan(*[add_one.launch(Grid(4, GROUP), total) for _ in range(50)]), {"data": data})
    assert data.tolist() == [50] * 100


@pytest.mark.parametrize("groups", [1, 65535, 65536, 70001, 131071])
def test_more_workgroups_than_a_row_holds(target: WgslTarget, groups: int) -> None:
    out = np.zeros(groups, np.uint32)
    target.run(plan(mark_group.launch(Grid(groups, 8), words("out", groups))), {"out": out})
    np.testing.assert_array_equal(out, np.arange(groups, dtype=np.uint32) * 3 + groups)


def test_long_words_through_workgroup_memory(target: WgslTarget) -> None:
    data = np.random.default_rng(1).integers(0, 1 << 64, 8 * GROUP, np.uint64)
    wanted = data.reshape(8, GROUP)[:, ::-1].ravel() + 1
    launch = reverse_long.launch(Grid(8, GROUP), Buffer("data", U64, len(data), Role.INOUT), Workgroup(U64, GROUP))
    target.run(plan(launch), {"data": data})
    np.testing.assert_array_equal(data, wanted)


def test_bools_of_a_workgroup_are_words(target: WgslTarget) -> None:
    """An array of WGSL's bool in workgroup memory overlaps other memories with NVIDIA's Vulkan driver."""
    data = words("data", GROUP)
    launch = turned_flags.launch(Grid(1, GROUP), data, Workgroup(Bool, GROUP), Workgroup(F32, GROUP))
    assert "bool," not in lower_to_wgsl(specialise(launch).program)[1].text
    found = np.arange(GROUP, dtype=np.uint32)
    expected = (found > 5) + 2 * (found == 5)
    target.run(plan(launch), {"data": found})
    assert found.tolist() == expected[::-1].tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 255, 1023])
def test_narrow_elements_of_any_count(target: WgslTarget, count: int) -> None:
    data = np.random.default_rng(count).integers(0, 256, count, np.uint8)
    out, flags = np.zeros(count, np.uint16), np.zeros(count, np.bool_)
    launch = reverse_narrow.launch(
        Grid(-(-count // GROUP), GROUP),
        Buffer("data", U8, count, Role.INPUT),
        Buffer("out", U16, count, Role.OUTPUT),
        Buffer("flags", Bool, count, Role.OUTPUT),
    )
    target.run(plan(launch), {"data": data, "out": out, "flags": flags})
    np.testing.assert_array_equal(out, data[::-1].astype(np.uint16) * 5)
    np.testing.assert_array_equal(flags, data[::-1] % 3 == 0)


def test_atomics_in_both_memories(target: WgslTarget) -> None:
    data = np.random.default_rng(2).integers(0, 1 << 32, 10_000, np.uint32)
    out = np.zeros(16, np.uint32)
    launch = histogram.launch(
        Grid(7, GROUP), words("data", len(data), Role.INPUT), words("out", 16), Workgroup(U32, 16)
    )
    target.run(plan(launch), {"data": data, "out": out})
    np.testing.assert_array_equal(out, np.bincount(data % 16, minlength=16))


def _agrees(target: WgslTarget, launch: Launch, **arrays: Array) -> None:
    """Runs a launch here and under plain Python with subgroups of the same size."""
    results: list[dict[str, Array]] = []
    for who in (target, PlainPython(max(1, target.info.limits.subgroup_size))):
        copies = {name: array.copy() for name, array in arrays.items()}
        who.run(plan(launch), copies)
        results.append(copies)
    for name in arrays:
        np.testing.assert_array_equal(results[0][name], results[1][name], name)


def test_loops_and_registers(target: WgslTarget) -> None:
    data = np.arange(1, 4 * GROUP + 1, dtype=np.uint32)
    launch = collatz.launch(Grid(4, GROUP), words("data", len(data), Role.INPUT), words("out", len(data), Role.OUTPUT))
    _agrees(target, launch, data=data, out=np.zeros_like(data))


@pytest.mark.parametrize("group_size", [1, 20, 64])
def test_subgroup_operations(target: WgslTarget, group_size: int) -> None:
    if Capability.SUBGROUPS not in target.info.capabilities:
        pytest.skip(f"{target.info.adapter} has no subgroup operations")
    count = 3 * group_size
    data = np.random.default_rng(group_size).integers(0, 1 << 20, count, np.uint32)
    launch = lanes.launch(
        Grid(3, group_size),
        words("data", count, Role.INPUT),
        Buffer("out", U64, 12 * count, Role.OUTPUT),
        Buffer("flags", Bool, count, Role.INOUT),
    )
    if group_size % target.info.limits.subgroup_size:
        # lanes that are not there hold nothing in particular: plain Python refuses to read them
        out, flags = np.zeros(12 * count, np.uint64), np.zeros(count, np.bool_)
        target.run(plan(launch), {"data": data, "out": out, "flags": flags})
        per_group = data.reshape(3, group_size)
        width = target.info.limits.subgroup_size
        for first in range(0, group_size, width):
            sums = per_group[:, first : first + width].sum(axis=1, dtype=np.uint64)
            np.testing.assert_array_equal(out.reshape(3, group_size, 12)[:, first, 1], sums)
        down = out.reshape(3, group_size, 12)[:, :, 8]
        np.testing.assert_array_equal(down[:, group_size - 1], per_group[:, -1])
    else:
        _agrees(target, launch, data=data, out=np.zeros(12 * count, np.uint64), flags=np.zeros(count, np.bool_))


def test_floats_that_wgsl_has_no_literal_for(target: WgslTarget) -> None:
    data = np.array([-1.0, 1.0, np.inf, -np.inf, 0.5, -0.0, 3.0, -3.0], np.float32)
    out = np.zeros(6 * len(data), np.uint32)
    launch = odd_floats.launch(Grid(1, 8), Buffer("data", F32, 8, Role.INPUT), words("out", len(out), Role.OUTPUT))
    target.run(plan(launch), {"data": data, "out": out})
    text = lower_to_wgsl(specialise(launch).program)[1].text
    assert "bitcast<f32>(0x000116c2u)" in text, "other drivers than this one flush 1e-40f to 0"
    rows = out.reshape(8, 6)
    negative = data < 0
    np.testing.assert_array_equal(rows[:, 0], data.view(np.uint32))
    np.testing.assert_array_equal(rows[:, 1], np.where(negative, 0x7F800000, 0xFF800000))
    np.testing.assert_array_equal(rows[:, 2], np.where(negative, 1 << 31, np.float32(1e-40).view(np.uint32)))
    np.testing.assert_array_equal(rows[:, 3], data < np.inf)
    np.testing.assert_array_equal(rows[:, 4], (np.float32(0.1) + np.float32(1e20)).view(np.uint32))
    np.testing.assert_array_equal(rows[:, 5], np.where(negative, 1 << 31, (1 << 32) - 7))


def test_names_that_mean_something_in_wgsl(target: WgslTarget) -> None:
    data, out = np.arange(GROUP, dtype=np.uint32), np.zeros(GROUP, np.uint32)
    launch = reserved_words.launch(Grid(1, GROUP), words("array", GROUP, Role.INPUT), words("var", GROUP), U32(5))
    target.run(plan(launch), {"array": data, "var": out})
    np.testing.assert_array_equal(out, data * 2 + 6)


def test_names_that_the_text_has_for_things_of_its_own(target: WgslTarget) -> None:
    source = Buffer("bits_7f800000", F32, GROUP, Role.INPUT)
    results = Buffer("out", F32, GROUP, Role.OUTPUT)
    arrays = {"bits_7f800000": np.zeros(GROUP, np.float32), "out": np.zeros(GROUP, np.float32)}
    launch = names_of_the_writers_own.launch(Grid(1, GROUP), source, results, Workgroup(U32, GROUP))
    target.run(plan(launch), arrays)
    assert arrays["out"].tolist() == [5.0 * GROUP] * GROUP


@pytest.mark.parametrize("wanted", ["pass_", "__x", "größe", "9lives", "_", "for"])
def test_spelled_names_are_plain(wanted: str) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", plain_name(wanted, "_"))


def test_arrays_larger_than_the_staging_buffer(target: WgslTarget) -> None:
    count = 21 << 20
    data, out = np.arange(count, dtype=np.uint32), np.zeros(count, np.uint32)
    launch = copy.launch(Grid(1024, 256), words("data", count, Role.INPUT), words("out", count, Role.OUTPUT))
    target.run(plan(launch), {"data": data, "out": out})
    assert np.array_equal(data, out)


def test_nothing_to_do(target: WgslTarget) -> None:
    empty = np.zeros(0, np.uint32)
    target.run(plan(copy.launch(Grid(0, 8), words("a", 0, Role.INPUT), words("b", 0))), {"a": empty, "b": empty})
    target.run(plan(copy.launch(Grid(1, 8), words("a", 0, Role.INPUT), words("b", 0))), {"a": empty, "b": empty})
    target.run(Schedule((), ()), {})


def test_a_read_only_array_is_no_worse_as_input(target: WgslTarget) -> None:
    data, out = np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)
    data.flags.writeable = False
    target.run(plan(copy.launch(Grid(1, 8), words("a", 8, Role.INPUT), words("b", 8))), {"a": data, "b": out})
    np.testing.assert_array_equal(data, out)


@kernel
def go_round(cx: Invocation, out: Storage[U32], rounds: U32, times: U32) -> None:
    total = U32(0)
    for _ in dynamic_range(U32(0), times):
        left = rounds
        while left > 0:
            left = left - 1
            total = total + 1
    out[cx.global_id] = total


@pytest.mark.parametrize(("rounds", "times"), [(100, 3), (60_000, 1), (65_536, 1), (1000, 100), (1 << 20, 1)])
def test_a_loop_is_never_cut_short_in_silence(target: WgslTarget, rounds: int, times: int) -> None:
    """Mesa's software driver, but for its newest versions, does that behind 65,535 rounds; then the result is refused,
    and nothing written."""
    out = np.zeros(8, np.uint32)
    launch = go_round.launch(Grid(1, 8), words("out", 8), U32(rounds), U32(times))
    refused = ""
    try:
        target.run(plan(launch), {"out": out})
    except CapabilityError as error:
        refused = str(error)
    if refused:
        assert "more than 65535 iterations in one invocation" in refused
        assert "llvmpipe" in target.info.adapter
        assert rounds * times >= 65_535
    assert out.tolist() == [0 if refused else rounds * times] * 8


# -- what is refused ---------------------------------------------------------------------------------------


def test_arrays_beyond_a_binding_are_refused_before_anything_is_read(target: WgslTarget) -> None:
    most = target.info.limits.storage_bytes
    count = most // 4 + 1
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint32), (count,), (0,))
    launch = copy.launch(Grid(1, 8), words("keys", count, Role.SCRATCH), words("out", 8))
    with pytest.raises(CapabilityError, match=rf"array 'keys' has {huge.nbytes} bytes; .* at most {most}"):
        target.run(plan(launch), {"out": np.zeros(8, np.uint32)})


def _refused(launch: Launch, message: str, error: type[Exception], target: WgslTarget, **arrays: object) -> None:
    with pytest.raises(error, match=message):
        target.run(plan(launch), arrays)


def test_what_a_kernel_must_not_ask_for(target: WgslTarget) -> None:
    limits, data = target.info.limits, np.zeros(8, np.uint32)
    eight = words("data", 8)
    big = add_one.launch(Grid(1, limits.group_size + 1), eight)
    _refused(big, r"kernel 'add_one' asks for \d+ invocations in a workgroup", CapabilityError, target, data=data)
    wide = large_tile.launch(Grid(1, 8), eight, Workgroup(U64, limits.workgroup_bytes // 8 + 1))
    _refused(wide, r"'large_tile' asks for \d+ bytes of workgroup memory", CapabilityError, target, data=data)
    many = add_one.launch(Grid(limits.groups + 1, 1), eight)
    _refused(many, r"'add_one' asks for \d+ workgroups", CapabilityError, target, data=data)
    read_only = add_one.launch(Grid(1, 8), words("data", 8, Role.INPUT))
    _refused(read_only, r"'add_one' writes to 'data', .* INPUT buffer", InvalidArgumentError, target, data=data)


def test_a_refusal_by_wgpu_names_kernel_and_line(target: WgslTarget, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setitem(wgsl_operations.OPERATIONS, "xor", "({0} ^^ {1})")

    @kernel
    def broken(cx: Invocation, data: Storage[U32]) -> None:
        data[cx.global_id] = data[cx.global_id] ^ 12345

    launch = broken.launch(Grid(1, 8), words("data", 8))
    with pytest.raises(GpusortError, match=r"(?s)kernel 'broken'.*line \d+ of the generated WGSL: .*\^\^ 12345u"):
        target.run(plan(launch), {"data": np.zeros(8, np.uint32)})


# -- the target itself -------------------------------------------------------------------------------------


def test_info_says_who_runs_the_kernels(target: WgslTarget) -> None:
    info = target.info
    assert info.name == "wgsl"
    assert info.adapter
    assert info.driver
    assert info.limits.storage_bytes >= 1 << 27
    assert info.limits.workgroup_bytes >= 16384
    if Capability.SUBGROUPS in info.capabilities:
        assert info.limits.subgroup_size in (4, 8, 16, 32, 64)
    if "llvmpipe" in info.adapter:
        assert Capability.FORWARD_PROGRESS not in info.capabilities


def test_wgsl_is_shown_and_browsers_get_their_line(target: WgslTarget) -> None:
    launch = lanes.launch(
        Grid(1, 8),
        words("data", 8),
        Buffer("out", U64, 96, Role.OUTPUT),
        Buffer("flags", Bool, 8, Role.INOUT),
    )
    step = specialise(launch)
    shown = lower_to_wgsl(step.program)[1].text
    assert "@compute @workgroup_size(8)\nfn lanes(" in shown
    assert "enable" not in shown
    assert lower_to_wgsl(step.program, enable_line=True)[1].text.startswith("enable subgroups;\n")
    plain = specialise(add_one.launch(Grid(1, 8), words("data", 8)))
    assert "enable" not in lower_to_wgsl(plain.program, enable_line=True)[1].text


def test_buffers_are_used_again(target: WgslTarget) -> None:
    import wgpu

    made: list[int] = []

    @attrs.frozen
    class Block:
        size: int
        usage: int

    class Device:
        def create_buffer(self, *, size: int, usage: int) -> Block:
            made.append(size)
            return Block(size, usage)

    pool = Pool(cast("wgpu.GPUDevice", Device()), 1 << 31)
    for size in (5000, 5100, 4, 5001):
        with pool.lease() as lease:
            lease.storage(size)
    assert made == [5120, 4096]
    with pool.lease() as lease:
        lease.storage(5000)
        lease.storage(5000)
    assert made == [5120, 4096, 5120]
    assert pool.idle_bytes == 2 * 5120 + 4096


@pytest.mark.parametrize("size", [1, 4096, 4097, 5000, 5120, 1 << 20, (1 << 27) - 4, 1 << 27, (1 << 31) - 4])
def test_size_classes_waste_at_most_a_quarter(size: int) -> None:
    made = size_class(size, (1 << 31) - 4)
    assert size <= made <= max(4096, size * 1.26)
    assert made % 4 == 0
    assert size_class(made, (1 << 31) - 4) == made


def test_arrays_of_any_size_are_read_back_through_a_buffer_that_they_are_the_first_in(target: WgslTarget) -> None:
    """Of a class of sizes, and a word more than that."""
    device = target.in_session("reading", lambda session: session.device.handle)
    for sizes in ((4096,), (4100,), (5120, 4), (5124,), (4, 4, 4096)):
        given = [np.random.default_rng(size).integers(0, 256, size, np.uint8) for size in sizes]
        buffers = [device.create_buffer_with_data(data=array, usage=4) for array in given]  # COPY_SRC
        found = [np.zeros_like(array) for array in given]
        Staging(device).finish(device.create_command_encoder(), list(zip(buffers, found, strict=True)))
        for array, other in zip(given, found, strict=True):
            np.testing.assert_array_equal(other, array)


def test_a_lost_device_is_reported_and_replaced(target: WgslTarget) -> None:
    lossy = WgslTarget()
    launch, data = add_one.launch(Grid(1, 8), words("data", 8)), np.zeros(8, np.uint32)
    lossy.run(plan(launch), {"data": data})
    session = lossy._session  # pyright: ignore[reportPrivateUsage]
    assert session is not None
    session.device.handle.destroy()
    with pytest.raises(DeviceLostError, match=r"running 'add_one' \(.*:\d+\): the device was lost"):
        lossy.run(plan(launch), {"data": data})
    lossy.run(plan(launch), {"data": data})
    assert data.tolist() == [2] * 8


def test_threads_take_turns(target: WgslTarget) -> None:
    def work(seed: int) -> None:
        for _ in range(5):
            data = np.random.default_rng(seed).integers(0, 1 << 32, 1000 + seed, np.uint32)
            out = np.zeros_like(data)
            launch = copy.launch(Grid(4, GROUP), words("a", len(data), Role.INPUT), words("b", len(data)))
            target.run(plan(launch), {"a": data, "b": out})
            np.testing.assert_array_equal(data, out)

    run_in_threads(work, 6)


def _run_in_child(target: WgslTarget, answers: multiprocessing.Queue[str]) -> None:
    try:
        target.run(plan(add_one.launch(Grid(1, 8), words("data", 8))), {"data": np.zeros(8, np.uint32)})
        answers.put("ran")
    except TargetUnavailableError as error:
        answers.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_why_it_cannot(target: WgslTarget) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_run_in_child, args=(target, answers))
    child.start()
    assert "opened before this process was forked" in answers.get(timeout=60)
    child.join(60)


def _in_a_new_process(code: str, **environment: str) -> str:
    done = run_new(code, cwd=None, timeout=300, fresh=False, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_an_adapter_can_be_asked_for(target: WgslTarget) -> None:
    code = """
from gpusort.targets.wgsl.target import WgslTarget
try:
    print(WgslTarget().info.adapter)
except Exception as error:
    print(repr(error))
"""
    answer = _in_a_new_process(code, GPUSORT_WGSL_ADAPTER="no such thing")
    assert "TargetUnavailableError" in answer
    assert "fits no adapter; there are: " in answer
    assert _in_a_new_process(code, GPUSORT_WGSL_ADAPTER=target.info.adapter[:6]).startswith(target.info.adapter)


def test_wgpu_is_loaded_only_with_a_target() -> None:
    assert not _in_a_new_process("import sys, gpusort.targets.wgsl.target; assert 'wgpu' not in sys.modules")


def test_every_name_the_text_uses_itself_is_reserved() -> None:
    assert {
        "select",
        "min",
        "max",
        "bitcast",
        "var",
        "let",
        "fn",
        "array",
        "atomicAdd",
        "vec3",
    } <= RESERVED_NAMES
