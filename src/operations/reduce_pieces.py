"""Reductions of rows that exceed a binding: each piece to a state, then the states to a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from ..types.elements import dtype_of
from ..types.monoids import Monoid, OverStates
from ..types.scalars import U32
from .base import Output, Part, Work, single
from .pieces import Pieces, Slots

if TYPE_CHECKING:
    from ..algos.layout import Layout
    from ..types.finishes import Finish
    from ..types.params import ReducePolicy


@attrs.frozen
class ReducedPieces:
    """All pieces of all rows."""

    monoid: Monoid[Any, Any]
    finish: Finish[Any, Any]
    ignores_indices: bool
    policy_for: Callable[[Layout], ReducePolicy]
    rows: int
    pieces: Pieces
    slots: Slots  # of the states

    @property
    def left(self) -> Output:
        """The intermediate array of states."""
        return self.slots.output(dtype_of(self.monoid.state))

    def works(self) -> Iterator[Work]:
        """A work for each piece of each row, and one that combines their states."""
        from ..algos.layout import Layout
        from ..algos.reduce_axis import reduce_axis
        from ..types.starting_at import StartingAt

        pieces, apart = self.pieces, self.slots.apart
        for row in range(self.rows):
            for piece in pieces:
                own = self.monoid if self.ignores_indices else StartingAt(self.monoid, U32(piece.first))
                layout = Layout.rows(1, piece.count)
                once = reduce_axis(own, layout, self.policy_for(layout))
                slot = (row * len(pieces) + piece.number) * apart
                parts = {"data": Part(0, piece.count, row * pieces.length + piece.first), "results": Part(2, 1, slot)}
                yield single(once, parts)
        left = Layout(self.rows, len(pieces), 1, len(pieces) * apart, apart, 1)
        together = reduce_axis(OverStates(self.monoid), left, self.policy_for(left), self.finish)
        yield single(together, {"data": Part(2, self.slots.span, 0), "results": Part(1, self.rows, 0)})
