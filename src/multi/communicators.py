"""Communicators for NCCL (through cupy) and for torch.distributed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np

from ..external.agreed_cuts import HostArray
from ..types.errors import UnsupportedTypeError
from .driving import Communicator
from .memory import DeviceArray

if TYPE_CHECKING:
    import cupy

_BYTES = 0  # ncclInt8


def communicator_of(given: object) -> Communicator:
    """Wraps the caller's communicator. Raises UnsupportedTypeError."""
    if isinstance(given, Communicator):
        return given
    kind = type(given)
    if kind.__name__ == "NcclCommunicator":
        return NcclCommunicator(cast(Any, given))
    if kind.__name__.startswith("ProcessGroup") and "torch" in sys.modules:
        return TorchCommunicator(cast(Any, given))
    raise UnsupportedTypeError(
        "communicator: expected cupy's NcclCommunicator, a process group of torch.distributed, or an object with rank, "
        f"size, gather and exchange; found {kind.__name__}"
    )


def padded(values: HostArray, lengths: Sequence[int]) -> HostArray:
    """The values' bytes, zero-padded to the greatest length, as all-gathers need equal sizes."""
    room = np.zeros(max(lengths), np.uint8)
    room[: values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return room


def unpadded(rows: HostArray, lengths: Sequence[int], dtype: np.dtype[Any]) -> list[HostArray]:
    """Undoes `padded` for all ranks' rows."""
    return [row[:length].view(dtype) for row, length in zip(rows, lengths, strict=True)]


@attrs.frozen(eq=False)
class NcclCommunicator:
    """Wraps `cupy.cuda.nccl.NcclCommunicator`, on the current device and stream."""

    nccl: Any  # cupy has no types for it, and may be built without it

    @property
    def rank(self) -> int:
        return int(self.nccl.rank_id())

    @property
    def size(self) -> int:
        return int(self.nccl.size())

    def gather(self, values: HostArray) -> list[HostArray]:
        lengths = self._gathered(np.array([values.nbytes], np.int64).view(np.uint8)).view(np.int64).reshape(-1).tolist()
        if not any(lengths):
            return [values[:0]] * self.size
        return unpadded(self._gathered(padded(values, lengths)), lengths, values.dtype)

    def exchange(self, pieces: Sequence[DeviceArray], received: Sequence[DeviceArray]) -> None:
        import cupy

        stream = cupy.cuda.get_current_stream().ptr
        nccl = cast(Any, cupy.cuda).nccl
        nccl.groupStart()
        for other, (piece, room) in enumerate(zip(pieces, received, strict=True)):
            if len(piece):
                self.nccl.send(cast("cupy.ndarray", piece).data.ptr, piece.nbytes, _BYTES, other, stream)
            if len(room):
                self.nccl.recv(cast("cupy.ndarray", room).data.ptr, room.nbytes, _BYTES, other, stream)
        nccl.groupEnd()

    def _gathered(self, values: HostArray) -> HostArray:
        """All-gathers arrays of one size in bytes."""
        import cupy

        mine = cupy.asarray(values)
        everyones = cupy.empty((self.size, values.nbytes), np.dtype(np.uint8))
        stream = cupy.cuda.get_current_stream()
        self.nccl.allGather(mine.data.ptr, everyones.data.ptr, values.nbytes, _BYTES, stream.ptr)
        return everyones.get()


@attrs.frozen(eq=False)
class TorchCommunicator:
    """Wraps a torch.distributed process group: NCCL for arrays on CUDA devices, Gloo for host arrays."""

    group: Any  # torch is no dependency

    @property
    def rank(self) -> int:
        return int(self.group.rank())

    @property
    def size(self) -> int:
        return int(self.group.size())

    def gather(self, values: HostArray) -> list[HostArray]:
        found: list[Any] = [None] * self.size
        _torch().distributed.all_gather_object(found, values, group=self.group)
        return cast("list[HostArray]", found)

    def exchange(self, pieces: Sequence[DeviceArray], received: Sequence[DeviceArray]) -> None:
        distributed = _torch().distributed
        as_bytes = [[self._tensor(array) for array in arrays] for arrays in (pieces, received)]
        waits: list[Any] = []
        for other in range(self.size):
            there = distributed.get_global_rank(self.group, other)
            if len(pieces[other]):
                waits.append(distributed.P2POp(distributed.isend, as_bytes[0][other], there, self.group))
            if len(received[other]):
                waits.append(distributed.P2POp(distributed.irecv, as_bytes[1][other], there, self.group))
        for request in distributed.batch_isend_irecv(waits) if waits else ():
            request.wait()

    @staticmethod
    def _tensor(array: DeviceArray) -> Any:
        """A torch tensor of bytes on the same memory."""
        torch = _torch()
        viewed = cast("np.ndarray[tuple[int], np.dtype[Any]]", array).view(np.uint8)
        return torch.from_numpy(viewed) if isinstance(array, np.ndarray) else torch.as_tensor(viewed, device="cuda")


def _torch() -> Any:
    """torch, which the caller has imported."""
    return sys.modules["torch"]
