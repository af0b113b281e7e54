"""As much of cupy as gpusort uses, on the host's memory: for machines that have no card.

A kernel's machine code is its source, run by the stand-in. Streams and events only note what they are asked. Arrays
are as strict as cupy's: NumPy is not handed one unasked, none has a struct's dtype, and work on one needs its device to
be the current one.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
import weakref
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, Self, cast

import numpy as np
import pytest

from gpusort.kernel import ir
from gpusort.targets.cuda import compile as cuda_compile
from gpusort.targets.cuda import target as cuda
from tests import cuda_stand_in
from tests.cuda_launches import arguments_at, run_kernel

log: list[str] = []  # what happened, in order
current_device = [0]


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"error {status}")
        self.status = status


class CUDADriverError(CUDARuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


# -- memory -----------------------------------------------------------------------------------------------


class Memory:
    """Memory of a device's own."""

    def __init__(self, size: int) -> None:
        self._storage = ctypes.create_string_buffer(b"\xcd" * (max(size, 1) + 256))
        self.ptr = -(-ctypes.addressof(self._storage) // 256) * 256
        self.size, self.device_id = size, current_device[0]
        if pool.limit and pool.used_bytes() + size > pool.limit:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes.")
        held.add(self)
        placed.append((range(self.ptr, self.ptr + max(size, 1)), self.device_id))
        del placed[:-10_000]


class MemoryPool:
    """cupy's own, of which a test says how much may be had at once."""

    limit = 0
    refuses_to_pin = False  # any of the host's

    def get_limit(self) -> int:
        return self.limit

    def free_bytes(self) -> int:
        return 0

    def used_bytes(self) -> int:
        return sum(memory.size for memory in held)


held: weakref.WeakSet[Memory] = weakref.WeakSet()


def _devices_of(address: int) -> set[int]:
    """The device whose memory this is, if somebody holds it; or of what ends there, as an array without elements."""
    return {memory.device_id for memory in list(held) if 0 <= address - memory.ptr <= memory.size}


pool = MemoryPool()


class UnownedMemory:
    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        assert device_id >= 0 or ptr, "a null pointer needs its device told"
        self.ptr, self.size, self._owner = ptr, size, owner
        self.device_id = device_id if device_id >= 0 else _pointer_attributes(ptr).device


class MemoryPointer:
    def __init__(self, mem: Memory | UnownedMemory, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


placed: list[tuple[range, int]] = []  # addresses that were given out, and on which device: the last of equal ones holds


class PinnedMemory(np.ndarray[Any, Any]):
    """Memory of the host that a card reaches."""

    def __new__(cls, size: int) -> PinnedMemory:
        made = np.zeros(size, np.uint8).view(cls)
        pinned.append(range(made.ptr, made.ptr + size))
        return made

    @property
    def ptr(self) -> int:
        return self.ctypes.data


pinned: list[range] = []  # the addresses of such memory


# -- streams ----------------------------------------------------------------------------------------------


class Graph:
    def __init__(self, launches: list[Callable[[], None]]) -> None:
        self._launches = launches

    def launch(self, stream: Stream) -> None:
        log.append(f"graph on {stream.ptr}")
        for launch in self._launches:
            launch()


class Event:
    ptr = 0
    done = True

    def __init__(self, stream: int = 0, *, disable_timing: bool = False) -> None:
        self.stream = stream

    def synchronize(self) -> None:
        pass  # copies are done when they are asked for


class Stream:
    def __init__(self, ptr: int = 0, non_blocking: bool = False) -> None:
        self.ptr = ptr

    @classmethod
    def from_external(cls, other: Any) -> Stream:
        version, pointer = other.__cuda_stream__()
        assert version == 0
        return cls(pointer)

    def __enter__(self) -> Self:
        entered.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        entered.pop()

    def begin_capture(self) -> None:
        recording.append([])

    def end_capture(self) -> Graph:
        return Graph(recording.pop())

    def is_capturing(self) -> bool:
        return bool(recording)

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.stream = self.ptr
        return event

    def wait_event(self, event: Event) -> None:
        log.append(f"stream {self.ptr} waits for stream {event.stream}")

    def synchronize(self) -> None:
        log.append(f"synchronize {self.ptr}")


current_stream = Stream()
entered: list[Stream] = []  # streams that `with` has made current, the last of them now
recording: list[list[Callable[[], None]]] = []  # of the graph that is being recorded, if one is


def _current() -> Stream:
    return entered[-1] if entered else current_stream


class Device:
    def __init__(self, id: int | None = None) -> None:
        self.id = current_device[0] if id is None else id
        self.compute_capability = "90"
        self.mem_info = (1 << 30, 1 << 37)
        self.attributes = {
            "MaxThreadsPerBlock": 1024,
            "MaxSharedMemoryPerBlockOptin": 227 << 10,
            "MaxGridDimX": (1 << 31) - 1,
        }

    def __enter__(self) -> Self:
        self._before, current_device[0] = current_device[0], self.id
        return self

    def __exit__(self, *error: object) -> None:
        current_device[0] = self._before


# -- arrays -----------------------------------------------------------------------------------------------


class ndarray:
    """An array "on the card": NumPy's of the same memory does what is asked."""

    __module__ = "cupy"
    __array_priority__ = 100

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: MemoryPointer | None = None, strides: Any = None, order: str = "C"
    ) -> None:
        dtype = np.dtype(dtype)
        if dtype.kind not in "biufc" or not dtype.isnative:
            raise ValueError(f"Unsupported dtype {dtype}")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.data = alloc_quietly(math.prod(shape) * dtype.itemsize) if memptr is None else memptr
        interface: dict[str, Any] = {"data": (self.data.ptr, False), "typestr": dtype.str, "shape": shape, "version": 3}
        if order == "F" and strides is None:
            strides = np.empty(shape, dtype, order="F").strides
        interface["strides"] = strides
        self.host = np.asarray(SimpleNamespace(__array_interface__=interface, keeps=self.data))

    def seen(self, view: np.ndarray[Any, Any]) -> ndarray:
        """Part of this array's memory."""
        offset = view.ctypes.data - self.data.mem.ptr if view.size else 0
        return ndarray(view.shape, view.dtype, MemoryPointer(self.data.mem, offset), view.strides)

    def used(self) -> np.ndarray[Any, Any]:
        """As work on the device sees it."""
        assert self.data.device_id == current_device[0], "work on an array needs its device current"
        return self.host

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    strides = property(lambda self: self.host.strides)
    ndim = property(lambda self: self.host.ndim)
    size = property(lambda self: self.host.size)
    itemsize = property(lambda self: self.host.itemsize)
    nbytes = property(lambda self: self.host.nbytes)
    device = property(lambda self: Device(self.data.device_id))
    T = property(lambda self: self.transpose())

    @property
    def flags(self) -> SimpleNamespace:
        flags = self.host.flags
        return SimpleNamespace(c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.data.ptr, False), "typestr": self.dtype.str, "shape": self.shape, "version": 3,
            "strides": None if self.flags.c_contiguous else self.strides, "stream": _current().ptr or 1,
        }  # fmt: skip

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def get(self, stream: object = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        log.append(f"copy down {self.nbytes}")
        return self.host.copy()

    def set(self, array: np.ndarray[Any, Any]) -> None:
        self.used()[...] = array

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        made = self.host.reshape(*shape)
        return self.seen(made) if np.shares_memory(made, self.host) or not made.size else asarray(made)

    def view(self, dtype: Any) -> ndarray:
        return self.seen(self.host.view(dtype))

    def transpose(self, *axes: int) -> ndarray:
        return self.seen(self.host.transpose(*axes))

    def astype(self, dtype: Any, order: str = "K", *, copy: bool = True) -> ndarray:
        return asarray(self.used().astype(dtype))

    def copy(self, order: str = "C") -> ndarray:
        return asarray(self.used())

    def ravel(self, order: str = "C") -> ndarray:
        return self.reshape(-1)

    def fill(self, value: Any) -> None:
        self.used().fill(value)

    def __len__(self) -> int:
        return len(self.host)

    def __getitem__(self, index: Any) -> ndarray:
        plain = _plain(index)
        found: np.ndarray[Any, Any] = np.asarray(self.host[plain])
        if np.may_share_memory(found, self.host) or not found.size:
            return self.seen(found)
        self.used()
        return asarray(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.used()[_plain(index)] = _plain(value)

    def __eq__(self, other: object) -> Any:
        return asarray(self.used() == _plain(other))

    def __and__(self, other: Any) -> ndarray:
        return asarray(self.used() & _plain(other))

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]  # as cupy's

    def __gt__(self, other: Any) -> ndarray:
        return asarray(self.used() > _plain(other))

    def __bool__(self) -> bool:
        return bool(self.host)


def _plain(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_plain, cast(Any, value)))
    return value.used() if isinstance(value, ndarray) else value


