"""Stable argsort of one long row, by all threads.

A rank of 64 bits rarely fits beside its place: ranks count from the least and lose their lowest bits, which hardly ever
matter. Where they do, elements that tie are put right, or all is sorted twice if those are many.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....types.dtypes import key_for
from ....types.indices import SortOrder
from ....types.keys import FloatKey, SignedKey, TimeKey
from ...base import HostArray
from ..pool import Pool, slices
from .argsort import WORD_BITS, Places
from .key_words import Elements, bits_of
from .partition import balanced_pivots, part_about, reverse_all, sort_parts
from .sample import Sample, Trend, sample_of, trend_of

U64s = npt.NDArray[np.uint64]


def argsort_long(source: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> None:
    row = _Row.of(source, order, policy, pool)
    least, greatest, varying = row.rank_range()
    left_out = max(0, int(greatest - least).bit_length() + row.place_bits - WORD_BITS)
    words = row.packed_in_order(places, least, left_out)
    if not int(varying) & ((1 << left_out) - 1):  # such as floats that are integers: in what is left out, all are alike
        row.unpack(words, places)
    elif not row.settled(words, places):
        row.argsort_twice(places, least)


@attrs.frozen
class _Row:
    """A row's elements, and what to do with them."""

    bits: Elements
    recipe: tuple[np.uint64, ...]
    place_bits: int
    pieces: list[slice]
    policy: HostSortPolicy
    pool: Pool

    @classmethod
    def of(cls, source: HostArray, order: SortOrder, policy: HostSortPolicy, pool: Pool) -> _Row:
        recipe = _recipe(source.dtype.char, order)
        place_bits = max(1, (source.size - 1).bit_length())
        return cls(bits_of(source), recipe, place_bits, slices(source.size, 4 * pool.threads), policy, pool)

    @property
    def places_mask(self) -> np.uint64:
        return np.uint64((1 << self.place_bits) - 1)

    def rank_range(self) -> tuple[np.uint64, np.uint64, np.uint64]:
        """The least and the greatest rank, and the bits in which any differ; for those that fit, what they could be."""
        if 8 * self.bits.itemsize + self.place_bits <= WORD_BITS:
            everything = np.uint64((1 << 8 * self.bits.itemsize) - 1)
            return np.uint64(0), everything, everything
        from .rank_kernels import rank_range

        found = np.zeros((len(self.pieces), 3), np.uint64)

        def look(number: int) -> None:
            # Its first element, too, belongs to the piece before: so no bit differs unseen from piece to piece.
            own = self.pieces[number]
            found[number] = rank_range(self.bits[max(0, own.start - 1) : own.stop], self.recipe)

        self.pool.run(look, len(self.pieces))
        return found[:, 0].min(), found[:, 1].max(), np.bitwise_or.reduce(found[:, 2])

    def packed(self, places: Places, least: np.uint64, left_out: int) -> U64s:
        """Words that compare as ranks do, less some of their lowest bits, and then as places. They lie in `places`."""
        from .rank_kernels import pack

        words, place_bits, shift = places.view(np.uint64), np.uint64(self.place_bits), np.uint64(left_out)

        def work(number: int) -> None:
            piece = self.pieces[number]
            pack(self.bits[piece], self.recipe, least, shift, place_bits, piece.start, 1, words[piece])

        self.pool.run(work, len(self.pieces))
        return words

    def packed_in_order(self, places: Places, least: np.uint64, left_out: int) -> U64s:
        """The same words, sorted: parted as they are packed, in `places`, or sorted after."""
        from .partition_kernels import part_packed
        from .rank_kernels import pack

        words, place_bits, shift = places.view(np.uint64), np.uint64(self.place_bits), np.uint64(left_out)
        bits = sample_of(self.bits, self.policy.sample)
        step = max(1, words.size // self.policy.sample)
        sample = np.empty(bits.size, np.uint64)
        pack(bits, self.recipe, least, shift, place_bits, step // 2, step, sample)
        pivots = self.pivots(Sample.from_elements(sample))
        if not pivots.size or trend_of(sample, sample, self.pool) is not Trend.NEITHER:
            return self.sorted(self.packed(places, least, left_out))

        def move(bits: Elements, own: slice, pivot: Any, target: Elements, claimed: npt.NDArray[np.int64]) -> None:
            part_packed(bits, self.recipe, least, shift, place_bits, pivot, target, self.policy.block, claimed)

        sort_parts(words, part_about(self.bits, words, pivots, self.policy, self.pool, move), self.pool)
        return words

    def pivots(self, sample: Sample) -> U64s:
        is_short = self.bits.size < self.policy.part_from(sample.numbers.dtype)
        return sample.numbers[:0] if is_short else balanced_pivots(sample, self.policy, self.pool)

    def sorted(self, words: U64s) -> U64s:
        """The words in order: where they are, or in an array of their own."""
        sample = Sample.of(words, self.policy)
        trend = trend_of(words, sample.elements, self.pool)
        if trend is not Trend.NEITHER:
            if trend is Trend.DESCENDS:
                reverse_all(words, self.pool)
            return words
        pivots = self.pivots(sample)
        if not pivots.size:
            words.sort()
            return words
        results = np.empty_like(words)
        sort_parts(results, part_about(words, results, pivots, self.policy, self.pool), self.pool)
        return results

    def settled(self, words: U64s, places: Places) -> bool:
        """Sorts words that tie in the bits of their ranks, and unpacks them. False if there are too many."""
        from .rank_kernels import settle, tie, unpack

        place_bits, mask = np.uint64(self.place_bits), self.places_mask
        # A run of ties belongs to the piece that it starts in.
        bounds = [0, *(tie(words, piece.stop, place_bits) for piece in self.pieces)]

        def done(number: int) -> bool:
            own = slice(bounds[number], bounds[number + 1])
            if not settle(words[own], self.bits, self.recipe, place_bits):
                return False
            unpack(words[own], mask, places[own])
            return True

        return self.pool.all(done, len(self.pieces))

    def unpack(self, words: U64s, places: Places) -> None:
        from .rank_kernels import unpack

        mask = self.places_mask

        def work(number: int) -> None:
            unpack(words[self.pieces[number]], mask, places[self.pieces[number]])

        self.pool.run(work, len(self.pieces))

    def argsort_twice(self, places: Places, least: np.uint64) -> None:
        """By the lowest bits of the ranks, as many as fit beside a place; then, in that order, by all others."""
        from .rank_kernels import pack_high, unpack_through

        before = np.empty_like(places)
        # What is shifted out at the upper end is what the second turn sorts by.
        self.unpack(self.packed_in_order(places, least, 0), before)
        words, place_bits, mask = places.view(np.uint64), np.uint64(self.place_bits), self.places_mask

        def work(number: int) -> None:
            piece = self.pieces[number]
            pack_high(self.bits, self.recipe, least, place_bits, before[piece], piece.start, words[piece])

        self.pool.run(work, len(self.pieces))
        in_order = self.sorted(words)

        def follow(number: int) -> None:
            unpack_through(in_order[self.pieces[number]], mask, before, places[self.pieces[number]])

        self.pool.run(follow, len(self.pieces))


@cache
def _recipe(dtype: str, order: SortOrder) -> tuple[np.uint64, ...]:
    """The numbers by which `rank` turns bits into ranks: what `ranks.ordered_ranks` does by the key's class."""
    key = key_for(dtype)
    bits = 8 * np.dtype(dtype).itemsize
    everything, sign = (1 << bits) - 1, 1 << (bits - 1)
    negative, positive, lowest, minus_zero, merged = 0, 0, 0, 0, 0
    mirror, last = key.last, key.last
    missing = (last + 1) & everything
    match key:
        case SignedKey():
            negative, positive = sign, sign
        case TimeKey():
            negative, positive, lowest = sign, sign, 1
        case FloatKey():
            # 0.0 and all above step down to -0.0, and NaN gets a round number: so of floats that are integers all have
            # the same lowest bits.
            negative, positive, lowest, minus_zero, merged = everything, sign, key.lowest, int(key.zero) - 1, 1
            mirror, missing = last - 1, everything ^ key.lowest
        case _:
            pass
    descends = int(order is SortOrder.DESCENDING)
    numbers = [sign, negative, positive, lowest, everything, last, missing, minus_zero, merged, mirror, descends]
    return tuple(np.uint64(number) for number in numbers)
