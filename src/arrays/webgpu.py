"""Arrays in buffers of WebGPU, on a device that the caller has opened with wgpu.

They are worked on where they lie. Results are arrays in new buffers of the same device. Nothing is waited for or read
back; what follows on the device's queue finds the results there.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import attrs
import numpy as np

from ..algos.copy import Strided, copy_strided, take_rows
from ..targets.base import Prepared, prepared_by
from ..targets.recording import current_encoder
from ..targets.registry import target_on_device
from ..types.dtypes import native, number_for
from ..types.errors import CapabilityError, InvalidArgumentError
from ..types.scalars import UNSIGNED
from ..types.specs import Memory, Spec
from .kinds import DType, HostArray, Space, lies_packed, packed_strides

if TYPE_CHECKING:
    import wgpu

COPY_SRC, COPY_DST, STORAGE = 4, 8, 128  # WebGPU fixes the numbers of these flags
_USAGE = STORAGE | COPY_SRC | COPY_DST
_WORD = 4
_BEYOND_BUFFERS = 40  # bits of an address that say where in a buffer


@attrs.frozen(eq=False)
class Array:
    """Elements in a buffer, with any strides. Made by `gpusort.webgpu.array`."""

    buffer: wgpu.GPUBuffer
    device: wgpu.GPUDevice
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    offset: int  # in bytes, of the first element

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
    def is_packed(self) -> bool:
        """Whether kernels can work on it as it lies."""
        if self.offset % _alignment(self.device):
            return False
        return 0 in self.shape or lies_packed(self.shape, self.strides, self.itemsize)

    @cached_property
    def spec(self) -> Spec:
        """As operations see it."""
        return Spec(self.shape, self.dtype, Memory.WEBGPU, None if self.is_packed else self.strides)

    @cached_property
    def signature(self) -> Hashable:
        """All that a plan depends on."""
        return self.dtype, self.shape, self.strides, self.offset % _alignment(self.device), self.device

    def reshape(self, *shape: int) -> Array:
        """The same elements, which must lie one behind the other, in another shape. One length may be -1."""
        known = math.prod(length for length in shape if length >= 0)
        found = tuple(self.size // max(1, known) if length == -1 else length for length in shape)
        if math.prod(found) != self.size or shape.count(-1) > 1:
            raise InvalidArgumentError(f"shape: expected one of {self.size} elements, found {shape}")
        if self.strides != packed_strides(self.shape, self.itemsize):
            raise InvalidArgumentError("reshape: expected an array whose elements lie one behind the other")
        return attrs.evolve(self, shape=found, strides=packed_strides(found, self.itemsize))

    def to_numpy(self) -> HostArray:
        """A copy in the host's memory, for which all that was submitted is waited for."""
        with current(self.device):
            return WEBGPU_SPACE.to_host(self if WEBGPU_SPACE.is_packed(self) else WEBGPU_SPACE.packed(self))

    def __repr__(self) -> str:
        return f"<gpusort.webgpu.Array {self.dtype} {self.shape} on {self.device.adapter_info.device!r}>"


# -- the space --------------------------------------------------------------------------------------------


class _Current(threading.local):
    device: wgpu.GPUDevice | None = None


_CURRENT = _Current()


class current:
    """Within it, new arrays are made on this device. A class, which is entered sooner than a generator."""

    __slots__ = ("_before", "_device")

    def __init__(self, device: wgpu.GPUDevice) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._before, _CURRENT.device = _CURRENT.device, self._device

    def __exit__(self, *_: object) -> None:
        _CURRENT.device = self._before


def current_device() -> wgpu.GPUDevice | None:
    return _CURRENT.device


@lru_cache(maxsize=64)
def _alignment(device: wgpu.GPUDevice) -> int:
    """Of where a binding begins in its buffer."""
    return max(_WORD, device.limits["min-storage-buffer-offset-alignment"])


