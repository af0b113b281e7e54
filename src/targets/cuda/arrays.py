"""Binds arrays to a schedule's buffers: device arrays in place (CUDA array interface), host arrays by copying."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np

from ...kernel.launch import Buffer, Role
from ...types.errors import InvalidArgumentError
from ...types.libraries import cupy
from ...types.specs import packed_strides
from ..base import HostArray
from ..binding import ArrayProperties, Work, check_arrays, expected, host_properties, named_arrays
from .transfers import Transfers, bytes_of, is_copied_directly

if TYPE_CHECKING:
    from cupy.cuda import MemoryPointer, Stream

_DEFAULT_STREAM = 1  # the legacy default stream in the CUDA array interface; cupy's is 0


@attrs.frozen
class BoundArray:
    """An array for a buffer: a host array, or an address on a card."""

    buffer: Buffer[object]
    host: HostArray | None
    pointer: int
    device: int | None
    stream: int | None  # to synchronise with, as the array interface asks; None if not needed


def checked_arrays(work: Work, arrays: Mapping[str, object]) -> dict[str, BoundArray]:
    """Checks the arrays and returns them by buffer name; without scratch that the caller leaves to the target."""
    found = [(buffer, *_given(buffer, array)) for buffer, array in named_arrays(work.buffers, arrays)]
    check_arrays([(buffer, seen) for buffer, _, seen in found])
    for buffer, array, _ in found:
        if array.host is None and array.pointer % buffer.dtype.alignment:
            raise InvalidArgumentError(f"{expected(buffer)}, found one that is not aligned")
    return {buffer.name: array for buffer, array, _ in found}


def _given(buffer: Buffer[object], array: object) -> tuple[BoundArray, ArrayProperties]:
    """An array, and its properties for check_arrays."""
    shape: tuple[int, ...]
    device: int | None
    stream: int | None
    if isinstance(array, cupy.ndarray):
        pointer, dtype, shape, stream = array.data.ptr, array.dtype, array.shape, None
        device, packed, read_only = array.device.id, bool(array.flags.c_contiguous), False
    elif interface := _told(array):
        shape, dtype, stream = interface["shape"], np.dtype(interface["typestr"]), interface.get("stream")
        (pointer, read_only), strides = interface["data"], interface.get("strides")
        packed = strides is None or strides == packed_strides(shape, dtype.itemsize)
        device = cupy.cuda.runtime.pointerGetAttributes(pointer).device if math.prod(shape) else None
    else:
        seen = host_properties(buffer, array, "of NumPy, cupy or with __cuda_array_interface__")
        return BoundArray(buffer, cast(HostArray, array), 0, None, None), seen
    if buffer.dtype.names is not None and dtype == np.uint8 and shape == (buffer.nbytes,):
        dtype, shape = buffer.dtype, (buffer.count,)  # bytes, for structs, of which cupy has no dtype
    seen = ArrayProperties(dtype, shape, packed, not read_only, pointer)
    return BoundArray(buffer, None, pointer, device, stream), seen


def _told(array: object) -> Mapping[str, Any] | None:
    """What an array on a card tells of itself, whatever library it is from."""
    return None if isinstance(array, np.ndarray) else getattr(array, "__cuda_array_interface__", None)


def common_device(arrays: Sequence[BoundArray]) -> int:
    """The card that holds all device arrays; the current one if there are none. Raises InvalidArgumentError if more."""
    devices = {array.device: array.buffer.name for array in arrays if array.device is not None}
    if len(devices) > 1:
        places = ", ".join(f"{name!r} on device {device}" for device, name in sorted(devices.items()))
        raise InvalidArgumentError(f"arrays: expected all on one device, found {places}")
    return next(iter(devices), cupy.cuda.runtime.getDevice())


class Binding:
    """Device addresses for a schedule's buffers, in their order. Device arrays are used in place, their owners' streams
    synchronised by events. Host arrays are uploaded, and results downloaded by finish. Scratch comes from cupy's pool,
    which is stream-ordered: it may be freed while kernels run."""

    def __init__(
        self, buffers: Sequence[Buffer[object]], arrays: Mapping[str, BoundArray], stream: Stream, transfers: Transfers
    ) -> None:
        self.stream = stream
        self._transfers = transfers
        self._held: list[MemoryPointer] = []
        self._on_host: list[tuple[BoundArray, int]] = []
        owners = {_without_alias(array.stream) for array in arrays.values() if array.stream is not None}
        self._foreign = [cupy.cuda.ExternalStream(owner) for owner in owners - {_without_alias(stream.ptr)}]
        for owner in self._foreign:
            stream.wait_event(owner.record())
        self._later = [
            bytes_of(array.host)
            for array in arrays.values()
            if array.buffer.role is Role.OUTPUT and array.host is not None and not is_copied_directly(array.host)
        ]
        self.addresses = tuple([self._address(buffer, arrays.get(buffer.name)) for buffer in buffers])

    def finish(self) -> None:
        """After the launches: queues downloads to the host, and makes the owners' streams wait for ours."""
        try:
            self._download((Role.OUTPUT, Role.INOUT))
        except BaseException:  # an array half of which is sorted has lost elements
            self._download((Role.INOUT,))
            raise
        if self._foreign:
            done = self.stream.record()
            for stream in self._foreign:
                stream.wait_event(done)

    def _download(self, roles: Sequence[Role]) -> None:
        for array, pointer in self._on_host:
            if array.buffer.role in roles and array.host is not None:
                self._transfers.download([(pointer, array.host)], self.stream)

    def _address(self, buffer: Buffer[object], array: BoundArray | None) -> int:
        if array is not None and array.host is None:
            return array.pointer
        memory = cupy.cuda.alloc(buffer.nbytes)
        self._held.append(memory)
        if array is not None and array.host is not None:
            self._on_host.append((array, memory.ptr))
            if buffer.role in (Role.INPUT, Role.INOUT):
                self._transfers.upload([(memory.ptr, array.host)], self.stream, self._later)
                self._later = []
        return memory.ptr


def _without_alias(stream: int) -> int:
    return stream or _DEFAULT_STREAM
