"""Stable argsort by packed words: an element's rank and its index make one word, and the words are sorted.

No two words are equal, so any sort of them is stable. A rank of 64 bits rarely fits beside its index: ranks count from
the least and lose their lowest bits, which hardly ever matter. Where they do, elements that tie are sorted again, by
the bits that were lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

from ....algos.host_sort import HostSortPolicy
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...base import HostArray
from ..crew import share
from ..loops import Kernel, compiled, inside, text_of
from ..pool import ALONE, Pool
from .key_words import Elements, Places, constants, lines_of_bits, ordered_ranks, ranked
from .numpy_sort import places_in_order
from .partition_sort import part_from, sort_long
from .radix_sort import can_sort_by_radix, sort_by_bits, suits_radix

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


_Bools = npt.NDArray[np.bool_]

_UP = SortOrder.ASCENDING
_WORD, _NARROW = np.dtype(np.uint64), np.dtype(np.uint32)
_WORD_BITS, _NARROW_BITS = 64, 32
_NARROWED = 1 << 10  # elements of 32 bits of a row: of fewer, a look for their range takes as long as it saves
_PIECE = 1 << 14  # elements worked on together, in the nearer caches


@cache
def _numbers(dtype: np.dtype[np.generic]) -> tuple[Elements, list[Elements], list[Elements]]:
    """Indices of rows that are not long; and as arrays of no dimension, which NumPy computes with soonest, counts of
    bits, and masks of so many lowest ones."""
    bits = range(8 * dtype.itemsize)
    masks = [np.array((1 << count) - 1, dtype) for count in bits]
    return np.arange(1 << 12, dtype=dtype), [np.array(count, dtype) for count in bits], masks


def places_packed(rows: Elements, policy: HostSortPolicy) -> Places:
    """The argsort of rows of 32- or 64-bit elements, by NumPy on this thread."""
    size, length = rows.size, rows.shape[-1]
    index_bits = max(1, (length - 1).bit_length())
    by_radix = _by_radix(size, length, policy)
    words, least, bits = ordered_ranks(rows, _UP), 0, 8 * rows.itemsize
    if bits > _NARROW_BITS or length >= _NARROWED or by_radix:
        least = words.item(words.argmin())
        bits = (words.item(words.argmax()) - least).bit_length()
        words = words - np.array(least, words.dtype)
    left_out = max(0, bits + index_bits - _WORD_BITS)
    dtype = _WORD if by_radix or bits + index_bits > _NARROW_BITS else _NARROW
    (indices, counts, masks), lost = _numbers(dtype), False
    words = words.astype(dtype, copy=False)
    if left_out:
        # In what is left out all may be alike, such as of floats that are integers.
        lost = rows.dtype.kind != "f" or bool(np.bitwise_or.reduce(words, axis=None) & masks[left_out])
        words >>= counts[left_out]
    words <<= counts[index_bits]
    words |= indices[:length] if length <= indices.size else np.arange(length, dtype=dtype)
    words = _sorted(words, range(index_bits, index_bits + max(1, bits - left_out)), policy)
    tied = _tied(words, index_bits) if lost else None
    words &= masks[index_bits]
    places: Places = words.astype(np.intp) if dtype is _NARROW else words.view(np.intp)
    if tied is not None and not _settled(rows, places, tied, least, left_out, policy):
        return places_in_order(rows, -1)
    return places


def argsort_at_once(row: Elements) -> Places | None:
    """Of a row of less than 2^16 elements, by NumPy's argsort that keeps no order of equals: if there are some, all are
    sorted again, by their number and the index. None where there is a NaN, which makes it slow. It is given memory that
    no other thread changes meanwhile, as it may trust what it has seen."""
    elements = row.copy()
    if row.dtype.kind == "f" and (greatest := elements.item(elements.argmax())) != greatest:
        return None
    places: Places = elements.argsort()
    elements = elements.take(places)
    rises = np.less(elements[:-1], elements[1:])
    if rises.item(rises.argmin()):
        return places
    words = np.zeros(row.shape, _NARROW)
    rises.cumsum(0, _NARROW, words[1:])
    words <<= 16
    words |= places.astype(_NARROW)
    words.sort()
    words &= 0xFFFF
    return words.astype(np.intp)


def argsort_packed(row: HostArray, places: Places, policy: HostSortPolicy, pool: Pool) -> None:
    """Of a packed row of such elements, by all threads of a pool."""
    dtype, size, words = row.dtype, row.size, places.view(_WORD)
    index_bits, ends, seen = max(1, (size - 1).bit_length()), np.array([-1, 0]).view(_WORD), np.zeros(1, _WORD)
    signed, limits = row.view(f"i{dtype.itemsize}"), constants(dtype, _UP)
    share(rank(dtype.itemsize, dtype.kind == "f"), size, pool, signed, words, limits, ends)
    least, bits = int(ends[0]), (int(ends[1]) - int(ends[0])).bit_length()
    left_out = max(0, bits + index_bits - _WORD_BITS)
    share(pack(), size, pool, words, seen, least, left_out, index_bits)
    words = _sorted(words, range(index_bits, index_bits + max(1, bits - left_out)), policy, pool)
    tied = _tied(words, index_bits, pool) if int(seen[0]) & ((1 << left_out) - 1) else None
    share(unpack(), size, pool, words, places.view(_WORD), (1 << index_bits) - 1)
    if tied is not None and not _settled(row, places, tied, least, left_out, policy, pool):
        places[...] = places_in_order(row, 0)


def _by_radix(size: int, length: int, policy: HostSortPolicy) -> bool:
    return suits_radix(size, length, _WORD, policy) and can_sort_by_radix(_WORD, _UP, _WORD.itemsize * size)


def _sorted(words: Elements, bits: range, policy: HostSortPolicy, pool: Pool = ALONE) -> Elements:
    """The words in order: where they are, or in an array of their own. By the bits below these they are already, and
    none is set above."""
    length = words.shape[-1]
    by_radix = words.dtype == _WORD and _by_radix(words.size, length, policy)
    if not by_radix and (pool is ALONE or length < part_from(_WORD, policy, pool.threads)):
        words.sort()
        return words
    results = new_array(words.shape, _WORD)
    if by_radix:
        sort_by_bits(words.reshape(-1, length), results.reshape(-1, length), _UP, bits, pool.threads)
    else:
        sort_long(words, results, _UP, policy, pool)
    return results


def _tied(words: Elements, index_bits: int, pool: Pool = ALONE) -> _Bools | None:
    """Which words of each row tie in their ranks with the one before; None if there are none."""
    tied, limit, length = np.zeros(words.shape, np.bool_), np.array(1 << index_bits, _WORD), words.shape[-1]

    def look(own: slice) -> None:
        first, stop = own.start + 1, own.stop + 1
        np.less(words[..., first:stop] ^ words[..., own], limit, tied[..., first:stop])

    if length <= _PIECE:
        look(slice(0, length - 1))
    else:
        pool.over(length - 1, look, -(-length // _PIECE))
    return tied if tied.item(tied.argmax()) else None


def _settled(
    rows: Elements, places: Places, tied: _Bools, least: int, left_out: int, policy: HostSortPolicy, pool: Pool = ALONE
) -> bool:  # fmt: skip
    """Sorts those elements again whose ranks tie with a neighbour's: by the number of their tie, the bits that were
    lost, and the index. Returns False, having done nothing, if these do not fit into a word."""
    (_, counts, masks), flat, tied = _numbers(_WORD), places.reshape(-1), tied.reshape(-1)
    length: int = places.shape[-1]
    members, index_bits = tied.copy(), (length - 1).bit_length()
    members[:-1] |= tied[1:]
    chosen = members.nonzero()[0]
    found, are_first = flat[chosen], ~tied[chosen]
    everywhere = found if flat.size == length else found + chosen // length * length
    words = ordered_ranks(rows.reshape(-1)[everywhere], _UP)
    if ((words[1:] >= words[:-1]) | are_first[1:]).all():
        return True
    ties = np.cumsum(are_first).astype(_WORD)
    if int(ties[-1]).bit_length() + left_out + index_bits > _WORD_BITS:
        return False
    words -= np.array(least, _WORD)
    words &= masks[left_out]
    words <<= counts[index_bits]
    words |= ties << counts[left_out + index_bits]
    words |= found.view(_WORD)
    words = _sorted(words, range(_WORD_BITS), policy, pool)
    flat[chosen] = words & masks[index_bits]
    return True
