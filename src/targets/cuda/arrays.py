"""The memory behind a schedule's buffers on a card: arrays that lie there, and those that have to travel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NotRequired, Protocol, TypeAlias, TypedDict, cast, runtime_checkable

import attrs
import numpy as np

from ...kernel.launch import Buffer, Role
from ...types.errors import InvalidArgumentError
from .transfers import Transfers

if TYPE_CHECKING:
    from cupy.cuda import MemoryPointer, Stream

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

_DEFAULT_STREAM = 1  # how the interface writes CUDA's default stream; cupy writes 0


class Interface(TypedDict):
    """What libraries say of their arrays on a card to each other (the CUDA array interface)."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]  # the address, and whether it may only be read
    strides: NotRequired[tuple[int, ...] | None]
    stream: NotRequired[int | None]


@runtime_checkable
class OnDevice(Protocol):
    """Any library's array on a card."""

    @property
    def __cuda_array_interface__(self) -> Interface: ...


@attrs.frozen
class Given:
    """One array as it was handed in: in the host's memory, or at an address on a card."""

    buffer: Buffer[object]
    host: HostArray | None
    pointer: int
    device: int | None
    stream: int | None  # the one its owner works on, if it is to be kept in order with ours


def given(buffer: Buffer[object], array: object) -> Given:
    """What was handed in for a buffer, or an error that says what it should be."""
    import cupy

    if isinstance(array, cupy.ndarray):
        found = Given(buffer, None, array.data.ptr, array.device.id, None)
        nbytes, contiguous, writable = array.nbytes, array.flags.c_contiguous, True
    elif isinstance(array, np.ndarray):
        host = cast(HostArray, array)
        found = Given(buffer, host, 0, None, None)
        nbytes, contiguous, writable = host.nbytes, host.flags.c_contiguous, host.flags.writeable
    elif isinstance(array, OnDevice):
        interface = array.__cuda_array_interface__
        shape, dtype = interface["shape"], np.dtype(interface["typestr"])
        pointer, read_only = interface["data"]
        nbytes = math.prod(shape) * dtype.itemsize
        device = cupy.cuda.runtime.pointerGetAttributes(pointer).device if nbytes else None
        found = Given(buffer, None, pointer, device, interface.get("stream"))
        strides = interface.get("strides")
        contiguous, writable = strides is None or strides == _packed(shape, dtype.itemsize), not read_only
    else:
        wanted = _wanted(buffer)
        kind = "nothing" if array is None else type(array).__name__
        raise InvalidArgumentError(f"{wanted}, of NumPy, cupy or with __cuda_array_interface__, found {kind}")
    if nbytes != buffer.nbytes or not contiguous:
        wanted = _wanted(buffer)
        raise InvalidArgumentError(f"{wanted}, found {nbytes} bytes{'' if contiguous else ', not contiguous'}")
    if buffer.role is not Role.INPUT and not writable:
        raise InvalidArgumentError(f"{_wanted(buffer)} that can be written, found a read-only one")
    return found


def _wanted(buffer: Buffer[object]) -> str:
    return f"arrays[{buffer.name!r}]: expected a contiguous array of {buffer.count} x {buffer.dtype}"


def _packed(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of a contiguous array."""
    return tuple(itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape)))


def common_device(arrays: Sequence[Given]) -> int:
    """The card all arrays lie on; the current one where they lie on none."""
    import cupy

    devices = {array.device: array.buffer.name for array in arrays if array.device is not None}
    if len(devices) > 1:
        places = ", ".join(f"{name!r} on device {device}" for device, name in sorted(devices.items()))
        raise InvalidArgumentError(f"arrays: expected all on one device, found {places}")
    return next(iter(devices), cupy.cuda.runtime.getDevice())


class Binding:
    """Addresses for all buffers of a schedule, in their order, on the current device and stream.

    Arrays on the card are used where they are. NumPy's are copied there and, at the end, back; scratch
    comes from cupy's pool, which reuses it in the order of the stream, so it may be let go while kernels
    still run.
    """

    def __init__(
        self, buffers: Sequence[Buffer[object]], arrays: Mapping[str, Given], stream: Stream, transfers: Transfers
    ) -> None:
        self.stream = stream
        self._transfers = transfers
        self._held: list[MemoryPointer] = []
        self._on_host: list[tuple[Given, int]] = []
        self._foreign = [
            _external(s) for s in {_normal(a.stream) for a in arrays.values()} - {None, _normal(stream.ptr)}
        ]
        self._wait_for_owners()
        self.addresses = tuple([self._address(buffer, arrays.get(buffer.name)) for buffer in buffers])

    def hand_back(self) -> None:
        """Once all is launched: results on their way to the host, and the owners' streams behind ours."""
        for array, pointer in self._on_host:
            if array.buffer.role in (Role.OUTPUT, Role.INOUT) and array.host is not None:
                self._transfers.download(pointer, array.host, self.stream)
        if self._foreign:
            done = self.stream.record()
            for stream in self._foreign:
                stream.wait_event(done)

    def _wait_for_owners(self) -> None:
        for stream in self._foreign:
            self.stream.wait_event(stream.record())

    def _address(self, buffer: Buffer[object], array: Given | None) -> int:
        import cupy

        if array is not None and array.host is None:
            return array.pointer
        memory = cupy.cuda.alloc(buffer.nbytes)
        self._held.append(memory)
        if array is not None and array.host is not None:
            self._on_host.append((array, memory.ptr))
            if buffer.role in (Role.INPUT, Role.INOUT):
                self._transfers.upload(memory.ptr, array.host, self.stream)
        return memory.ptr


def _normal(stream: int | None) -> int | None:
    return _DEFAULT_STREAM if stream == 0 else stream


def _external(pointer: int | None) -> Stream:
    import cupy

    assert pointer is not None
    return cupy.cuda.ExternalStream(pointer)