def asarray(array: Any, dtype: Any = None, **_: object) -> ndarray:
    """A copy of a NumPy array on the current device; another array on a card as it lies."""
    if isinstance(array, ndarray):
        return array if dtype is None else array.astype(dtype)
    host = np.asarray(array, dtype)
    made = ndarray(host.shape, host.dtype)
    made.host[...] = host
    return made


def on_card(host: np.ndarray[Any, Any], device: int = 0) -> Any:
    """A copy of a NumPy array on a device."""
    with Device(device):
        return asarray(host)


def asnumpy(array: Any, **_: object) -> Any:
    return array.get() if isinstance(array, ndarray) else np.asarray(array)


def empty_like(prototype: ndarray, dtype: Any = None, **_: object) -> ndarray:
    made = np.empty_like(prototype.host, dtype)
    return ndarray(made.shape, made.dtype, None, made.strides)


def copyto(target: ndarray, source: Any, casting: Any = "same_kind", where: Any = None) -> None:
    with np.errstate(over="ignore"):
        np.copyto(target.used(), _plain(source), casting=casting)


# -- kernels ----------------------------------------------------------------------------------------------


class Function:
    """Given a handle when it is made. What a launch does is made of its arguments, which the driver reads at once."""

    def __init__(self, source: str = "") -> None:
        self.ptr = 0x77 + len(functions)
        self._source = source
        functions[self.ptr] = self

    def bound(self, groups: int, group_size: int, pointers: int, shared_bytes: int) -> Callable[[], None]:
        args = arguments_at(self._source, pointers)

        def launch() -> None:
            log.append("launch")
            for one in args:
                if isinstance(one, cuda_stand_in.Memory):
                    assert current_device[0] in _devices_of(one.address), "memory of this device, not let go of"
            run_kernel(self._source, groups, group_size, args, shared_bytes)

        return launch


