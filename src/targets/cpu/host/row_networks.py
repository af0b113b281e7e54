"""Many short rows that are sorted or argsorted side by side by sorting networks, one row a lane of a vector, whichever
way they lie. They work on words that compare as integers: no zero and no NaN is to be put right afterwards.

A block of rows lies turned round: the first elements of all rows, then the second ones, and so on. So comparing two
places of a row is one minimum and one maximum of whole vectors. Up to sixteen places are sorted in registers; longer
rows are merged from such. In an argsort, what stood where goes along, and tells equals apart, so that they keep their
order. How far apart two places lie is a number in the text wherever they are compared: else LLVM would have to ask, as
it runs, whether they overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import attrs
import numpy as np

from ....algos.host_sort import HostSortPolicy
from ....algos.merge_exchange import compared_parts
from ....types.indices import SortOrder
from ...base import HostArray
from ..background import background
from ..crew import LEAST_TASK, is_worth_waking, share_kernel
from ..loops import Kernel, compiled, inside, numbers_of_plan, place_of, text_of
from .key_words import Places, lines_of_bits, place_of_constants, ranked, turned, turned_back
from .numpy_speed import numpy_sorts_slowly
from .strides import Loop, Span, lies_evenly, loops_beside, padded

Pair = tuple[int, int]

_PLAN = ("start", "out_start", "n0", "s0", "o0", "n1", "s1", "o1", "length", "step", "out_step")
BLOCK_BYTES = 512  # of one place of all rows in a block


def lanes(size: int) -> int:
    """Rows in a block, of elements of so many bytes."""
    return BLOCK_BYTES // size


@cache
def network(length: int, size: int, is_float: bool) -> Kernel:
    """Sorts rows of so many places, a power of two, of which the last may be left empty."""
    word, count = f"i{size}", lanes(size)
    work = (
        *_turns(count, turned(word, "block[j]", is_float)),
        *_network(length, count, _WORDS),
        *_turns(count, turned_back(word, "block[j]", is_float)),
        *_moves(count, "goal", "out_step", "o1", "out[{}] = block[own + j]"),
    )
    return _made("rows", word, word, (), _each_block(word, length, is_float, work))


@cache
def places_network(length: int, size: int, is_float: bool) -> Kernel:
    """Finds where the elements of such rows stand, in stable order. Zeros of both signs are equal, and all NaNs."""
    word, count = f"i{size}", lanes(size)
    number = inside(f"for j in range({count}):", [f"places[place * {count} + j] = {word}(place)"])
    work = (
        *_turns(count, ranked(word, "block[j]", is_float)),
        *inside(f"for place in range({length}):", number),
        *_network(length, count, _PLACED_WORDS),
        *_moves(count, "goal", "out_step", "o1", "out[{}] = i8(places[own + j])"),
    )
    places = f"places = stack({word}, {length * count})"
    return _made("places", word, "i8", [places], _each_block(word, length, is_float, work))


def _each_block(word: str, length: int, is_float: bool, work: Iterable[str]) -> Iterator[str]:
    """Loads block by block, and works on each."""
    size = int(word[1:])
    count, last = lanes(size), (1 << (8 * size - 1)) - 1
    yield from lines_of_bits(is_float)
    yield f"block = stack({word}, {length * count})"
    yield from inside(f"for j in range({length * count}):", [f"block[j] = {word}({last})  # behind all others"])
    yield f"blocks = (u8(n1) + {count - 1}) // {count}"
    begin = (
        "outer = i8(u8(task) // blocks)",
        f"begin = i8(u8(task) % blocks * {count})",
        f"count = min({count}, n1 - begin)",
        "source = start + outer * s0 + begin * s1",
        "goal = out_start + outer * o0 + begin * o1",
    )
    load = _moves(count, "source", "step", "s1", "block[own + j] = flat[{}]")
    yield from inside("for task in range(first, last):", [*begin, *load, *work])


def _made(name: str, word: str, out: str, before: Sequence[str], lines: Iterable[str]) -> Kernel:
    takes = f"first: i8, last: i8, flat: {word}[], out: {out}[], plan: i8[], bits: {word}[]"
    return compiled(name, takes, f"{numbers_of_plan(_PLAN, ())}\n{text_of([*before, *lines])}")


def _order_words(low: int, high: int) -> Iterator[str]:
    yield f"lesser = min(x{low}, x{high})"
    yield f"x{high} = max(x{low}, x{high})"
    yield f"x{low} = lesser"


def _order_placed(low: int, high: int) -> Iterator[str]:
    """With the place that each came from: of equal words the first one's is less."""
    yield f"swaps = (x{high} < x{low}) | ((x{high} == x{low}) & (y{high} < y{low}))"
    for name in "xy":
        yield f"lesser = select(swaps, {name}{high}, {name}{low})"
        yield f"{name}{high} = select(swaps, {name}{low}, {name}{high})"
        yield f"{name}{low} = lesser"


