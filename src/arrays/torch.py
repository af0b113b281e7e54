"""torch tensors, on the CPU and on CUDA devices, without their history."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy import asarray, ndarray

from ..forks import require_own_process
from ..types.errors import UnsupportedTypeError
from ..types.libraries import cupy
from ..types.specs import DType, HostArray, Memory, Shape, Spec, packed_strides
from .host import NUMPY
from .kinds import ALIGNMENT, BEYOND_ALIGNED, IN_SCOPE, ArrayKind, Device, Kind, Located, Viewed, pieces_maker

if TYPE_CHECKING:
    import torch

_DTYPES = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
           "float16", "float32", "float64", "complex64", "complex128")  # fmt: skip

# Of such tensors torch's numpy() gives an array of NumPy's own, with anything in it.
_NO_MEMORY = "it has no memory, or that was freed"

EmptyStrided: TypeAlias = "Callable[[tuple[int, ...], tuple[int, ...], Hashable], torch.Tensor]"


class TorchKind(ArrayKind["torch.Tensor"]):
    """What all tensors have in common.

    torch's gradients know nothing of what is written here. So a tensor is not written to while its gradient is
    recorded; and what was saved for another's gradient is told to have changed, so that torch refuses to use it.
    """

    read_only = "one that requires grad, with no gradient for this: call under torch.no_grad(), or detach() it"

    def __init__(self, library: ModuleType) -> None:
        self._library = library
        self._tell: Callable[[torch.Tensor], None] = library.autograd.graph.increment_version
        self._from_numpy: Callable[[HostArray], torch.Tensor] = library.from_numpy  # looked up once
        named = {name: getattr(library, name, None) for name in _DTYPES}  # early versions have fewer
        self._dtypes: dict[Hashable, DType] = {found: np.dtype(name) for name, found in named.items() if found}
        self._dtypes[library.bool] = np.dtype(np.bool_)
        self._of_numpy = {dtype: found for found, dtype in self._dtypes.items()}

    def is_read_only(self, array: torch.Tensor) -> bool:
        return array.requires_grad and cast(bool, self._library.is_grad_enabled())

    def tell_written(self, arrays: Sequence[object]) -> None:
        for array in arrays:
            if isinstance(array, self._library.Tensor):  # states of several fields are NumPy's
                self._tell(cast("torch.Tensor", array))

    def _refused(self, name: str, array: torch.Tensor, error: Exception) -> UnsupportedTypeError:
        why = f" ({error})" if array.dtype in self._dtypes else ""
        if not why and getattr(array.dtype, "is_floating_point", False):  # bfloat16 and the like
            why = ", whose .float() has the same numbers"
        return UnsupportedTypeError(
            f"{name}: expected a dense torch tensor of a dtype that NumPy has, on the CPU or a CUDA device, outside of "
            f"torch.vmap and torch.func; found {array.dtype} on {array.device}{why}"
        )


class HostTensors(TorchKind, Viewed["torch.Tensor", HostArray]):
    """Tensors in the host's memory."""

    is_host, base = True, NUMPY

    def view(self, array: torch.Tensor, name: str = "x") -> HostArray:
        try:
            found: HostArray = (array.detach() if array.requires_grad else array).numpy()
            if found.flags.owndata and found.size:
                raise RuntimeError(_NO_MEMORY)
        except (TypeError, RuntimeError) as error:
            raise self._refused(name, array, error) from error
        return found

    def given_back(self, values: HostArray, like: torch.Tensor) -> object:
        try:
            return self._from_numpy(values if type(values) is ndarray else asarray(values))
        except TypeError:  # not asked before, as it takes time
            if values.dtype.names is None:
                raise
            return values

    result = given_back


