"""What is known of other libraries' arrays: only what is used of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self

from .kinds import HostArray


class OnCard(Protocol):
    """Any library's array on a CUDA device."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]: ...


class Tensor(Protocol):
    """A torch tensor."""

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


class InBuffer(Protocol):
    """An array of `gpusort.webgpu`."""

    @property
    def buffer(self) -> object: ...
    @property
    def offset(self) -> int: ...
    def to_numpy(self) -> HostArray: ...
