"""Commands to wgpu's devices: by wgpu's public methods and by the library's own functions, which must do the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort import webgpu
from gpusort.algos.sorts import Radix
from gpusort.targets.registry import choose
from gpusort.targets.wgsl import device as devices
from gpusort.targets.wgsl import native
from gpusort.targets.wgsl import target as targets
from gpusort.targets.wgsl.commands import BufferRange, Commands
from gpusort.targets.wgsl.defaults import DEFAULT_LIMITS
from gpusort.targets.wgsl.native import NativeCommands
from gpusort.types.errors import DeviceLostError, GpusortError
from gpusort.types.params import RadixPolicy
from gpusort.types.specs import Memory
from tests.covering import few_cases
from tests.opened import or_skip
from tests.reference import run_in_threads, sample
from tests.striking import events, places, strike

# What the checkers have no types for is called past them.
sort, argsort, min_of = cast("tuple[Callable[..., Any], ...]", (gpusort.sort, gpusort.argsort, gpusort.min))
RADIX = Radix(RadixPolicy(4, 64, 2, 16, subgroups=False))  # whose kernels take a driver no seconds to compile
WAYS = {"public": Commands, "native": NativeCommands}


def no_library(_: str) -> None:
    return None


def class_of(x: Any) -> Any:
    return cast(Any, type(x))


@pytest.fixture(params=WAYS, name="way")
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "public":
        monkeypatch.setattr(native, "_native", no_library)
    return str(request.param)


@pytest.fixture(name="device")
def unwatched_device(way: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A device of its own, of which nothing is read back after a run: no loop here goes on for so long."""
    import wgpu

    or_skip(choose, "wgsl", Memory.HOST)
    opened = devices.device_of_caller

    def unwatched(handle: Any) -> devices.Device:
        return attrs.evolve(opened(handle), cuts_loops=False)

    monkeypatch.setattr(targets, "device_of_caller", unwatched)
    adapter = wgpu.gpu.request_adapter_sync()
    wanted = [name for name in ("subgroups", "subgroup") if name in adapter.features][:1]
    limits = {name: adapter.limits[name] for name in DEFAULT_LIMITS}
    return cast(Any, adapter.request_device_sync(required_features=wanted, required_limits=dict(limits)))


def prepared_of(call: Any) -> Any:
    """What runs the last schedule of a planned call."""
    run = call.plan._new._run
    return getattr(run, "runs", [run])[-1]


# -- both ways do the same --------------------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["u4", "f8", "i2"])
def test_calls_of_all_forms(device: Any, way: str, dtype: str) -> None:
    host = sample(dtype, 5000)
    x = webgpu.asarray(host, device)
    for function, settings, expected in (
        (sort, {"algorithm": RADIX} if dtype != "f8" else {}, np.sort(host)),
        (argsort, {}, np.argsort(host, kind="stable")),
        (min_of, {}, np.min(host)),
    ):
        for _ in range(3):
            np.testing.assert_array_equal(function(x, **settings).to_numpy(), expected)
        call = gpusort.plan(function, x, **settings)
        for _ in range(4):
            np.testing.assert_array_equal(call(x).to_numpy(), expected)
        assert type(prepared_of(call)._ready.commands) is WAYS[way]
        device.queue.write_buffer(call.outs[0].buffer, 0, bytes(call.outs[0].buffer.size))
        encoder = device.create_command_encoder()
        found = call.encode(encoder, x)
        assert not found.to_numpy().any(), "nothing runs before the caller submits it"
        device.queue.submit([encoder.finish()])
        np.testing.assert_array_equal(found.to_numpy(), expected)
    np.testing.assert_array_equal(x.to_numpy(), host)


def test_what_is_recorded_ahead_is_of_these_arrays_alone(device: Any) -> None:
    hosts = [sample("u4", 3000, seed=seed) for seed in range(3)]
    arrays = [webgpu.asarray(host, device) for host in hosts]
    call = gpusort.plan(sort, arrays[0])
    for number in (0, 0, 0, 1, 0, 1, 1, 1, 2, 2, 2):
        np.testing.assert_array_equal(call(arrays[number]).to_numpy(), np.sort(hosts[number]))
    device.queue.write_buffer(arrays[2].buffer, 0, hosts[0])
    np.testing.assert_array_equal(call(arrays[2]).to_numpy(), np.sort(hosts[0]))
    encoder = device.create_command_encoder()
    call.encode(encoder, arrays[1])
    call(arrays[2])
    device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(call.outs[0].to_numpy(), np.sort(hosts[1]))


