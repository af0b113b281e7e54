"""From where on each way of sorting on the processor pays: plain data, measured, free to be measured anew."""

from __future__ import annotations

import attrs
import numpy as np

MEASURED = frozenset({"part_bytes_from", "count_bytes_from", "count_pairs_from"})  # what tune() finds out


@attrs.frozen
class SortPolicy:
    """Sizes are in elements. Below `serial_below` the caller works alone, and nothing loads Numba."""

    serial_below: int = 1 << 16  # waking a thread costs about as long as sorting this many
    part_bytes_from: int = 3 << 19  # a row of 32- or 64-bit elements this long is parted, its parts sorted side by side
    few_bytes_from: int = 1 << 23  # in a row this long, few different elements are worth counting
    count_bytes_from: int = 1 << 17  # a row of bytes this long is sorted by counting
    count_in_pairs_from: int = 1 << 22  # so many bytes are counted two at a time
    count_pairs_from: int = 1 << 20  # a row of 16-bit elements this long is sorted by counting
    deal_from: int = 1 << 18  # argsort deals out the places of 8- and 16-bit elements; NumPy those of shorter rows
    pack_singles_from: int = 1 << 8  # argsort packs ranks and places of 32-bit elements; NumPy merges shorter rows
    pack_doubles_from: int = 1 << 10  # the same for 64 bits, which are packed twice
    few_turns: int = 24  # of 240 neighbours, so few that turn from rising to falling or back show runs to merge
    most_threads: int = 8
    block: int = 1 << 16  # elements that a thread parts at a time, in the nearer caches
    sample: int = 1024  # elements looked at before a plan is made
    few: int = 16  # so few different ones in the sample are counted one by one
    glance: int = 256  # elements looked at before more are, where a look for few different ones costs an argsort time
    some: int = 700  # so few different ones in the sample, and a row shorter than few_bytes_from is left to NumPy alone
    skewed: int = 150  # so few, though others are there too, and equal elements leave NumPy little to do
    skewed_bytes_from: int = 1 << 25  # a row this long is parted nevertheless
    most_share: float = 0.8  # a part as large as this share of the row is not worth the partition
    chunk: int = 1 << 16  # short rows are sorted so many elements at a time, which stay in the cache

    def part_from(self, dtype: np.dtype[np.generic]) -> int:
        """How long a row is worth the work of all threads."""
        match dtype.itemsize:
            case 1:
                return self.count_bytes_from
            case 2:
                return self.count_pairs_from
            case size:
                return self.part_bytes_from // size

    def pack_from(self, dtype: np.dtype[np.generic]) -> int:
        """How long a short row of 32- or 64-bit elements is worth packing for argsort."""
        return self.pack_doubles_from if dtype.itemsize == 8 else self.pack_singles_from
