"""Arrays in wgpu's buffers, on a device that the caller has opened: used where they lie, and recorded by the caller."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from itertools import permutations
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort import webgpu
from gpusort.algos.batch import Batch
from gpusort.algos.bitonic import bitonic_sort
from gpusort.algos.radix_sorts import radix_sort
from gpusort.algos.scan import scan_rows
from gpusort.arrays.registry import recognised
from gpusort.arrays.webgpu import KEPT
from gpusort.kernel.launch import Buffer, Role, Schedule
from gpusort.targets.recording import recording_into
from gpusort.targets.registry import choose
from gpusort.targets.webgpu import target_on_device
from gpusort.targets.wgsl.defaults import DEFAULT_LIMITS
from gpusort.targets.wgsl.prepared import WgslPrepared
from gpusort.targets.wgsl.target import WgslTarget
from gpusort.types.dtypes import key_for
from gpusort.types.elements import dtype_of
from gpusort.types.errors import (
    CapabilityError,
    DeviceLostError,
    DeviceMemoryError,
    GpusortError,
    InvalidArgumentError,
    UnsupportedTypeError,
)
from gpusort.types.indices import ScanKind, SortOrder
from gpusort.types.monoids import Sum
from gpusort.types.numbers import UnsignedNumber
from gpusort.types.params import BitonicPolicy, RadixPolicy, ScanPolicy
from gpusort.types.scalars import U32
from gpusort.types.specs import Memory
from tests import key_cases
from tests.covering import InTurn, few_cases
from tests.opened import or_skip
from tests.plan_keys import signature_of
from tests.reference import Array, assert_same_bits, sample

STORAGE, COPY_SRC, COPY_DST = 128, 4, 8

# What the checkers have no types for is called past them.
sort, sort_inplace, argsort, sum_of, max_of, cumsum = cast(
    "tuple[Callable[..., Any], ...]",
    (gpusort.sort, gpusort.sort_inplace, gpusort.argsort, gpusort.sum, gpusort.max, gpusort.cumsum),
)


@pytest.fixture(scope="module", name="device", params=["defaults", "all"])
def callers_device(request: pytest.FixtureRequest) -> Any:
    or_skip(choose, "wgsl", Memory.HOST)
    return opened(DEFAULT_LIMITS) if request.param == "defaults" else opened({}, "subgroup", "subgroups")


def opened(limits: Mapping[str, int], *features: str) -> Any:
    import wgpu

    adapter = wgpu.gpu.request_adapter_sync()
    wanted = [name for name in features if name in adapter.features][:1]
    return adapter.request_device_sync(required_limits=dict(limits), required_features=wanted)


def class_of(x: Any) -> Any:
    return cast(Any, type(x))


def buffer_of(device: Any, host: Array, usage: int = STORAGE | COPY_SRC | COPY_DST, before: int = 0) -> Any:
    """A buffer with an array in it, behind other bytes."""
    data = np.full(before + -(-host.nbytes // 4) * 4, 0xA5, np.uint8)
    data[before : before + host.nbytes] = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
    return device.create_buffer_with_data(data=data, usage=usage)


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["f4", "u1", "i8", "f2", "?"])
def test_results_stay_on_the_callers_device(device: Any, dtype: str, in_turn: InTurn) -> None:
    host = sample(dtype, (7, 300))
    x = webgpu.array(buffer_of(device, host), host.dtype, host.shape)
    functions: list[tuple[Callable[..., Any], Callable[..., Any]]] = [(sort, np.sort), (argsort, np.argsort)]
    for axis, (function, numpys) in in_turn((0, 1), functions):
        expected = numpys(host, axis=axis, kind="stable")
        found = function(x, axis=axis, **({"stable": True} if function is sort else {}))
        assert isinstance(found, webgpu.Array)
        assert found.device is device
        assert found.dtype == expected.dtype
        assert found.to_numpy().tobytes() == expected.tobytes()
    np.testing.assert_array_equal(x.to_numpy(), host)


@few_cases(pairs=False)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2)])
def test_reductions_stay_on_the_callers_device(device: Any, axis: Any) -> None:
    host = np.arange(9000, dtype=np.int32).reshape(6, 50, 30) % 1009
    x = webgpu.asarray(host, device)
    for function, numpys in ((sum_of, np.sum), (max_of, np.max)):
        found, expected = function(x, axis=axis), numpys(host, axis=axis)
        assert isinstance(found, webgpu.Array)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.to_numpy(), expected)
    if not isinstance(axis, tuple):
        np.testing.assert_array_equal(cumsum(x, axis=axis).to_numpy(), np.cumsum(host, axis=axis))


@pytest.mark.parametrize("shape", [(40,), (3, 500), (2, 40_000)])
def test_nat_stays_nat_in_sums_of_durations(device: Any, shape: tuple[int, ...]) -> None:
    host = np.arange(np.prod(shape), dtype=np.int64).reshape(shape).view("m8[us]")
    host.reshape(-1)[[7, -9]] = "NaT"
    x = webgpu.asarray(host, device)
    for axis in (None, 0, -1):
        assert_same_bits(sum_of(x, axis=axis).to_numpy(), np.asarray(np.sum(host, axis=axis)))
        assert_same_bits(cumsum(x, axis=axis).to_numpy(), np.cumsum(host, axis=axis))


@pytest.mark.parametrize("before", [0, 256, 12, 4])
def test_an_array_may_lie_anywhere_in_its_buffer(device: Any, before: int) -> None:
    host = sample("u2", 501)
    whole = buffer_of(device, host, before=before)
    x = webgpu.array(whole, np.uint16, 501, offset=before)
    np.testing.assert_array_equal(sort(x).to_numpy(), np.sort(host))
    sort_inplace(x)
    np.testing.assert_array_equal(x.to_numpy(), np.sort(host))
    data = np.frombuffer(device.queue.read_buffer(whole), np.uint8)
    assert (data[:before] == 0xA5).all(), "what lies beside it stays"
    assert (data[before + 1002 :] == 0xA5).all()


def test_results_may_go_to_another_part_of_the_buffer(device: Any) -> None:
    host = sample("u4", 600)
    whole = buffer_of(device, np.concatenate([host, np.zeros(40, np.uint32), host]))
    x, out = (webgpu.array(whole, np.uint32, 600, offset=first) for first in (0, 2560))
    assert sort(x, out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), np.sort(host))
    np.testing.assert_array_equal(x.to_numpy(), host)
    assert sort(x, out=x) is x
    np.testing.assert_array_equal(x.to_numpy(), np.sort(host))


def test_what_is_only_read_may_share_a_buffer_for_storage_alone(device: Any) -> None:
    host = np.sort(sample("u4", 600))
    whole = buffer_of(device, host, STORAGE)
    a, b = webgpu.array(whole, np.uint32, 300), webgpu.array(whole, np.uint32, 280, offset=1280)
    np.testing.assert_array_equal(gpusort.merge(a, b).to_numpy(), np.sort(np.concatenate([host[:300], host[320:]])))


def test_results_may_go_to_a_part_of_the_buffer_that_overlaps_x(device: Any) -> None:
    """Which is seen of two arrays of a buffer that were not made of each other."""
    host = sample("u4", 20_064)
    whole = buffer_of(device, host)
    x, out = (webgpu.array(whole, np.uint32, 20_000, offset=first) for first in (0, 256))
    assert sort(x, out=out, algorithm=gpusort.Bitonic()) is out
    np.testing.assert_array_equal(out.to_numpy(), np.sort(host[:20_000]))
    np.testing.assert_array_equal(x.to_numpy()[:64], host[:64])


def test_a_buffer_for_storage_alone_will_do(device: Any) -> None:
    host = sample("f4", (9, 40))
    x = webgpu.array(buffer_of(device, host, STORAGE), np.float32, (9, 40))
    np.testing.assert_array_equal(sort(x, axis=0).to_numpy(), np.sort(host, axis=0))
    np.testing.assert_array_equal(x.to_numpy(), host)
    sort_inplace(x)
    np.testing.assert_array_equal(x.to_numpy(), np.sort(host))


def test_a_device_that_is_lost_is_told_of_by_every_call() -> None:
    or_skip(choose, "wgsl", Memory.HOST)
    host, device = sample("f4", 9), opened({})
    x = webgpu.asarray(host, device)
    KEPT.clear()
    device.destroy()
    for call in (
        lambda: sort(x), lambda: sum_of(x), lambda: sort_inplace(x), x.to_numpy, lambda: asyncio.run(x.fetch()),
        lambda: webgpu.asarray(host, device), lambda: gpusort.plan(gpusort.argsort, x),
    ):  # fmt: skip
        with pytest.raises(DeviceLostError, match="the device was lost"):
            call()


def test_devices_that_a_caller_has_let_go_of_are_closed() -> None:
    or_skip(choose, "wgsl", Memory.HOST)
    seen: list[weakref.ref[Any]] = []
    for _ in range(14):
        device = opened({})
        seen.append(weakref.ref(device))
        assert sort(webgpu.asarray([3, 1, 2], device)).to_numpy().tolist() == [1, 2, 3]
    KEPT.clear()
    gc.collect()
    assert sum(device() is not None for device in seen) <= 8


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ("In wgpuDeviceCreateBuffer\n    Not enough memory left.", DeviceMemoryError, "too little free memory"),
        (
            "    Buffer size 9 is greater than the maximum buffer size (8)",
            CapabilityError,
            "wgpu refuses: Buffer size 9",
        ),
        ("    something else", GpusortError, "wgpu refuses: something else"),
    ],
)
def test_a_buffer_that_cannot_be_had(
    device: Any, monkeypatch: pytest.MonkeyPatch, said: str, error: type[GpusortError], words: str
) -> None:
    x = webgpu.asarray(sample("f4", 9), device)
    KEPT.clear()

    def refuse(*_: object, **__: object) -> None:
        from gpusort.targets.wgsl.runtime import wgpu

        raise wgpu.GPUValidationError(f"Validation Error\n\nCaused by:\n  {said}")

    monkeypatch.setattr(class_of(device), "create_buffer", refuse)
    with pytest.raises(error, match=f"a buffer of 36 bytes: .*{words}"):
        sort(x)
    monkeypatch.undo()
    assert_same_bits(sort(x).to_numpy(), sort(x.to_numpy()))


def test_nothing_is_read_back_or_waited_for(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if "llvmpipe" in device.adapter_info.device:
        pytest.skip("Mesa's software driver may cut loops short, which is looked for after each run")
    x = webgpu.asarray(sample("f4", (9, 40)), device)
    monkeypatch.setattr(class_of(x.buffer), "map_sync", None)
    monkeypatch.setattr(class_of(device.queue), "read_buffer", None)
    for axis in (0, 1):
        sort(x, axis=axis)
        argsort(x, axis=axis)
        sum_of(x, axis=axis)


# -- what is refused --------------------------------------------------------------------------------------


def test_buffers_that_hold_no_array_are_refused(device: Any) -> None:
    good = buffer_of(device, sample("u4", 10))
    for arguments, error, expected in (
        ((np.zeros(3), "f4"), UnsupportedTypeError, "buffer: expected a wgpu.GPUBuffer, found ndarray"),
        ((buffer_of(device, np.zeros(3), COPY_DST), "f4"), InvalidArgumentError, "buffer: .* STORAGE"),
        ((good, [("a", "u4")]), UnsupportedTypeError, "dtype: "),
        ((good, ">u4"), UnsupportedTypeError, "dtype: "),
        ((good, "u4", 11), InvalidArgumentError, "shape: .* 40 bytes"),
        ((good, "u4", (-2,)), InvalidArgumentError, "shape: "),
        ((good, "u4", "10"), UnsupportedTypeError, "shape: expected an int or a sequence of ints, found '1'"),
        ((good, "u4", (2.0, 5)), UnsupportedTypeError, "shape: expected an int or a sequence of ints, found 2.0"),
        ((good, "no dtype"), UnsupportedTypeError, "dtype: expected a dtype of NumPy, e.g. 'f4', found 'no dtype'"),
    ):
        with pytest.raises(error, match=f"^{expected}"):
            webgpu.array(*arguments)  # pyright: ignore[reportArgumentType]  # the mistakes that are tested
    with pytest.raises(InvalidArgumentError, match=r"^offset: "):
        webgpu.array(good, np.uint32, offset=3)
    for offset in ("4", 4.0, [4], None):
        with pytest.raises(UnsupportedTypeError, match=r"^offset: expected an int, found "):
            webgpu.array(good, np.uint32, offset=cast(Any, offset))
    for wrong in (3, device.adapter):
        with pytest.raises(UnsupportedTypeError, match=r"^device: expected a wgpu.GPUDevice, found "):
            webgpu.array(good, np.uint32, device=cast(Any, wrong))
    with pytest.raises(UnsupportedTypeError, match=r"^device: .*, found \w+; await it"):
        webgpu.asarray([1], device.adapter.request_device_async())
    length, first = cast("tuple[Any, Any]", (np.int64(10), np.int64(0)))
    of_numpy = webgpu.array(good, np.uint32, length, offset=first)
    assert (type(of_numpy.shape[0]), type(of_numpy.offset)) == (int, int)
    assert webgpu.array(good, np.uint16, offset=6).shape == (17,)
    with pytest.raises(InvalidArgumentError, match="'cpu' works in host memory"):
        sort(webgpu.array(good, np.uint32), target="cpu")
    with pytest.raises(InvalidArgumentError, match=r"^target: expected 'auto', .*, found 'tpu'"):
        sort(webgpu.array(good, np.uint32), target="tpu")


def test_a_buffer_in_place_of_an_array_is_refused_with_what_makes_one_of_it(device: Any) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"^x: .* found a GPU\w*Buffer of wgpu: gpusort\.webgpu\.array\(x, "):
        gpusort.sort(buffer_of(device, sample("u4", 10)))


def test_what_no_buffer_holds_is_not_uploaded(device: Any) -> None:
    refused: list[tuple[Any, str]] = [
        (np.array([None]), "values: elements of dtype object are Python's objects"),
        (None, "values: expected a NumPy or cupy array, .*, found NoneType"),
        ([[1], [2, 3]], "values: .* NumPy makes no array of it"),
        (np.ma.array([1, 2], mask=[True, False]), "values: masked arrays are not supported"),
    ]
    for values, expected in refused:
        with pytest.raises((UnsupportedTypeError, InvalidArgumentError), match=f"^{expected}"):
            webgpu.asarray(values, device)
    with pytest.raises(UnsupportedTypeError, match=r"^device: expected a wgpu.GPUDevice, found NoneType"):
        webgpu.asarray([1], cast(Any, None))


def test_arrays_of_two_devices_do_not_meet(device: Any) -> None:
    other = opened({})
    keys, values = webgpu.asarray(sample("u4", 30), device), webgpu.asarray(sample("u4", 30), other)
    by_key: Any = gpusort.sort_by_key
    with pytest.raises(InvalidArgumentError, match=r"^values: .* on the same device, as keys is, found one on another"):
        by_key(keys, values)
    with pytest.raises(InvalidArgumentError, match=r"^device: expected the one that the buffer was made by"):
        webgpu.array(keys.buffer, np.uint32, device=other)
    with pytest.raises(InvalidArgumentError, match=r"^encoder: expected one of the arrays' device"):
        gpusort.plan(argsort, keys).encode(other.create_command_encoder(), keys)


def test_buffers_that_are_mapped_or_destroyed_are_refused(device: Any) -> None:
    """With what wgpu-native does of them at their submission, the process would end."""
    for usage in (STORAGE, STORAGE | COPY_SRC | COPY_DST):
        buffer = device.create_buffer(size=4096, usage=usage, mapped_at_creation=True)
        x, y = webgpu.array(buffer, np.uint32, 100), webgpu.array(buffer, np.uint32, 100, offset=2048)
        calls: list[Callable[[], Any]] = [
            partial(sort, x), partial(sort_inplace, x), partial(sum_of, x), partial(gpusort.plan(argsort, x), x),
            x.to_numpy, partial(sort, x, out=y),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(InvalidArgumentError, match=r"expected a buffer that is not mapped; call buffer.unmap"):
                call()
        buffer.unmap()
        assert not sort(x).to_numpy().any()
        planned = gpusort.plan(argsort, x)
        for _ in range(2):  # of which the second finds what the first has bound
            planned.encode(device.create_command_encoder(), x)
        calls.append(partial(planned.encode, device.create_command_encoder(), x))
        buffer.destroy()
        for call in calls:
            with pytest.raises(GpusortError, match=r"has been destroyed|create the buffer with usage COPY_SRC"):
                call()


def test_a_buffer_that_is_mapped_between_two_calls_is_refused(device: Any) -> None:
    """As it may be with a feature of wgpu-native's; with its submission the process would end."""
    mapping = opened({}, "mappable-primary-buffers")
    if not mapping.features:
        pytest.skip("the adapter maps no buffers with usage STORAGE")
    buffer = mapping.create_buffer(size=400, usage=STORAGE | COPY_SRC | 0x01)  # MAP_READ
    x = webgpu.array(buffer, np.uint32, 100)
    planned = gpusort.plan(argsort, x)
    calls: list[Callable[[], Any]] = [
        partial(planned, x), partial(sort, x), partial(planned.encode, mapping.create_command_encoder(), x),
    ]  # fmt: skip
    for call in calls:
        call()
    buffer.map_sync("READ")
    for call in calls:
        with pytest.raises(InvalidArgumentError, match=r"expected a buffer that is not mapped; call buffer.unmap"):
            call()