def test_a_result_may_be_sorted_where_it_lies(device: Any) -> None:
    host = sample("u4", 3000)
    call = gpusort.plan(sort, webgpu.asarray(host, device), descending=True)
    found = call(webgpu.asarray(host, device))
    for _ in range(3):
        assert call(found) is found
        np.testing.assert_array_equal(found.to_numpy(), np.sort(host)[::-1])


def test_results_keep_their_memory_to_themselves(device: Any) -> None:
    hosts = [sample("u4", size, seed=size) for size in (4000, 300, 4000, 9000, 4000)]
    found = [sort(webgpu.asarray(host, device)) for host in hosts for _ in range(2)]
    assert len({id(one.buffer) for one in found}) == len(found)
    for one, host in zip(found, [host for host in hosts for _ in range(2)], strict=True):
        np.testing.assert_array_equal(one.to_numpy(), np.sort(host))


def test_threads_share_a_device(device: Any) -> None:
    hosts = [sample("u4", 2000 + 10 * (seed % 2), seed=seed) for seed in range(6)]
    arrays = [webgpu.asarray(host, device) for host in hosts]
    calls = [gpusort.plan(sort, array) for array in arrays]

    def work(seed: int) -> None:
        for _ in range(5):
            np.testing.assert_array_equal(sort(arrays[seed]).to_numpy(), np.sort(hosts[seed]))
            np.testing.assert_array_equal(calls[seed](arrays[seed]).to_numpy(), np.sort(hosts[seed]))

    run_in_threads(work, 6)


# -- and report the same ----------------------------------------------------------------------------------


def test_memory_that_is_gone_is_told_of(device: Any) -> None:
    host = sample("u4", 3000)
    x, other = webgpu.asarray(host, device), webgpu.asarray(host, device)
    for settings in ({}, {"algorithm": RADIX}):
        call = gpusort.plan(sort, x, **settings)
        for _ in range(3):
            call(x)
        x.buffer.destroy()
        for function in (call, partial(sort, **settings)):
            with pytest.raises(GpusortError, match="destroyed") as error:
                function(x)
            assert not isinstance(error.value, DeviceLostError)
            np.testing.assert_array_equal(function(other).to_numpy(), np.sort(host))
        x = webgpu.asarray(host, device)


def test_a_device_that_is_gone_is_told_of(device: Any) -> None:
    x = webgpu.asarray(sample("u4", 3000), device)
    call = gpusort.plan(sort, x)
    for _ in range(3):
        call(x)
    sort(x)
    device.destroy()
    with pytest.raises(DeviceLostError, match=r"running '.*' \(.*\): the device was lost"):
        call(x)
    with pytest.raises(DeviceLostError, match="the device was lost"):  # another is looked for on the caller's, in vain
        gpusort.sort_inplace(x)


def test_errors_keep_their_class_and_text(device: Any) -> None:
    import wgpu

    x = webgpu.asarray(sample("u4", 3000), device)
    call = gpusort.plan(sort, x)
    call(x)
    prepared = prepared_of(call)
    commands = prepared._ready.commands
    names = prepared._ready.bindings[0].names
    ranges = [prepared._ready._own_parameters, *(BufferRange(x.buffer, 2) for _ in names[1:])]
    with pytest.raises(wgpu.GPUValidationError, match="offset 2"):
        commands.groups([(0, ranges)])
    encoder = device.create_command_encoder()
    encoder.finish()
    with pytest.raises(wgpu.GPUValidationError, match=r"finished|ended|locked"):
        commands.encode(encoder, prepared._ready.bounds[0].groups)


# -- and the one takes less -------------------------------------------------------------------------------


class Spied:
    """The library, of which calls are counted."""

    def __init__(self, lib: object, calls: list[str]) -> None:
        self._lib, self._calls = lib, calls

    def __getattr__(self, name: str) -> object:
        self._calls.append(name)
        return getattr(self._lib, name)


