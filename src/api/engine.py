"""gpusort's own functions as the engine of external/, for what fits into memory."""

from __future__ import annotations

import attrs

from ..external.cuts import Array, Places
from ..targets.base import Target
from ..types.indices import SortOrder
from .sorting import argsort, sort


@attrs.frozen
class OwnEngine:
    """On one target."""

    target: str | Target

    def sort(self, x: Array, out: Array, order: SortOrder, *, stable: bool) -> None:
        sort(x, out=out, descending=order is SortOrder.DESCENDING, stable=stable, target=self.target)

    def argsort(self, x: Array, order: SortOrder) -> Places:
        places: Places = argsort(x, descending=order is SortOrder.DESCENDING, target=self.target)
        return places
