"""Compiled loops of the packed argsort, each of which NumPy does in several."""

from __future__ import annotations

from functools import cache

from .loops import Loop, compiled

# What `ordered_ranks` does.
_RANK_FLOATS = """
    everything = (sign << 1) - 1
    for index in range(start, stop):
        word = u8(bits[index])
        negative = u8((word & sign) != 0)
        flipped = (word ^ (sign | (0 - negative))) + negative - 1
        rank = select(descends != 0, offset - flipped, flipped - offset)
        ranks[index] = min(rank & everything, last)
"""
_PACK = """
    found = u8(0)
    for index in range(len(ranks)):
        rank = ranks[index] - least
        found = found | rank
        words[index] = ((rank >> left_out) << index_bits) | u8(first + index)
    seen[0] = found
"""


@cache
def rank_floats(size: int, rank_size: int) -> Loop:
    """(bits, ranks, sign, offset, last, descends, start, stop): ranks of floats of so many bytes."""
    numbers = "sign: u8, offset: u8, last: u8, descends: i8, start: i8, stop: i8"
    takes = f"bits: u{size}[], ranks: u{rank_size}[], {numbers}"
    return compiled("rank_floats", takes, _RANK_FLOATS)


@cache
def pack() -> Loop:
    """(ranks, words, seen, least, left_out, index_bits, first): makes words of ranks less the least, less their lowest
    bits, and of indices from the first on; and all bits that any rank had."""
    takes = "ranks: u8[], words: u8[], seen: u8[], least: u8, left_out: u8, index_bits: u8, first: i8"
    return compiled("pack", takes, _PACK)
