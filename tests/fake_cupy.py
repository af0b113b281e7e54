"""As much of cupy as the CUDA target uses, on the host's memory: for machines that have no card.

A kernel's machine code is its source, run by the stand-in. Streams and events only note what they are asked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import numpy as np

from tests.cuda_stand_in import run_kernel

log: list[str] = []  # what happened, in order
current_device = [0]


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"error {status}")
        self.status = status


class CUDADriverError(CUDARuntimeError):
    pass


class MemoryPointer:
    def __init__(self, size: int) -> None:
        self._storage = ctypes.create_string_buffer(b"\xcd" * max(size, 1))
        self.ptr = ctypes.addressof(self._storage)


class Graph:
    def __init__(self, launches: list[Callable[[], None]]) -> None:
        self._launches = launches

    def launch(self, stream: Stream) -> None:
        log.append(f"graph on {stream.ptr}")
        for launch in self._launches:
            launch()


class Event:
    def __init__(self, stream: int) -> None:
        self.stream = stream

    def synchronize(self) -> None:
        pass  # copies are done when they are asked for


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


class Stream:
    def __init__(self, ptr: int = 0, non_blocking: bool = False) -> None:
        self.ptr = ptr

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def begin_capture(self) -> None:
        recording.append([])

    def end_capture(self) -> Graph:
        return Graph(recording.pop())

    def is_capturing(self) -> bool:
        return bool(recording)

    def record(self) -> Event:
        return Event(self.ptr)

    def wait_event(self, event: Event) -> None:
        log.append(f"stream {self.ptr} waits for stream {event.stream}")

    def synchronize(self) -> None:
        log.append(f"synchronize {self.ptr}")


current_stream = Stream()
recording: list[list[Callable[[], None]]] = []  # of the graph that is being recorded, if one is


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


class ndarray:
    """An array "on the card"."""

    def __init__(self, host: np.ndarray[Any, np.dtype[Any]], device: int = 0) -> None:
        self.host = host.copy()
        self.data = SimpleNamespace(ptr=self.host.ctypes.data)
        self.device = Device(device)
        self.nbytes, self.shape, self.dtype = host.nbytes, host.shape, host.dtype
        self.flags = SimpleNamespace(c_contiguous=True)


class Function:
    def __init__(self, source: str) -> None:
        self.ptr = 0x77
        self._source = source

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int = 0) -> None:
        def launch() -> None:
            log.append("launch")
            run_kernel(self._source, grid[0], block[0], args, shared_mem)

        if recording:
            recording[-1].append(launch)
        else:
            launch()


class Module:
    def load(self, code: bytes) -> None:
        self._source = code.decode()

    def get_function(self, name: str) -> Function:
        return Function(self._source)


def _copy(target: int, source: int, size: int, kind: int, stream: int) -> None:
    log.append(f"copy {('', 'up', 'down')[kind]} {size}")
    ctypes.memmove(target, source, size)


def _alloc(size: int) -> MemoryPointer:
    log.append(f"alloc {size}")
    return MemoryPointer(size)


def _properties(device: int) -> dict[str, bytes]:
    return {"name": b"Card of the tests"}


def _pointer_attributes(pointer: int) -> SimpleNamespace:
    return SimpleNamespace(device=0, type=int(any(pointer in place for place in pinned)))


def _set_attribute(function: int, attribute: int, value: int) -> None:
    log.append(f"attribute {attribute} {value}")


def module() -> ModuleType:
    """The fake, to be put into sys.modules."""
    cupy = ModuleType("cupy")
    runtime = SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: 2,
        getDevice=lambda: current_device[0],
        getDeviceProperties=_properties,
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13020,
        pointerGetAttributes=_pointer_attributes,
        memcpyAsync=_copy,
        memcpyHostToDevice=1,
        memcpyDeviceToHost=2,
        memoryTypeUnregistered=0,
    )
    driver = SimpleNamespace(
        CUDADriverError=CUDADriverError,
        funcSetAttribute=_set_attribute,
    )
    cuda = SimpleNamespace(
        runtime=runtime, driver=driver, alloc=_alloc, alloc_pinned_memory=PinnedMemory, Device=Device,
        ExternalStream=Stream, Stream=Stream, get_current_stream=lambda: current_stream,
        function=SimpleNamespace(Module=Module),
    )  # fmt: skip
    vars(cupy).update(cuda=cuda, ndarray=ndarray, __version__="14.0")
    return cupy