class CudaTensors(TorchKind, Located["torch.Tensor"]):
    """Tensors on CUDA devices. Work goes to torch's current stream of the tensor's device."""

    def __init__(self, library: ModuleType) -> None:
        super().__init__(library)
        # torch's own compiler and Triton ask in this way: the public one builds an object, and takes ten times as long.
        handle = getattr(getattr(library, "_C", None), "_cuda_getCurrentRawStream", None)
        self._stream = cast("Callable[[int], int]", handle if handle is not None else self._stream_by_object)
        # What torch's compiler allocates with: the public function takes three times as long.
        guards = getattr(getattr(getattr(library, "_C", None), "_dynamo", None), "guards", None)
        self._empty_strided = cast("EmptyStrided | None", getattr(guards, "_empty_strided_cuda", None))

    def _stream_by_object(self, device: int) -> int:
        return cast(int, self._library.cuda.current_stream(device).cuda_stream)

    def signature(self, array: torch.Tensor) -> Hashable:
        require_own_process("cuda")
        try:
            strides = None if array.is_contiguous() else array.stride()
            aligned = _address_of(array) & BEYOND_ALIGNED
            put_off = array.is_neg(), array.is_conj()
            return array.dtype, array.shape, strides, array.get_device(), aligned, put_off
        except RuntimeError:
            return array.dtype, array.layout, type(array)

    def spec(self, name: str, array: torch.Tensor) -> Spec:
        try:
            if array.dtype not in self._dtypes or array.is_neg():
                raise RuntimeError("its sign is to be turned yet: call resolve_neg()")
            if array.is_conj():
                raise RuntimeError("its elements are to be conjugated yet: call resolve_conj()")
            is_packed, origin = array.is_contiguous(), _address_of(array) & BEYOND_ALIGNED
        except (TypeError, RuntimeError) as error:  # one that is not dense, or not there
            raise self._refused(name, array, error) from error
        dtype = self._dtypes[array.dtype]
        strides = None if is_packed else tuple(step * dtype.itemsize for step in array.stride())
        return Spec(tuple(array.shape), dtype, Memory.CUDA, strides, not origin & (dtype.itemsize - 1), origin)

    def scope(self, array: torch.Tensor) -> AbstractContextManager[object]:
        device = array.get_device()
        stream = self._stream(device)
        if cupy.cuda.runtime.getDevice() == device and cupy.cuda.get_current_stream().ptr == stream:
            return IN_SCOPE
        from .cuda import on_stream

        return on_stream(device, stream)

    def placed(self, like: torch.Tensor) -> Device[torch.Tensor]:
        place, device, stream, current = like.device, like.get_device(), self._stream, cupy.cuda.runtime.getDevice
        make, byte = self._maker(like), self._of_numpy[np.dtype(np.uint8)]

        def empty(shape: Shape, dtype: DType, strides: Shape | None) -> Callable[[], torch.Tensor]:
            size = dtype.itemsize
            steps = packed_strides(shape, 1) if strides is None else tuple(stride // size for stride in strides)
            return partial(make, shape, steps, self._of_numpy[dtype])

        def bytes_of(count: int) -> torch.Tensor:
            return make((count,), (1,), byte)

        address = type(like).data_ptr
        return Device(
            stream=lambda: stream(device) if current() == device else None, device=type(like).get_device,
            handle=address, address=address, empty=empty, scratch=partial(pieces_maker, bytes_of, address),
            from_host=lambda array: self._library.as_tensor(cupy.asarray(array), device=place),
            to_host=lambda array: array.cpu().numpy(), alignment=ALIGNMENT,
        )  # fmt: skip

    def _maker(self, like: torch.Tensor) -> EmptyStrided:
        """Makes tensors of a shape, strides and dtype on the current device, which is that of another."""
        library, device = self._library, like.device
        return self._empty_strided or (
            lambda shape, strides, dtype: library.empty_strided(shape, strides, dtype=dtype, device=device)
        )


def _address_of(array: torch.Tensor) -> int:
    address = array.data_ptr()
    if not address and array.numel():
        raise RuntimeError(_NO_MEMORY)
    return address


def choose(name: str, array: torch.Tensor) -> Kind:
    """Chooses between host and CUDA tensors; those on other devices are refused as host tensors."""
    return _kind(sys.modules["torch"], array.is_cuda)


@cache
def _kind(library: ModuleType, is_cuda: bool, /) -> Kind:
    if not is_cuda:
        return HostTensors(library)
    from .cuda import ensure_cupy

    ensure_cupy()
    return CudaTensors(library)