functions: dict[int, Function] = {}


def _launch_kernel(
    function: int, groups: int, y: int, z: int, group_size: int, group_y: int, group_z: int, shared_bytes: int,
    stream: int, pointers: int, extra: int,
) -> None:  # fmt: skip
    assert (y, z, group_y, group_z, extra) == (1, 1, 1, 1, 0)
    if not _current_context():
        raise CUDADriverError(201)
    launch = functions[function].bound(groups, group_size, pointers, shared_bytes)
    if recording:
        recording[-1].append(launch)
    else:
        if stream:
            log.append(f"stream {stream}")
        launch()


class Module:
    def load(self, code: bytes) -> None:
        self._source = code.decode()

    def get_function(self, name: str) -> Function:
        return Function(self._source)


def _zeros(shape: Any, dtype: Any = float) -> ndarray:
    return asarray(np.zeros(shape, dtype))


def _arange(*given: Any, **more: Any) -> ndarray:
    return asarray(np.arange(*given, **more))


def _contiguous(a: ndarray) -> ndarray:
    return a if a.flags.c_contiguous else a.copy()


def _moved(a: ndarray, source: Any, goal: Any) -> ndarray:
    return a.seen(np.moveaxis(a.host, source, goal))


def _nonzero(a: ndarray) -> ndarray:
    return asarray(np.flatnonzero(a.used()))


def _taken(a: ndarray, places: ndarray, axis: int) -> ndarray:
    return asarray(np.take_along_axis(a.used(), places.used(), axis))


def _shared(a: ndarray, b: ndarray, max_work: int | None = None) -> bool:
    return np.shares_memory(a.host, b.host)


def _current_of(device: int = -1) -> Stream:
    return _current()


def _copy(target: int, source: int, size: int, kind: int, stream: int) -> None:
    log.append(f"copy {('', 'up', 'down')[kind]} {size}")
    ctypes.memmove(target, source, size)


