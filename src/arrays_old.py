"""The arrays that callers hand in and get back: NumPy's and lists here, those of a card in arrays_cuda.py.

The rest of the API sees an Operand: an array that can be laid out in rows, packed for a target, and handed back as
what it came as.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, Self, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from .reuse import new_array
from .targets.registry import Memory
from .types.dtypes import FloatBits, native
from .types.errors import InvalidArgumentError, UnsupportedTypeError

HostArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

KINDS = "a NumPy or cupy array, a torch tensor, a nested list, or anything with __cuda_array_interface__"


class Operand(ABC):
    """An array as the API works with it. Methods that return an Operand return one of the same memory."""

    memory: Memory

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[np.generic]: ...

    @property
    @abstractmethod
    def read_only(self) -> bool: ...

    @property
    @abstractmethod
    def owner(self) -> object:
        """The array as its library has it: what the caller handed in, or gets back."""

    @property
    @abstractmethod
    def address(self) -> int:
        """Of the first element."""

    @property
    @abstractmethod
    def strides(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def is_packed(self) -> bool:
        """Whether a target can work on it as it lies: C order, aligned, native byte order."""

    @abstractmethod
    def fresh(self) -> Operand:
        """A new array of the same kind, shape, dtype and, where it can be, order of axes; it holds anything."""

    @abstractmethod
    def blank(self, dtype: np.dtype[np.generic]) -> Operand:
        """A new array of the same kind and shape, in C order, of another dtype; it holds anything."""

    @abstractmethod
    def converted(self, dtype: np.dtype[np.generic]) -> Operand:
        """A new array of the same kind, with the values in another dtype."""

    @abstractmethod
    def taken(self, places: Operand) -> Operand:
        """A new array of the same kind, of the elements at these places; of one dimension."""

    @abstractmethod
    def flattened(self) -> Operand:
        """A new array of the same kind with the elements in C order."""

    @abstractmethod
    def along(self, axes: Sequence[int]) -> Operand:
        """A view with these axes last, in the order given."""

    @abstractmethod
    def pack(self) -> Operand:
        """A packed copy."""

    @abstractmethod
    def assign(self, source: Operand) -> None:
        """Copies the elements of an operand of the same kind and shape here."""

    @abstractmethod
    def rows(self, first: int, last: int, length: int, dtype: np.dtype[np.generic]) -> object:
        """Some rows of a packed operand, flat and seen as a dtype of the same size: what a target takes."""

    @abstractmethod
    def ties(self) -> tuple[object, object]:
        """The floats that are equal to others of different bits, in their order: zeros, then NaNs."""

    @abstractmethod
    def restore(self, ties: tuple[object, object]) -> None:
        """Puts those back, in their order, where sorting has left their likes."""

    @abstractmethod
    def empty(self, count: int, dtype: np.dtype[np.generic]) -> object:
        """Memory that a target can write so many results to."""

    @abstractmethod
    def to_host(self, results: object, dtype: np.dtype[np.generic]) -> HostArray:
        """Such results, as a NumPy array."""

    @abstractmethod
    def wrap(self, results: HostArray) -> object:
        """A NumPy array as one of the caller's kind."""

    def working(self) -> AbstractContextManager[object]:
        """Within it, work goes to the device and the stream of this array."""
        return nullcontext()


