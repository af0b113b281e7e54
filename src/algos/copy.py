"""Strided copies (packing, permuting axes) and gathers by index, where no array library does them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs

from ..kernel.language import *
from ..machine import Limits
from ..types.errors import CapabilityError
from ..types.scalars import UNSIGNED
from ..types.specs import bounds
from .fit import PLAIN_GROUP, plain_group
from .layout import merged
from .sizes import LARGEST_U32
from .transpose import DIMENSIONS, Lines, transposition

_EACH = 4  # elements for each invocation


@attrs.frozen
class Index:
    i0: U32
    i1: U32
    i2: U32
    i3: U32

    def place(self, lines: Lines, axes: int) -> U32:
        """The index in the buffer of the element with this index along the last `axes` axes."""
        place = lines.first + self.i3 * lines.stride3
        if axes > 1:
            place = place + self.i2 * lines.stride2
        if axes > 2:
            place = place + self.i1 * lines.stride1
        if axes > 3:
            place = place + self.i0 * lines.stride0
        return place


@attrs.frozen
class CopyParams:
    """The common shape, without the first axis, and both layouts."""

    num_elements: U32
    size1: U32
    size2: U32
    size3: U32
    source: Lines
    target: Lines

    def index_of(self, number: U32, axes: int) -> Index:
        """The index of an element by its number in C order, with one division less than there are axes."""
        rest3 = number // self.size3 if axes > 1 else U32(0)
        rest2 = rest3 // self.size2 if axes > 2 else U32(0)
        rest1 = rest2 // self.size1 if axes > 3 else U32(0)
        return Index(
            rest1, rest2 - rest1 * self.size1, rest3 - rest2 * self.size2, number - rest3 * self.size3
        )  # fmt: skip


@attrs.frozen
class TakeParams:
    """Rows of indices into rows of elements of `words` words each."""

    num_words: U32  # in the results
    words: U32
    indices_in_row: U32
    elements_in_row: U32
    first: U32  # the index in the row of the first element in `source`, if only a piece of it is there


@kernel
def copy_elements(cx: Invocation, source: Storage[E], target: Storage[E], params: CopyParams, axes: int) -> None:
    """Copies elements between two strided arrays of one shape."""
    for i in dynamic_range(cx.global_id, params.num_elements, cx.num_groups * cx.group_size):
        index = params.index_of(i, axes)
        target[index.place(params.target, axes)] = source[index.place(params.source, axes)]


@kernel
def copy_each(cx: Invocation, source: Storage[E], target: Storage[E], count: U32) -> None:
    """Copies contiguous elements, one for each invocation."""
    if cx.global_id < count:
        target[cx.global_id] = source[cx.global_id]


@kernel
def take_elements(
    cx: Invocation, source: Storage[E], indices: Storage[U64], target: Storage[E], params: TakeParams
) -> None:
    """Gathers each row's elements at its indices; a result whose element is not there is unchanged."""
    for i in dynamic_range(cx.global_id, params.num_words, cx.num_groups * cx.group_size):
        number = i // params.words
        row = number // params.indices_in_row
        place = U32(indices[number]) - params.first  # wraps to beyond the last for an index before the first
        if place < params.elements_in_row:
            element = row * params.elements_in_row + place
            target[i] = source[element * params.words + (i - number * params.words)]


@attrs.frozen
class Strided:
    """An array's offset and strides in a buffer of `extent` elements, all in elements. Strides may be negative."""

    first: int
    strides: tuple[int, ...]
    extent: int  # of the buffer

    def contains(self, shape: tuple[int, ...]) -> bool:
        """Whether a nonempty array of a shape is within the buffer."""
        low, high = bounds(shape, self.strides, 1)
        return self.first + low >= 0 and self.first + high <= self.extent


def copy_strided(element: Any, shape: tuple[int, ...], source: Strided, target: Strided, *, limits: Limits) -> Schedule:
    """Copies between strided arrays of one shape; other elements of `target` are unchanged."""
    count = math.prod(shape)
    for layout in (source, target):
        if layout.extent > LARGEST_U32:
            raise CapabilityError(
                f"x: an array that lies in {layout.extent} elements; at most {LARGEST_U32} are copied"
            )
        if count and not layout.contains(shape):
            raise ValueError("an array's elements lie in its buffer")
    data = Buffer("source", element, source.extent, Role.INPUT)
    goal = Buffer("target", element, target.extent, Role.INOUT)
    if count == 0:
        return Schedule((data, goal), ())
    sizes, lines = merged(shape, source.strides, target.strides)
    return Schedule((data, goal), tuple(_copies(data, goal, (source.first, target.first), sizes, lines, limits)))


def copy_whole(source: Buffer[E], target: Buffer[E]) -> Launch:
    """Copies a buffer into another of the same length."""
    grid = Grid(-(-source.count // PLAIN_GROUP), PLAIN_GROUP)
    return copy_each.launch(grid, source, target, U32(source.count))


def _copies(
    data: Buffer[Any],
    goal: Buffer[Any],
    firsts: tuple[int, int],
    sizes: tuple[int, ...],
    lines: list[tuple[int, ...]],
    limits: Limits,
) -> Iterator[Launch]:
    """One launch; with more than DIMENSIONS axes, one for each index along the shortest ones."""
    if len(sizes) > DIMENSIONS:
        axis = sizes.index(min(sizes))
        rest = [(*line[:axis], *line[axis + 1 :]) for line in lines]
        for index in range(sizes[axis]):
            moved = firsts[0] + index * lines[0][axis], firsts[1] + index * lines[1][axis]
            yield from _copies(data, goal, moved, (*sizes[:axis], *sizes[axis + 1 :]), rest, limits)
        return
    sources, targets = lines
    turned = transposition(data, goal, firsts, sizes, sources, targets, limits)
    if turned is not None:
        yield turned
        return
    missing, axes, count = DIMENSIONS - len(sizes), max(1, len(sizes)), math.prod(sizes)
    _, size1, size2, size3 = map(U32, (1,) * missing + sizes)
    source_lines, target_lines = Lines.of(firsts[0], sources), Lines.of(firsts[1], targets)
    params = CopyParams(U32(count), size1, size2, size3, source_lines, target_lines)
    yield copy_elements.launch(_grid(count, limits), data, goal, params, axes)


def take_rows(
    itemsize: int, rows: int, length: int, taken: int, first: int | None = None, *, limits: Limits
) -> Schedule:
    """Gathers `taken` elements of each row of `source`, by its row of `indices`, into `target`. With `first`, `source`
    is a piece of a row, from that index on, and `target` (INOUT) keeps what is not of it."""
    word = math.gcd(itemsize, 8)
    words, element = itemsize // word, UNSIGNED[word]
    count = rows * taken * words
    source = Buffer("source", element, rows * length * words, Role.INPUT)
    indices = Buffer("indices", U64, rows * taken, Role.INPUT)
    target: Buffer[Any] = Buffer("target", element, count, Role.OUTPUT if first is None else Role.INOUT)
    if count == 0:
        return Schedule((source, indices, target), ())
    params = TakeParams(U32(count), U32(words), U32(taken), U32(length), U32(first or 0))
    launch = take_elements.launch(_grid(count, limits), source, indices, target, params)
    return Schedule((source, indices, target), (launch,))


def _grid(count: int, limits: Limits) -> Grid:
    size = plain_group(limits)
    return Grid(min(-(-count // (size * _EACH)), limits.groups), size)
