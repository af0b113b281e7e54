"""Compiled loops of the packed argsort, each of which NumPy does in several."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ..loops import Loop, compiled, inside, text_of
from .word_loops import lines_of_bits, ranked

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
def rank_halves() -> Loop:
    """(start, stop, elements, ranks, bits): ranks of float16."""
    body = text_of(_ranks(2, True, "ranks[index] = u2(rank)"))
    return compiled("rank_halves", f"{_BOUNDS}, elements: i2[], ranks: u2[], bits: i2[]", body)


@cache
def rank_and_pack(size: int, is_float: bool) -> Loop:
    """(start, stop, elements, words, bits, index_bits): makes words of ranks and indices."""
    body = text_of(_ranks(size, is_float, "words[index] = (rank << index_bits) | u8(index)"))
    takes = f"{_BOUNDS}, elements: i{size}[], words: u8[], bits: i{size}[], index_bits: u8"
    return compiled("rank_and_pack", takes, body)


@cache
def rank(size: int, is_float: bool) -> Loop:
    """(start, stop, elements, words, bits, ends): ranks, and in `ends` the least and the greatest of them."""
    use = ("low = min(low, rank)", "high = max(high, rank)", "words[index] = rank")
    ends = ("lowest = atomic_min(ends, 0, low)", "highest = atomic_max(ends, 1, high)")
    body = text_of(("low = u8(-1)", "high = u8(0)", *_ranks(size, is_float, *use), *ends))
    return compiled("rank", f"{_BOUNDS}, elements: i{size}[], words: u8[], bits: i{size}[], ends: u8[]", body)


@cache
def pack() -> Loop:
    """(start, stop, words, seen, least, left_out, index_bits): makes words of ranks less the least, less their lowest
    bits, and of indices; and all bits that any rank had."""
    takes = f"{_BOUNDS}, words: u8[], seen: u8[], least: u8, left_out: u8, index_bits: u8"
    return compiled("pack", takes, _PACK)


@cache
def unpack() -> Loop:
    """(start, stop, words, places, mask): the indices of sorted words."""
    return compiled("unpack", f"{_BOUNDS}, words: u8[], places: u8[], mask: u8", _UNPACK)
