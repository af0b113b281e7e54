"""Out-of-core work on a device: host arrays larger than device memory are streamed through it in pieces.

Upload, kernels and download of successive pieces overlap in a pipeline. A row too long for one piece is sorted as files
are: sorted runs, exact splitters, buckets. Its elements are sent to the device and back twice, and the runs take as
much host memory as the row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import accumulate, pairwise
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import attrs
import numpy as np

from ..algos.sizes import LARGEST_U32
from ..algos.words import Transform
from .cuts import Array, Indices, held_cuts
from .pipeline import ahead, run_pipeline

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
    left: Sequence[Array]  # the host array for each result


class PieceDevice(Protocol[T]):
    """A device with slots of memory for inputs and results. `upload`, `work` and `download` are called from different
    threads at the same time; `work` waits for its piece's upload, `download` is synchronous."""

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
        """Uninitialised bytes on the host for what is sent to the device and back."""
        ...


def each_through(device: PieceDevice[T], pieces: Sequence[Piece[T]]) -> None:
    """Streams all pieces through a device, in order."""
    made_through(device, iter(pieces), len(pieces))


def made_through(device: PieceDevice[T], pieces: Iterator[Piece[T]], count: int) -> None:
    """Streams pieces through a device that are made in a thread of their own, each while the one before is on its
    way."""

    def load(number: int, slot: int) -> Piece[T]:
        piece = next(found)
        device.upload(slot, piece)
        return piece

    def work(number: int, piece: Piece[T], slot: int) -> Piece[T]:
        device.work(slot, piece)
        return piece

    def keep(number: int, piece: Piece[T], slot: int) -> None:
        device.download(slot, piece)

    made = closing(ahead(pieces))
    with made as found, made:  # closed twice, as an interrupt may skip one
        run_pipeline(range(count), load, work, keep)


def piece_length(count: int, itemsize: int) -> int:
    """The preferred length of pieces, in elements, if device memory allows; at most what kernels can index."""
    return max(1, min(max(-(-count // _MOST), _LEAST_BYTES // max(1, itemsize)), count, LARGEST_U32))


@attrs.frozen(eq=False)
class PieceSort(Generic[T]):
    """The sort of one long row through a device: of a column of keys, and columns of values that go with them."""

    device: PieceDevice[T]
    words: Transform  # of keys, to compare runs by
    length: int  # of pieces
    to_run: Callable[[int], T]  # the task that sorts a count of elements
    to_bucket: Callable[[int], T]  # the task that sorts a count of elements, concatenated slices of runs

    def into(self, source: Sequence[Array], out: Sequence[Array], columns: Sequence[DType]) -> None:
        """Sorts. `columns` are the dtypes of the runs' columns, which may be more than the source's: of indices, of
        which a run's task is given the first. `out` has an array for each that a bucket leaves. Those may be the
        source's: then after an exception they hold its elements in some order."""
        stretches = stretches_of(source[0].size, self.length)
        with self._held(source[0].size, columns) as held:
            runs = [[column[part] for column in held] for part in stretches]
            pieces: list[Piece[T]] = []
            for part, run in zip(stretches, runs, strict=True):
                firsts = [[np.array([part.start], index)] for index in columns[len(source) :]]
                pieces.append(Piece([*[[column[part]] for column in source], *firsts], self.to_run(run[0].size), run))
            each_through(self.device, pieces)
            try:
                self.merge(runs, out)
            except BaseException:
                for column, kept in zip(out, held, strict=False):
                    if any(column.ctypes.data == given.ctypes.data for given in source):
                        np.copyto(column, kept)
                raise

    def merge(self, runs: Sequence[Sequence[Array]], out: Sequence[Array]) -> None:
        """Merges sorted runs of the same columns, in buckets by exact cuts: each element is sent to the device and back
        once. `out` must not overlap with the runs."""
        stretches = stretches_of(sum(run[0].size for run in runs), self.length)
        sizes = [part.stop - part.start for part in stretches]
        cuts = held_cuts([run[0] for run in runs], sizes, self.words)
        made_through(
            self.device,
            (
                Piece(
                    [_between(column, lows, highs) for column in zip(*runs, strict=True)],
                    self.to_bucket(part.stop - part.start),
                    [column[part] for column in out],
                )
                for part, (lows, highs) in zip(stretches, pairwise(cuts), strict=True)
            ),
            len(stretches),
        )

    @contextmanager
    def _held(self, count: int, columns: Sequence[DType]) -> Generator[list[Array]]:
        """Host memory for the runs, a column after the other."""
        sizes = [-(-count * dtype.itemsize // _APART) * _APART for dtype in columns]
        with self.device.host_memory(sum(sizes)) as memory:
            starts = accumulate(sizes, initial=0)
            yield [memory[start:][: count * d.itemsize].view(d) for start, d in zip(starts, columns, strict=False)]


def stretches_of(count: int, length: int) -> list[slice]:
    """Cuts 0..count into pieces of a length; the last may be shorter."""
    return [slice(start, min(start + length, count)) for start in range(0, count, length)]


def _between(column: Sequence[Array], lows: Indices, highs: Indices) -> list[Array]:
    """Each run's slice between two cuts, without empty ones."""
    return [run[low:high] for run, low, high in zip(column, lows, highs, strict=True) if low < high]
