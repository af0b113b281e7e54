"""JAX's arrays, and whatever else has __dlpack__: read where they lie, on the host or on a CUDA device.

Results are made in memory of our own and handed over once they are there, or under way on the current stream: by JAX's
from_dlpack or that of the array's own library, without a copy. A library that has none gets NumPy's or cupy's arrays.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from ..forks import require_own_process
from ..types.errors import UnsupportedTypeError
from ..types.specs import Memory, Spec
from .host import HOST, HostSpace
from .kinds import ArrayKind, DType, HostArray, Kind
from .recycled import new_array

if TYPE_CHECKING:
    import cupy

V = TypeVar("V")
Handover = Callable[[object], object]  # a library's from_dlpack

_ON_HOST, _ON_CUDA = (1, 3), (2, 13)  # how DLPack numbers memory: plain and pinned; a device's own and managed
_ALIGNMENT = 64  # what XLA asks of memory that it takes over as it is
_BYTE = np.dtype(np.uint8)


class Exporter(Protocol):
    """What has DLPack."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class AlignedSpace(HostSpace):
    """The host's memory, as every library takes it over without a copy."""

    def empty(self, shape: tuple[int, ...], dtype: DType) -> HostArray:
        count = math.prod(shape) * dtype.itemsize
        block = new_array((count + _ALIGNMENT,), _BYTE)
        first = -block.ctypes.data % _ALIGNMENT
        found: HostArray = block[first : first + count].view(dtype).reshape(shape)
        return found


ALIGNED = AlignedSpace()


class DLPackKind(ArrayKind[Any, V]):
    """What all of them have in common."""

    finishes = True

    def signature(self, array: Any) -> Hashable:
        spec = self.spec("x", array)
        return cast(Hashable, type(array)), spec, self.place(array)

    def place(self, array: Exporter) -> Hashable:
        """Which of several devices it lies on."""
        return None

    def empty(self, shape: tuple[int, ...], dtype: DType, like: Any) -> Any:
        return self.space.empty(shape, dtype)

    def empty_like(self, like: Any) -> Any:
        spec = self.spec("x", like)
        return self.space.empty(spec.shape, spec.dtype)

    def finished(self, made: Any, like: Any) -> object:
        return self.given_back(made, like)

    def memory(self, array: Any) -> object:
        return self.view(array)

    def is_packed(self, array: Any) -> bool:
        return self.space.is_packed(self.view(array))

    def given_back(self, values: V, like: Any) -> object:
        array = np.asarray(values) if self.is_host else cast(HostArray, values)  # it may be a scalar
        if array.dtype.names is not None:
            return values  # DLPack has no structs
        return self._handed_over(array, like)

    def _handed_over(self, values: object, like: Any) -> object:
        return _handover_to(cast(Hashable, type(like)))(values)


class OnHost(DLPackKind[HostArray]):
    """Such arrays in the host's memory."""

    space = ALIGNED
    is_host = True

    def spec(self, name: str, array: Any) -> Spec:
        try:
            view = self.view(array)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise _refused(name, array, str(error)) from error
        return Spec(view.shape, view.dtype, Memory.HOST, None if HOST.is_packed(view) else view.strides)

    def is_read_only(self, array: Any) -> bool:
        return not self.view(array).flags.writeable

    def view(self, array: Any) -> HostArray:
        return cast(HostArray, array if isinstance(array, np.ndarray) else np.from_dlpack(array))


class OnCuda(DLPackKind["cupy.ndarray"]):
    """Such arrays on CUDA devices. Whoever views one has it behind all that its library still does to it."""

    def __init__(self) -> None:
        from .cuda import CUDA

        self.space = CUDA

    def signature(self, array: Any) -> Hashable:
        require_own_process("cuda")
        return super().signature(array)

    def place(self, array: Exporter) -> Hashable:
        return array.__dlpack_device__()[1]

    def spec(self, name: str, array: Any) -> Spec:
        try:
            view = self.view(array)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise _refused(name, array, str(error)) from error
        return Spec(view.shape, view.dtype, Memory.CUDA, None if self.space.is_packed(view) else view.strides)

    def is_read_only(self, array: Any) -> bool:
        return False

    def view(self, array: Any) -> cupy.ndarray:
        import cupy

        return array if isinstance(array, cupy.ndarray) else cupy.from_dlpack(array)

    def scope(self, array: Any) -> AbstractContextManager[object] | None:
        import cupy

        device = array.__dlpack_device__()[1]
        return None if cupy.cuda.runtime.getDevice() == device else cupy.cuda.Device(device)


