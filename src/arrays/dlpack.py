"""JAX arrays and everything else with __dlpack__: used in place, on the host or on a CUDA device. Results are handed
over without a copy by JAX's from_dlpack or that of the array's own library; one that has none gets NumPy's or
cupy's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np

from ..targets.uninterrupted import run_uninterrupted
from ..types.errors import UnsupportedTypeError
from ..types.libraries import cupy
from .host import NUMPY, USERS
from .kinds import IN_SCOPE, Kind, Located, Viewed

Handover = Callable[[object], object]  # a library's from_dlpack

_LEAST_PUT = 1 << 18  # bytes, where JAX takes memory over in less time than it copies
_ON_HOST, _ON_CUDA = (1, 3), (2, 13)  # how DLPack numbers memory: plain and pinned; a device's own and managed


class DLPackKind(Viewed[Any, Any]):
    """Arrays on the host, or on CUDA devices, where a view is ordered after the work that their library has queued."""

    copies = True  # or may: a library says no more than that it took the memory

    def __init__(self, base: Located[Any]) -> None:
        self.base, self.is_host = base, base.is_host

    def view(self, array: Any, name: str = "x") -> Any:
        try:
            return np.from_dlpack(array) if self.is_host else cupy.from_dlpack(array)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise _refused(name, array, str(error)) from error

    def given_back(self, values: Any, like: Any) -> object:
        return _handover_to(cast(Hashable, type(like)))(np.asarray(values) if self.is_host else values)

    def scope(self, array: Any) -> AbstractContextManager[object]:
        if self.is_host:
            return IN_SCOPE
        from .cuda import on_device

        return on_device(array.__dlpack_device__()[1])


class JaxKind(DLPackKind):
    """JAX arrays: immutable, so results are new arrays."""

    def view(self, array: Any, name: str = "x") -> Any:
        dtype = array.dtype  # or what JAX alone has, of another class or number
        if getattr(dtype, "num", USERS) >= USERS:
            wider = ", and .astype('float32') has the same numbers" if "float" in str(dtype) else ""
            raise _refused(name, array, f"it is of {dtype}{wider}")
        return super().view(array, name)

    def is_read_only(self, array: Any) -> bool:
        return True

    def given_back(self, values: Any, like: Any) -> object:
        """Committed to the device of an array that is, as the results of JAX's own functions are."""
        jax = sys.modules["jax"]
        if not self.is_host:
            return cast(object, jax.dlpack.from_dlpack(values))
        values = np.asarray(values)
        if not (values.dtype.itemsize == 8 and values.dtype == like.dtype and not jax.config.jax_enable_x64):
            return _put(jax, values, like)
        # JAX would narrow these: the array comes from a context in which 64 bits are allowed.
        device = jax.config.jax_default_device  # also of one thread

        def put_wide() -> object:
            with jax.enable_x64(True), jax.default_device(device):
                return _put(jax, values, like)

        return run_uninterrupted(put_wide)  # interrupted while it begins, the context would last for good


def _put(jax: Any, values: Any, like: Any) -> object:
    """An array of JAX."""
    if like.committed:
        return cast(object, jax.dlpack.from_dlpack(values, device=like.sharding))
    copied = values.nbytes < _LEAST_PUT
    return cast(object, jax.numpy.array(values) if copied else jax.device_put(values))


@cache
def _kind(made_by: type[DLPackKind], *, is_host: bool) -> Kind:
    """The single instance of a kind; CUDA kinds are made only once cupy has been imported."""
    if is_host:
        return made_by(NUMPY)
    from .cuda import CUPY, ensure_cupy

    ensure_cupy()
    return made_by(CUPY)


def choose_jax(name: str, array: Any) -> Kind:
    """Chooses by the array's platform; refuses traced arrays, which have none."""
    if isinstance(array, sys.modules["jax"].core.Tracer):
        raise UnsupportedTypeError(
            f"{name}: found a traced array of JAX, which holds no elements yet; call gpusort outside of jit and vmap"
        )
    devices = array.devices()
    if len(devices) > 1:
        raise UnsupportedTypeError(f"{name}: found an array of JAX on {len(devices)} devices; gather it on one")
    (device,) = devices
    if device.platform == "cpu":
        return _kind(JaxKind, is_host=True)
    if device.platform in ("gpu", "cuda"):
        return _kind(JaxKind, is_host=False)
    raise UnsupportedTypeError(f"{name}: expected an array of JAX on the CPU or a CUDA device, found {device}")


def choose(name: str, array: Any) -> Kind:
    """Chooses by the device type that DLPack reports."""
    try:
        kind = int(array.__dlpack_device__()[0])
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise _refused(name, array, str(error)) from error
    if kind in _ON_HOST:
        return _kind(DLPackKind, is_host=True)
    if kind in _ON_CUDA:
        return _kind(DLPackKind, is_host=False)
    raise _refused(name, array, f"it lies in memory of DLPack's kind {kind}")


def _refused(name: str, array: object, why: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"{name}: expected a dense array of a dtype that NumPy has, on the CPU or a CUDA device; found "
        f"{type(array).__name__} ({why})"
    )


@lru_cache(maxsize=64)
def _handover_to(library: Hashable) -> Handover:
    """The `from_dlpack` of an array class's library."""
    package = sys.modules.get(library.__module__.partition(".")[0])
    for place in (package, *(getattr(package, name, None) for name in ("dlpack", "utils"))):
        found = getattr(place, "from_dlpack", None)
        if callable(found):
            return cast(Handover, found)
    return lambda values: values
