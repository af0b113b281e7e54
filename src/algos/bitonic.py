"""Bitonic sort (Batcher 1968): a data-independent network of compare-and-swap, in place.

Each stage merges sorted blocks in pairs. Its first pass compares every element of the lower block with its mirror image
in the upper one; each later pass at half the distance of the one before. So every comparison puts the lesser word
first, and padding beyond the end, as the greatest word, would never move and need not exist: any length is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ..kernel.language import *
from ..types.indices import ElementIndex, Pass, Row, Stage, ThreadId
from ..types.params import BitonicParams, BitonicPolicy
from .sizes import require_countable


@attrs.frozen
class ComparisonDistance:
    """The distance of the elements that a pass compares; of a first pass, half a block. A power of two."""

    value: U32

    @classmethod
    def of(cls, stage: Stage, pass_: Pass) -> ComparisonDistance:
        return cls(U32(1) << (stage.value - pass_.value))

    def lower_of(self, thread: ThreadId) -> ElementIndex:
        """The lower element of a thread's pair: threads map to the lower halves of the blocks, so none is idle."""
        return ElementIndex(thread.value + (thread.value & ~(self.value - 1)))

    def partner_of(self, lower: ElementIndex, pass_: Pass) -> ElementIndex:
        """The element to compare with: the mirror image in a stage's first pass, later that at the distance."""
        mask = self.value * 2 - 1 if pass_.value == 0 else self.value
        return ElementIndex(lower.value ^ mask)


@attrs.frozen
class ComparisonPair:
    """Two elements to compare, the lower index first."""

    lower: ElementIndex
    upper: ElementIndex

    @classmethod
    def of(cls, thread: ThreadId, stage: Stage, pass_: Pass) -> ComparisonPair:
        distance = ComparisonDistance.of(stage, pass_)
        lower = distance.lower_of(thread)
        return cls(lower, distance.partner_of(lower, pass_))

    def is_within(self, num_elements: U32) -> Bool:
        return self.upper.value < num_elements


def to_ordered(key: SortableKey[E, W], element: E, order: SortOrder) -> W:
    """An element's word for an order: lesser words come first."""
    match order:
        case SortOrder.ASCENDING:
            return key.to_word(element)
        case SortOrder.DESCENDING:
            return key.mirrored(key.to_word(element))


def from_ordered(key: SortableKey[E, W], word: W, order: SortOrder) -> E:
    """The element of such a word: the inverse of to_ordered."""
    match order:
        case SortOrder.ASCENDING:
            return key.from_word(word)
        case SortOrder.DESCENDING:
            return key.from_word(key.mirrored(word))


@kernel
def bitonic_step(cx: Invocation, key: SortableKey[E, W], data: Storage[E], params: BitonicParams) -> None:
    """One pass over global memory; one launch per (stage, pass)."""
    row = Row.of(cx.group_id, cx.local_id, cx.group_size, params.groups_per_row, params.num_elements)
    pair = ComparisonPair.of(row.thread, params.stage, params.pass_of_stage)
    if pair.is_within(params.num_elements):
        lower, upper = data[row.at(pair.lower)], data[row.at(pair.upper)]
        if to_ordered(key, upper, params.order) < to_ordered(key, lower, params.order):
            data[row.at(pair.lower)] = upper
            data[row.at(pair.upper)] = lower


def compare_and_swap(words: Registers[W] | Workgroup[W], lower: U32, upper: U32) -> None:
    """Puts the lesser of two words first."""
    low, high = words[lower], words[upper]
    swap = high < low
    words[lower] = high if swap else low
    words[upper] = low if swap else high


