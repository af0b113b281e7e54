"""Converts the caller's arrays to ranks' device arrays, and results back to the caller's library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import attrs

from ..arrays.kinds import Kind, is_viewed
from ..arrays.registry import recognised
from ..external.cuts import Array
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.specs import Memory as Where
from ..types.specs import Spec
from .memory import CudaMemory, Memory


@attrs.frozen(eq=False)
class RankArray:
    """One of the caller's arrays, checked."""

    kind: Kind
    array: Any
    spec: Spec

    @classmethod
    def of(cls, name: str, x: object) -> RankArray:
        kind, array = recognised(name, x)
        spec = kind.spec(name, array)
        if len(spec.shape) != 1:
            raise InvalidArgumentError(f"{name}: expected an array of one dimension, found shape {spec.shape}")
        if spec.memory not in (Where.HOST, Where.CUDA):
            raise UnsupportedTypeError(
                f"{name}: expected an array on the host or on a CUDA device, found {type(x).__name__}"
            )
        return cls(kind, array, spec)

    @property
    def seen(self) -> Array:
        """The same memory as a NumPy or cupy array."""
        if is_viewed(self.kind):
            return cast(Array, self.kind.view(self.array))
        if self.spec.memory is Where.HOST:
            return cast(Array, self.array)
        import cupy

        if isinstance(self.array, cupy.ndarray):  # asarray would copy it to the current device
            return cast(Array, self.array)
        with cupy.cuda.Device(self.array.get_device()):
            return cast(Array, cupy.asarray(self.array))

    @property
    def memory(self) -> Memory:
        if self.spec.memory is Where.HOST:
            return Memory()
        import cupy

        device = cast("cupy.ndarray", self.seen).data.device_id
        return CudaMemory(device, lambda: self.kind.scope(self.array) or cupy.cuda.Device(device))

    def given_back(self, values: Array) -> object:
        """A result as an array of the caller's library, without a copy."""
        if is_viewed(self.kind):
            return self.kind.given_back(values, self.array)
        if self.spec.memory is Where.CUDA and type(self.array).__module__.split(".")[0] == "torch":
            return cast(Any, sys.modules["torch"]).as_tensor(values, device=self.array.device)
        return values


def rank_arrays(name: str, parts: Sequence[object]) -> list[RankArray]:
    """Checks one array for each rank: all of one dtype and in one kind of memory."""
    if not isinstance(cast(object, parts), Sequence) or isinstance(parts, str | bytes):
        raise UnsupportedTypeError(
            f"{name}: expected a list of arrays, one for each device, found {type(parts).__name__}"
        )
    if not parts:
        raise InvalidArgumentError(f"{name}: expected one array or more, found none")
    found = [RankArray.of(f"{name}[{number}]", part) for number, part in enumerate(parts)]
    first = found[0].spec
    for number, one in enumerate(found):
        if (one.spec.dtype, one.spec.memory) != (first.dtype, first.memory):
            raise InvalidArgumentError(
                f"{name}[{number}]: expected {first.dtype} on {first.memory.value}, as {name}[0] is, found "
                f"{one.spec.dtype} on {one.spec.memory.value}"
            )
    return found
