"""Out-of-core work on a device: host arrays larger than device memory are streamed through it in pieces.

Upload, kernels and download of successive pieces overlap in a pipeline. A row too long for one piece is sorted as files
are: sorted runs, exact splitters, buckets. Its elements travel to the device and back twice, and the runs take as much
host memory as the row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate, pairwise
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import attrs
import numpy as np

from ..algos.sizes import LARGEST_U32
from ..algos.words import Transform
from .agreed_cuts import held_cuts
from .cuts import Array
from .pipeline import run_pipeline

DType: TypeAlias = np.dtype[Any]
T = TypeVar("T")

# Pieces at least, unless they get too small: the first upload and the last download overlap with nothing.
_MOST = 12
_LEAST_BYTES = 1 << 26  # of a piece; a smaller one is not worth its overhead

_APART = 64  # bytes from the columns of runs to one another: a multiple of that


@attrs.frozen(eq=False)
class Piece(Generic[T]):
    """A piece of work: host inputs, the task on the device, and host outputs."""

    given: Sequence[Sequence[Array]]  # inputs, each the concatenation of some host arrays
    task: T
    left: Sequence[Array | None]  # the host array for each result; None if it is not downloaded


class PieceDevice(Protocol[T]):
    """A device with slots of memory for inputs and results. Calls are synchronous; `upload`, `work` and `download` are
    called from different threads at the same time."""

    def upload(self, slot: int, piece: Piece[T], /) -> None:
        """Uploads the inputs. May also touch (overwrite) the host arrays for results, to fault in their pages."""
        ...

    def work(self, slot: int, piece: Piece[T], /) -> None:
        """Runs the task, from the slot's inputs to its results."""
        ...

    def download(self, slot: int, piece: Piece[T], /) -> None:
        """Downloads the results."""
        ...

    def host_memory(self, nbytes: int, /) -> AbstractContextManager[Array]:
        """Uninitialised bytes on the host for what travels to the device and back."""
        ...


def each_through(device: PieceDevice[T], pieces: Sequence[Piece[T]]) -> None:
    """Streams all pieces through a device, in order."""

    def load(number: int, slot: int) -> None:
        device.upload(slot, pieces[number])

    def work(number: int, _: None, slot: int) -> None:
        device.work(slot, pieces[number])

    def keep(number: int, _: None, slot: int) -> None:
        device.download(slot, pieces[number])

    run_pipeline(range(len(pieces)), load, work, keep)


def piece_length(count: int, itemsize: int) -> int:
    """The preferred length of pieces, in elements, if device memory allows; at most what kernels can index."""
    return max(1, min(max(-(-count // _MOST), _LEAST_BYTES // max(1, itemsize)), count, LARGEST_U32))


@attrs.frozen(eq=False)
class PieceSort(Generic[T]):
    """The sort of one long row through a device: of a column of keys, and columns of values that go with them."""

    device: PieceDevice[T]
    words: Transform  # of keys, to compare runs by
    length: int  # of pieces
    to_run: Callable[[int, int], T]  # the task that sorts elements from a start on, of a count
    to_bucket: Callable[[int], T]  # the task that sorts a count of elements, concatenated slices of runs

    def into(self, source: Sequence[Array], out: Sequence[Array | None], columns: Sequence[DType]) -> None:
        """Sorts. `columns` are the dtypes of the runs' columns, which may be more than the source's; `out` has an array
        for each that is wanted. Those may be the source's: then after an exception they hold its elements in some
        order."""
        stretches = self._stretches(source[0].size)
        with self._held(source[0].size, columns) as held:
            each_through(
                self.device,
                [
                    Piece(
                        [[column[part]] for column in source],
                        self.to_run(part.start, part.stop - part.start),
                        [column[part] for column in held],
                    )
                    for part in stretches
                ],
            )
            try:
                self.merge([[column[part] for column in held] for part in stretches], out)
            except BaseException:
                for column, kept in zip(out, held, strict=True):
                    if column is not None and any(column.ctypes.data == given.ctypes.data for given in source):
                        np.copyto(column, kept)
                raise

    def merge(self, runs: Sequence[Sequence[Array]], out: Sequence[Array | None]) -> None:
        """Merges sorted runs of the same columns, in buckets by exact cuts: each element travels to the device and back
        once. `out` must not overlap with the runs."""
        stretches = self._stretches(sum(run[0].size for run in runs))
        sizes = [part.stop - part.start for part in stretches]
        cuts = held_cuts([run[0] for run in runs], sizes, self.words).tolist()
        each_through(
            self.device,
            [
                Piece(
                    [_between(column, lows, highs) for column in zip(*runs, strict=True)],
                    self.to_bucket(size),
                    [None if column is None else column[part] for column in out],
                )
                for part, size, (lows, highs) in zip(stretches, sizes, pairwise(cuts), strict=True)
            ],
        )

    @contextmanager
    def _held(self, count: int, columns: Sequence[DType]) -> Generator[list[Array]]:
        """Host memory for the runs, a column after the other."""
        sizes = [-(-count * dtype.itemsize // _APART) * _APART for dtype in columns]
        with self.device.host_memory(sum(sizes)) as memory:
            starts = accumulate(sizes, initial=0)
            yield [memory[start:][: count * d.itemsize].view(d) for start, d in zip(starts, columns, strict=False)]

    def _stretches(self, count: int) -> list[slice]:
        """Cuts 0..count into pieces of the length; the last may be shorter."""
        return [slice(start, min(start + self.length, count)) for start in range(0, count, self.length)]


def _between(column: Sequence[Array], lows: list[int], highs: list[int]) -> list[Array]:
    """Each run's slice between two cuts, without empty ones."""
    return [run[low:high] for run, low, high in zip(column, lows, highs, strict=True) if low < high]
