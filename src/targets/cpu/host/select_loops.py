"""The compiled loop of top-k for rows: what precedes the k-th so far is inserted among the best.

Ranks are computed a block at a time, with their minimum, in vectors. In most blocks of a row nothing precedes the k-th
so far, and they are done with that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ..loops import Kernel, compiled, inside, text_of
from .key_words import lines_of_bits, ranked

MOST_SELECTED = 32  # of each row: an insertion moves half as many elements
_BLOCK = 64  # elements, a power of two

# A row whose end precedes its middle, and this its beginning, is read from the end, for in one that ascends to it every
# element would be inserted; as equals would be in a row of a few different elements that is read so. Of equal ranks,
# the lower index comes first: read backwards, an element is inserted before its equals.
_INSERT = """
index = select(back, count - 1 - step, step)
rank = ranks[index]
if (rank < best[k - 1]) | (back & (rank == best[k - 1])):
    place = k - 1
    while place > 0:
        if (best[place - 1] < rank) | ((best[place - 1] == rank) & (back == 0)):
            break
        best[place] = best[place - 1]
        places[goal + place] = places[goal + place - 1]
        place -= 1
    best[place] = rank
    places[goal + place] = first + index
"""


@cache
def select_in_rows(size: int, is_float: bool) -> Kernel:
    """(start, stop, elements, places, values, bits, length, k, m): where the first k elements of each row stand, in
    order, and the elements, if m is k and not 0. For k up to MOST_SELECTED and the length."""
    word, greatest = f"i{size}", (1 << (8 * size - 1)) - 1

    def rank_of(name: str, place: str) -> Iterator[str]:
        yield f"{name} = elements[{place}]"
        yield from ranked(word, name, is_float)

    block = [
        f"first = select(back, blocks - 1 - block, block) * {_BLOCK}",
        f"count = min({_BLOCK}, length - first)",
        f"least = {word}({greatest})",
        *inside("for index in range(count):", [
            *rank_of("rank", "begin + first + index"), "ranks[index] = rank", "least = min(least, rank)",
        ]),
        *inside(
            "if (least < best[k - 1]) | (back & (least == best[k - 1])):",
            inside("for step in range(count):", _INSERT.strip().splitlines()),
        ),
    ]  # fmt: skip
    # Elements of the greatest rank, such as NaN, precede nothing. Those that are wanted follow the others.
    fill = inside("for index in range(length):", [
        *rank_of("rank", "begin + index"),
        *inside(f"if (rank == {word}({greatest})) & (found_so_far < k):", [
            "places[goal + found_so_far] = index", "found_so_far += 1",
        ]),
    ])  # fmt: skip
    row = [
        f"blocks = (length + {_BLOCK - 1}) >> {_BLOCK.bit_length() - 1}",
        "begin = row * length",
        "goal = row * k",
        *rank_of("begun", "begin"),
        *rank_of("middle", "begin + (length >> 1)"),
        *rank_of("last", "begin + length - 1"),
        "back = (last < middle) & (middle < begun)",
        *inside("for index in range(k):", [f"best[index] = {word}({greatest})", "places[goal + index] = length"]),
        *inside("for block in range(blocks):", block),
        "found_so_far = 0",
        *inside("for index in range(k):", ["found_so_far += i8(places[goal + index] < length)"]),
        *inside("if found_so_far < k:", fill),
        *inside("for index in range(m):", ["values[goal + index] = elements[begin + places[goal + index]]"]),
    ]
    stacks = [f"ranks = stack({word}, {_BLOCK})", f"best = stack({word}, {MOST_SELECTED})"]
    body = text_of([*lines_of_bits(is_float), *stacks, *inside("for row in range(start, stop):", row)])
    takes = (
        f"start: i8, stop: i8, elements: {word}[], places: i8[], values: {word}[], bits: {word}[], "
        "length: i8, k: i8, m: i8"
    )
    return compiled("select_in_rows", takes, body)
