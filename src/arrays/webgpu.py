"""Arrays in buffers of WebGPU, on a device that the caller has opened with wgpu: worked on where they lie.

Nothing is waited for or read back; what follows on the device's queue finds the results there. Buffers of the last few
results are recycled, as a driver takes longer to make one, and to let one go, than many a kernel runs; but none that
was shown to a caller, or that commands in a caller's encoder use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from ..algos.copy import Strided, copy_strided
from ..forks import require_running
from ..targets.base import prepared_by
from ..targets.recording import current_encoder, recording_into
from ..targets.webgpu import read_from_device, require_whole, target_on_device, wgpu_errors
from ..types.checks import index_of
from ..types.dtypes import native
from ..types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from ..types.scalars import U32
from ..types.specs import DType, HostArray, Memory, Shape, Spec, bounds, lies_packed, packed_strides, padded
from .kinds import Device, Located
from .recycled import most_bytes
from .shelf import Shelf

if TYPE_CHECKING:
    import wgpu

_WORD = 4
_BEYOND_BUFFERS = 40  # bits of an address that say where in a buffer
_COPY_SRC, _COPY_DST, STORAGE = 4, 8, 128  # WebGPU fixes the numbers of these flags
_USAGE = STORAGE | _COPY_SRC | _COPY_DST

KEPT: Shelf[wgpu.GPUDevice, wgpu.GPUBuffer] = Shelf(4)


class Held:
    """A buffer shared by an array and its views."""

    __slots__ = ("_owner", "buffer")

    def __init__(self, buffer: wgpu.GPUBuffer, owner: wgpu.GPUDevice | None = None) -> None:
        """Recycled when the last reference goes, if `owner`, its device, is given."""
        self.buffer, self._owner = buffer, owner

    @property
    def is_shown(self) -> bool:
        """Whether a caller may have it, and may have mapped or destroyed it."""
        return self._owner is None

    def shown(self) -> wgpu.GPUBuffer:
        """Hands the buffer to a caller, who may keep it: it is not recycled any more."""
        self._owner = None
        return self.buffer

    def __del__(self) -> None:
        if self._owner is not None:
            KEPT.put(self._owner, self.buffer)


def held(buffer: wgpu.GPUBuffer | Held) -> Held:
    """Wraps a caller's own buffer, which is never recycled."""
    return buffer if isinstance(buffer, Held) else Held(buffer)


def new_buffer(device: wgpu.GPUDevice, size: int) -> Held:
    """An uninitialised buffer of `size` bytes, recycled or new."""
    if size > most_bytes():
        return Held(_created(device, size))
    found = KEPT.take(lambda owner, kept: owner is device and kept.size == size)
    return Held(found or _created(device, size), device)


def _created(device: wgpu.GPUDevice, size: int) -> wgpu.GPUBuffer:
    with wgpu_errors(f"a buffer of {size} bytes"):
        return device.create_buffer(size=size, usage=_USAGE)