def new_array(device: wgpu.GPUDevice, shape: tuple[int, ...], dtype: DType) -> Array:
    size = max(_WORD, -(-math.prod(shape) * dtype.itemsize // _WORD) * _WORD)
    buffer = device.create_buffer(size=size, usage=_USAGE)
    return Array(buffer, device, dtype, tuple(shape), packed_strides(tuple(shape), dtype.itemsize), 0)


class WebGpuSpace(Space[Array]):
    """The memory of WebGPU's devices."""

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Array:
        device = _CURRENT.device
        assert device is not None, "within the scope of an array"
        return new_array(device, shape, dtype)

    def last(self, array: Array, axes: Sequence[int]) -> Array:
        order = [*(axis for axis in range(array.ndim) if axis not in axes), *axes]
        shape, strides = (tuple(line[axis] for axis in order) for line in (array.shape, array.strides))
        return attrs.evolve(array, shape=shape, strides=strides)

    def is_packed(self, array: Array) -> bool:
        return array.is_packed

    def packed(self, array: Array) -> Array:
        copy = self.empty(array.shape, array.dtype)
        self.assign(copy, array)
        return copy

    def assign(self, target: Array, source: Array) -> None:
        if not source.size:
            return
        if target.dtype == source.dtype:
            number = None
        elif target.dtype.kind in "iu" and source.dtype.kind in "iub":
            number = number_for(source.dtype)
        else:  # which kernels have no words for: rare, and of few elements
            on_host = source.to_numpy().astype(target.dtype)
            with current(target.device):
                source, number = self.from_host(on_host), None
        given, goal = _strided(source), _strided(target)
        prepared = _copying(target.device, source.dtype, target.dtype, target.shape, given, goal, number is not None)
        prepared.run([_from_binding(source), _from_binding(target)])

    def part(self, array: Array, first: int, count: int) -> Array:
        offset = array.offset + first * array.itemsize
        return attrs.evolve(array, shape=(count,), strides=(array.itemsize,), offset=offset)

    def reshaped(self, array: Array, shape: tuple[int, ...]) -> Array:
        return attrs.evolve(array, shape=shape, strides=packed_strides(shape, array.itemsize))

    def take(self, array: Array, indices: Array, axes: Sequence[int]) -> Array:
        if len(axes) != 1:
            return self._take_last(self.reshaped(self._ready(array), (array.size,)), indices)
        (axis,) = axes
        found = self._take_last(self.last(array, (axis,)), self.last(indices, (axis,)))
        order = [*range(found.ndim - 1)]
        order.insert(axis, found.ndim - 1)
        shape, strides = (tuple(line[place] for place in order) for line in (found.shape, found.strides))
        return attrs.evolve(found, shape=shape, strides=strides)

    def _ready(self, array: Array) -> Array:
        return array if self.is_packed(array) else self.packed(array)

    def _take_last(self, array: Array, indices: Array) -> Array:
        source, places = self._ready(array), self._ready(indices)
        result = self.empty(places.shape, source.dtype)
        if result.size:
            length, taken = source.shape[-1], places.shape[-1]
            rows = places.size // taken
            prepared = _taking(source.device, source.itemsize, places.itemsize, rows, length, taken)
            prepared.run([source, places, result])
        return result

    def extent(self, array: Array) -> tuple[int, tuple[int, ...]]:
        return (id(array.buffer) << _BEYOND_BUFFERS) + array.offset, array.strides

    def span(self, array: Array) -> Array:
        reach = sum(stride * (size - 1) for stride, size in zip(array.strides, array.shape, strict=True))
        return attrs.evolve(array, shape=(reach // array.itemsize + 1,), strides=(array.itemsize,))

    def from_host(self, array: HostArray) -> Array:
        made = self.empty(array.shape, native(array.dtype))
        if array.size:
            data = np.zeros(made.buffer.size, np.uint8)
            data[: array.nbytes] = np.ascontiguousarray(array, native(array.dtype)).reshape(-1).view(np.uint8)
            made.device.queue.write_buffer(made.buffer, 0, data)
        return made

    def to_host(self, array: Array) -> HostArray:
        if not array.size:
            return np.empty(array.shape, array.dtype)
        if current_encoder() is not None:
            raise CapabilityError(f"encode: {array.dtype} is converted by the host here, which cannot be recorded")
        if not array.buffer.usage & COPY_SRC:
            with current(array.device):
                return self.to_host(self.packed(array))
        size = -(-array.nbytes // _WORD) * _WORD
        data = array.device.queue.read_buffer(array.buffer, array.offset, size)
        found: HostArray = np.frombuffer(data, np.uint8, array.nbytes).view(array.dtype).reshape(array.shape)
        return found


WEBGPU_SPACE = WebGpuSpace()


def _strided(array: Array) -> Strided:
    """How an array lies in what is bound of its buffer."""
    size = array.itemsize
    first = array.offset % _alignment(array.device) // size
    lies = Strided(first, tuple(stride // size for stride in array.strides), 0)
    return attrs.evolve(lies, extent=lies.reach(array.shape))


def _from_binding(array: Array) -> Array:
    """What is bound of an array's buffer: from a place on at which a binding can begin."""
    return attrs.evolve(array, offset=array.offset - array.offset % _alignment(array.device))


@lru_cache(maxsize=256)
def _copying(
    device: wgpu.GPUDevice, given: DType, wanted: DType, shape: tuple[int, ...], source: Strided, target: Strided,
    converts: bool,
) -> Prepared:  # fmt: skip
    to, number = UNSIGNED[wanted.itemsize], number_for(given) if converts else None
    element = UNSIGNED[given.itemsize] if number is None else number.element
    schedule = copy_strided(element, shape, source, target, to=to, number=number)
    return prepared_by(target_on_device(device), schedule)


@lru_cache(maxsize=64)
def _taking(device: wgpu.GPUDevice, itemsize: int, index: int, rows: int, length: int, taken: int) -> Prepared:
    return prepared_by(target_on_device(device), take_rows(UNSIGNED[itemsize], UNSIGNED[index], rows, length, taken))