@attrs.frozen
class HostOperand(Operand):
    """An array of NumPy's, of any subclass."""

    values: HostArray
    memory = Memory.HOST

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.values.dtype

    @property
    def read_only(self) -> bool:
        return not self.values.flags.writeable

    @property
    def owner(self) -> object:
        return self.values

    @property
    def address(self) -> int:
        return self.values.ctypes.data

    @property
    def strides(self) -> tuple[int, ...]:
        return self.values.strides

    @property
    def is_packed(self) -> bool:
        return self.values.flags.c_contiguous and self.values.flags.aligned and self.dtype.isnative

    def fresh(self) -> Operand:
        plain = type(self.values) is np.ndarray and self.values.flags.c_contiguous
        return HostOperand(new_array(self.shape, self.dtype) if plain else np.empty_like(self.values))

    def blank(self, dtype: np.dtype[np.generic]) -> Operand:
        return HostOperand(new_array(self.values.shape, dtype))

    def _made(self, values: HostArray) -> Operand:
        """A new array as one of this kind."""
        return HostOperand(values)

    def converted(self, dtype: np.dtype[np.generic]) -> Operand:
        with np.errstate(over="ignore"):
            return self._made(self.values.astype(dtype))

    def taken(self, places: Operand) -> Operand:
        assert isinstance(places, HostOperand), "both are of one kind"
        return self._made(self.values[cast("npt.NDArray[np.int64]", places.values)])

    def flattened(self) -> Operand:
        return HostOperand(self.values.flatten())

    def along(self, axes: Sequence[int]) -> Operand:
        plain = np.asarray(self.values)  # a subclass may not have views of every shape: np.matrix has not
        others = [axis for axis in range(plain.ndim) if axis not in axes]
        return HostOperand(plain.transpose([*others, *axes]))

    def pack(self) -> Operand:
        return HostOperand(np.array(self.values, native(self.dtype), order="C"))

    def assign(self, source: Operand) -> None:
        assert isinstance(source, HostOperand), "both are of one kind"
        self.values[...] = source.values

    def rows(self, first: int, last: int, length: int, dtype: np.dtype[np.generic]) -> object:
        return self.values.reshape(-1)[first * length : last * length].view(dtype)

    def ties(self) -> tuple[object, object]:
        zeros, nans = self._tied()
        return self.values[zeros], self.values[nans]

    def restore(self, ties: tuple[object, object]) -> None:
        zeros, nans = self._tied()
        self.values[zeros] = cast(HostArray, ties[0])
        self.values[nans] = cast(HostArray, ties[1])

    def _tied(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Where the zeros are, and where the NaNs."""
        bits = FloatBits.of(self.dtype)
        magnitudes = self.values.view(bits.word) & bits.word.type(bits.magnitude)
        return magnitudes == 0, magnitudes > bits.word.type(bits.infinity)

    def empty(self, count: int, dtype: np.dtype[np.generic]) -> object:
        return np.empty(count, dtype)

    def to_host(self, results: object, dtype: np.dtype[np.generic]) -> HostArray:
        return cast(HostArray, results)

    def wrap(self, results: HostArray) -> object:
        return results[()]  # a NumPy scalar where there is but one


class OnCard(Protocol):
    """Any library's array on a CUDA device."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]: ...


# -- torch, of which only what is used here is known, and only once the caller has imported it -------------


class Tensor(Protocol):
    """What gpusort asks of a torch tensor."""

    @property
    def is_cuda(self) -> bool: ...
    @property
    def device(self) -> object: ...
    @property
    def dtype(self) -> object: ...
    def detach(self) -> Self: ...
    def clone(self) -> Self: ...
    def flatten(self) -> Self: ...
    def numpy(self) -> HostArray: ...
    def to(self, device: object, /) -> Self: ...


class Torch(Protocol):
    """What gpusort asks of the torch module."""

    def from_numpy(self, array: HostArray, /) -> Tensor: ...


def torch_of(x: object) -> Torch | None:
    """The torch module, where x is one of its tensors."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(x, getattr(torch, "Tensor", ())):
        return None
    return cast(Torch, torch)


@attrs.frozen
class TorchOperand(HostOperand):
    """A torch tensor in host memory; `values` is the same memory."""

    tensor: Tensor
    torch: Torch

    @classmethod
    def of(cls, name: str, tensor: Tensor, torch: Torch) -> TorchOperand:
        plain = tensor.detach()
        try:
            return cls(plain.numpy(), tensor, torch)
        except (TypeError, RuntimeError) as error:
            raise UnsupportedTypeError(
                f"{name}: expected a dense torch tensor of a dtype that NumPy has, on the CPU or a CUDA device; found "
                f"{plain.dtype} on {plain.device} ({error})"
            ) from error

    @property
    def owner(self) -> object:
        return self.tensor

    def fresh(self) -> Operand:
        return TorchOperand.of("x", self.tensor.detach().clone(), self.torch)

    def blank(self, dtype: np.dtype[np.generic]) -> Operand:
        return self._made(np.empty(self.values.shape, dtype))

    def _made(self, values: HostArray) -> Operand:
        return TorchOperand.of("x", self.torch.from_numpy(values), self.torch)

    def flattened(self) -> Operand:
        return TorchOperand.of("x", self.tensor.detach().flatten().clone(), self.torch)

    def wrap(self, results: HostArray) -> object:
        return self.torch.from_numpy(np.asarray(results))


# -- recognising ------------------------------------------------------------------------------------------


def operand(name: str, x: object) -> Operand:
    """The argument of this name, if it is an array of some kind that is known; nothing is copied but lists."""
    if isinstance(x, np.ma.MaskedArray):
        raise UnsupportedTypeError(f"{name}: masked arrays are not supported; fill or compress it first")
    if isinstance(x, np.ndarray):
        return HostOperand(cast(HostArray, x))
    torch = torch_of(x)
    if torch is not None and not cast(Tensor, x).is_cuda:
        return TorchOperand.of(name, cast(Tensor, x), torch)
    if torch is not None or hasattr(x, "__cuda_array_interface__"):
        from .arrays_cuda import device_operand

        return device_operand(name, x, torch)
    return HostOperand(_converted(name, x))


def kind_of(x: object) -> str:
    """What something is, for an error message."""
    return type(x).__name__


def _converted(name: str, x: object) -> HostArray:
    try:
        found = cast(HostArray, np.asanyarray(x))
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: expected {KINDS}; NumPy makes no array of it: {error}") from error
    except TypeError as error:
        raise UnsupportedTypeError(f"{name}: expected {KINDS}, found {kind_of(x)} ({error})") from error
    if found.shape == () and found.dtype.kind == "O":  # NumPy has not looked into it: a generator, a set, a dict, None
        hint = "; make a list of it" if hasattr(type(x), "__iter__") else ""
        raise UnsupportedTypeError(f"{name}: expected {KINDS}, found {kind_of(x)}{hint}")
    return found
