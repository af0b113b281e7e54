"""Compiled loops of the packed argsort, each of which NumPy does in several."""

from __future__ import annotations

from functools import cache

from ..loops import Loop, compiled

# What `ordered_ranks` does, by the numbers that `rank_numbers` tells.
_RANK_OF_FLOAT = """
        word = u8(bits[index])
        negative = u8((word & sign) != 0)
        flipped = (word ^ (sign | (0 - negative))) + negative - 1
        rank = select(descends != 0, offset - flipped, flipped - offset)
        rank = min(rank & ((sign << 1) - 1), last)
"""
_RANK_OF_INTEGER = """
        rank = ((u8(bits[index]) ^ turned) - less) & everything
"""
_RANK_EACH = """
    for index in range(start, stop):{rank}
        {use}
"""
_RANK = """
    low = u8(-1)
    high = u8(0)
    for index in range(start, stop):{rank}
        low = min(low, rank)
        high = max(high, rank)
        words[index] = rank
    lowest = atomic_min(ends, 0, low)
    highest = atomic_max(ends, 1, high)
"""
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


def _ranked(name: str, body: str, size: int, is_float: bool, arrays: str, use: str = "", more: str = "") -> Loop:
    rank, numbers = (
        (_RANK_OF_FLOAT, "sign: u8, offset: u8, last: u8, descends: i8")
        if is_float
        else (_RANK_OF_INTEGER, "turned: u8, less: u8, everything: u8")
    )
    takes = f"{_BOUNDS}, bits: u{size}[], {arrays}, {numbers}{more}"
    return compiled(name, takes, body.format(rank=rank.rstrip(), use=use))


@cache
def rank_halves() -> Loop:
    """(start, stop, bits, ranks, *numbers): ranks of float16."""
    return _ranked("rank_halves", _RANK_EACH, 2, True, "ranks: u2[]", "ranks[index] = rank")


@cache
def rank_and_pack(size: int, is_float: bool) -> Loop:
    """(start, stop, bits, words, *numbers, index_bits): makes words of ranks and indices."""
    use = "words[index] = (rank << index_bits) | u8(index)"
    return _ranked("rank_and_pack", _RANK_EACH, size, is_float, "words: u8[]", use, ", index_bits: u8")


@cache
def rank(size: int, is_float: bool) -> Loop:
    """(start, stop, bits, words, ends, *numbers): ranks, and in `ends` the least and the greatest of them."""
    return _ranked("rank", _RANK, size, is_float, "words: u8[], ends: u8[]")


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
