"""What a device cannot hold at once, done in pieces: one on its way there, one at work, one on its way back.

A row that is to be sorted and that no piece holds is sorted as files are: sorted runs, exact cuts, buckets. Its
elements travel to the device and back twice. Between, the runs lie on the host, in as much memory as the row takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import attrs
import numpy as np

from ..algos.sizes import LARGEST_U32
from ..algos.words import Transform
from .agreed_cuts import held_cuts
from .cuts import Array
from .pipeline import side_by_side

DType: TypeAlias = np.dtype[Any]
T = TypeVar("T")

# Pieces, where more memory would allow fewer: the first one's way there and the last one's back hide nothing.
_MOST = 12
_LEAST_BYTES = 1 << 26  # of a piece that is worth a device


@attrs.frozen(eq=False)
class Piece(Generic[T]):
    """What travels to a device, what is done there, and what comes back."""

    given: Sequence[Sequence[Array]]  # arrays that lie there, each of such parts, one behind the other
    task: T
    left: Sequence[Array | None]  # where each result belongs; None: it stays there


class PieceDevice(Protocol[T]):
    """A device with room for pieces on their way there and for their results, each kind in so many slots. Every call
    waits for what it started; those of different kinds come from different threads."""

    def upload(self, slot: int, piece: Piece[T], /) -> None:
        """What is given. Where results belong will be written, and may be touched."""
        ...

    def work(self, slot: int, piece: Piece[T], /) -> None:
        """From the slot of what is given, to that of what is left."""
        ...

    def download(self, slot: int, piece: Piece[T], /) -> None:
        """What is left."""
        ...


def each_through(device: PieceDevice[T], pieces: Sequence[Piece[T]]) -> None:
    """All pieces, in order."""

    def load(number: int, slot: int) -> None:
        device.upload(slot, pieces[number])

    def work(number: int, _: None, slot: int) -> None:
        device.work(slot, pieces[number])

    def keep(number: int, _: None, slot: int) -> None:
        device.download(slot, pieces[number])

    side_by_side(range(len(pieces)), load, work, keep)


def piece_length(count: int, itemsize: int) -> int:
    """Of how many elements pieces should be, if there is memory for them: no more than kernels count."""
    return max(1, min(max(-(-count // _MOST), _LEAST_BYTES // max(1, itemsize)), count, LARGEST_U32))


@attrs.frozen(eq=False)
class PieceSort(Generic[T]):
    """A row being sorted, in pieces of a length: its keys, and what goes along with them, a column each."""

    device: PieceDevice[T]
    words: Transform  # of keys, by which runs are cut
    length: int
    to_run: Callable[[int, int], T]  # sorts the elements from one place on, so many
    to_bucket: Callable[[int], T]  # sorts so many elements of runs, which come one behind the other

    def into(self, source: Sequence[Array], out: Sequence[Array | None], columns: Sequence[DType]) -> None:
        """`columns` says what runs have, which may be more than the source has; `out` has an array for each that is
        wanted. Those may be the source's; then an exception leaves its elements there, in some order."""
        count = source[0].size
        stretches = [slice(start, min(start + self.length, count)) for start in range(0, count, self.length)]
        held = [np.empty(count, dtype) for dtype in columns]
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
        """Sorted runs of the same columns become one row: bucket after bucket of exact cuts, which goes through the
        device once. `out` lies apart from them."""
        count = sum(run[0].size for run in runs)
        stretches = [slice(start, min(start + self.length, count)) for start in range(0, count, self.length)]
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


def _between(column: Sequence[Array], lows: list[int], highs: list[int]) -> list[Array]:
    """Of every run what lies between two cuts, where there is anything."""
    return [run[low:high] for run, low, high in zip(column, lows, highs, strict=True) if low < high]
