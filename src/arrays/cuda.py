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
from typing import Any, Protocol, cast

import attrs
import numpy as np

from ..forks import require_own_process
from ..targets.uninterrupted import import_uninterrupted
from ..types.errors import TargetUnavailableError, UnsupportedTypeError
from ..types.libraries import cupy
from ..types.specs import DType, Memory, Shape, Spec, bounds
from .kinds import ALIGNMENT, BEYOND_ALIGNED, IN_SCOPE, Device, Kind, Located, Viewed, pieces_maker

_NUMBERS = "?biufc"  # what cupy has dtypes for, as NumPy names their kinds
_DEFAULT_STREAM = 1  # how the interface writes CUDA's default stream; cupy and torch write 0


def ensure_cupy() -> None:
    """Raises TargetUnavailableError if cupy does not import."""
    try:
        import_uninterrupted("cupy")
    except ImportError as error:
        raise TargetUnavailableError(
            "target 'cuda': cupy is not installed or does not load: pip install \"gpusort[cuda]\""
        ) from error


class CupyKind(Located["cupy.ndarray"]):
    """cupy's own arrays, on any device."""

    def signature(self, array: cupy.ndarray) -> Hashable:
        require_own_process("cuda")
        memory = array.data  # strides as they are take less time than asking for the flags
        return array.dtype, array.shape, array.strides, memory.device_id, memory.ptr & BEYOND_ALIGNED

    def spec(self, name: str, array: cupy.ndarray) -> Spec:
        origin = array.data.ptr & BEYOND_ALIGNED
        is_aligned = not origin % min(array.itemsize, ALIGNMENT)
        strides = None if array.flags.c_contiguous else array.strides
        return Spec(array.shape, array.dtype, Memory.CUDA, strides, is_aligned, origin)

    def scope(self, array: cupy.ndarray) -> AbstractContextManager[object]:
        return on_device(array.data.device_id)

    def placed(self, like: cupy.ndarray) -> Device[cupy.ndarray]:
        device, alloc = like.data.device_id, cupy.cuda.alloc
        current, stream = cupy.cuda.runtime.getDevice, cupy.cuda.get_current_stream

        def empty(shape: Shape, dtype: DType, strides: Shape | None) -> Callable[[], cupy.ndarray]:
            if strides is None:
                return partial(cupy.ndarray, shape, dtype)
            nbytes = math.prod(shape) * dtype.itemsize
            return lambda: cupy.ndarray(shape, dtype, alloc(nbytes), strides)

        address = attrgetter("data.ptr")
        return Device(
            stream=lambda: stream().ptr if current() == device else None, device=attrgetter("data.device_id"),
            handle=address, address=address, empty=empty,
            scratch=partial(pieces_maker, alloc, attrgetter("ptr")),  # the pool reuses it in the order of the stream
            from_host=cupy.asarray, to_host=lambda array: array.get(), alignment=ALIGNMENT,
        )  # fmt: skip


CUPY = CupyKind()


class OnCard(Protocol):
    """Any library's array on a CUDA device."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]: ...


class InterfaceKind(Viewed[OnCard, "cupy.ndarray"]):
    """Arrays with __cuda_array_interface__ of any other library. Results are cupy's."""

    base = CUPY

    def is_read_only(self, array: OnCard) -> bool:
        return bool(array.__cuda_array_interface__["data"][1])

    def view(self, array: OnCard, name: str = "x") -> cupy.ndarray:
        """A zero-copy cupy view, which keeps the array alive. Does not synchronise."""
        seen = array.__cuda_array_interface__
        dtype = np.dtype(seen["typestr"])
        if dtype.kind not in _NUMBERS or not dtype.isnative:
            raise UnsupportedTypeError(
                f"{name}: expected numbers in native byte order, found a {type(array).__name__} of {dtype}"
            )
        if seen.get("mask") is not None:
            raise UnsupportedTypeError(f"{name}: masked arrays are not supported; fill or compress it first")
        pointer, shape, strides = seen["data"][0] or 0, tuple(seen["shape"]), seen.get("strides")
        device = device_of(pointer, shape)
        nbytes = dtype.itemsize * math.prod(shape) if strides is None else bounds(shape, strides, dtype.itemsize)[1]
        memory = cupy.cuda.UnownedMemory(pointer, nbytes, array, device)
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0), strides)

    def given_back(self, values: cupy.ndarray, like: OnCard) -> object:
        return values

    def scope(self, array: OnCard) -> AbstractContextManager[object]:
        seen = array.__cuda_array_interface__
        device, stream = device_of(seen["data"][0], seen["shape"]), seen.get("stream")
        owner = 0 if stream == _DEFAULT_STREAM else stream
        if cupy.cuda.runtime.getDevice() == device and owner in (None, cupy.cuda.get_current_stream().ptr):
            return IN_SCOPE
        return cupy.cuda.Device(device) if owner is None else _in_order_with(device, owner)


class NumbaKind(InterfaceKind):
    def given_back(self, values: cupy.ndarray, like: OnCard) -> object:
        # Not waited for: work on it goes on behind ours, on the stream it is told.
        as_numbas = cast(Callable[..., object], getattr(sys.modules["numba.cuda"], "as_cuda_array"))  # noqa: B009  # no stub of it to name it by
        return as_numbas(values, sync=False)


INTERFACE, NUMBA = InterfaceKind(), NumbaKind()


def kind_of(x: object) -> Kind:
    """The kind of something with __cuda_array_interface__."""
    ensure_cupy()
    if isinstance(x, cupy.ndarray):
        return CUPY
    is_numbas = type(x).__module__.startswith("numba.") and "numba.cuda" in sys.modules
    return NUMBA if is_numbas else INTERFACE


@cache
def device_count() -> int:
    return cupy.cuda.runtime.getDeviceCount()


def device_of(pointer: int | None, shape: Sequence[int]) -> int:
    """The device that an address is on; the current one for an array of no elements."""
    require_own_process("cuda")
    runtime = cupy.cuda.runtime
    if not pointer or 0 in shape:
        return runtime.getDevice()
    return runtime.pointerGetAttributes(pointer).device if device_count() > 1 else 0


def on_device(device: int) -> AbstractContextManager[object]:
    """Makes a device the current one; IN_SCOPE if it is."""
    require_own_process("cuda")
    return IN_SCOPE if cupy.cuda.runtime.getDevice() == device else cupy.cuda.Device(device)


@attrs.frozen
class _StreamOf:
    """Another library's stream, in the form of cupy's stream protocol."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


@contextmanager
def on_stream(device: int, pointer: int) -> Generator[None]:
    """Makes another library's stream cupy's current one."""
    with cupy.cuda.Device(device), cupy.cuda.Stream.from_external(_StreamOf(pointer)):
        yield


@contextmanager
def _in_order_with(device: int, pointer: int) -> Generator[None]:
    """Orders cupy's current stream after another stream's work so far, and that stream after ours, by events."""
    with cupy.cuda.Device(device):
        stream = cupy.cuda.get_current_stream()
        other = cupy.cuda.Stream.from_external(_StreamOf(pointer))
        stream.wait_event(other.record())
        try:
            yield
        finally:
            other.wait_event(stream.record())