@attrs.frozen(eq=False)
class Array:
    """Elements in a buffer, with any strides. Made by `gpusort.webgpu.array`."""

    held: Held = attrs.field(alias="buffer", converter=held)
    device: wgpu.GPUDevice
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    offset: int  # in bytes, of the first element

    @property
    def buffer(self) -> wgpu.GPUBuffer:
        return self.held.shown()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @cached_property
    def spec(self) -> Spec:
        strides = None if lies_packed(self.shape, self.strides, self.itemsize) else self.strides
        origin = self.offset % _alignment(self.device)
        return Spec(self.shape, self.dtype, Memory.WEBGPU, strides, not origin, origin)

    @cached_property
    def signature(self) -> Hashable:
        """The array's part of a plan's cache key."""
        return self.dtype, self.shape, self.strides, self.offset % _alignment(self.device), self.device

    def reshape(self, *shape: int) -> Array:
        """A view of another shape, of a packed array. One length may be -1."""
        shape = tuple([index_of("shape", length, "ints, each an argument of its own") for length in shape])
        known = math.prod(length for length in shape if length >= 0)
        found = tuple(self.size // max(1, known) if length == -1 else length for length in shape)
        if math.prod(found) != self.size or shape.count(-1) > 1 or min(shape, default=0) < -1:
            raise InvalidArgumentError(f"shape: expected one of {self.size} elements, found {shape}")
        if self.strides != packed_strides(self.shape, self.itemsize):
            raise InvalidArgumentError("reshape: expected an array whose elements lie one behind the other")
        return attrs.evolve(self, shape=found, strides=packed_strides(found, self.itemsize))

    def to_numpy(self) -> npt.NDArray[Any]:
        """Copies to host memory; waits for all submitted work."""
        require_running("wgsl")
        buffer, start, size = self._readable()
        with wgpu_errors("reading a buffer"):
            return self._of_bytes(self.device.queue.read_buffer(buffer, start, size))

    if not TYPE_CHECKING:  # who object to NumPy's functions of what has none

        def __array__(self, dtype=None, *, copy=None):
            """Raises: else NumPy would make an array of one object, this one."""
            raise UnsupportedTypeError(f"expected an array on the host, found {self!r}: x.to_numpy() copies it there")

    async def fetch(self) -> npt.NDArray[Any]:
        """Copies to host memory without blocking, for web pages, which must not wait."""
        buffer, start, size = self._readable()
        return self._of_bytes(await read_from_device(self.device, buffer, start, size))

    def _extent(self) -> tuple[int, int]:
        """The range of the buffer that it spans, in bytes, rounded to whole words: (first, count)."""
        low, high = bounds(self.shape, self.strides, self.itemsize)
        first = (self.offset + low) // _WORD * _WORD
        return first, padded(self.offset + high - first)

    def _of_bytes(self, data: memoryview) -> npt.NDArray[Any]:
        return np.ndarray(self.shape, self.dtype, data, self.offset - self._extent()[0], self.strides).copy("C")

    def _readable(self) -> tuple[wgpu.GPUBuffer, int, int]:
        """A buffer that can be mapped or read, and the array's range in it."""
        if current_encoder() is not None:
            raise CapabilityError("encode: what is recorded cannot be read")
        mine, (first, size) = self.held.buffer, self._extent()
        if not mine.usage & _COPY_SRC:
            return self._copied(first, size), 0, size
        if self.held.is_shown:
            with wgpu_errors("reading a buffer"):
                require_whole("x", mine, self.device)
        return mine, first, size

    def _copied(self, first: int, size: int) -> wgpu.GPUBuffer:
        """Copies a range of the buffer to one that can be read: callers' buffers may lack COPY_SRC."""
        count, before = size // _WORD, first % _alignment(self.device) // _WORD
        copy = new_array(self.device, (count,), np.dtype(np.uint32))
        target = target_on_device(self.device)
        source_lies, copy_lies = Strided(before, (1,), before + count), Strided(0, (1,), count)
        schedule = copy_strided(U32, (count,), source_lies, copy_lies, limits=target.info.limits)
        source = Position(self.held.buffer, first - before * _WORD, self.device)
        prepared_by(target, schedule).run([source, _position(copy)])
        return copy.buffer

    def __repr__(self) -> str:
        return f"<gpusort.webgpu.Array {self.dtype} {self.shape} on {self.device.adapter_info.device!r}>"


class Position:
    """An offset into a buffer: the handle that kernels take. A plain class, as many are made in every call."""

    __slots__ = ("buffer", "device", "offset")

    def __init__(self, buffer: wgpu.GPUBuffer, offset: int, device: wgpu.GPUDevice) -> None:
        self.buffer, self.offset, self.device = buffer, offset, device

    def __add__(self, nbytes: int) -> Position:
        return Position(self.buffer, self.offset + nbytes, self.device)


def _position(array: Array) -> Position:
    buffer = array.held.buffer if current_encoder() is None else array.held.shown()
    return Position(buffer, array.offset, array.device)


def _address(array: Array) -> int:
    """A pseudo-address for overlap tests, as buffers have none: equal for one buffer but for the offset."""
    return (id(array.held.buffer) << _BEYOND_BUFFERS) + array.offset


def _alignment(device: wgpu.GPUDevice) -> int:
    return max(_WORD, device.limits["min-storage-buffer-offset-alignment"])


def new_array(device: wgpu.GPUDevice, shape: Shape, dtype: DType) -> Array:
    """A new array, in a recycled buffer or a new one."""
    buffer = new_buffer(device, padded(math.prod(shape) * dtype.itemsize))
    return Array(buffer, device, dtype, tuple(shape), packed_strides(tuple(shape), dtype.itemsize), 0)


def from_host(device: wgpu.GPUDevice, array: HostArray) -> Array:
    made = new_array(device, array.shape, native(array.dtype))
    if array.size:
        buffer = made.held.buffer
        data = np.zeros(buffer.size, np.uint8)
        data[: array.nbytes] = np.ascontiguousarray(array, made.dtype).reshape(-1).view(np.uint8)
        with wgpu_errors("writing to a buffer"):
            device.queue.write_buffer(buffer, 0, data)
    return made


class WebGpuKind(Located[Array]):
    has_strides = False

    def signature(self, array: Array) -> Hashable:
        return array.signature

    def spec(self, name: str, array: Array) -> Spec:
        return array.spec

    def device(self, array: Array) -> object | None:
        return array.device

    def recording(self, encoder: object) -> AbstractContextManager[object]:
        if not hasattr(encoder, "begin_compute_pass"):
            raise UnsupportedTypeError(f"encoder: expected a wgpu.GPUCommandEncoder, found {type(encoder).__name__}")
        return recording_into(encoder)

    def placed(self, like: Array) -> Device[Array]:
        device = like.device

        def empty(shape: Shape, dtype: DType, strides: Shape | None) -> Callable[[], Array]:
            assert strides is None, "arrays have none here"
            return partial(new_array, device, shape, dtype)

        def scratch(sizes: Sequence[int]) -> Callable[[], tuple[object, list[Position]]]:
            """One buffer for each piece: WebGPU forbids a buffer that is both read and written in a launch."""

            def allocate() -> tuple[object, list[Position]]:
                pieces = [_created(device, padded(size)) for size in sizes]
                return pieces, [Position(piece, 0, device) for piece in pieces]

            return allocate

        return Device(
            lambda: 0, lambda array: array.device, _position, _address, empty, scratch, partial(from_host, device),
            Array.to_numpy, _alignment(device),
        )  # fmt: skip


WEBGPU = WebGpuKind()
