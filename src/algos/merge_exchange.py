"""Batcher's merge exchange sort: what parts of a row are merged by, and short rows in vectors."""

from __future__ import annotations

from collections.abc import Iterator


def compared_parts(count: int) -> Iterator[tuple[int, int]]:
    """The pairs to merge, or to put in order, one after the other, to sort so many parts."""
    half = 1 << max(0, (count - 1).bit_length() - 1)
    step = half
    while step:
        width, rest, distance = half, 0, step
        while True:
            yield from ((i, i + distance) for i in range(count - distance) if i & step == rest)
            if width == step:
                break
            distance, width, rest = width - step, width >> 1, step
        step >>= 1
