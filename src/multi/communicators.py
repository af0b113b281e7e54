"""Communication between processes: the protocol, communicators for NCCL (through cupy) and torch.distributed, and what
ranks tell one another beside elements."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import attrs
import numpy as np

from ..external.cuts import Array
from ..types.errors import InvalidArgumentError, RankFailedError, UnsupportedTypeError
from ..types.libraries import cupy

_BYTES = 0  # ncclInt8
_FIRST = 256  # bytes that each rank tells at first: how many it has, and as many of them as fit
_LENGTH = 8
_LOOKS = 256  # without a pause: some hundred microseconds
_PAUSE = 2e-5  # seconds


@runtime_checkable
class Communicator(Protocol):
    """Collective communication between processes with one rank each. All make the same calls in the same order."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def gather(self, values: Array, /) -> Sequence[Array]:
        """All-gather: every rank's bytes (uint8) on the host, in the order of ranks. One-dimensional, of any lengths
        but 0."""
        ...

    def exchange(self, pieces: Sequence[Array], received: Sequence[Array], /) -> None:
        """All-to-all: sends a piece to every rank and receives one from each, contiguous, ordered with the current
        stream. Pieces may be empty; a rank's piece to itself is."""
        ...


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

    def gather(self, values: Array) -> list[Array]:
        return _gather_bytes(self._gathered, values)

    def exchange(self, pieces: Sequence[Array], received: Sequence[Array]) -> None:
        stream = cupy.cuda.get_current_stream().ptr
        nccl = cast(Any, cupy.cuda).nccl
        nccl.groupStart()
        for other, (piece, room) in enumerate(zip(pieces, received, strict=True)):
            if len(piece):
                self.nccl.send(cast("cupy.ndarray", piece).data.ptr, piece.nbytes, _BYTES, other, stream)
            if len(room):
                self.nccl.recv(cast("cupy.ndarray", room).data.ptr, room.nbytes, _BYTES, other, stream)
        nccl.groupEnd()

    def _gathered(self, values: Array) -> Array:
        """All-gathers bytes, as many from each rank, into rows."""
        mine = cupy.asarray(values)
        everyones = cupy.empty((self.size, values.size), np.dtype(np.uint8))
        stream = cupy.cuda.get_current_stream()
        self.nccl.allGather(mine.data.ptr, everyones.data.ptr, values.size, _BYTES, stream.ptr)
        event = stream.record()
        _wait_until(lambda: bool(event.done))
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

    def gather(self, values: Array) -> list[Array]:
        return _gather_bytes(self._gathered, values)

    def exchange(self, pieces: Sequence[Array], received: Sequence[Array]) -> None:
        distributed = _torch().distributed
        messages: list[Any] = []
        for other in range(self.size):
            there = distributed.get_global_rank(self.group, other)
            for send, array in ((distributed.isend, pieces[other]), (distributed.irecv, received[other])):
                if len(array):
                    messages.append(distributed.P2POp(send, self._tensor(array), there, self.group))
        for request in distributed.batch_isend_irecv(messages) if messages else ():
            request.wait()

    def _gathered(self, values: Array) -> Array:
        """All-gathers bytes, as many from each rank, into rows."""
        torch = _torch()
        by_host = "gloo" in torch.distributed.get_backend_config(self.group)
        mine = torch.as_tensor(values, device="cpu" if by_host else "cuda")
        everyones = [torch.empty_like(mine) for _ in range(self.size)]
        work = torch.distributed.all_gather(everyones, mine, group=self.group, async_op=True)
        _wait_until(lambda: bool(work.is_completed()))
        work.wait()  # raises what the collective call has raised
        found: Array = torch.stack(everyones).cpu().numpy()
        return found

    @staticmethod
    def _tensor(array: Array) -> Any:
        """A torch tensor of bytes on the same memory."""
        torch, viewed = _torch(), array.view(np.uint8)
        is_host = isinstance(cast(object, array), np.ndarray)
        return torch.from_numpy(viewed) if is_host else torch.as_tensor(viewed, device="cuda")


def _gather_bytes(gather: Callable[[Array], Array], values: Array) -> list[Array]:
    """All ranks' bytes, of any lengths, by collectives that need as many from each: by one if they are few."""
    room = np.zeros(_FIRST, np.uint8)
    room[:_LENGTH] = np.array([values.size], np.int64).view(np.uint8)
    room[_LENGTH : _LENGTH + values.size] = values[: _FIRST - _LENGTH]
    told = gather(room)
    sizes = told[:, :_LENGTH].copy().view(np.int64)[:, 0].tolist()
    rows = told[:, _LENGTH:]
    if max(sizes) > rows.shape[1]:
        room = np.zeros(max(sizes), np.uint8)
        room[: values.size] = values
        rows = gather(room)
    return [row[:size] for row, size in zip(rows, sizes, strict=True)]


def _wait_until(is_done: Callable[[], bool]) -> None:
    """Waits in Python, where an interrupt is seen: in a call of the library it is not, and where a rank is gone that
    call never ends."""
    looks = 0
    while not is_done():
        looks += 1
        if looks > _LOOKS:
            time.sleep(_PAUSE)


def _torch() -> Any:
    """torch, which the caller has imported."""
    return sys.modules["torch"]


_VALUES, _REFUSED, _FAILED = range(3)  # the last byte of what a rank tells


def gathered(communicator: Communicator, values: Array) -> list[Array]:
    """All ranks' values, of one dtype. Raises an error on every rank if one has failed.

    A rank that refuses its arguments, or fails on the way, would leave the others waiting for it. So every gather has a
    byte more from each rank, which says whether its values follow or why there are none.
    """
    told = [np.asarray(one) for one in _told(communicator, values, _VALUES)]
    for rank, one in enumerate(told):
        if one[-1] == _REFUSED:
            raise InvalidArgumentError(f"communicator: rank {rank} has refused its arguments")
        if one[-1] == _FAILED:
            raise RankFailedError(f"communicator: rank {rank} has failed: {one[:-1].tobytes().decode()}")
    return [one[:-1].copy().view(values.dtype) for one in told]


def tell_failure(communicator: Communicator, error: BaseException) -> None:
    """Tells all ranks, in the gather that they are at or will come to, that this one raises an error."""
    refuses = isinstance(error, InvalidArgumentError | UnsupportedTypeError)
    text = np.frombuffer(f"{type(error).__name__}: {error}".encode(), np.uint8)
    _told(communicator, text, _REFUSED if refuses else _FAILED)


def agreed_lengths(communicator: Communicator, length: int, call: Sequence[object]) -> list[int]:
    """The lengths of all ranks' arrays. Raises InvalidArgumentError on every rank if one was called otherwise than
    others: `call` says how, in words that do not depend on the process. Ranks of different dtypes or orders would
    exchange bytes that mean something else to the receiver."""
    digest = int.from_bytes(hashlib.sha256(repr(tuple(call)).encode()).digest()[:7], "little")
    told = np.stack(gathered(communicator, np.array([length, digest], np.int64)))
    mine = told[communicator.rank, 1]
    others = np.flatnonzero(told[:, 1] != mine).tolist()
    if (told[:, 1] != told[0, 1]).any():
        raise InvalidArgumentError(
            "communicator: expected the same function on every rank, with the same arguments but for the elements, and "
            f"arrays of the same dtypes; rank {communicator.rank} was called otherwise than {others[0]}"
        )
    lengths: list[int] = told[:, 0].tolist()
    return lengths


def _told(communicator: Communicator, values: Array, how: int) -> Sequence[Array]:
    return communicator.gather(np.append(np.ascontiguousarray(values).view(np.uint8), np.uint8(how)))
