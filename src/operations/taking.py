"""Gathers: elements of each row by indices that earlier works have written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..machine import TargetInfo
from ..types.specs import Spec
from .base import INDEX, Operation, Output, Part, Work, Works, rows_together, single
from .pieces import fits_binding, pieces_of, require_counted


def by_indices(find: Operation, given: tuple[Spec, ...], taken: int, info: TargetInfo) -> Works:
    """The works of an operation with an output for each input: another finds the indices of `taken` elements of each
    row of the first input, and these are taken from all."""
    (x, *_), found, indices = given, find.works(given[:1], info), 2 * len(given)
    rows, length = find.rows(x)
    takes = [
        taking(spec, rows, length, taken, (number, indices, len(given) + number), info)
        for number, spec in enumerate(given)
    ]
    works = *found.within((0, indices), indices + 1), *chain.from_iterable(takes)
    return Works(works, (Output((rows * taken,), INDEX, (0,)), *found.between))


def taking(
    given: Spec, rows: int, length: int, taken: int, numbers: tuple[int, int, int], info: TargetInfo
) -> tuple[Work, ...]:  # fmt: skip
    """Gathers from each row of an array the elements at the row's indices. Arguments are numbers of arrays."""
    from ..algos.copy import take_rows

    itemsize = given.dtype.itemsize
    if not fits_binding(length, itemsize, info) or not fits_binding(taken, max(itemsize, INDEX.itemsize), info):
        return tuple(_in_pieces(given, rows, length, taken, numbers, info))
    largest = max(length * itemsize, taken * max(itemsize, INDEX.itemsize))
    together = min(rows, rows_together(length, largest, 1, info))
    each = length, taken, taken
    parts = {
        name: Part(number, count)
        for name, number, count in zip(("source", "indices", "target"), numbers, each, strict=True)
    }
    return (Work(rows, together, lambda count: take_rows(itemsize, count, length, taken), parts),)


def _in_pieces(
    given: Spec, rows: int, length: int, taken: int, numbers: tuple[int, int, int], info: TargetInfo
) -> Iterator[Work]:  # fmt: skip
    """Gathers in pieces that fit bindings: each piece of the results from each piece of the elements."""
    from ..algos.copy import take_within

    require_counted(length, info)
    itemsize, (source, indices, target) = given.dtype.itemsize, numbers
    for row in range(rows):
        for wanted in pieces_of(taken, max(itemsize, INDEX.itemsize), info):
            for piece in pieces_of(length, itemsize, info):
                parts = {
                    "source": piece.of(source, row),
                    "indices": wanted.of(indices, row),
                    "target": wanted.of(target, row),
                }
                yield single(take_within(itemsize, piece.first, piece.count, wanted.count), parts)