def test_a_device_that_lacks_something_is_told_what_to_ask_for(device: Any) -> None:
    small = opened(DEFAULT_LIMITS)
    policy = BitonicPolicy(tile=1024, group_size=512)
    schedule = bitonic_sort(key_for("u4"), 1, 4096, SortOrder.ASCENDING, policy)
    x = webgpu.asarray(sample("u4", 4096), small)
    with pytest.raises(CapabilityError, match=r"required_limits=\{'max-compute-invocations-per-workgroup': 512, "):
        cast(Any, target_on_device(small)).prepare(schedule).run([x])
    batch = Batch(key_for("u4"), 1, 4096, SortOrder.ASCENDING)
    arrays = {name: np.zeros(4096, np.uint32) for name in ("data", "results")}
    with pytest.raises(CapabilityError, match=r"uses subgroup .* lacks; open .* required_features=\['subgroup'\]"):
        target_on_device(small).run(radix_sort(batch, RadixPolicy(4, 64, 2), 32), arrays)
    few = webgpu.asarray(sample("u4", 9), opened({"max-storage-buffers-per-shader-stage": 0}))
    with pytest.raises(CapabilityError, match=r"has 0; open .*max-storage-buffers-per-shader-stage") as refused:
        sort(few)
    enough = re.findall(r"'(max-storage\S+)': (\d)", str(refused.value))
    sort(webgpu.asarray(sample("u4", 9), opened({name: int(count) for name, count in enough})))
    info = target_on_device(small).info
    assert (info.limits.group_size, info.limits.workgroup_bytes) == (256, 16384)


