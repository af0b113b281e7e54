"""What the front asks of arrays in buffers of WebGPU."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager

from ..targets.recording import recording_into
from ..types.specs import Spec
from .kinds import ArrayKind, DType
from .webgpu import WEBGPU_SPACE, Array, current, current_device, new_array


class WebGpuKind(ArrayKind[Array, Array]):
    """Arrays on devices of WebGPU."""

    space = WEBGPU_SPACE

    def signature(self, array: Array) -> Hashable:
        return array.signature

    def spec(self, name: str, array: Array) -> Spec:
        return array.spec

    def empty(self, shape: tuple[int, ...], dtype: DType, like: Array) -> Array:
        return new_array(like.device, shape, dtype)

    def empty_like(self, like: Array) -> Array:
        return self.empty(like.shape, like.dtype, like)

    def memory(self, array: Array) -> object:
        return array

    def is_packed(self, array: Array) -> bool:
        return array.is_packed

    def is_read_only(self, array: Array) -> bool:
        return False

    def view(self, array: Array) -> Array:
        return array

    def given_back(self, values: Array, like: Array) -> object:
        return values

    def scope(self, array: Array) -> AbstractContextManager[object] | None:
        return None if current_device() is array.device else current(array.device)

    def device(self, array: Array) -> object | None:
        return array.device

    def are_apart(self, arrays: Sequence[Array], others: Sequence[Array]) -> bool:
        for other in others:
            for array in arrays:
                if array.buffer is other.buffer:
                    return False
        return True

    def recording(self, encoder: object) -> AbstractContextManager[object]:
        return recording_into(encoder)


WEBGPU = WebGpuKind()
