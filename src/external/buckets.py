"""Reads buckets from the runs of an external sort: of each run the slice that belongs to the bucket, by one read.

Where a slice of a sorted run ends is known only between two positions, before the elements there are read. So each read
goes on to the farther one, the cut is found among what was read, and the slices are moved together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import attrs
import numpy as np

from .cuts import Array, Indices, Samples, cut_between
from .direct import Bytes, DirectFile
from .plans import REST

Room: TypeAlias = Callable[[int], Bytes]  # a buffer of a size


@attrs.frozen(eq=False)
class RunFile:
    """The file of runs, all but the last of one length."""

    file: DirectFile
    dtype: np.dtype[np.generic]
    length: int

    def start(self, run: int) -> int:
        """Where a run begins in the file."""
        return run * self.length * self.dtype.itemsize

    def elements(self, run: int, start: int, stop: int) -> Array:
        return self.file.read_elements(self.dtype, self.start(run) + start * self.dtype.itemsize, stop - start)

    def slices(self, begin: Indices, end: Indices, room: Room) -> tuple[Bytes, list[int]]:
        """Elements begin..end of each run, in a buffer; and where in it they begin."""
        item = self.dtype.itemsize
        buffer = room(int((end - begin).sum()) * item + REST * begin.size)
        places: list[int] = []
        at = 0
        for run, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            start = self.start(run)
            place = self.file.read(buffer, at, start + first * item, start + last * item) if first < last else at
            places.append(place)
            at = place + (last - first) * item
        return buffer, places

    def joined(self, buffer: Bytes, places: Sequence[int], counts: Indices) -> Array:
        """So many elements from each place on, moved together."""
        item, end = self.dtype.itemsize, 0
        for place, count in zip(places, counts.tolist(), strict=True):
            buffer[end : end + count * item] = buffer[place : place + count * item]
            end += count * item
        return buffer[:end].view(self.dtype)


class BucketReader:
    """Reads buckets between ranks of all elements. One that begins where the last one ended takes the fewest reads."""

    def __init__(self, runs: RunFile, samples: Samples, words: Callable[[Array], Array]) -> None:
        self._runs, self._samples, self._words = runs, samples, words
        self._rank, self._cut = 0, np.zeros(samples.lengths.size, np.int64)  # where the last bucket ended

    def read(self, start: int, stop: int, room: Room) -> Array:
        """A bucket's elements, the slices of the runs one after another, in a buffer that `room` makes of a size."""
        begin = self._cut if start == self._rank else self._samples.cut(start, self.words_between)
        low, high = (np.maximum(bound, begin) for bound in self._samples.brackets(stop))
        buffer, places = self._runs.slices(begin, high, room)
        origins = np.array(places) - begin * self._runs.dtype.itemsize
        self._rank, self._cut = stop, self._cut_within(stop, buffer, origins, low, high)
        return self._runs.joined(buffer, places, self._cut - begin)

    def _cut_within(self, rank: int, buffer: Bytes, origins: Indices, low: Indices, high: Indices) -> Indices:
        """The cut between two positions in each run. `origins` is where in the buffer each run's first element would
        lie."""
        item = self._runs.dtype.itemsize
        some = np.flatnonzero(low < high)
        if not some.size:
            return low
        starts, stops = (origins[some] + bound[some] * item for bound in (low, high))
        parts = [buffer[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        words = self._words(np.concatenate(parts).view(self._runs.dtype))
        ends = accumulate((high - low)[some].tolist(), initial=0)
        return cut_between(rank, low, [words[first:last] for first, last in pairwise(ends)], high)

    def words_between(self, run: int, start: int, stop: int) -> Array:
        """The words of a run's elements start..stop."""
        return self._words(self._runs.elements(run, start, stop))