@attrs.frozen
class _Exchange:
    """What puts two places in order that registers hold, so many of them together, each of these arrays by a letter."""

    order: Callable[[int, int], Iterator[str]]
    together: int
    arrays: dict[str, str]


_WORDS = _Exchange(_order_words, 16, {"x": "block"})
_PLACED_WORDS = _Exchange(_order_placed, 8, {"x": "block", "y": "places"})


def _moves(count: int, start: str, step: str, beside: str, move: str) -> Iterator[str]:
    """Elements of all rows between memory and the block."""
    near, apart = (inside("for j in range(count):", [move.format(f"base + {j}")]) for j in ("j", f"j * {beside}"))
    places = (f"own = place * {count}", f"base = {start} + place * {step}")
    ways = (*inside(f"if {beside} == 1:", near), *inside("else:", apart))
    return inside("for place in range(length):", [*places, *ways])


def _turns(count: int, steps: Iterable[str]) -> Iterator[str]:
    """All words of the block, whichever rows they are of."""
    return inside(f"for j in range(length * {count}):", steps)


def _network(length: int, count: int, exchange: _Exchange) -> Iterator[str]:
    most = exchange.together
    run = min(length, most)

    def together(run: int, pairs: Iterable[Pair]) -> Iterator[str]:
        """So many places after the other, held in registers while pairs of them are put in order."""
        return _passes(length, run, [(range(run), [*pairs])], count, exchange)

    def apart(run: int, pairs: list[Pair]) -> Iterator[str]:
        """Pairs of so many places after the other, put in order by some at a time."""
        some = [pairs[first : first + most] for first in range(0, len(pairs), most)]
        passes = [([place for pair in each for place in pair], each) for each in some]
        return _passes(length, run, passes, count, exchange)

    yield from together(run, compared_parts(run))
    while run < length:
        # The second run backwards: each half rises and falls once.
        yield from apart(2 * run, [(low, 2 * run - 1 - low) for low in range(run)])
        half = run // 2
        while half >= most:
            yield from apart(2 * half, [(low, half + low) for low in range(half)])
            half //= 2
        yield from together(most, _halvings(most))
        run *= 2


def _passes(
    length: int, run: int, passes: Iterable[tuple[Iterable[int], list[Pair]]], count: int, exchange: _Exchange
) -> Iterator[str]:
    """Loops over vectors, each of which loads some places, puts pairs of them in order, and stores them."""
    loops: list[str] = []
    for places, pairs in passes:
        held = [
            (f"{letter}{place}", f"{array}[at + j + {place * count}]")
            for place in places
            for letter, array in exchange.arrays.items()
        ]
        steps = (
            *(f"{register} = {element}" for register, element in held),
            *(line for pair in pairs for line in exchange.order(*pair)),
            *(f"{element} = {register}" for register, element in held),
        )
        loops += inside(f"for j in range({count}):", steps)
    return inside(f"for at in range(0, {length * count}, {run * count}):", loops)


def _halvings(length: int) -> Iterator[Pair]:
    """What puts so many places in order that rise and fall once."""
    apart = length // 2
    while apart:
        for first in range(0, length, 2 * apart):
            for low in range(first, first + apart):
                yield low, low + apart
        apart //= 2


# By the bytes of an element, of rows that lie one after the other: longer ones take NumPy no longer.
_LONGEST = {1: 128, 2: 64, 4: 48, 8: 32}
_LONGEST_TO_ARGSORT = {1: 128, 2: 128, 4: 128, 8: 64}
# Of rows that lie side by side, which all else would have to turn round: longer ones take seconds to compile, and those
# of 8 bytes are turned round and sorted sooner where NumPy has vector code.
_LONGEST_WIDE = 64
_LONGEST_BESIDE, _LONGEST_TO_ARGSORT_BESIDE = 256, 128
# A call of a network takes as long as NumPy takes to find places in some thousand elements, or to sort them, unless it
# has vector code for rows of these: so much fewer than threads are worth.
_ONE_THREAD = 8
_ROW = 64  # elements of a row by which NumPy is judged
_LEAST_USED, _FULL = 0.25, 0.64  # of all lanes
_SHORT_BY_DIGITS = 48  # elements of a row of 8 or 16 bits
_LONGEST_OF_FEW = {2: 24, 4: 8, 8: 8}  # by bytes, where NumPy has vector code


