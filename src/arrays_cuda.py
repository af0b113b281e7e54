"""Arrays on a CUDA device: cupy's, torch's, numba's, and any other that has __cuda_array_interface__.

All are seen as cupy arrays of the same memory. Results are of the caller's kind; where its library is not known to us,
they are cupy arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import cast

import attrs
import cupy
import numpy as np

from .arrays import HostArray, Operand, Tensor, Torch
from .forks import require_own_process
from .targets.cuda.arrays import OnDevice
from .targets.registry import Memory
from .types.dtypes import FloatBits
from .types.errors import UnsupportedTypeError


@attrs.frozen
class DeviceOperand(Operand):
    """An array on a card, as cupy sees it."""

    values: cupy.ndarray
    original: object
    hand_back: Callable[[cupy.ndarray], object]
    stream: int | None = None  # the one its owner works on, where that is not cupy's current one
    locked: bool = False
    memory = Memory.CUDA

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.values.dtype

    @property
    def read_only(self) -> bool:
        return self.locked

    @property
    def owner(self) -> object:
        return self.original

    @property
    def address(self) -> int:
        return self.values.data.ptr

    @property
    def strides(self) -> tuple[int, ...]:
        return self.values.strides

    @property
    def is_packed(self) -> bool:
        return self.values.flags.c_contiguous

    def _made(self, values: cupy.ndarray) -> Operand:
        return DeviceOperand(values, self.hand_back(values), self.hand_back, self.stream)

    def _seen(self, values: cupy.ndarray) -> Operand:
        """A view or a helper's array: the caller never gets it."""
        return DeviceOperand(values, values, _as_it_is, self.stream)

    def fresh(self) -> Operand:
        return self._made(cupy.empty_like(self.values))

    def blank(self, dtype: np.dtype[np.generic]) -> Operand:
        return self._made(cupy.empty(self.values.shape, dtype))

    def converted(self, dtype: np.dtype[np.generic]) -> Operand:
        return self._made(self.values.astype(dtype))

    def taken(self, places: Operand) -> Operand:
        assert isinstance(places, DeviceOperand), "both are of one kind"
        return self._made(self.values[places.values])

    def flattened(self) -> Operand:
        return self._made(self.values.ravel().copy())

    def along(self, axes: Sequence[int]) -> Operand:
        return self._seen(cupy.moveaxis(self.values, axes, range(-len(axes), 0)))

    def pack(self) -> Operand:
        return self._seen(self.values.copy(order="C"))

    def assign(self, source: Operand) -> None:
        assert isinstance(source, DeviceOperand), "both are of one kind"
        cupy.copyto(self.values, source.values)

    def rows(self, first: int, last: int, length: int, dtype: np.dtype[np.generic]) -> object:
        return self.values.reshape(-1)[first * length : last * length].view(dtype)

    def ties(self) -> tuple[object, object]:
        flat = self.values.ravel()
        zeros, nans = _tied(flat)
        return flat[zeros], flat[nans]

    def restore(self, ties: tuple[object, object]) -> None:
        flat = self.values.reshape(-1)
        zeros, nans = _tied(flat)
        flat[zeros] = cast(cupy.ndarray, ties[0])
        flat[nans] = cast(cupy.ndarray, ties[1])

    def empty(self, count: int, dtype: np.dtype[np.generic]) -> object:
        return cupy.empty(count * dtype.itemsize, np.uint8)  # cupy has no structured dtypes

    def to_host(self, results: object, dtype: np.dtype[np.generic]) -> HostArray:
        return cast(cupy.ndarray, results).get().view(dtype)

    def wrap(self, results: HostArray) -> object:
        return self.hand_back(cupy.asarray(results))

    def working(self) -> AbstractContextManager[object]:
        return self._at_work()

    @contextmanager
    def _at_work(self) -> Generator[None]:
        with self.values.device:
            if self.stream is None:
                yield
                return
            with cupy.cuda.Stream.from_external(_StreamOf(self.stream)):
                yield


def _tied(flat: cupy.ndarray) -> tuple[cupy.ndarray, cupy.ndarray]:
    """Where the zeros are, and where the NaNs."""
    bits = FloatBits.of(flat.dtype)
    magnitudes = flat.view(bits.word) & bits.word.type(bits.magnitude)
    return cupy.flatnonzero(magnitudes == 0), cupy.flatnonzero(magnitudes > bits.word.type(bits.infinity))


@attrs.frozen
class _StreamOf:
    """Another library's stream, as cupy wants to be shown it."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


def _as_it_is(values: cupy.ndarray) -> object:
    return values


def device_operand(name: str, x: object, torch: Torch | None) -> Operand:
    """An array on a card, whatever library it is from."""
    require_own_process("cuda")
    if isinstance(x, cupy.ndarray):
        return DeviceOperand(x, x, _as_it_is)
    if torch is not None:
        return _of_torch(name, cast(Tensor, x))
    if not isinstance(x, OnDevice):
        raise UnsupportedTypeError(f"{name}: __cuda_array_interface__ is not there after all on {type(x).__name__}")
    interface = x.__cuda_array_interface__
    values = _seen_by_cupy(name, x)
    locked = bool(interface["data"][1])
    return DeviceOperand(values, x, _maker_of(x), interface.get("stream"), locked)


def _seen_by_cupy(name: str, x: object) -> cupy.ndarray:
    try:
        return cupy.asarray(x)
    except (TypeError, ValueError) as error:
        raise UnsupportedTypeError(f"{name}: cupy does not take this {type(x).__name__}: {error}") from error


def _of_torch(name: str, tensor: Tensor) -> Operand:
    """A tensor on a card. torch hands cupy's memory on through the same interface, without a copy."""
    from_interface = cast("Callable[..., object]", getattr(sys.modules["torch"], "as_tensor"))  # noqa: B009  # no stub of torch to name it by

    def hand_back(values: cupy.ndarray) -> object:
        return from_interface(values, device=tensor.device)

    streams = getattr(sys.modules["torch"], "cuda")  # noqa: B009  # as above
    stream = cast(int, streams.current_stream(tensor.device).cuda_stream)
    return DeviceOperand(_seen_by_cupy(name, tensor.detach()), tensor, hand_back, stream)


def _maker_of(x: object) -> Callable[[cupy.ndarray], object]:
    """How a new array of x's kind is made over cupy's memory."""
    numba_cuda = sys.modules.get("numba.cuda")
    if numba_cuda is not None and type(x).__module__.startswith("numba."):
        return cast("Callable[[cupy.ndarray], object]", getattr(numba_cuda, "as_cuda_array"))  # noqa: B009  # only where numba is loaded
    return _as_it_is
