"""A rank's memory, on the host (NumPy) or a CUDA device (cupy): allocation, copies between ranks, events."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, cast

import attrs
import numpy as np

from ..targets.base import Target
from ..targets.registry import choose
from ..types.specs import Memory as Where

if TYPE_CHECKING:
    import cupy


Mark: TypeAlias = "cupy.cuda.Event | None"  # None on the host, where work is synchronous


class DeviceArray(Protocol):
    """A one-dimensional NumPy or cupy array."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def nbytes(self) -> int: ...

    def __len__(self) -> int: ...

    def view(self, dtype: np.dtype[Any], /) -> DeviceArray: ...

    def __getitem__(self, part: slice, /) -> Self: ...


class Memory(Protocol):
    """The memory of one rank."""

    is_device: ClassVar[bool]  # whether work is asynchronous

    def empty(self, count: int, dtype: np.dtype[Any]) -> DeviceArray: ...

    def from_host(self, values: np.ndarray[tuple[int, ...], np.dtype[Any]], /) -> DeviceArray:
        """The values copied to this memory; the array itself on the host."""
        ...

    def target(self) -> Target:
        """The target for kernels on this memory."""
        ...

    def to_host(self, array: DeviceArray) -> np.ndarray[tuple[int], np.dtype[Any]]:
        """The array copied to the host; itself if it is there."""
        ...

    def scope(self) -> AbstractContextManager[object]:
        """Makes this rank's device and stream current."""
        ...

    def mark(self) -> Mark:
        """Records an event after this rank's queued work."""
        ...

    def copy(self, target: DeviceArray, source: DeviceArray, after: tuple[Mark, Mark], /) -> Mark:
        """Queues a copy from a rank of this process, after two events; returns the event of its completion."""
        ...

    def wait(self, mark: Mark, /) -> None:
        """Makes this rank's stream wait for an event."""
        ...


@attrs.frozen
class HostMemory:
    """Host memory."""

    is_device: ClassVar[bool] = False

    def empty(self, count: int, dtype: np.dtype[Any]) -> DeviceArray:
        return np.empty(count, dtype)

    def from_host(self, values: np.ndarray[tuple[int, ...], np.dtype[Any]], /) -> DeviceArray:
        return cast(DeviceArray, values)

    def target(self) -> Target:
        return choose("auto", Where.HOST)

    def to_host(self, array: DeviceArray) -> np.ndarray[tuple[int], np.dtype[Any]]:
        return cast("np.ndarray[tuple[int], np.dtype[Any]]", array)

    def scope(self) -> AbstractContextManager[object]:
        return nullcontext()

    def mark(self) -> Mark:
        return None

    def copy(self, target: DeviceArray, source: DeviceArray, after: tuple[Mark, Mark]) -> Mark:
        np.copyto(self.to_host(target), self.to_host(source))
        return None

    def wait(self, mark: Mark) -> None:
        pass


@attrs.frozen
class CudaMemory:
    """A CUDA device's memory. Copies from each other device have a stream of their own, to run concurrently."""

    is_device: ClassVar[bool] = True
    device: int
    _scope: Callable[[], AbstractContextManager[object]]
    _streams: dict[int, cupy.cuda.Stream] = attrs.field(factory=dict[int, Any], eq=False)

    def empty(self, count: int, dtype: np.dtype[Any]) -> DeviceArray:
        import cupy

        return cupy.empty(count, dtype)

    def from_host(self, values: np.ndarray[tuple[int, ...], np.dtype[Any]], /) -> DeviceArray:
        import cupy

        return cupy.asarray(values)

    def target(self) -> Target:
        return choose("auto", Where.CUDA)

    def to_host(self, array: DeviceArray) -> np.ndarray[tuple[int], np.dtype[Any]]:
        return cast("np.ndarray[tuple[int], np.dtype[Any]]", cast("cupy.ndarray", array).get())

    def scope(self) -> AbstractContextManager[object]:
        return self._scope()

    def mark(self) -> Mark:
        import cupy

        with self.scope():
            mark = cupy.cuda.get_current_stream().record()
        return mark

    def copy(self, target: DeviceArray, source: DeviceArray, after: tuple[Mark, Mark]) -> Mark:
        import cupy

        to, of = cast("cupy.ndarray", target), cast("cupy.ndarray", source)
        there = of.data.device_id
        with self.scope():
            stream = self._streams.get(there) or self._stream_from(there)
            for mark in after:
                if mark is not None:
                    stream.wait_event(mark)
            cupy.cuda.runtime.memcpyPeerAsync(to.data.ptr, self.device, of.data.ptr, there, of.nbytes, stream.ptr)
            copied = stream.record()
        return copied

    def wait(self, mark: Mark) -> None:
        import cupy

        with self.scope():
            if mark is not None:
                cupy.cuda.get_current_stream().wait_event(mark)

    def _stream_from(self, there: int) -> cupy.cuda.Stream:
        """The stream for copies from a device, with peer access enabled where possible."""
        import cupy

        runtime = cupy.cuda.runtime
        if there != self.device and runtime.deviceCanAccessPeer(self.device, there):
            try:
                runtime.deviceEnablePeerAccess(there)
            except runtime.CUDARuntimeError as error:
                if "PeerAccessAlreadyEnabled" not in str(error):
                    raise
        stream = self._streams[there] = cupy.cuda.Stream(non_blocking=True)
        return stream