def least_for_networks(policy: HostSortPolicy) -> int:
    """How many elements in all are worth a call."""
    return -(-policy.serial_below // _ONE_THREAD)


def longest_of_many(dtype: np.dtype[np.generic], apart: int) -> int:
    """The longest rows, with elements so many bytes apart, that networks sort where they are many."""
    size = dtype.itemsize
    if apart == size:
        return _LONGEST[size]
    is_turned = size == 8 and dtype.kind not in "Mm" and _has_vectors_in_numpy(size)  # times take NumPy two more passes
    return _LONGEST_WIDE if is_turned else _LONGEST_BESIDE


def longest_of_few(size: int) -> int:
    """Of elements of so many bytes the longest rows to sort where few elements in all are worth it."""
    return _LONGEST_OF_FEW[size] if size > 2 or _has_vectors_in_numpy(size) else _LONGEST[size]


def _has_vectors_in_numpy(size: int) -> bool:
    return size > 1 and not numpy_sorts_slowly(size, _ROW)


def sort_short_rows(x: HostArray, results: HostArray, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Sorts along the last axis into `results`, which is x itself, or lies apart. False, and nothing done, where other
    ways suit. An exception leaves whole rows as they were, or in order."""
    if x.ndim < 2 or not 1 < x.shape[-1] <= _LONGEST_BESIDE:
        return False
    size, has_vectors = x.itemsize, _has_vectors_in_numpy(x.itemsize)
    few = x.size < policy.serial_below
    longest = longest_of_few(size) if few else longest_of_many(x.dtype, abs(x.strides[-1]))
    if x.shape[-1] > longest or x.size < least_for_networks(policy) or results.dtype != x.dtype:
        return False
    return _by_network(network, x, results, order, policy, _LONGEST[size] if has_vectors else longest)


def argsort_short_rows(x: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy) -> bool:
    """Stable argsorts of several rows, along the last axis. False, and nothing done, where other ways suit: of rows of
    8 and 16 bits, of which NumPy finds places by their digits, unless they are very short or many."""
    length = x.shape[-1]
    longest = _LONGEST_TO_ARGSORT[x.itemsize] if _follow_each_other(x) else _LONGEST_TO_ARGSORT_BESIDE
    if not 1 < length <= longest:
        return False
    by_digits = x.itemsize <= 2 and x.dtype.kind != "f" and length > _SHORT_BY_DIGITS
    if by_digits and 2 * x.size < length * lanes(x.itemsize):
        return False
    return _by_network(places_network, x, places, order, policy, length)


def _follow_each_other(x: HostArray) -> bool:
    """Whether the elements of a row do."""
    return abs(x.strides[-1]) == x.itemsize


def _by_network(
    of: Callable[[int, int, bool], Kernel], x: HostArray, results: HostArray, order: SortOrder,
    policy: HostSortPolicy, full: int,
) -> bool:  # fmt: skip
    """Rows longer than `full` only where they lie side by side and use most of the lanes, or are few and no longer than
    twice as much."""
    dtype, length = x.dtype, x.shape[-1]
    if not (lies_evenly(x) and lies_evenly(results)):
        return False
    outs = [stride // results.itemsize for stride in results.strides]
    loops = loops_beside(x, outs, x.ndim - 1)
    if len(loops) > 2:
        return False
    width, rows = lanes(dtype.itemsize), x.size // length
    outer, near = padded(loops)
    are_few = 2 * _blocks(near, outer, width) < _blocks(outer, near, width)
    if are_few:  # rows side by side, which leave lanes empty
        outer, near = near, outer
    used = rows / (_blocks(outer, near, width) * width)
    if length > full and (length > 2 * full if are_few else used < _FULL):
        return False
    kind = 1 << (length - 1).bit_length(), dtype.itemsize, dtype.kind == "f"
    if not background.has((of, *kind), x.nbytes):
        return False
    if used < _LEAST_USED < rows / width:
        packed = np.ascontiguousarray(x).reshape(-1, length)  # one after the other
        found: HostArray = np.empty(packed.shape, results.dtype)
        is_done = _by_network(of, packed, found, order, policy, full)
        if is_done:
            results[...] = found.reshape(x.shape)
        return is_done
    two = [number for loop in (outer, near) for number in (loop.length, loop.stride, loop.out)]
    source, goal = Span.of(x), Span.of(results)
    plan = np.array([source.before, goal.before, *two, length, x.strides[-1] // x.itemsize, outs[-1]], np.int64)
    tasks = _blocks(outer, near, width)
    numbers = (*source.place(x), *goal.place(results), *place_of(plan), *place_of_constants(dtype, order))
    least = -(-tasks * LEAST_TASK // max(1, x.size))  # tasks
    work = x.nbytes if of is network else x.size * length  # places go along, the slower the longer a row is
    is_shared = x.size >= policy.serial_below and is_worth_waking(work)
    share_kernel(of(*kind), tasks, numbers, x.nbytes if is_shared else 0, least=least)
    return True


def _blocks(outer: Loop, near: Loop, width: int) -> int:
    return outer.length * -(-near.length // width)