class Driver:
    """What compiled loops call in place of the driver: functions that C can call."""

    def __init__(self) -> None:
        words = [ctypes.c_uint64] * 4
        asked: list[tuple[Any, int]] = [
            (self.up, 4), (self.down, 4), (self.record, 2), (self.wait, 1), (self.enter, 1),
            (self.copy, 3),
        ]  # fmt: skip
        self._held: list[Any] = [
            ctypes.CFUNCTYPE(ctypes.c_int32, *words[:count])(function) for function, count in asked
        ]

    @property
    def functions(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array([ctypes.cast(function, ctypes.c_void_p).value for function in self._held], np.int64)

    def up(self, card: int, host: int, size: int, stream: int) -> int:
        _copy(card, host, size, 1, stream)
        return 0

    def down(self, host: int, card: int, size: int, stream: int) -> int:
        _copy(host, card, size, 2, stream)
        return 0

    def record(self, event: int, stream: int) -> int:
        return 0

    def wait(self, event: int) -> int:
        return 0

    def enter(self, context: int) -> int:
        return 0 if context == CONTEXT else 201

    def copy(self, target: int, source: int, size: int) -> int:
        """C's memmove."""
        ctypes.memmove(target, source, size)
        return 0


def _alloc(size: int) -> MemoryPointer:
    log.append(f"alloc {size}")
    return alloc_quietly(size)


def alloc_quietly(size: int) -> MemoryPointer:
    return MemoryPointer(Memory(size), 0)


def _is_capturing(stream: int) -> bool:
    return bool(recording)


def _properties(device: int) -> dict[str, bytes]:
    return {"name": b"Card of the tests"}


def _mem_get_info() -> tuple[int, int]:
    return Device().mem_info


def _pool() -> MemoryPool:
    return pool


def _pointer_attributes(pointer: int) -> SimpleNamespace:
    device = next((device for place, device in reversed(placed) if pointer in place), 0)
    return SimpleNamespace(device=device, type=int(any(pointer in place for place in pinned)))


def _register(pointer: int, nbytes: int, flags: int) -> None:
    if pool.refuses_to_pin:
        raise CUDARuntimeError(2)
    log.append(f"register {nbytes}")
    pinned.append(range(pointer, pointer + nbytes))


def _unregister(pointer: int) -> None:
    place = next((place for place in pinned if place.start == pointer), None)
    if place is None:
        raise CUDARuntimeError(713)
    log.append(f"unregister {len(place)}")
    pinned.remove(place)


def _synchronize() -> None:
    log.append("synchronize the device")


_context = threading.local()  # of the driver's: a new thread has none before a call of the runtime


CONTEXT = 0xC0DE  # the driver's name for it


def _current_context() -> int:
    has_one = threading.current_thread() is threading.main_thread() or hasattr(_context, "is_set")
    return CONTEXT if has_one else 0


def _set_device(device: int) -> None:
    assert device == current_device[0]
    _context.is_set = True


def _set_attribute(function: int, attribute: int, value: int) -> None:
    log.append(f"attribute {attribute} {value}")


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake where cupy is looked for, and of each kernel its source in place of machine code."""

    def source_as_code(program: ir.Program, capability: tuple[int, int]) -> bytes:
        return cuda_compile.text_of(program).source.encode()

    monkeypatch.setitem(sys.modules, "cupy", module())
    monkeypatch.setattr(cuda, "compile_machine_code", source_as_code)


def module() -> ModuleType:
    """The fake, to be put into sys.modules."""
    cupy = ModuleType("cupy")
    runtime = SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: 2,
        getDevice=lambda: current_device[0],
        setDevice=_set_device,
        getDeviceProperties=_properties,
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13020,
        pointerGetAttributes=_pointer_attributes,
        memGetInfo=_mem_get_info,
        hostRegister=_register,
        hostUnregister=_unregister,
        deviceSynchronize=_synchronize,
        memcpyAsync=_copy,
        memcpyHostToDevice=1,
        memcpyDeviceToHost=2,
        memoryTypeUnregistered=0,
        streamIsCapturing=_is_capturing,
    )
    driver = SimpleNamespace(
        CUDADriverError=CUDADriverError,
        funcSetAttribute=_set_attribute,
        launchKernel=_launch_kernel,
        ctxGetCurrent=_current_context,
    )
    cuda = SimpleNamespace(
        runtime=runtime, driver=driver, alloc=_alloc, alloc_pinned_memory=PinnedMemory, Device=Device,
        ExternalStream=Stream, Stream=Stream, get_current_stream=_current_of,
        Event=Event, memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        UnownedMemory=UnownedMemory, MemoryPointer=MemoryPointer, function=SimpleNamespace(Module=Module),
    )  # fmt: skip
    vars(cupy).update(
        cuda=cuda, ndarray=ndarray, __version__="14.0", asarray=asarray, array=asarray, asnumpy=asnumpy,
        empty=ndarray, empty_like=empty_like, copyto=copyto, from_dlpack=from_dlpack,
        zeros=_zeros, arange=_arange, ascontiguousarray=_contiguous, moveaxis=_moved, flatnonzero=_nonzero,
        take_along_axis=_taken, shares_memory=_shared, get_default_memory_pool=_pool,
    )  # fmt: skip
    return cupy


def from_dlpack(array: Any) -> ndarray:
    """Of the fakes beside this one, which have a cupy array inside."""
    log.append(f"dlpack on {_current().ptr}")
    inside: ndarray = array.__dlpack__(stream=_current().ptr or 1)
    return inside


def forget() -> None:
    """For a test to begin with."""
    log.clear()
    entered.clear()
    placed.clear()
    assert "cupy" not in sys.modules or current_device == [0]
