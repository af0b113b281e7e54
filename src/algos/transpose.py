"""Tiled transpose: copies between arrays whose fastest axes differ, by tiles in workgroup memory, so that loads and
stores are both coalesced."""

from __future__ import annotations

from typing import Any

import attrs

from ..kernel.language import *
from ..machine import Limits
from ..types.params import power_above
from .fit import plain_group
from .sizes import LARGEST_U32

DIMENSIONS = 4  # axes of a copy kernel, after merging contiguous ones
_TILE = 1024  # elements
_LEAST_SIDE, _MOST_SIDE = 4, 256
_LEAST_USED = _TILE // 8  # elements of a tile; of fewer most invocations would idle, and caches serve a plain copy


@attrs.frozen
class Lines:
    """An array's offset and strides in a buffer, in elements."""

    first: U32
    stride0: U32
    stride1: U32
    stride2: U32  # of a transposition's arrays along the target's fastest axis, down a tile
    stride3: U32  # and along the source's, across it

    @classmethod
    def of(cls, first: int, strides: tuple[int, ...]) -> Lines:
        """Those of up to four axes, which are the last ones. Modulo 2**32: negative strides work by overflow."""
        numbers = (0,) * (DIMENSIONS - len(strides)) + strides
        return cls(U32(first), *(U32(stride & LARGEST_U32) for stride in numbers))


@attrs.frozen
class TransposeParams:
    """The common shape of both arrays, the tiles that cover it, and both layouts."""

    size_inner: U32
    size_down: U32
    size_across: U32
    tiles_down: U32
    tiles_across: U32
    source: Lines
    target: Lines


@kernel
def transpose_elements(
    cx: Invocation, source: Storage[E], target: Storage[E], tile: Workgroup[E], params: TransposeParams, down: int,
    across: int, each: int,
) -> None:  # fmt: skip
    """Transposes a tile of `down` x `across` elements, both powers of two, `each` for every invocation."""
    place = cx.group_id // params.tiles_across
    first_across = (cx.group_id - place * params.tiles_across) * across
    plane = place // params.tiles_down
    first_down = (place - plane * params.tiles_down) * down
    outer = plane // params.size_inner
    inner = plane - outer * params.size_inner
    read_from = params.source.first + outer * params.source.stride0 + inner * params.source.stride1
    write_to = params.target.first + outer * params.target.stride0 + inner * params.target.stride1
    pitch = across + 1  # odd, against bank conflicts down a tile
    for step in range(each):
        i = cx.local_id + step * cx.group_size
        y, x = i // across, i % across
        row, column = first_down + y, first_across + x
        if (row < params.size_down) & (column < params.size_across):
            tile[y * pitch + x] = source[read_from + row * params.source.stride2 + column * params.source.stride3]
    cx.barrier()
    for step in range(each):
        i = cx.local_id + step * cx.group_size
        x, y = i // down, i % down
        row, column = first_down + y, first_across + x
        if (row < params.size_down) & (column < params.size_across):
            target[write_to + row * params.target.stride2 + column * params.target.stride3] = tile[y * pitch + x]


def transposition(
    source: Buffer[Any], target: Buffer[Any], firsts: tuple[int, int], shape: tuple[int, ...],
    sources: tuple[int, ...], targets: tuple[int, ...], limits: Limits,
) -> Launch | None:  # fmt: skip
    """The launch of a copy of up to four axes; None for one, where the fastest axis of both is the same, and where both
    are so short that tiles would be nearly empty, or have more tiles than a launch has workgroups."""
    axes = range(len(shape))
    if len(shape) < 2:
        return None
    across, down = (min(axes, key=lambda axis: abs(strides[axis]) or LARGEST_U32) for strides in (sources, targets))
    if across == down:
        return None
    others = [axis for axis in axes if axis not in (across, down)]
    missing = (1,) * (2 - len(others))
    outer, inner, size_down, size_across = (*missing, *(shape[axis] for axis in (*others, down, across)))
    side_across, side_down = _sides(size_down, size_across)
    if min(size_down, side_down) * min(size_across, side_across) < _LEAST_USED:
        return None
    tiles_down, tiles_across = -(-size_down // side_down), -(-size_across // side_across)
    source_lines, target_lines = (
        Lines.of(first, tuple(strides[axis] for axis in (*others, down, across)))
        for first, strides in zip(firsts, (sources, targets), strict=True)
    )
    params = TransposeParams(
        U32(inner), U32(size_down), U32(size_across), U32(tiles_down), U32(tiles_across), source_lines, target_lines
    )
    tiles, size = outer * inner * tiles_down * tiles_across, plain_group(limits)
    if tiles > limits.groups:
        return None
    grid = Grid(tiles, size)
    tile = Workgroup(source.element, side_down * (side_across + 1))
    return transpose_elements.launch(grid, source, target, tile, params, side_down, side_across, _TILE // size)


def _sides(size_down: int, size_across: int) -> tuple[int, int]:
    """The sides of a tile, (across, down): square, unless an array is narrower."""
    square = 1 << (_TILE.bit_length() - 1) // 2
    across = max(_LEAST_SIDE, min(square, power_above(size_across)))
    if size_down < square:
        across = min(_MOST_SIDE, _TILE // max(_LEAST_SIDE, power_above(size_down)))
    return across, _TILE // across
