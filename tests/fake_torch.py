"""As much of torch as gpusort uses, with CUDA devices that are the host's memory: for machines that have none."""

from __future__ import annotations

from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import numpy as np

from tests import fake_cupy

_NAMES = {np.dtype(name): f"torch.{name}" for name in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32",
          "uint64", "float16", "float32", "float64", "complex64", "complex128", "bool")}  # fmt: skip
BFLOAT16 = "torch.bfloat16"
streams = [0]  # the current one is the last


class Tensor:
    """NumPy's array on the CPU; on a CUDA device the fake cupy's."""

    def __init__(
        self, inside: Any, *, requires_grad: bool = False, dtype: str | None = None, neg: bool = False,
        conj: bool = False, elsewhere: str = "", freed: bool = False,
    ) -> None:  # fmt: skip
        self.inside, self.requires_grad = inside, requires_grad
        self.dtype = dtype or _NAMES[inside.dtype]
        self._neg, self._conj, self._elsewhere, self._freed = neg, conj, elsewhere, freed
        self.layout = "torch.strided"
        self.version = 0

    @property
    def is_cuda(self) -> bool:
        return isinstance(self.inside, fake_cupy.ndarray)

    @property
    def is_cpu(self) -> bool:
        return not self.is_cuda and not self._elsewhere

    @property
    def is_nested(self) -> bool:
        return False

    @property
    def device(self) -> str:
        return f"cuda:{self.inside.data.device_id}" if self.is_cuda else self._elsewhere or "cpu"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.inside.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.inside.itemsize for step in self.inside.strides)

    def is_contiguous(self) -> bool:
        return bool(self.inside.flags.c_contiguous)

    def is_neg(self) -> bool:
        return self._neg

    def is_conj(self) -> bool:
        return self._conj

    def numel(self) -> int:
        return int(self.inside.size)

    def data_ptr(self) -> int:
        return 0 if self._freed else int(self.inside.data.ptr if self.is_cuda else self.inside.ctypes.data)

    def get_device(self) -> int:
        return int(self.inside.data.device_id) if self.is_cuda else -1

    def detach(self) -> Self:
        return type(self)(self.inside)

    def cpu(self) -> Tensor:
        return Tensor(self.inside.get()) if self.is_cuda else self

    def numpy(self) -> Any:
        if not self.is_cpu:
            raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu()")
        if self.dtype == BFLOAT16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        for flaw, instead in (
            (self.requires_grad and "requires grad", "detach"),
            (self._neg and "is neg", "resolve_neg"),
            (self._conj and "is conj", "resolve_conj"),
        ):
            if flaw:
                raise RuntimeError(f"Can't call numpy() on Tensor that {flaw}. Use tensor.{instead}().numpy() instead.")
        return np.empty_like(self.inside) if self._freed else self.inside.view()

    def __getitem__(self, index: Any) -> Self:
        return type(self)(self.inside[index])

    def host(self) -> Any:
        return self.inside.host if self.is_cuda else self.inside


def _device(wanted: Any) -> int:
    return int(str(wanted).partition(":")[2] or 0)


def _empty(shape: tuple[int, ...], *, dtype: str, device: Any) -> Tensor:
    found = next(known for known, name in _NAMES.items() if name == dtype)
    if str(device) == "cpu":
        return Tensor(np.empty(shape, found))
    with fake_cupy.Device(_device(device)):
        return Tensor(fake_cupy.ndarray(shape, found))


def _empty_strided(shape: tuple[int, ...], strides: tuple[int, ...], *, dtype: str, device: Any) -> Tensor:
    found = next(known for known, name in _NAMES.items() if name == dtype)
    with fake_cupy.Device(_device(device)):
        memory = fake_cupy.alloc_quietly(max(1, int(np.prod(shape))) * found.itemsize)
        return Tensor(fake_cupy.ndarray(shape, found, memory, tuple(step * found.itemsize for step in strides)))


def _empty_like(like: Tensor) -> Tensor:
    if not like.is_cuda:
        return Tensor(np.empty_like(like.inside))
    with fake_cupy.Device(like.get_device()):
        return Tensor(fake_cupy.empty_like(like.inside))


def _from_numpy(array: Any) -> Tensor:
    if array.dtype.names is not None or array.dtype.kind in "mM":
        raise TypeError(f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}.")
    return Tensor(array)


def _as_tensor(values: Any, *, device: Any) -> Tensor:
    assert values.data.device_id == _device(device)
    return Tensor(values)


def _increment_version(tensor: Tensor) -> None:
    tensor.version += 1


@contextmanager
def stream(pointer: int) -> Any:
    streams.append(pointer)
    try:
        yield
    finally:
        streams.pop()


def _current_stream(device: int) -> int:
    return streams[-1]


def module() -> ModuleType:
    """The fake, to be put into sys.modules."""
    torch = ModuleType("torch")
    vars(torch).update({name.partition(".")[2]: name for name in _NAMES.values()})
    vars(torch).update(
        Tensor=Tensor, bfloat16=BFLOAT16, from_numpy=_from_numpy, as_tensor=_as_tensor, empty=_empty,
        empty_like=_empty_like,
        empty_strided=_empty_strided, is_grad_enabled=lambda: True,
        autograd=SimpleNamespace(graph=SimpleNamespace(increment_version=_increment_version)),
        _C=SimpleNamespace(_cuda_getCurrentRawStream=_current_stream),
    )  # fmt: skip
    return torch
