"""Stable argsort by packed words: an element's rank and its index make one word, and the words are sorted.

No two words are equal, so any sort of them is stable. A rank of 64 bits rarely fits beside its index: ranks count from
the least and lose their lowest bits, which hardly ever matter. Where they do, elements that tie are put right, or all
is sorted twice if those are many.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.dtypes import ArrayKey, key_for
from ....types.indices import SortOrder
from ....types.keys import FloatKey
from ...base import HostArray
from ..pool import Pool
from .key_words import Elements, Places, bits_of, ordered_ranks, rank_offset
from .partition_sort import sort_long

U64s = npt.NDArray[np.uint64]

_WORD_BITS = 64
_FEW_TIES = 8  # one of so many elements
_NONE: Places = np.empty(0, np.intp)
_PIECE = 1 << 14  # elements worked on together, in the nearer caches


def argsort_packed(
    source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy, pool: Pool | None = None
) -> None:
    """Of packed rows of 32- or 64-bit elements on this thread; of a single row by all threads of a pool."""
    index_bits = max(1, (source.shape[1] - 1).bit_length())
    rows = _Rows(bits_of(source), key_for(source.dtype), order, index_bits, policy, pool)
    words = places.view(np.uint64)
    if 8 * source.itemsize + index_bits <= _WORD_BITS:
        rows.pack_ranks(words)
        rows.unpack(rows.sorted(words), places)
        return
    least, left_out, lost = rows.pack_high(words)
    in_order = rows.sorted(words)
    if not lost & ((1 << left_out) - 1):  # such as floats that are integers: in what is left out, all are alike
        rows.unpack(in_order, places)
        return
    ties = rows.ties(in_order)
    rows.unpack(in_order, places)
    if not rows.settled(places, *ties):
        rows.argsort_twice(places, least)


@attrs.frozen(eq=False)
class _Rows:
    """The elements, and how their words are made."""

    bits: Elements
    key: ArrayKey
    order: SortOrder
    index_bits: int
    policy: HostSortPolicy
    pool: Pool | None

    def each(self, work: Callable[[slice], None]) -> None:
        """Calls `work` with all columns, piece by piece where threads share them."""
        length = self.bits.shape[1]
        if self.pool is None:
            work(slice(0, length))
        else:
            self.pool.over(length, work, -(-length // _PIECE))

    def ranks(self, bits: Elements, out: U64s | None = None) -> U64s:
        """Words that compare as such elements do, in memory of their own."""
        if self.pool is not None and isinstance(self.key, FloatKey):
            from .argsort_kernels import rank_floats

            found: U64s = np.empty(bits.shape, np.uint64) if out is None else out
            sign, last = np.uint64(self.key.sign), np.uint64(self.key.last)
            offset, descends = np.uint64(rank_offset(self.key, self.order)), self.order is SortOrder.DESCENDING
            rank_floats(bits.reshape(-1), sign, offset, last, descends, found.reshape(-1))
            return found
        ranks = ordered_ranks(self.key, bits, self.order)
        if out is None:
            return ranks.astype(np.uint64, copy=ranks is bits)
        out[...] = ranks
        return out

    def pack(self, ranks: U64s, own: slice, words: U64s, least: int = 0, left_out: int = 0) -> int:
        """Words of ranks, less the least one and less some of their lowest bits, and of their columns. The ranks are
        used up, and what finds no room at the upper end is lost. All bits that any rank had, less the least one."""
        if self.pool is not None:
            from .argsort_kernels import pack

            bits = np.uint64(left_out), np.uint64(self.index_bits)
            return int(pack(ranks[0], np.uint64(least), bits[0], bits[1], own.start, words[0, own]))
        ranks -= np.uint64(least)
        seen = int(np.bitwise_or.reduce(ranks, axis=None)) if left_out else 0
        ranks >>= np.uint64(left_out)
        ranks <<= np.uint64(self.index_bits)
        np.bitwise_or(ranks, np.arange(own.start, own.stop, dtype=np.uint64), out=words[:, own])
        return seen

    def pack_high(self, words: U64s) -> tuple[int, int, int]:
        """Packs ranks less the least one and less as many of their lowest bits as find no room: the least, how many
        bits these are, and which bits of any rank are not zero."""
        ends: list[tuple[int, int]] = []
        seen: list[int] = []

        def make(own: slice) -> None:
            ends.append(_range_of(self.ranks(self.bits[:, own], words[:, own]), self.pool))

        self.each(make)
        least, greatest = min(low for low, _ in ends), max(high for _, high in ends)
        left_out = max(0, (greatest - least).bit_length() + self.index_bits - _WORD_BITS)
        self.each(lambda own: seen.append(self.pack(words[:, own], own, words, least, left_out)))
        return least, left_out, int(np.bitwise_or.reduce(np.array(seen, np.uint64)))

    def pack_ranks(self, words: U64s, least: int = 0) -> None:
        """By as many of the lowest bits of ranks as find room."""

        def pack(own: slice) -> None:
            self.pack(self.ranks(self.bits[:, own]), own, words, least)

        self.each(pack)

    def sorted(self, words: U64s) -> U64s:
        """The words in order: where they are, or in an array of their own."""
        if self.pool is None or words.size < self.policy.part_from(words.dtype):
            words.sort(axis=1)
            return words
        results = new_array(words.shape, words.dtype)
        sort_long(words[0], results[0], SortOrder.ASCENDING, self.policy, self.pool, stable=False)
        return results

    def unpack(self, words: U64s, places: Places) -> None:
        mask, indices = np.uint64((1 << self.index_bits) - 1), places.view(np.uint64)

        def write(own: slice) -> None:
            np.bitwise_and(words[:, own], mask, out=indices[:, own])

        self.each(write)

    def ties(self, words: U64s) -> tuple[Places, Places]:
        """Rows and columns of words whose ranks tie with the one before, as far as they were looked at."""
        limit, found = np.uint64(1 << self.index_bits), dict[int, tuple[Places, Places]]()

        def look(own: slice) -> None:
            first = max(own.start, 1)
            if self.pool is not None:
                from .argsort_kernels import count_ties

                if not count_ties(words[0, first - 1 : own.stop], limit):
                    return
            tied = (words[:, first : own.stop] ^ words[:, first - 1 : own.stop - 1]) < limit
            if tied.any():
                row, column = tied.nonzero()
                found[first] = row, column + first

        self.each(look)
        rows, columns = zip(*found.values(), strict=True) if found else ((_NONE,), (_NONE,))
        return np.concatenate(rows), np.concatenate(columns)

    def settled(self, places: Places, rows: Places, columns: Places) -> bool:
        """Sorts those anew whose ranks tie with a neighbour's. False, and nothing done, if there are too many."""
        if not rows.size:
            return True
        before, after = (self.ranks(self.bits[rows, places[rows, at]]) for at in (columns - 1, columns))
        if (before <= after).all():
            return True
        if rows.size > self.bits.size // _FEW_TIES:
            return False
        flat = rows * places.shape[1] + columns
        rows, columns = np.divmod(np.unique(np.concatenate([flat - 1, flat])), places.shape[1])
        found = places[rows, columns]
        places[rows, columns] = found[np.lexsort((self.ranks(self.bits[rows, found]), rows))]
        return True

    def argsort_twice(self, places: Places, least: int) -> None:
        """By the lowest bits of the ranks, as many as fit beside an index; then, in that order, by all others."""
        before, words, room = np.empty_like(places), places.view(np.uint64), np.uint64(_WORD_BITS - self.index_bits)
        self.pack_ranks(words, least)
        self.unpack(self.sorted(words), before)

        def pack(own: slice) -> None:
            ranks = self.ranks(np.take_along_axis(self.bits, before[:, own], axis=1))
            self.pack((ranks - np.uint64(least)) >> room, own, words)

        self.each(pack)
        self.unpack(self.sorted(words), places)
        places[...] = np.take_along_axis(before, places, axis=1)


def _range_of(ranks: U64s, pool: Pool | None) -> tuple[int, int]:
    """The least and the greatest."""
    if pool is None:
        return int(ranks.min()), int(ranks.max())
    from .argsort_kernels import range_of

    least, greatest = range_of(ranks[0])
    return int(least), int(greatest)
