"""Where a rank's arrays lie, as far as the plan asks: on the host, as NumPy's, or on a CUDA device, as cupy's."""

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


Mark: TypeAlias = "cupy.cuda.Event | None"  # on the host what was started is done


class DeviceArray(Protocol):
    """An array of one dimension, NumPy's or cupy's."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def nbytes(self) -> int: ...

    def __len__(self) -> int: ...

    def view(self, dtype: np.dtype[Any], /) -> DeviceArray: ...

    def __getitem__(self, part: slice, /) -> Self: ...


class Memory(Protocol):
    """Who makes arrays for a rank."""

    is_device: ClassVar[bool]  # whether what is started goes on without the host

    def empty(self, count: int, dtype: np.dtype[Any]) -> DeviceArray: ...

    def of_host(self, values: np.ndarray[tuple[int, ...], np.dtype[Any]], /) -> DeviceArray:
        """A copy here, or the array itself if it lies here."""
        ...

    def target(self) -> Target:
        """Who runs kernels here."""
        ...

    def on_host(self, array: DeviceArray) -> np.ndarray[tuple[int], np.dtype[Any]]:
        """A copy on the host, or the array itself if it lies there."""
        ...

    def scope(self) -> AbstractContextManager[object]:
        """Within it, work is this rank's."""
        ...

    def mark(self) -> Mark:
        """What this rank's work has come to."""
        ...

    def copy(self, target: DeviceArray, source: DeviceArray, after: tuple[Mark, Mark], /) -> Mark:
        """Starts a copy into this memory from that of a rank of the process, after the work of both."""
        ...

    def wait(self, mark: Mark, /) -> None:
        """This rank's work goes on only then."""
        ...


@attrs.frozen
class HostMemory:
    """NumPy's."""

    is_device: ClassVar[bool] = False

    def empty(self, count: int, dtype: np.dtype[Any]) -> DeviceArray:
        return np.empty(count, dtype)

    def of_host(self, values: np.ndarray[tuple[int, ...], np.dtype[Any]], /) -> DeviceArray:
        return cast(DeviceArray, values)

    def target(self) -> Target:
        return choose("auto", Where.HOST)

    def on_host(self, array: DeviceArray) -> np.ndarray[tuple[int], np.dtype[Any]]:
        return cast("np.ndarray[tuple[int], np.dtype[Any]]", array)

    def scope(self) -> AbstractContextManager[object]:
        return nullcontext()

    def mark(self) -> Mark:
        return None

    def copy(self, target: DeviceArray, source: DeviceArray, after: tuple[Mark, Mark]) -> Mark:
        np.copyto(self.on_host(target), self.on_host(source))
        return None

    def wait(self, mark: Mark) -> None:
        pass


@attrs.frozen
class CudaMemory:
    """That of one CUDA device. Copies go over a stream of their own for each device they come from: on one stream they
    would wait for each other."""

    is_device: ClassVar[bool] = True
    device: int
    _scope: Callable[[], AbstractContextManager[object]]
    _streams: dict[int, cupy.cuda.Stream] = attrs.field(factory=dict[int, Any], eq=False)

    def empty(self, count: int, dtype: np.dtype[Any]) -> DeviceArray:
        import cupy

        return cupy.empty(count, dtype)

    def of_host(self, values: np.ndarray[tuple[int, ...], np.dtype[Any]], /) -> DeviceArray:
        import cupy

        return cupy.asarray(values)

    def target(self) -> Target:
        return choose("auto", Where.CUDA)

    def on_host(self, array: DeviceArray) -> np.ndarray[tuple[int], np.dtype[Any]]:
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
        """The stream of copies from a device, which is asked to let this one reach its memory."""
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
