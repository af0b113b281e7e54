"""Top-k for rows by compiled loops: what precedes the k-th so far is inserted among the best, if these are few, or kept
until the k-th of what is kept is found by counts.

Ranks are computed a block at a time, with their minimum, in vectors. In most blocks of a row nothing precedes the k-th
so far, and they are done with that.

Rows are read twice. If another thread writes to them meanwhile, places are senseless, and yet places in the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from ....algos.sizes import LARGEST_U32
from ....arrays.recycled import new_array
from ....types.indices import SortOrder
from ...base import HostArray
from ..background import background
from ..crew import share_rows
from ..loops import Kernel, compiled, inside, place_of, text_of
from ..pool import shared_pool
from .key_words import INDEX, Places, lines_of_bits, place_of_constants, ranked

SHORT_ROWS = 1 << 11  # elements in all rows: sorted before anything else has begun
ORDERED = 1 << 5  # elements of one of some rows that are sorted sooner than chosen from
# One of so many elements, or more of them, are not inserted, of short rows of words and of others.
_LARGE_SHARE_OF_SHORT, _LARGE_SHARE = 1 << 2, 1 << 7
_ALONE = 1 << 16  # elements of a row that all threads look at, where there are fewer rows than threads
_LOOKED_AT = 1 << 17  # elements of one row at most that one thread looks at
_FEW_SELECTED = 1 << 4  # that are selected in rows of any length
MOST_SELECTED = 32  # of each row: an insertion moves half as many elements
_BLOCK = 64  # elements, a power of two
# Elements side by side that are looked at first, and how often in a row; four for each of those that are wanted.
_LEAST_SAMPLE, _FEW_SAMPLED, _MOST_SAMPLED, _LEAST_LOOKS, _LOOKS = 1 << 8, 1 << 12, 1 << 18, 1 << 3, 1 << 6

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
    keep_within = inside("for index in range(found_so_far, k):", ["places[goal + index] = 0"])
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
        *inside("if found_so_far < k:", [*fill, *keep_within]),
        *inside("for index in range(m):", ["values[goal + index] = elements[begin + places[goal + index]]"]),
    ]
    stacks = [f"ranks = stack({word}, {_BLOCK})", f"best = stack({word}, {MOST_SELECTED})"]
    body = text_of([*lines_of_bits(is_float), *stacks, *inside("for row in range(start, stop):", row)])
    return compiled("select_in_rows", _takes(word), body)


def _kth_found(size: int) -> Iterator[str]:
    """The greatest word that at most k of the ranks precede, as `limit`, and how many do, as `before`: bit by bit,
    until there are k, or all ranks left are equal."""
    word, unsigned, bits = f"i{size}", f"u{max(4, size)}", 8 * size
    greatest, least = f"{word}({(1 << (bits - 1)) - 1})", f"{word}({-(1 << (bits - 1))})"
    yield from (f"limit = {least}", f"above = {greatest}", "before = 0", f"bit = {bits - 1}")
    look = [
        f"low = {greatest}",
        f"high = {least}",
        *inside("for index in range(count):", [
            "rank = ranks[index]",
            "is_left = (rank >= limit) & (rank <= above)",
            f"low = min(low, select(is_left, rank, {greatest}))",
            f"high = max(high, select(is_left, rank, {least}))",
        ]),
        *inside("if low == high:", ["limit = low", "bit = -1"]),
    ]  # fmt: skip
    halve = [
        f"candidate = {word}(limit + {word}({word}(1) << {word}(bit)))",
        f"preceding = {unsigned}(0)",
        *inside("for index in range(count):", [f"preceding += {unsigned}(ranks[index] < candidate)"]),
        *inside("if i8(preceding) <= k:", ["limit = candidate", "before = i8(preceding)"]),
        *inside("else:", [f"above = {word}(candidate - {word}(1))"]),
    ]
    yield from inside("while (bit >= 0) & (before < k):", [
        *inside("if (bit & 7) == 7:", look), *inside("if bit >= 0:", halve), "bit -= 1",
    ])  # fmt: skip


@cache
def part_rows(size: int, is_float: bool, most_sampled: int) -> Kernel:
    """The same for any k up to a fourth of `most_sampled`; `places` as they lie, not in order, and no values. What
    precedes the k-th so far, at first that of the best of a sample's columns, is kept until there is no more room: then
    the k-th of what is kept is found, and what does not precede it is dropped, of equals the last ones."""
    word, greatest = f"i{size}", (1 << (8 * size - 1)) - 1
    sample = [
        "count = width",
        *inside("for index in range(count):", [f"ranks[index] = {word}({greatest})"]),
        *inside("for look in range(looks):", [
            "first = begin + look * i8(u8(length) // u8(looks))",
            *inside("for index in range(count):", [
                "rank = elements[first + index]", *ranked(word, "rank", is_float),
                "ranks[index] = min(ranks[index], rank)",
            ]),
        ]),
        *_kth_found(size),
        f"is_open = limit == {word}({greatest})",
        f"limit = {word}(limit + {word}(before < k))",
    ]  # fmt: skip
    drop = [
        *_kth_found(size),
        "kept = 0",
        *inside("for index in range(count):", [
            "rank = ranks[index]",
            "ties = (rank == limit) & (before < k)",
            "ranks[kept] = rank",
            "where[kept] = where[index]",
            "kept += i8((rank < limit) | ties)",
            "before += i8(ties)",
        ]),
        "count = kept",
        "is_open = False",
    ]  # fmt: skip
    block = [
        f"first = block * {_BLOCK}",
        f"size = min({_BLOCK}, length - first)",
        f"least = {word}({greatest})",
        *inside("for index in range(size):", [
            "rank = elements[begin + first + index]", *ranked(word, "rank", is_float), "fresh[index] = rank",
            "least = min(least, rank)",
        ]),
        *inside("if is_open | (least < limit):", inside("for index in range(size):", [
            "ranks[count] = fresh[index]",
            "where[count] = first + index",
            "count += i8(is_open | (fresh[index] < limit))",
        ])),
        *inside(f"if (count > k) & ((count >= 2 * k + {_BLOCK << 1}) | (block == blocks - 1)):", drop),
    ]  # fmt: skip
    row = [
        f"blocks = (length + {_BLOCK - 1}) >> {_BLOCK.bit_length() - 1}",
        "begin = row * length",
        "is_open = True",
        f"limit = {word}(0)",
        *inside("if looks > 1:", sample),
        *inside("for index in range(k):", ["where[index] = 0"]),
        "count = 0",
        *inside("for block in range(blocks):", block),
        *inside("for index in range(k):", ["places[row * k + index] = where[index]"]),
    ]
    most = 2 * most_sampled + 2 * _BLOCK
    room = [
        f"fresh = stack({word}, {_BLOCK})",
        f"ranks = np.empty({most}, np.int{8 * size})",
        f"where = np.empty({most}, np.uint32)",
    ]
    samples = [
        f"width = {_LEAST_SAMPLE}",
        *inside("while width < 4 * k:", ["width *= 2"]),
        "widths = i8(u8(length) // u8(width))",
        f"looks = min({_LOOKS}, max(min({_LEAST_LOOKS}, widths), widths >> 3))",
    ]
    body = text_of([*lines_of_bits(is_float), *room, *samples, *inside("for row in range(start, stop):", row)])
    return compiled("part_rows", _takes(word), body)


def _takes(word: str) -> str:
    elements = f"elements: {word}[], places: i8[], values: {word}[], bits: {word}[]"
    return f"start: i8, stop: i8, {elements}, length: i8, k: i8, m: i8"


def _run(loop: Kernel, source: HostArray, order: SortOrder, places: Places, values: HostArray | None = None) -> None:
    (rows, k), length = places.shape, source.shape[1]
    found, wanted = ((0, 0), 0) if values is None else (place_of(values), k)
    where = *place_of(source), *place_of(places), *found, *place_of_constants(source.dtype, order)
    share_rows(loop, rows, length, (*where, length, k, wanted), source.nbytes)


def selected_in_rows(source: HostArray, k: int, order: SortOrder) -> tuple[HostArray, Places] | None:
    """The first k elements of each row, and where they stand. None if other ways suit."""
    rows, length = source.shape
    if not 0 < k <= MOST_SELECTED or length <= (k if source.size <= SHORT_ROWS else max(2 * k, ORDERED)):
        return None
    share = _LARGE_SHARE_OF_SHORT if source.size <= SHORT_ROWS and source.itemsize > 2 else _LARGE_SHARE
    if k > _FEW_SELECTED and length < share * k:
        return None
    if length > (_LOOKED_AT if rows == 1 else _ALONE) and rows < max(2, shared_pool().threads):
        return None
    kind, are_few = (source.itemsize, source.dtype.kind == "f"), source.size <= SHORT_ROWS
    if not background.has((select_in_rows, *kind), source.nbytes, is_little=are_few):
        return None
    make = np.empty if are_few else new_array
    values, places = make((rows, k), source.dtype), make((rows, k), INDEX)
    _run(select_in_rows(*kind), source, order, places, values)
    return values, places


def parted_in_rows(source: HostArray, k: int, order: SortOrder) -> Places | None:
    """Where the first k elements of each row stand, as they lie; each row has more. None if other ways suit."""
    most = _FEW_SAMPLED if 4 * k <= _FEW_SAMPLED else _MOST_SAMPLED
    kind, are_few = (source.itemsize, source.dtype.kind == "f", most), source.size <= SHORT_ROWS
    if not 0 < 4 * k <= most or source.shape[1] > LARGEST_U32:
        return None
    if not background.has((part_rows, *kind), source.nbytes, is_little=are_few):
        return None
    places: Places = new_array((len(source), k), INDEX)
    _run(part_rows(*kind), source, order, places)
    return places
