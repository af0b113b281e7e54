"""Compiled loops of sorting by counting: histograms, and writing runs of equal elements."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..loops import Loop, compiled, name_of

# Neighbours count in different tables: equal ones would wait for each other.
_TABLES = 8
_BYTES = f"""
    tables = stack({{count}}, {256 * _TABLES})
    for j in range({256 * _TABLES}):
        tables[j] = 0
    whole = stop - ((stop - start) & {_TABLES - 1})
    for at in range(start, whole, {_TABLES}):
        {{steps}}
    for index in range(whole, stop):
        word = i8(words[index])
        tables[word] = tables[word] + 1
    for value in range(256):
        found = {" + ".join(f"tables[{256 * k} + value]" for k in range(_TABLES))}
        counts[row + value] = counts[row + value] + found
"""
_STEPS = "\n        ".join(
    [f"word_{k} = i8(words[at + {k}]) + {256 * k}" for k in range(_TABLES)]
    + [f"tables[word_{k}] = tables[word_{k}] + 1" for k in range(_TABLES)]
)
# Of two bytes one table fills the nearest cache.
_PAIRS = """
    for index in range(start, stop):
        word = i8(words[index]) + row
        counts[word] = counts[word] + 1
"""
_FILL = """
    at = 0
    past = len(ends)
    while True:
        if at >= past:
            break
        middle = (at + past) >> 1
        if ends[middle] <= start:
            at = middle + 1
        else:
            past = middle
    index = start
    while True:
        if index >= stop:
            break
        end = min(ends[at], stop)
        value = sequence[at]
        for k in range(index, end):
            results[k] = value
        index = end
        at += 1
"""
_RANK = """
    for index in range(len(words)):
        word = words[index]
        found = i8(table[(u8(word) * multiplier) >> shift])
        if values[found] != word:
            missed[0] = 1
            break
        ranked[index] = ranks[found]
"""


@cache
def count_words(size: int, counts: np.dtype[np.generic]) -> Loop:
    """(words, counts, row, start, stop): adds how often each value of so many bytes, 1 or 2, occurs from start to stop,
    to the counts from `row` on."""
    takes = f"words: u{size}[], counts: {name_of(counts)}[], row: i8, start: i8, stop: i8"
    bytes_ = _BYTES.format(count=name_of(counts), steps=_STEPS)
    return compiled("count_words", takes, bytes_ if size == 1 else _PAIRS)


@cache
def fill(size: int) -> Loop:
    """(start, stop, results, sequence, ends): writes the elements start to stop: sequence[k] as far as ends[k]."""
    takes = f"start: i8, stop: i8, results: u{size}[], sequence: u{size}[], ends: i8[]"
    return compiled("fill", takes, _FILL)


@cache
def rank_found(size: int) -> Loop:
    """(words, values, table, multiplier, shift, missed, ranks, ranked): writes each word's rank, found by a perfect
    hash. Sets `missed` at the first word that is none of the values."""
    hashed = f"words: u{size}[], values: u{size}[], table: u1[], multiplier: u8, shift: u8, missed: i8[]"
    return compiled("rank_found", f"{hashed}, ranks: u1[], ranked: u1[]", _RANK)
