"""Reads buckets from the runs of an external sort: of each run the slice that belongs to the bucket, by one read.

Where a slice ends is known only between two positions, before the elements there are read. So each read goes on to the
farther one, the cut is found among what was read, and the slices are moved together.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from .cuts import Array, Indices, Samples, cut_between
from .direct import PAGE, Bytes, DirectFile

_PAGES = 2  # of a read, besides its elements: one before them, and one after


class BucketReader:
    """Reads buckets between ranks of all elements. One that begins where the last one ended takes the fewest reads."""

    def __init__(
        self, runs: DirectFile, dtype: np.dtype[Any], run: int, samples: Samples, words: Callable[[Array], Array]
    ) -> None:
        self._runs, self._dtype, self._run, self._samples, self._words = runs, dtype, run, samples, words
        self._rank, self._cut = 0, np.zeros(samples.lengths.size, np.int64)  # where the last bucket ended

    def read(self, start: int, stop: int, room: Callable[[int], Bytes]) -> Array:
        """A bucket's elements, the slices of the runs one after another, in a buffer that `room` makes of a size."""
        item = self._dtype.itemsize
        begin = self._cut if start == self._rank else self._samples.cut(start, self.words_between)
        low, high = (np.maximum(bound, begin) for bound in self._samples.brackets(stop))
        buffer = room(int((high - begin).sum()) * item + _PAGES * PAGE * begin.size)
        places: list[int] = []
        end = 0
        for run, (first, last) in enumerate(zip(begin.tolist(), high.tolist(), strict=True)):
            place = self._runs.read(buffer, end, *self._bytes(run, first, last)) if first < last else end
            places.append(place)
            end = place + (last - first) * item
        self._rank, self._cut = stop, self._cut_within(stop, buffer, np.array(places) - begin * item, low, high)
        end = 0
        for place, count in zip(places, (self._cut - begin).tolist(), strict=True):
            buffer[end : end + count * item] = buffer[place : place + count * item]
            end += count * item
        return buffer[:end].view(self._dtype)

    def _cut_within(self, rank: int, buffer: Bytes, origins: Indices, low: Indices, high: Indices) -> Indices:
        """The cut between two positions in each run. `origins` is where in the buffer each run's first element would
        lie."""
        item = self._dtype.itemsize
        some = np.flatnonzero(low < high)
        if not some.size:
            return low
        starts, stops = (origins[some] + bound[some] * item for bound in (low, high))
        parts = [buffer[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        words = self._words(np.concatenate(parts).view(self._dtype))
        ends = accumulate((high - low)[some].tolist(), initial=0)
        return cut_between(rank, low, [words[first:last] for first, last in pairwise(ends)], high)

    def words_between(self, run: int, start: int, stop: int) -> Array:
        """The words of a run's elements start..stop."""
        first, last = self._bytes(run, start, stop)
        return self._words(self._runs.read_elements(self._dtype, first, (last - first) // self._dtype.itemsize))

    def _bytes(self, run: int, start: int, stop: int) -> tuple[int, int]:
        """Where these elements of a run begin and end in the file."""
        first = run * self._run
        return (first + start) * self._dtype.itemsize, (first + stop) * self._dtype.itemsize