# -- JAX --------------------------------------------------------------------------------------------------


class _Jax(DLPackKind[V]):
    """JAX's arrays cannot be written: results are new ones. They lie packed."""

    def signature(self, array: Any) -> Hashable:
        return array.dtype, array.shape, array.sharding

    def spec(self, name: str, array: Any) -> Spec:
        dtype = cast(DType, array.dtype)  # or what JAX alone has, of another class or kind
        if getattr(dtype, "kind", "") not in tuple("biufc"):
            raise _refused(name, array, f"it is of {dtype}")
        return Spec(tuple(array.shape), dtype, Memory.HOST if self.is_host else Memory.CUDA)

    def is_read_only(self, array: Any) -> bool:
        return True

    def is_packed(self, array: Any) -> bool:
        return True

    def _handed_over(self, values: object, like: Any) -> object:
        return cast(object, _jax().dlpack.from_dlpack(values))


class JaxOnHost(_Jax[HostArray], OnHost):
    """On the CPU."""

    def signature(self, array: Any) -> Hashable:
        return array.dtype, array.ndim


class JaxOnCuda(_Jax["cupy.ndarray"], OnCuda):
    """On a CUDA device."""

    def signature(self, array: Any) -> Hashable:
        require_own_process("cuda")
        return super().signature(array)


def _jax() -> Any:
    return sys.modules["jax"]


_made: dict[type, Kind] = {}


def _kind(made_by: type[Kind]) -> Kind:
    """The one object of a class: those for CUDA are made once cupy is there."""
    found = _made.get(made_by)
    if found is None:
        if issubclass(made_by, OnCuda):
            from .cuda import ensure_cupy

            ensure_cupy()
        found = _made[made_by] = made_by()
    return found


def choose_jax(name: str, array: Any) -> Kind:
    """By the platform, which an array that is traced has none of."""
    if isinstance(array, _jax().core.Tracer):
        raise UnsupportedTypeError(
            f"{name}: found a traced array of JAX, which holds no elements yet; call gpusort outside of jit and vmap"
        )
    devices = array.devices()
    if len(devices) > 1:
        raise UnsupportedTypeError(f"{name}: found an array of JAX on {len(devices)} devices; gather it on one")
    (device,) = devices
    if device.platform == "cpu":
        return _kind(JaxOnHost)
    if device.platform in ("gpu", "cuda"):
        return _kind(JaxOnCuda)
    raise UnsupportedTypeError(f"{name}: expected an array of JAX on the CPU or a CUDA device, found {device}")


# -- anybody's --------------------------------------------------------------------------------------------


def choose(name: str, array: Exporter) -> Kind:
    """By the memory that its library says it lies in."""
    try:
        kind = int(array.__dlpack_device__()[0])
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise _refused(name, array, str(error)) from error
    if kind in _ON_HOST:
        return _kind(OnHost)
    if kind in _ON_CUDA:
        return _kind(OnCuda)
    raise _refused(name, array, f"it lies in memory of DLPack's kind {kind}")


def _refused(name: str, array: object, why: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"{name}: expected a dense array of a dtype that NumPy has, on the CPU or a CUDA device; found "
        f"{type(array).__name__} ({why})"
    )


def _as_it_is(values: object) -> object:
    return values


@lru_cache(maxsize=64)
def _handover_to(library: Hashable) -> Handover:
    """How the library of a class of arrays takes over another's."""
    package = sys.modules.get(library.__module__.partition(".")[0])
    for place in (package, *(getattr(package, name, None) for name in ("dlpack", "utils"))):
        found = getattr(place, "from_dlpack", None)
        if callable(found):
            return cast(Handover, found)
    return _as_it_is