@kernel
def bitonic_registers(
    cx: Invocation, key: SortableKey[E, W], data: Storage[E], params: BitonicParams, passes: int, mirrored: bool
) -> None:
    """Several passes in one launch, in registers; `mirrored` if the first of them is the first of its stage."""
    count = 1 << passes
    row = Row.of(cx.group_id, cx.local_id, cx.group_size, params.groups_per_row, params.num_elements)
    stride = ComparisonDistance.of(params.stage, params.pass_of_stage).value >> (passes - 1)
    below = row.thread.value & (stride - 1)
    first = below + (row.thread.value - below) * count

    words: Registers[W] = Registers(key.word, count)
    for i in range(count):
        element = element_of(first, stride, i, mirrored and i >= count // 2)
        words[i] = (
            to_ordered(key, data[row.at(element)], params.order)
            if element.value < params.num_elements
            else key.greatest
        )

    for step in range(passes):
        half = count >> (step + 1)
        mask = count - 1 if mirrored and step == 0 else half
        for i in range(count):
            if i & half == 0:
                compare_and_swap(words, U32(i), U32(i ^ mask))

    for i in range(count):
        element = element_of(first, stride, i, mirrored and i >= count // 2)
        if element.value < params.num_elements:
            data[row.at(element)] = from_ordered(key, words[i], params.order)


def element_of(first: U32, stride: U32, position: int, mirrored: bool) -> ElementIndex:
    """The index of a thread's element; in the upper half of a mirrored pass, mirrored within the stride."""
    straight = first + stride * position
    return ElementIndex(straight ^ (stride - 1) if mirrored else straight)


@kernel
def bitonic_tile(
    cx: Invocation,
    key: SortableKey[E, W],
    data: Storage[E],
    tile: Workgroup[W],
    params: BitonicParams,
    last_stage: Stage,
) -> None:
    """All passes from (stage, pass) to the end of the last stage, whose pairs are in a tile, in workgroup memory."""
    row = Row.of(cx.group_id, cx.local_id, U32(1), params.groups_per_row, params.num_elements)
    start = (row.thread.value - cx.local_id) * tile.length
    for i in dynamic_range(cx.local_id, tile.length, cx.group_size):
        element = ElementIndex(start + i)
        tile[i] = (
            to_ordered(key, data[row.at(element)], params.order)
            if element.value < params.num_elements
            else key.greatest
        )
    cx.barrier()

    pass_ = Pass(params.pass_of_stage.value)
    for s in dynamic_range(params.stage.value, last_stage.value + 1):
        stage = Stage(s)
        for p in dynamic_range(pass_.value, stage.next_pass().value):
            for thread in dynamic_range(cx.local_id, tile.length // 2, cx.group_size):
                pair = ComparisonPair.of(ThreadId(thread), stage, Pass(p))
                compare_and_swap(tile, pair.lower.value, pair.upper.value)
            cx.barrier()
        pass_ = Pass(U32(0))

    for i in dynamic_range(cx.local_id, tile.length, cx.group_size):
        element = ElementIndex(start + i)
        if element.value < params.num_elements:
            data[row.at(element)] = from_ordered(key, tile[i], params.order)


def bitonic_sort(key: SortableKey[E, W], rows: int, length: int, order: SortOrder, policy: BitonicPolicy) -> Schedule:
    """Sorts every row of `data`, contiguous rows of one length, in place."""
    data = Buffer("data", key.element, rows * length, Role.INOUT)
    return Schedule((data,), tuple(bitonic_launches(key, data, rows, length, order, policy)))


def bitonic_launches(
    key: SortableKey[E, W], data: Buffer[E], rows: int, length: int, order: SortOrder, policy: BitonicPolicy,
    shares: bool = False,
) -> Iterator[Launch]:  # fmt: skip
    """Sorts every row of a buffer. With `shares`, the launches for a length start with those for shorter lengths."""
    require_countable(rows, length)
    network = _Network(key, data, rows, length, order, policy, shares)
    if network.stages:
        yield network.in_tiles(0, 0, network.tile_stages - 1)
    for stage in range(network.tile_stages, network.stages):
        yield from network.merge(stage, 0)


def merge_launches(
    key: SortableKey[E, W], data: Buffer[E], length: int, order: SortOrder, policy: BitonicPolicy
) -> Iterator[Launch]:
    """Sorts a bitonic buffer, by a stage's passes after the first: words fall, then rise; or, if the length is a power
    of two, rise, then fall."""
    require_countable(1, length)
    network = _Network(key, data, 1, length, order, policy)
    if network.stages:
        yield from network.merge(network.stages, 1)


@attrs.frozen
class _Network:
    key: SortableKey[Any, Any]
    data: Buffer[Any]
    rows: int
    length: int
    order: SortOrder
    policy: BitonicPolicy
    shares: bool = False  # whether the launches start with those for shorter lengths

    @property
    def stages(self) -> int:
        """log2 of the length, rounded up."""
        padded = self.policy.tile if self.shares and self.length <= self.policy.tile else self.length
        return max(0, (padded - 1).bit_length())

    @property
    def tile(self) -> int:
        return min(self.policy.tile, 1 << self.stages)

    @property
    def tile_stages(self) -> int:
        return self.tile.bit_length() - 1

    @property
    def group_size(self) -> int:
        return min(self.policy.group_size, self.tile // 2)

    def merge(self, stage: int, first: int) -> Iterator[Launch]:
        """The passes of a stage, from `first`."""
        wide, most = stage - self.tile_stages + 1, self.policy.fused_passes  # wide: passes with pairs beyond a tile
        for pass_ in range(first, wide, most):
            yield self.over_global_memory(stage, pass_, min(most, wide - pass_))
        yield self.in_tiles(stage, wide, stage)

    def in_tiles(self, stage: int, pass_: int, last_stage: int) -> Launch:
        groups = -(-self.length // self.tile)
        return bitonic_tile.launch(
            Grid(self.rows * groups, self.group_size), self.key, self.data, Workgroup(self.key.word, self.tile),
            self._params(stage, pass_, groups), Stage(U32(last_stage)),
        )  # fmt: skip

    def over_global_memory(self, stage: int, pass_: int, passes: int) -> Launch:
        pairs = self.length if self.shares else 1 << (self.stages - passes)  # with `shares` some threads are idle
        groups = -(-pairs // self.group_size)
        grid, params = Grid(self.rows * groups, self.group_size), self._params(stage, pass_, groups)
        if passes == 1:
            return bitonic_step.launch(grid, self.key, self.data, params)
        return bitonic_registers.launch(grid, self.key, self.data, params, passes, pass_ == 0)

    def _params(self, stage: int, pass_: int, groups_per_row: int) -> BitonicParams:
        return BitonicParams(U32(self.length), U32(groups_per_row), Stage(U32(stage)), Pass(U32(pass_)), self.order)