# -- recording --------------------------------------------------------------------------------------------


def recorded(prepared: WgslPrepared, encoder: Any, memories: list[Any]) -> None:
    with recording_into(encoder):
        prepared.run_at(memories, None, 0)


def prepared_on(device: Any, schedule: Schedule, *, keeps_scratch: bool = True) -> WgslPrepared:
    target = target_on_device(device)
    assert isinstance(target, WgslTarget)
    return target.prepare(schedule, keeps_scratch=keeps_scratch)


def test_work_is_recorded_into_the_callers_encoder(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = ScanPolicy(group_size=64, items=2, groups=16)
    schedule = scan_rows(Sum(UnsignedNumber(U32)), 1, 2000, ScanKind.INCLUSIVE, policy)
    assert any(buffer.role is Role.SCRATCH for buffer in schedule.buffers)
    host = sample("u4", 2000)
    x, out = webgpu.asarray(host, device), webgpu.asarray(np.zeros(2000, np.uint64), device)
    prepared = prepared_on(device, schedule)
    encoder = device.create_command_encoder()
    recorded(prepared, encoder, [x, out])
    assert not out.to_numpy().any(), "nothing runs before the caller submits it"
    device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(out.to_numpy(), np.cumsum(host, dtype=np.uint64))

    other = host[::-1].copy()
    device.queue.write_buffer(x.buffer, 0, other)
    with monkeypatch.context() as patch:
        for name in ("create_buffer", "create_bind_group", "create_compute_pipeline", "create_buffer_with_data"):
            patch.setattr(class_of(device), name, None)
        encoder = device.create_command_encoder()
        for _ in range(3):
            recorded(prepared, encoder, [x, out])
        device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(out.to_numpy(), np.cumsum(other, dtype=np.uint64))
    assert prepared.own_bytes > 0


def test_a_run_on_the_device_uses_its_scratch_again(device: Any) -> None:
    schedule = bitonic_sort(key_for("u4"), 1, 3000, SortOrder.DESCENDING, BitonicPolicy(tile=256, group_size=64))
    for keeps_scratch in (True, False):
        prepared = prepared_on(device, schedule, keeps_scratch=keeps_scratch)
        for seed in (1, 2):
            host = sample("u4", 3000, seed=seed)
            x = webgpu.asarray(host, device)
            prepared.run([x])
            np.testing.assert_array_equal(x.to_numpy(), np.sort(host)[::-1])
            prepared.run([host])
            np.testing.assert_array_equal(host, x.to_numpy())


def test_what_cannot_be_recorded_says_so(device: Any) -> None:
    schedule = scan_rows(Sum(UnsignedNumber(U32)), 1, 64, ScanKind.INCLUSIVE, ScanPolicy(group_size=32, items=2))
    whole = buffer_of(device, np.zeros(400, np.uint32))
    x, out = webgpu.array(whole, np.uint32, 64), webgpu.array(whole, np.uint64, 64, offset=512)
    prepared = prepared_on(device, schedule)
    with pytest.raises(InvalidArgumentError, match="to be recorded, expected a buffer of its own"):
        recorded(prepared, device.create_command_encoder(), [x, out])
    for keeps_scratch in (True, False):
        prepared = prepared_on(device, schedule, keeps_scratch=keeps_scratch)
        prepared.run([x, out])  # which is copied for the time
    empty = Schedule((Buffer("data", U32, 0, Role.INOUT),), ())
    prepared_on(device, empty).run([webgpu.array(whole, np.uint32, 0)])


# -- arrays -----------------------------------------------------------------------------------------------


def test_arrays_are_read_however_they_lie(device: Any) -> None:
    host = sample("f4", (3, 4, 5))
    x = webgpu.asarray(host, device)
    np.testing.assert_array_equal(x.reshape(5, -1).to_numpy(), host.reshape(5, 12))
    with pytest.raises(InvalidArgumentError, match=r"^shape: expected one of 60 elements"):
        x.reshape(7, -1)
    for negative in ((-3, -20), (-2, 30), (-1, -1)):
        with pytest.raises(InvalidArgumentError, match=r"^shape: expected one of 60 elements"):
            x.reshape(*negative)
    for wrong in ((5.0, 12), ("60",), ((5, 12),)):
        with pytest.raises(UnsupportedTypeError, match=r"^shape: expected ints, each an argument of its own, found "):
            x.reshape(*cast(Any, wrong))
    for usage in (STORAGE, STORAGE | COPY_SRC):
        words = sample("u2", 300)
        part = webgpu.array(buffer_of(device, words, usage), np.uint16, (50, 2), offset=310)
        np.testing.assert_array_equal(part.to_numpy(), words[155:255].reshape(50, 2))
        strided = webgpu.Array(part.buffer, device, part.dtype, (2, 30), (2, -8), 310)
        expected = np.lib.stride_tricks.as_strided(words[155:], (2, 30), (2, -8))
        np.testing.assert_array_equal(strided.to_numpy(), expected)
        np.testing.assert_array_equal(sort(strided, axis=0).to_numpy(), np.sort(expected, axis=0))
        np.testing.assert_array_equal(sum_of(strided, axis=1).to_numpy(), expected.sum(axis=1))


def test_what_is_awaited_is_what_is_read(device: Any) -> None:
    """However it lies, and on a device that was opened so too."""
    x = sample("f4", (6, 7))

    async def fetched() -> None:
        for handle in (device, await webgpu.open_device()):
            turned = webgpu.asarray(x, handle)
            turned = attrs.evolve(turned, shape=(7, 6), strides=(4, 28))
            assert_same_bits(await turned.fetch(), np.ascontiguousarray(x.T))
            assert_same_bits(await sort(turned, axis=0).fetch(), sort(turned, axis=0).to_numpy())

    asyncio.run(fetched())


def test_results_lie_where_earlier_ones_lay_which_nobody_holds(device: Any) -> None:
    KEPT.clear()
    host = sample("u4", 500)
    x = webgpu.asarray(host, device)

    def buffer_of_result() -> int:
        return id(sort(x).held.buffer)

    free = buffer_of_result()
    assert buffer_of_result() == free
    first = sort(x)
    assert id(first.held.buffer) == free
    view = first.reshape(50, 10)
    del first
    second = sort(x)
    assert second.held.buffer is not view.held.buffer, "a view holds it"
    np.testing.assert_array_equal(view.to_numpy().reshape(-1), np.sort(host))
    shown = view.buffer
    del view
    shown.destroy()
    for _ in range(6):
        third = sort(x)
        assert third.held.buffer is not shown, "whoever was shown it may have destroyed it"
        np.testing.assert_array_equal(third.to_numpy(), np.sort(host))
    del second
    assert sort(webgpu.asarray(host[:100], device)).buffer.size == 400, "as much as it takes"


def test_results_in_a_callers_encoder_are_no_ones_else(device: Any) -> None:
    KEPT.clear()
    host = sample("u4", 500)
    x, y = webgpu.asarray(host, device), webgpu.asarray(host[::-1].copy(), device)
    plan = gpusort.plan(cumsum, x)
    encoder = device.create_command_encoder()
    plan.encode(encoder, x)
    del plan
    others = [cumsum(y) for _ in range(4)]  # which the encoder's commands come after
    device.queue.submit([encoder.finish()])
    for other in others:
        np.testing.assert_array_equal(other.to_numpy(), np.cumsum(host[::-1]))


def test_a_key_that_is_lossy_takes_elements_by_their_places(device: Any) -> None:
    key: Any = key_cases.Absolute()
    host = np.random.default_rng(6).integers(-99, 99, (6, 48)).astype("i4")
    x = webgpu.asarray(host, device)
    np.testing.assert_array_equal(sort(x, key=key).to_numpy(), gpusort.sort(host, key=key))
    np.testing.assert_array_equal(sort(x, axis=0, key=key).to_numpy(), gpusort.sort(host, axis=0, key=key))
    np.testing.assert_array_equal(max_of(x, axis=1, key=key).to_numpy(), gpusort.max(host, axis=1, key=key))
    keys: Any = gpusort.sort_by_key
    found = keys(webgpu.asarray(host[0], device), webgpu.asarray(np.arange(48.0), device), key=key)
    np.testing.assert_array_equal(found[1].to_numpy(), gpusort.argsort(host[0], key=key))


def test_records_stay_on_the_callers_device(device: Any) -> None:
    """Whatever they are given to, and beside results that are none; also recorded, and without elements."""
    key: Any = key_cases.DateKey()
    host = np.array([(3, 1, 2000), (1, 1, 2000), (2, 5, 1999)], dtype_of(key_cases.Date))
    x, keys = (webgpu.asarray(given, device) for given in (host, np.array([3, 1, 2], np.uint32)))
    values, places = cast(Any, gpusort.top_k(x, 2, largest=False, key=key))
    np.testing.assert_array_equal(places.to_numpy(), [2, 1])
    found: tuple[tuple[Any, list[int]], ...] = (
        (values, [2, 1]), (gpusort.sort_by_key(keys, x)[1], [1, 2, 0]), (sort(x, key=key), [2, 1, 0]),
        (gpusort.merge(webgpu.asarray(host[:0], device), sort(x, key=key), key=key), [2, 1, 0]),
        (cast(Any, gpusort.max)(x, key=key).reshape(1), [0]), (sort(webgpu.asarray(host[:0], device), key=key), []),
    )  # fmt: skip
    for result, order in found:
        np.testing.assert_array_equal(result.to_numpy(), host[np.array(order, np.intp)])
    planned, encoder = gpusort.plan(gpusort.sort, x, key=key), device.create_command_encoder()
    recorded = planned.encode(encoder, x)
    device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(recorded.to_numpy(), host[[2, 1, 0]])


def test_signatures_tell_apart_what_plans_depend_on(device: Any) -> None:
    host = sample("u4", (6, 8))
    arrays = [
        webgpu.asarray(host, device),
        webgpu.asarray(host.view("f4"), device),
        webgpu.asarray(host.reshape(8, 6), device),
        webgpu.array(buffer_of(device, host, before=4), np.uint32, (6, 8), offset=4),
        webgpu.asarray(host, opened({})),
    ]
    kind, _ = recognised("x", arrays[0])
    assert len({signature_of(kind, x) for x in arrays}) == len(arrays)
    assert signature_of(kind, webgpu.asarray(host + 1, device)) == signature_of(kind, arrays[0])


def test_a_planned_copy_is_of_arrays_as_aligned(device: Any) -> None:
    """Also of none that is aligned better: the places of a copy are told from the aligned address before."""
    words = sample("u2", 300)
    buffer = buffer_of(device, words)
    arrays = [webgpu.Array(buffer, device, np.dtype("u2"), (40,), (4,), first) for first in (0, 2, 4)]
    for given, other in permutations(arrays, 2):
        planned = gpusort.plan(sort, given)
        with pytest.raises(InvalidArgumentError, match=r"^arrays: expected such as were planned for"):
            planned(other)
        first = given.offset // 2
        np.testing.assert_array_equal(planned(given).to_numpy(), np.sort(words[first : first + 80 : 2]))


# -- recording ordinary calls -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "settings"),
    [(gpusort.sort, {}), (gpusort.argsort, {"axis": 0}), (gpusort.sum, {"axis": 1}), (gpusort.cumsum, {"axis": 0})],
)
def test_planned_calls_are_recorded(device: Any, function: Any, settings: dict[str, Any]) -> None:
    host = sample("u4", (40, 50))
    x = webgpu.asarray(host, device)
    planned = gpusort.plan(function, x, **settings)
    encoder = device.create_command_encoder()
    found = planned.encode(encoder, x)
    assert isinstance(found, webgpu.Array)
    before = found.to_numpy()
    device.queue.submit([encoder.finish()])
    expected = function(host, **settings)
    np.testing.assert_array_equal(found.to_numpy(), expected)
    assert not np.array_equal(before, expected), "nothing runs before the caller submits it"

    other = host[::-1].copy()
    device.queue.write_buffer(x.buffer, 0, other)
    encoder = device.create_command_encoder()
    assert planned.encode(encoder, x) is found
    device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(found.to_numpy(), function(other, **settings))


