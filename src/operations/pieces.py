"""Cuts rows that exceed one buffer binding into pieces, for every operation; and gathers elements of rows, or of their
pieces, by indices that earlier works have written.

What is left of a piece (a state, a few candidates) goes into arrays between works, at places where any device binds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import attrs

from ..algos.sizes import LARGEST_U32, bound_together
from ..machine import TargetInfo
from ..types.errors import CapabilityError
from ..types.specs import DType, Spec
from .base import INDEX, Operation, Output, Part, Work, Works, rows_together, single


@attrs.frozen
class Piece:
    """A piece of a row: its number, first element and length, and the length of the row."""

    number: int
    first: int
    count: int
    row: int

    def of(self, array: int, row: int) -> Part:
        """This piece of one of the rows of an array."""
        return Part(array, self.count, row * self.row + self.first)


def parts_of(pieces: Sequence[Piece], row: int, *arrays: str) -> dict[str, Part]:
    """The buffers of a schedule on all pieces of a row, which are named after an array, and by the piece's number."""
    return {f"{name}_{piece.number}": piece.of(n, row) for n, name in enumerate(arrays) for piece in pieces}


def fits_binding(length: int, itemsize: int, info: TargetInfo) -> bool:
    """Whether a row fits one binding and 32-bit indices; `itemsize` is an element's bytes in the largest buffer."""
    return length <= LARGEST_U32 and length * itemsize <= info.limits.storage_bytes


def pieces_of(length: int, itemsize: int, info: TargetInfo, name: str = "x") -> tuple[Piece, ...]:
    """Cuts a row into as few pieces as possible, of a power of two of elements, so that each starts aligned."""
    from ..algos.fit import power_below

    most = min(LARGEST_U32, info.limits.storage_bytes // max(1, itemsize))
    if most < 1:
        raise CapabilityError(
            f"{name}: one element takes {itemsize} bytes, target {info.name!r} binds {info.limits.storage_bytes}"
        )
    most = power_below(most)
    starts = range(0, length, most)
    return tuple(Piece(n, first, min(most, length - first), length) for n, first in enumerate(starts))


def require_counted(length: int, info: TargetInfo, name: str = "x") -> None:
    """Raises CapabilityError for a row whose indices exceed 32 bits."""
    if length > LARGEST_U32:
        raise CapabilityError(
            f"{name}: a row of {length} elements is more than kernels count places in on target {info.name!r}: at most "
            f"{LARGEST_U32}; work on parts of it"
        )


@attrs.frozen
class Slots:
    """An array with one value for each piece of each row."""

    count: int
    apart: int  # elements from one value to the next

    @classmethod
    def of(cls, count: int, dtype: DType, info: TargetInfo) -> Slots:
        """Spaced so that each value can be bound on any device, if one binding then still holds all."""
        apart = cls(count, bound_together(dtype.itemsize))
        return apart if fits_binding(apart.span, dtype.itemsize, info) else cls(count, 1)

    @property
    def span(self) -> int:
        """Elements from the first value to the last."""
        return (self.count - 1) * self.apart + 1

    def output(self, dtype: DType) -> Output:
        return Output((self.span,), dtype, (0,))


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
) -> tuple[Work, ...]:
    """Gathers from each row of an array the elements at the row's indices. Arguments are numbers of arrays."""
    from ..algos.copy import take_rows

    itemsize = given.dtype.itemsize
    if not fits_binding(length, itemsize, info) or not fits_binding(taken, max(itemsize, INDEX.itemsize), info):
        return tuple(_in_pieces(given, rows, length, taken, numbers, info))
    largest = max(length * itemsize, taken * max(itemsize, INDEX.itemsize))
    together = rows_together(length, largest, 1, info)
    source, indices, target = numbers
    parts = {"source": Part(source, length), "indices": Part(indices, taken), "target": Part(target, taken)}
    return (Work(rows, together, lambda count: take_rows(itemsize, count, length, taken, limits=info.limits), parts),)


def _in_pieces(
    given: Spec, rows: int, length: int, taken: int, numbers: tuple[int, int, int], info: TargetInfo
) -> Iterator[Work]:
    """Gathers in pieces that fit bindings: each piece of the results from each piece of the elements."""
    from ..algos.copy import take_rows

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
                yield single(take_rows(itemsize, 1, piece.count, wanted.count, piece.first, limits=info.limits), parts)
