"""Sorts an array of the host on a device that cannot hold it: runs, exact cuts, buckets, as for files.

Every element travels to the device and back twice, in pieces: one on its way there, one being sorted, one on its way
back. Between, sorted runs lie on the host, in as much memory as the array takes.
"""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np

from ..algos.words import Transform
from .agreed_cuts import held_cuts
from .cuts import Array
from .pipeline import side_by_side

_MOST = (
    12  # pieces, where more memory would allow fewer: the first one's way there and the last one's back hide nothing
)
_LEAST_BYTES = 1 << 26  # of a piece that is worth a device


class PieceSorter(Protocol):
    """A device with room for pieces on their way there and for sorted ones, each kind in so many slots. Every call
    waits for what it started; those of different kinds come from different threads."""

    def upload(self, slot: int, parts: list[Array], later: Array, /) -> None:
        """A piece, in parts. `later` will be written, and may be touched."""
        ...

    def sort(self, slot: int, count: int, /) -> None:
        """The piece of one slot, to the slot of that number for sorted ones."""
        ...

    def download(self, slot: int, elements: Array, /) -> None:
        """A sorted piece."""
        ...


def piece_length(count: int, itemsize: int, most: int) -> int:
    """Of pieces of at most so many elements."""
    wanted = max(-(-count // _MOST), _LEAST_BYTES // itemsize, 1)
    return max(1, min(wanted, most, count))


@attrs.frozen(eq=False)
class PieceSort:
    """One array being sorted, in pieces of a length."""

    device: PieceSorter
    words: Transform  # by which runs are cut
    length: int

    def into(self, source: Array, out: Array) -> None:
        """`out` may be `source`; then an exception leaves its elements there, in some order."""
        starts = range(0, source.size, self.length)
        held = np.empty_like(source)
        runs = [held[start : start + self.length] for start in starts]
        self._run([[source[start : start + self.length]] for start in starts], runs)
        try:
            self._run(self._slices(runs), [out[start : start + self.length] for start in starts])
        except BaseException:
            if out.ctypes.data == source.ctypes.data:
                np.copyto(out, held)
            raise

    def _slices(self, runs: list[Array]) -> list[list[Array]]:
        """What each bucket is made of."""
        cuts = held_cuts(runs, [run.size for run in runs], self.words)
        return [
            [run[low:high] for run, low, high in zip(runs, lows, highs, strict=True) if low < high]
            for lows, highs in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)
        ]

    def _run(self, pieces: list[list[Array]], results: list[Array]) -> None:
        """Each piece from where it lies, in parts, to where its result belongs."""
        device = self.device

        def load(piece: int, slot: int) -> None:
            device.upload(slot, pieces[piece], results[piece])

        def work(piece: int, _: None, slot: int) -> None:
            device.sort(slot, results[piece].size)

        def keep(piece: int, _: None, slot: int) -> None:
            device.download(slot, results[piece])

        side_by_side(range(len(pieces)), load, work, keep)
