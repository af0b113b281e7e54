"""A rank's memory, the host's (NumPy) or a CUDA device's (cupy): allocation, copies between ranks, events; and the
caller's arrays in it, whose results are given back as of their library.

Both are typed as NumPy's arrays, of one dimension: cupy's have the same methods, as far as they are used here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, TypeAlias, cast

import attrs
import numpy as np

from ..arrays.kinds import Kind
from ..arrays.registry import recognised
from ..external.cuts import Array
from ..targets.base import Target
from ..targets.registry import choose
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.libraries import cupy
from ..types.specs import Memory as Where
from ..types.specs import Spec

Mark: TypeAlias = "cupy.cuda.Event | None"  # None on the host


@attrs.frozen
class Memory:
    """The host's memory, where work is synchronous: there is nothing to mark or to wait for."""

    where: ClassVar[Where] = Where.HOST

    def target(self) -> Target:
        """The target for kernels on this memory."""
        return choose("auto", self.where)

    def empty(self, count: int, dtype: np.dtype[Any]) -> Array:
        return np.empty(count, dtype)

    def from_host(self, values: Array) -> Array:
        """The values copied to this memory; the array itself on the host."""
        return values

    def to_host(self, array: Array) -> Array:
        """The array copied to the host; itself if it is there."""
        return array

    def scope(self) -> AbstractContextManager[object]:
        """Makes this rank's device and stream current."""
        return nullcontext()

    def mark(self) -> Mark:
        """Records an event after this rank's queued work."""
        return None

    def copy(self, target: Array, source: Array, after: tuple[Mark, Mark]) -> Mark:
        """Queues a copy from a rank of this process, after two events; returns the event of its completion."""
        np.copyto(target, source)
        return None

    def wait(self, mark: Mark) -> None:
        """Makes this rank's stream wait for an event."""

    def finish_copies(self) -> None:
        """Waits until no queued copy writes to this memory: what is freed before would be used anew meanwhile."""


@attrs.frozen
class CudaMemory(Memory):
    """A CUDA device's memory. Copies from each other device have a stream of their own, to run concurrently."""

    where: ClassVar[Where] = Where.CUDA
    device: int
    _scope: Callable[[], AbstractContextManager[object]]
    _streams: dict[int, cupy.cuda.Stream] = attrs.field(factory=dict[int, Any], eq=False)

    def empty(self, count: int, dtype: np.dtype[Any]) -> Array:
        return cast(Array, cupy.empty(count, dtype))

    def from_host(self, values: Array) -> Array:
        return cast(Array, cupy.asarray(values))

    def to_host(self, array: Array) -> Array:
        return cast("cupy.ndarray", array).get()

    def scope(self) -> AbstractContextManager[object]:
        return self._scope()

    def mark(self) -> Mark:
        with self.scope():
            return cupy.cuda.get_current_stream().record()

    def copy(self, target: Array, source: Array, after: tuple[Mark, Mark]) -> Mark:
        to, of = cast("cupy.ndarray", target), cast("cupy.ndarray", source)
        there = of.data.device_id
        with self.scope():
            stream = self._streams.get(there) or self._stream_from(there)
            for mark in after:
                if mark is not None:
                    stream.wait_event(mark)
            cupy.cuda.runtime.memcpyPeerAsync(to.data.ptr, self.device, of.data.ptr, there, of.nbytes, stream.ptr)
            return stream.record()

    def wait(self, mark: Mark) -> None:
        with self.scope():
            if mark is not None:
                cupy.cuda.get_current_stream().wait_event(mark)

    def finish_copies(self) -> None:
        with self.scope():
            for stream in self._streams.values():
                stream.synchronize()

    def _stream_from(self, there: int) -> cupy.cuda.Stream:
        """The stream for copies from a device, with peer access enabled where possible."""
        runtime = cupy.cuda.runtime
        if there != self.device and runtime.deviceCanAccessPeer(self.device, there):
            try:
                runtime.deviceEnablePeerAccess(there)
            except runtime.CUDARuntimeError as error:
                if "PeerAccessAlreadyEnabled" not in str(error):
                    raise
        stream = self._streams[there] = cupy.cuda.Stream(non_blocking=True)
        return stream


@attrs.frozen(eq=False)
class RankArray:
    """One of the caller's arrays, checked."""

    kind: Kind
    array: Any
    spec: Spec

    @classmethod
    def of(cls, name: str, x: object) -> RankArray:
        kind, array = recognised(name, x)
        spec = None if kind.is_deferred else kind.spec(name, array)
        if spec is None or spec.memory not in (Where.HOST, Where.CUDA):
            raise UnsupportedTypeError(
                f"{name}: expected an array on the host or on a CUDA device, found {type(x).__name__}"
            )
        if len(spec.shape) != 1:
            raise InvalidArgumentError(f"{name}: expected an array of one dimension, found shape {spec.shape}")
        return cls(kind, array, spec)

    @property
    def seen(self) -> Array:
        """The same memory as a NumPy or cupy array."""
        seen = self.kind.view(self.array)
        if self.spec.memory is Where.HOST or isinstance(seen, cupy.ndarray):
            return cast(Array, seen)
        # A copy of cupy's asarray would be on the current device.
        with cupy.cuda.Device(self.array.get_device()):
            return cast(Array, cupy.asarray(self.array))

    @property
    def memory(self) -> Memory:
        if self.spec.memory is Where.HOST:
            return Memory()
        device = cast("cupy.ndarray", self.seen).data.device_id
        return CudaMemory(device, lambda: self.kind.scope(self.array))

    def given_back(self, values: Array) -> object:
        """A result as an array of the caller's library, without a copy."""
        if self.spec.memory is Where.CUDA and type(self.array).__module__.split(".")[0] == "torch":
            return cast(Any, sys.modules["torch"]).as_tensor(values, device=self.array.device)
        return self.kind.result(values, self.array)


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
