"""Stable argsort by packed words: an element's rank and its index make one word, and the words are sorted.

No two words are equal, so any sort of them is stable. A rank of 64 bits rarely fits beside its index: ranks count from
the least and lose their lowest bits, which hardly ever matter. Where they do, elements that tie are sorted again, by
the bits that were lost. Where most elements of a row are alike, NumPy's own stable sort sees long runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import share
from ..loops import Kernel, compiled, inside, text_of
from ..pool import Pool
from .key_words import Elements, Places, constants, lines_of_bits, ordered_ranks, ranked
from .numpy_sort import places_in_order
from .partition_sort import part_from, sort_long
from .radix_sort import can_sort_by_radix, sort_by_bits, suits_radix
from .sample import seems_constant

_PACK = """
    found = u8(0)
    for index in range(start, stop):
        rank = words[index] - least
        found = found | rank
        words[index] = ((rank >> left_out) << index_bits) | u8(index)
    before = atomic_or(seen, 0, found)
"""
_UNPACK = """
    for index in range(start, stop):
        places[index] = words[index] & mask
"""
_BOUNDS = "start: i8, stop: i8"


def _ranks(size: int, is_float: bool, *use: str) -> Iterator[str]:
    """Ranks of elements, as `ordered_ranks` makes them, one after the other."""
    sign = 1 << (8 * size - 1)
    rank = ("word = elements[index]", *ranked(f"i{size}", "word", is_float), f"rank = u8(u{size}(word)) ^ u8({sign})")
    yield from lines_of_bits(is_float)
    yield from inside("for index in range(start, stop):", [*rank, *use])


@cache
def rank_halves() -> Kernel:
    """(start, stop, elements, ranks, bits): ranks of float16."""
    body = text_of(_ranks(2, True, "ranks[index] = u2(rank)"))
    return compiled("rank_halves", f"{_BOUNDS}, elements: i2[], ranks: u2[], bits: i2[]", body)


@cache
def rank_and_pack(size: int, is_float: bool) -> Kernel:
    """(start, stop, elements, words, bits, index_bits): makes words of ranks and indices."""
    body = text_of(_ranks(size, is_float, "words[index] = (rank << index_bits) | u8(index)"))
    takes = f"{_BOUNDS}, elements: i{size}[], words: u8[], bits: i{size}[], index_bits: u8"
    return compiled("rank_and_pack", takes, body)


@cache
def rank(size: int, is_float: bool) -> Kernel:
    """(start, stop, elements, words, bits, ends): ranks, and in `ends` the least and the greatest of them."""
    use = ("low = min(low, rank)", "high = max(high, rank)", "words[index] = rank")
    ends = ("lowest = atomic_min(ends, 0, low)", "highest = atomic_max(ends, 1, high)")
    body = text_of(("low = u8(-1)", "high = u8(0)", *_ranks(size, is_float, *use), *ends))
    return compiled("rank", f"{_BOUNDS}, elements: i{size}[], words: u8[], bits: i{size}[], ends: u8[]", body)


@cache
def pack() -> Kernel:
    """(start, stop, words, seen, least, left_out, index_bits): makes words of ranks less the least, less their lowest
    bits, and of indices; and all bits that any rank had."""
    takes = f"{_BOUNDS}, words: u8[], seen: u8[], least: u8, left_out: u8, index_bits: u8"
    return compiled("pack", takes, _PACK)


@cache
def unpack() -> Kernel:
    """(start, stop, words, places, mask): the indices of sorted words."""
    return compiled("unpack", f"{_BOUNDS}, words: u8[], places: u8[], mask: u8", _UNPACK)


U64s = npt.NDArray[np.uint64]

_UP = SortOrder.ASCENDING
_WORD_BITS = 64
_ALL_BITS = range(_WORD_BITS)
_NONE: Places = np.empty(0, np.intp)
_PIECE = 1 << 14  # elements worked on together, in the nearer caches


def argsort_packed(
    source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy, pool: Pool | None = None
) -> None:
    """Of packed rows of 32- or 64-bit elements on this thread; of a single row by all threads of a pool."""
    if seems_constant(source[source.shape[0] // 2], few=2):
        places[...] = places_in_order(source, 1, order)
        return
    index_bits = max(1, (source.shape[1] - 1).bit_length())
    rows = _Rows(source, order, index_bits, policy, pool)
    words = places.view(np.uint64)
    least, greatest = rows.rank(words)
    bits = (greatest - least).bit_length()
    left_out = max(0, bits + index_bits - _WORD_BITS)
    lost = rows.pack(words, least, left_out)
    in_order = rows.sorted(words, range(index_bits, index_bits + max(1, bits - left_out)))
    # In what was left out all may be alike, such as floats that are integers.
    ties = rows.ties(in_order) if lost & ((1 << left_out) - 1) else _NONE
    rows.unpack(in_order, places)
    if ties.size and not rows.settled(places, ties, least, left_out):
        places[...] = places_in_order(source, 1, order)


@attrs.frozen(eq=False)
class _Rows:
    """The elements, and how their words are made."""

    elements: Elements
    order: SortOrder
    index_bits: int
    policy: HostSortPolicy
    pool: Pool | None

    def _share(self, loop: Kernel, *arguments: Elements | int) -> None:
        """A loop over a single row, by all threads."""
        assert self.pool is not None
        share(loop, self.elements.size, self.pool, *arguments)

    def ranks(self, elements: Elements) -> U64s:
        """Words that compare as such elements do, in memory of their own."""
        ranks = ordered_ranks(elements, self.order)
        return ranks.astype(np.uint64, copy=np.may_share_memory(ranks, elements))

    def rank(self, words: U64s) -> tuple[int, int]:
        """All ranks, for words to be made of: the least and the greatest."""
        if self.pool is None:
            ranks = ordered_ranks(self.elements, self.order)
            words[...] = ranks
            return int(ranks.min()), int(ranks.max())
        dtype, ends = self.elements.dtype, np.array([(1 << _WORD_BITS) - 1, 0], np.uint64)
        row, bits = self.elements[0].view(f"i{dtype.itemsize}"), constants(dtype, self.order)
        self._share(rank(dtype.itemsize, dtype.kind == "f"), row, words[0], bits, ends)
        return int(ends[0]), int(ends[1])

    def pack(self, words: U64s, least: int, left_out: int) -> int:
        """Packs ranks less the least one, and less as many of their lowest bits as find no room: which bits of any rank
        are not zero, if some are left out."""
        seen = np.zeros(1, np.uint64)
        if self.pool is None:
            words -= np.uint64(least)
            if left_out:
                seen[0] = np.bitwise_or.reduce(words, axis=None)
                words >>= np.uint64(left_out)
            words <<= np.uint64(self.index_bits)
            words |= np.arange(words.shape[1], dtype=np.uint64)
        else:
            self._share(pack(), words[0], seen, least, left_out, self.index_bits)
        return int(seen[0])

    def sorted(self, words: U64s, bits: range = _ALL_BITS) -> U64s:
        """The words in order: where they are, or in an array of their own. By the bits below these they are already,
        and none is set above."""
        pool, (_, length) = self.pool, words.shape
        if suits_radix(words.size, length, words.dtype, self.policy) and can_sort_by_radix(
            words.dtype, _UP, words.nbytes
        ):
            results = new_array(words.shape, words.dtype)
            sort_by_bits(words, results, _UP, bits, 1 if pool is None else pool.threads)
            return results
        if pool is None or length < part_from(words.dtype, self.policy, pool.threads):
            words.sort(axis=1)
            return words
        results = new_array(words.shape, words.dtype)
        sort_long(words[0], results[0], _UP, self.policy, pool)
        return results

    def unpack(self, words: U64s, places: Places) -> None:
        mask, indices = (1 << self.index_bits) - 1, places.view(np.uint64)
        if self.pool is None:
            np.bitwise_and(words, np.uint64(mask), out=indices)
        else:
            self._share(unpack(), words[0], indices[0], mask)

    def ties(self, words: U64s) -> Places:
        """Which words, counted row by row, tie in their ranks with the one before."""
        limit, (rows, length), found = np.uint64(1 << self.index_bits), words.shape, dict[int, Places]()

        def look(own: slice) -> None:
            first = max(own.start, 1)
            tied = np.flatnonzero((words[:, first : own.stop] ^ words[:, first - 1 : own.stop - 1]) < limit)
            if rows > 1:
                tied += tied // (own.stop - first) * (length - own.stop + first)
            found[first] = tied + first

        if self.pool is None:
            look(slice(0, length))
        else:
            self.pool.over(length, look, -(-length // _PIECE))
        return np.concatenate([found[first] for first in sorted(found)]) if found else _NONE

    def settled(self, places: Places, ties: Places, least: int, left_out: int) -> bool:
        """Sorts those elements again whose ranks tie with a neighbour's: by the number of their tie, the bits that were
        lost, and the index. Returns False, having done nothing, if these do not fit into a word."""
        size, length = places.size, places.shape[1]
        tied = np.zeros(size, np.bool_)
        tied[ties] = True
        members = tied.copy()
        members[ties - 1] = True
        chosen = np.flatnonzero(members)
        numbers = np.cumsum(~tied[chosen]).astype(np.uint64)
        flat = places.reshape(-1)
        found = flat[chosen]
        words = self.ranks(self.elements.reshape(-1)[found + chosen // length * length])
        if ((words[1:] >= words[:-1]) | (numbers[1:] != numbers[:-1])).all():
            return True
        lost_bits, low_bits = np.uint64(left_out), np.uint64(left_out + self.index_bits)
        if int(numbers[-1]).bit_length() + int(low_bits) > _WORD_BITS:
            return False
        words -= np.uint64(least)
        words &= (np.uint64(1) << lost_bits) - np.uint64(1)
        words <<= np.uint64(self.index_bits)
        words |= numbers << low_bits
        words |= found.view(np.uint64)
        flat[chosen] = self.sorted(words[np.newaxis])[0] & np.uint64((1 << self.index_bits) - 1)
        return True
