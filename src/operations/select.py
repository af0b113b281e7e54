"""Top-k: the first k elements of every row in order, with their indices."""

from __future__ import annotations

from typing import Any

import attrs

from ..machine import TargetInfo
from ..types.elements import dtype_of
from ..types.errors import InvalidArgumentError, told
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.scalars import U64
from ..types.specs import Spec
from .argsort import Argsort
from .base import INDEX, AlongAxis, Output, Part, Work, Works, key_of, single
from .pieces import fits_binding, pieces_of, require_counted, taking


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
            raise InvalidArgumentError(f"k: expected 0 to the {length} elements of a row, found {told(self.k)}")
        return self.output(x, x.dtype, self.k), self.output(x, INDEX, self.k)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.choice import choose_top_k
        from ..algos.select import top_k

        (x,) = given
        key, (rows, length) = key_of("x", x, self.key), self.rows(x)
        if not (fits_binding(length, x.dtype.itemsize, info) and fits_binding(self.k, INDEX.itemsize, info)):
            return self._in_pieces(x, info) or self._by_permutation(x, info)
        selection = choose_top_k(info, key, rows, length, self.k)
        together = selection.most_rows(key, length, self.k, info.limits)
        if together < 1:
            return self._by_permutation(x, info)
        parts = {"data": Part(0, length), "values": Part(1, self.k), "indices": Part(2, self.k)}
        selecting = Work(rows, together, lambda count: top_k(key, count, length, self.k, self.order, selection), parts)
        return Works((selecting,))

    def _in_pieces(self, x: Spec, info: TargetInfo) -> Works | None:
        """Selects candidates from each piece, then from these; None if k is too large for that."""
        from ..algos.argsort import placed_class
        from ..algos.choice import choose_top_k
        from ..algos.chosen import candidates_of, chosen_indices
        from ..algos.select import top_k

        key, (rows, length), limits = key_of("x", x, self.key), self.rows(x), info.limits
        placed = dtype_of(placed_class(key.word)).itemsize  # which the sort of a whole piece would need
        pieces = pieces_of(length, max(x.dtype.itemsize, placed), info)
        most = candidates_of(self.k, x.dtype.itemsize)
        if most > pieces[0].count:
            return None
        left = [min(most, piece.count) for piece in pieces]
        selections = [choose_top_k(info, key, 1, piece.count, n) for piece, n in zip(pieces, left, strict=True)]
        of_row = sum(left)
        candidates, chosen, last = rows * of_row, rows * self.k, choose_top_k(info, key, rows, of_row, self.k)
        parts_fit = [s.most_rows(key, p.count, n, limits) for s, p, n in zip(selections, pieces, left, strict=True)]
        is_held = fits_binding(candidates, max(INDEX.itemsize, x.dtype.itemsize), info)
        if not is_held or min(parts_fit) < 1 or last.most_rows(key, of_row, self.k, limits) < rows:
            return None
        require_counted(length, info)
        works: list[Work] = []
        for row in range(rows):
            for piece, count, selection in zip(pieces, left, selections, strict=True):
                slot = row * of_row + piece.number * most
                parts = {"data": piece.of(0, row), "values": Part(3, count, slot), "indices": Part(4, count, slot)}
                works.append(single(top_k(key, 1, piece.count, count, self.order, selection), parts))
        parts = {"data": Part(3, candidates), "values": Part(1, chosen), "indices": Part(5, chosen)}
        works.append(single(top_k(key, rows, of_row, self.k, self.order, last), parts))
        placing = chosen_indices(rows, self.k, of_row, most, pieces[0].count, limits=limits)
        parts = {"candidates": Part(4, candidates), "chosen": Part(5, chosen), "indices": Part(2, chosen)}
        between = (candidates, x.dtype), (candidates, INDEX), (chosen, INDEX)
        return Works((*works, single(placing, parts)), tuple(Output((size,), dtype, (0,)) for size, dtype in between))

    def _by_permutation(self, x: Spec, info: TargetInfo) -> Works:
        """Argsorts the rows and copies the first k: for a k that is a large part of the row."""
        from ..algos.copy import Strided, copy_strided

        argsort, (rows, length) = Argsort(self.axis, self.order, self.key), self.rows(x)
        works = [*argsort.works((x,), info).within((0, 3), 4)]
        for row in range(rows):
            for piece in pieces_of(self.k, INDEX.itemsize, info):
                whole = Strided(0, (1,), piece.count)
                source, target = Part(3, piece.count, row * length + piece.first), piece.of(2, row)
                copied = copy_strided(U64, (piece.count,), whole, whole, limits=info.limits)
                works.append(single(copied, {"source": source, "target": target}))
        return Works((*works, *taking(x, rows, length, self.k, (0, 2, 1), info)), argsort.outputs(x))