def test_a_frame_allocates_nothing(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    depths = webgpu.asarray(sample("u4", 5000), device)
    planned = gpusort.plan(gpusort.argsort, depths)
    planned.encode(device.create_command_encoder(), depths)
    with monkeypatch.context() as patch:
        for name in ("create_buffer", "create_bind_group", "create_compute_pipeline", "create_buffer_with_data"):
            patch.setattr(class_of(device), name, None)
        encoder = device.create_command_encoder()
        order = planned.encode(encoder, depths)
        device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(order.to_numpy(), np.argsort(depths.to_numpy(), kind="stable"))


@pytest.mark.parametrize("recorded", [(False, False, True), (True, True, False)])
def test_planned_calls_write_again_what_follows_from_the_shape(device: Any, recorded: tuple[bool, ...]) -> None:
    x = webgpu.asarray(np.zeros((3, 0), np.float32), device)
    planned: Any = gpusort.plan(cast(Any, gpusort.prod), x, axis=1)
    for is_recorded in recorded:
        encoder = device.create_command_encoder()
        found = planned.encode(encoder, x) if is_recorded else planned(x)
        device.queue.submit([encoder.finish()])
        assert found.to_numpy().tolist() == [1, 1, 1]
        device.queue.write_buffer(found.buffer, 0, np.full(3, 7, np.float32))  # as callers may


def test_arrays_of_the_host_cannot_be_recorded(device: Any) -> None:
    x = sample("u4", 100)
    planned = gpusort.plan(gpusort.sort, x)
    for wrong in (None, 3, device):
        with pytest.raises(UnsupportedTypeError, match=r"^encoder: expected a wgpu.GPUCommandEncoder, found "):
            gpusort.plan(gpusort.sort, webgpu.asarray(sample("u4", 9), device)).encode(wrong)
    with pytest.raises(UnsupportedTypeError, match=r"^encode: expected arrays on a device of WebGPU"):
        planned.encode(device.create_command_encoder(), x)


def test_numpy_copies_nothing_to_the_host_by_itself(device: Any) -> None:
    x: Any = webgpu.asarray(sample("u4", 9), device)
    for function in (np.asarray, np.sort, np.sum):
        with pytest.raises(UnsupportedTypeError, match=r"x\.to_numpy\(\) copies it there"):
            function(x)
