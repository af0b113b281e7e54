"""Top-k: the first k elements of every row in order, with their indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from ..machine import TargetInfo
from ..types.elements import dtype_of
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.scalars import U64
from ..types.specs import Spec
from .argsort import Argsort
from .base import INDEX, AlongAxis, Output, Part, Work, Works, key_of, single
from .pieces import Piece, fits_binding, pieces_of, require_counted, taking

if TYPE_CHECKING:
    from ..algos.select import Selection


@attrs.frozen
class TopK(AlongAxis):
    """Values and int64 indices along the axis. Ties go to the lowest index."""

    title = "top_k"
    k: int
    axis: int | None = -1
    order: SortOrder = SortOrder.DESCENDING
    in_order: bool = True  # else any order will do, though it is the same every time
    key: SortableKey[Any, Any] | None = None

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        key_of("x", x, self.key, by_numbers=True)
        _, length = self.rows(x)
        if self.k > length:
            raise InvalidArgumentError(f"k: expected 0 to the {length} elements of a row, found {self.k}")
        return self.output(x, x.dtype, self.k), self.output(x, INDEX, self.k)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.choice import choose_top_k
        from ..algos.select import top_k

        (x,) = given
        key, (rows, length) = key_of("x", x, self.key), self.rows(x)
        if not self._fits(x, info):
            cut = self._cut(x, info)
            return self._by_permutation(x, info) if cut is None else self._in_pieces(x, rows, cut, info)
        selection = choose_top_k(info, key, rows, length, self.k)
        together = selection.most_rows(key, length, self.k, info.limits)
        if together < 1:
            return self._by_permutation(x, info)
        parts = {"data": Part(0, length), "values": Part(1, self.k), "indices": Part(2, self.k)}
        selecting = Work(rows, together, lambda count: top_k(key, count, length, self.k, self.order, selection), parts)
        return Works((selecting,))

    def _fits(self, given: Spec, info: TargetInfo) -> bool:
        """Whether a row and its results each fit one binding."""
        _, length = self.rows(given)
        return fits_binding(length, given.dtype.itemsize, info) and fits_binding(self.k, INDEX.itemsize, info)

    def _cut(self, given: Spec, info: TargetInfo) -> _Cut | None:
        """The candidates by pieces; None if k is too large for that."""
        from ..algos.argsort import placed_class
        from ..algos.choice import choose_top_k
        from ..algos.select import candidates_of

        key, (rows, length) = key_of("x", given, self.key), self.rows(given)
        placed = dtype_of(placed_class(key.word)).itemsize  # which the sort of a whole piece would need
        pieces = pieces_of(length, max(given.dtype.itemsize, placed), info)
        left = candidates_of(self.k, given.dtype.itemsize)
        if left > pieces[0].count:
            return None
        cut = _Cut(pieces, left, [choose_top_k(info, key, 1, p.count, min(left, p.count)) for p in pieces])
        limits, last = info.limits, choose_top_k(info, key, rows, cut.candidates, self.k)
        fit = (
            sort.most_rows(key, piece.count, min(left, piece.count), limits) > 0
            for sort, piece in zip(cut.selections, pieces, strict=True)
        )
        is_held = fits_binding(rows * cut.candidates, max(INDEX.itemsize, given.dtype.itemsize), info)
        return cut if is_held and all(fit) and last.most_rows(key, cut.candidates, self.k, limits) >= rows else None

    def _in_pieces(self, x: Spec, rows: int, cut: _Cut, info: TargetInfo) -> Works:
        """Selects from each piece, then from the candidates."""
        from ..algos.choice import choose_top_k
        from ..algos.select import chosen_indices, top_k

        key, pieces = key_of("x", x, self.key), cut.pieces
        require_counted(pieces[0].row, info)
        candidates, chosen, works = rows * cut.candidates, rows * self.k, list[Work]()
        for row in range(rows):
            for piece, selection in zip(pieces, cut.selections, strict=True):
                left, slot = min(cut.left, piece.count), row * cut.candidates + piece.number * cut.left
                parts = {"data": piece.of(0, row), "values": Part(3, left, slot), "indices": Part(4, left, slot)}
                works.append(single(top_k(key, 1, piece.count, left, self.order, selection), parts))
        last = choose_top_k(info, key, rows, cut.candidates, self.k)
        found = top_k(key, rows, cut.candidates, self.k, self.order, last)
        works.append(
            single(found, {"data": Part(3, candidates), "values": Part(1, chosen), "indices": Part(5, chosen)})
        )
        placed = chosen_indices(rows, self.k, cut.candidates, cut.left, pieces[0].count)
        parts = {"candidates": Part(4, candidates), "chosen": Part(5, chosen), "indices": Part(2, chosen)}
        between = (candidates, x.dtype), (candidates, INDEX), (chosen, INDEX)
        return Works((*works, single(placed, parts)), tuple(Output((size,), dtype, (0,)) for size, dtype in between))

    def _by_permutation(self, x: Spec, info: TargetInfo) -> Works:
        """Argsorts the rows and copies the first k: for a k that is a large part of the row."""
        from ..algos.copy import Strided, copy_strided

        argsort, (rows, length) = Argsort(self.axis, self.order, self.key), self.rows(x)
        works = [*argsort.works((x,), info).within((0, 3), 4)]
        for row in range(rows):
            for piece in pieces_of(self.k, INDEX.itemsize, info):
                whole = Strided(0, (1,), piece.count)
                source, target = Part(3, piece.count, row * length + piece.first), piece.of(2, row)
                copied = copy_strided(U64, (piece.count,), whole, whole)
                works.append(single(copied, {"source": source, "target": target}))
        return Works((*works, *taking(x, rows, length, self.k, (0, 2, 1), info)), argsort.outputs(x))


@attrs.frozen
class _Cut:
    """The pieces of a row, with the candidates that each leaves."""

    pieces: Sequence[Piece]
    left: int
    selections: Sequence[Selection]

    @property
    def candidates(self) -> int:
        return sum(min(self.left, piece.count) for piece in self.pieces)