@pytest.mark.parametrize("way", ["native"], indirect=True)
def test_a_warm_run_makes_only_what_it_must(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sample("u4", 20000)
    x = webgpu.asarray(host, device)
    call = gpusort.plan(sort, x, algorithm=RADIX)
    for _ in range(2):
        call(x)
        sort(x, algorithm=RADIX)
    prepared = prepared_of(call)
    calls: list[str] = []
    library = prepared._ready.commands._native
    monkeypatch.setattr(library, "lib", Spied(library.lib, calls))
    with monkeypatch.context() as patch:
        for name in ("create_bind_group", "create_command_encoder", "create_buffer"):
            patch.setattr(class_of(device), name, None)
        patch.setattr(class_of(device.queue), "write_buffer", None)
        call(x)
        assert calls.count("wgpuDeviceCreateBindGroup") <= 2, "to see that no array was destroyed"
        assert calls.index("wgpuQueueSubmit") < calls.index("wgpuDeviceCreateCommandEncoder"), "it was recorded ahead"
    made: list[int] = []
    with monkeypatch.context() as patch:
        create = class_of(device).create_buffer

        def noted(owner: Any, *, size: int, usage: int) -> Any:
            made.append(size)
            return create(owner, size=size, usage=usage)

        patch.setattr(class_of(device), "create_buffer", noted)
        patch.setattr(class_of(device.queue), "write_buffer", None)
        held = [sort(x, algorithm=RADIX) for _ in range(6)]
        assert set(made) == {host.nbytes}, "results alone are new"
        del held
        made.clear()
        found = sort(x, algorithm=RADIX)
        assert not made, "and lie where earlier ones lay, which nobody holds any more"
        for _ in range(12):  # which take turns
            found = sort(x, algorithm=RADIX)
        calls.clear()
        found = sort(x, algorithm=RADIX)
    assert calls.count("wgpuDeviceCreateBindGroup") <= 2, "to see that no array was destroyed"
    assert calls.index("wgpuQueueSubmit") < calls.index("wgpuDeviceCreateCommandEncoder"), "it was recorded ahead"
    np.testing.assert_array_equal(found.to_numpy(), np.sort(host))


def test_bind_groups_go_with_the_first_of_their_arrays(device: Any) -> None:
    host = sample("u4", 3000)
    x = webgpu.asarray(host, device)
    assert x.buffer.size == host.nbytes, "and who has seen a buffer may keep it: it is not recycled"
    call = gpusort.plan(sort, x, algorithm=RADIX)
    for _ in range(2):
        call(x)
    (bound,) = prepared_of(call)._ready.bounds
    assert len(bound.groups)
    assert bound.next is not None
    del x
    assert not len(bound.groups)
    assert bound.next is None
    np.testing.assert_array_equal(call(webgpu.asarray(host, device)).to_numpy(), np.sort(host))


def test_a_backend_that_is_not_as_it_was_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wgpu.backends.wgpu_native")
    look = native._native.__wrapped__  # pyright: ignore[reportPrivateUsage]
    backend = "wgpu.backends.wgpu_native._api"
    assert look(backend) is not None
    assert look("wgpu.backends.other") is None
    module = sys.modules[backend]
    for name in ("lib", "ffi", "error_handler"):
        with monkeypatch.context() as patch:
            patch.delattr(module, name)
            assert look(backend) is None
    for name in native._SIGNATURES:  # pyright: ignore[reportPrivateUsage]
        with monkeypatch.context() as patch:
            patch.setitem(native._SIGNATURES, name, "void(*)(int)")  # pyright: ignore[reportPrivateUsage]
            assert look(backend) is None
    with monkeypatch.context() as patch:
        patch.setitem(native._SIGNATURES, "wgpuNoSuchFunction", "void(*)(int)")  # pyright: ignore[reportPrivateUsage]
        assert look(backend) is None


@pytest.mark.parametrize("way", ["native"], indirect=True)
def test_struck_anywhere_the_next_call_is_right(device: Any) -> None:
    host = sample("u4", 3000)
    x = webgpu.asarray(host, device)
    planned = gpusort.plan(sort, x)
    for function in (planned, sort):
        for _ in range(3):
            function(x)
        count = events(partial(function, x), "targets/wgsl")
        assert count > 50
        for place in places(count, 12):
            strike(partial(function, x), place, "targets/wgsl")
            for _ in range(3):
                np.testing.assert_array_equal(function(x).to_numpy(), np.sort(host), f"struck at {place}")
    np.testing.assert_array_equal(x.to_numpy(), host)
