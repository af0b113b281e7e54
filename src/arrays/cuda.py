"""Arrays on a CUDA device: cupy's own, Numba's, and any other that has __cuda_array_interface__.

Work is done on cupy's current stream. An array whose library says that it works on another is waited for there, and
its stream waits for the work. Results are of the caller's kind; where its library is not known here, they are cupy's.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import attrs
import numpy as np

from ..forks import require_own_process
from ..targets.apart import import_apart
from ..types.errors import TargetUnavailableError, UnsupportedTypeError
from ..types.specs import Memory, Spec
from .kinds import ArrayKind, DType, HostArray, Kind, Space, Streamed

if TYPE_CHECKING:
    import cupy

A = TypeVar("A")

_BEYOND_ALIGNED = 7  # the bits of an address that say whether elements of every size are aligned
_NUMBERS = "?biufc"  # what cupy has dtypes for, as NumPy names their kinds
_DEFAULT_STREAM = 1  # how the interface writes CUDA's default stream; cupy and torch write 0


class CudaSpace(Space["cupy.ndarray"]):
    """The memory of CUDA devices, in cupy's arrays."""

    def empty(self, shape: tuple[int, ...], dtype: DType) -> cupy.ndarray:
        import cupy

        return cupy.ndarray(shape, dtype)

    def last(self, array: cupy.ndarray, axes: Sequence[int]) -> cupy.ndarray:
        others = [axis for axis in range(array.ndim) if axis not in axes]
        return array.transpose(*others, *axes) if array.ndim else array

    def is_packed(self, array: cupy.ndarray) -> bool:
        return array.flags.c_contiguous and not array.data.ptr % array.itemsize

    def packed(self, array: cupy.ndarray) -> cupy.ndarray:
        return array.copy(order="C")

    def assign(self, target: cupy.ndarray, source: cupy.ndarray) -> None:
        import cupy

        cupy.copyto(target, source, casting="unsafe")

    def part(self, array: cupy.ndarray, first: int, count: int) -> cupy.ndarray:
        return array.reshape(-1)[first : first + count]

    def reshaped(self, array: cupy.ndarray, shape: tuple[int, ...]) -> cupy.ndarray:
        return array.reshape(shape)

    def take(self, array: cupy.ndarray, indices: cupy.ndarray, axes: Sequence[int]) -> cupy.ndarray:
        import cupy

        return array.reshape(-1)[indices] if len(axes) != 1 else cupy.take_along_axis(array, indices, axes[0])

    def extent(self, array: cupy.ndarray) -> tuple[int, tuple[int, ...]]:
        return array.data.ptr, array.strides

    def span(self, array: cupy.ndarray) -> cupy.ndarray:
        import cupy

        reach = sum(stride * (length - 1) for stride, length in zip(array.strides, array.shape, strict=True))
        return cupy.ndarray((reach // array.itemsize + 1,), array.dtype, array.data)

    def from_host(self, array: HostArray) -> cupy.ndarray:
        import cupy

        return cupy.asarray(array)

    def to_host(self, array: cupy.ndarray) -> HostArray:
        return array.get()


CUDA = CudaSpace()


def ensure_cupy() -> None:
    """One clear sentence where an array lies on a CUDA device and cupy is not there."""
    try:
        import_apart("cupy")
    except ImportError as error:
        raise TargetUnavailableError(
            "target 'cuda': cupy is not installed or does not load: pip install \"gpusort[cuda]\""
        ) from error


class OnDevice(ArrayKind[A, "cupy.ndarray"]):
    """What all kinds of arrays on a CUDA device have in common."""

    space = CUDA

    def given_back(self, values: cupy.ndarray, like: A) -> object:
        return values

    def empty_like(self, like: A) -> A:
        spec = self.spec("x", like)
        return self.empty(spec.shape, spec.dtype, like)


# -- cupy's own -------------------------------------------------------------------------------------------


class CupyKind(OnDevice["cupy.ndarray"]):
    """cupy's own arrays, on any device."""

    def signature(self, array: cupy.ndarray) -> Hashable:
        require_own_process("cuda")
        memory = array.data  # strides as they are take less time than asking for the flags
        return array.dtype, array.shape, array.strides, memory.device_id, memory.ptr & _BEYOND_ALIGNED

    def spec(self, name: str, array: cupy.ndarray) -> Spec:
        return Spec(array.shape, array.dtype, Memory.CUDA, None if CUDA.is_packed(array) else array.strides)

    def empty(self, shape: tuple[int, ...], dtype: DType, like: cupy.ndarray) -> cupy.ndarray:
        import cupy

        return cupy.ndarray(shape, dtype)

    def empty_like(self, like: cupy.ndarray) -> cupy.ndarray:
        import cupy

        return cupy.empty_like(like)

    def memory(self, array: cupy.ndarray) -> object:
        return array.data.ptr

    def is_packed(self, array: cupy.ndarray) -> bool:
        return CUDA.is_packed(array)

    def is_read_only(self, array: cupy.ndarray) -> bool:
        return False

    def view(self, array: cupy.ndarray) -> cupy.ndarray:
        return array

    def scope(self, array: cupy.ndarray) -> AbstractContextManager[object] | None:
        import cupy

        device = array.data.device_id
        return None if cupy.cuda.runtime.getDevice() == device else cupy.cuda.Device(device)

    def streamed(self, like: cupy.ndarray) -> Streamed[cupy.ndarray]:
        import cupy

        device, alloc = like.data.device_id, cupy.cuda.alloc
        current, stream = cupy.cuda.runtime.getDevice, cupy.cuda.get_current_stream

        def empty(shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...] | None) -> Callable[[], cupy.ndarray]:
            if strides is None:
                return partial(cupy.ndarray, shape, dtype)
            nbytes = math.prod(shape) * dtype.itemsize
            return lambda: cupy.ndarray(shape, dtype, alloc(nbytes), strides)

        def scratch(nbytes: int) -> tuple[object, int]:
            memory = alloc(nbytes)
            return memory, memory.ptr

        return Streamed(
            lambda: stream().ptr if current() == device else None,
            attrgetter("data.device_id"),
            attrgetter("data.ptr"),
            empty,
            scratch,
        )


# -- anybody's --------------------------------------------------------------------------------------------


class HasInterface(Protocol):
    """Any library's array on a CUDA device."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]: ...


class InterfaceKind(OnDevice[HasInterface]):
    """What has __cuda_array_interface__, of a library that is not known here. Results are cupy's."""

    def signature(self, array: HasInterface) -> Hashable:
        require_own_process("cuda")
        seen = array.__cuda_array_interface__
        pointer, read_only = seen["data"]
        strides, shape = seen.get("strides"), seen["shape"]
        where = device_of(pointer, shape)
        return seen["typestr"], shape, strides, where, (pointer or 0) & _BEYOND_ALIGNED, bool(read_only)

    def spec(self, name: str, array: HasInterface) -> Spec:
        seen = array.__cuda_array_interface__
        dtype = np.dtype(seen["typestr"])
        if dtype.kind not in _NUMBERS or not dtype.isnative:
            raise UnsupportedTypeError(
                f"{name}: expected numbers in native byte order, found a {type(array).__name__} of {dtype}"
            )
        if seen.get("mask") is not None:
            raise UnsupportedTypeError(f"{name}: masked arrays are not supported; fill or compress it first")
        view = self.view(array)
        return Spec(view.shape, dtype, Memory.CUDA, None if CUDA.is_packed(view) else view.strides)

    def empty(self, shape: tuple[int, ...], dtype: DType, like: HasInterface) -> HasInterface:
        return cast(HasInterface, self.given_back(CUDA.empty(shape, dtype), like))

    def memory(self, array: HasInterface) -> object:
        return array.__cuda_array_interface__["data"][0] or 0

    def is_packed(self, array: HasInterface) -> bool:
        return CUDA.is_packed(self.view(array))

    def is_read_only(self, array: HasInterface) -> bool:
        return bool(array.__cuda_array_interface__["data"][1])

    def view(self, array: HasInterface) -> cupy.ndarray:
        seen = array.__cuda_array_interface__
        pointer, shape, strides = seen["data"][0] or 0, tuple(seen["shape"]), seen.get("strides")
        return seen_by_cupy(array, pointer, shape, np.dtype(seen["typestr"]), strides, device_of(pointer, shape))

    def scope(self, array: HasInterface) -> AbstractContextManager[object] | None:
        import cupy

        seen = array.__cuda_array_interface__
        device, stream = device_of(seen["data"][0], seen["shape"]), seen.get("stream")
        owner = 0 if stream == _DEFAULT_STREAM else stream
        if cupy.cuda.runtime.getDevice() == device and owner in (None, cupy.cuda.get_current_stream().ptr):
            return None
        return cupy.cuda.Device(device) if owner is None else _in_order_with(device, owner)


class NumbaKind(InterfaceKind):
    """Numba's device arrays."""

    def given_back(self, values: cupy.ndarray, like: HasInterface) -> object:
        # Not waited for: work on it goes on behind ours, on the stream it is told.
        as_numbas = cast(Callable[..., object], getattr(sys.modules["numba.cuda"], "as_cuda_array"))  # noqa: B009  # no stub of it to name it by
        return as_numbas(values, sync=False)


CUPY, INTERFACE, NUMBA = CupyKind(), InterfaceKind(), NumbaKind()


def kind_of(x: object) -> Kind:
    """The kind of something with __cuda_array_interface__."""
    ensure_cupy()
    import cupy

    if isinstance(x, cupy.ndarray):
        return CUPY
    is_numbas = type(x).__module__.startswith("numba.") and "numba.cuda" in sys.modules
    return NUMBA if is_numbas else INTERFACE


# -- devices and streams ----------------------------------------------------------------------------------


@cache
def device_count() -> int:
    import cupy

    return cupy.cuda.runtime.getDeviceCount()


def device_of(pointer: int | None, shape: Sequence[int]) -> int:
    """The device that an address is on; the current one for an array of no elements."""
    import cupy

    runtime = cupy.cuda.runtime
    if not pointer or 0 in shape:
        return runtime.getDevice()
    return runtime.pointerGetAttributes(pointer).device if device_count() > 1 else 0


def seen_by_cupy(
    owner: object, pointer: int, shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...] | None, device: int
) -> cupy.ndarray:
    """Another library's memory as an array of cupy's, which holds on to its owner. Nothing is copied or waited for."""
    import cupy

    nbytes = dtype.itemsize * math.prod(shape)
    if strides is not None and nbytes:
        nbytes = dtype.itemsize + sum(
            (length - 1) * max(stride, 0) for length, stride in zip(shape, strides, strict=True)
        )
    memory = cupy.cuda.UnownedMemory(pointer, nbytes, owner, device)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0), strides)


@attrs.frozen
class _StreamOf:
    """Another library's stream, as cupy wants to be shown it."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


@contextmanager
def on_stream(device: int, pointer: int) -> Generator[None]:
    """Work goes to another library's stream."""
    import cupy

    with cupy.cuda.Device(device), cupy.cuda.Stream.from_external(_StreamOf(pointer)):
        yield


@contextmanager
def _in_order_with(device: int, pointer: int) -> Generator[None]:
    """Work goes to cupy's current stream: behind what another stream has to do, and before what it gets to do."""
    import cupy

    with cupy.cuda.Device(device):
        stream = cupy.cuda.get_current_stream()
        other = cupy.cuda.Stream.from_external(_StreamOf(pointer))
        stream.wait_event(other.record())
        try:
            yield
        finally:
            other.wait_event(stream.record())
