"""Which reductions of short elements go by pairs of them, and how these lie: see types/monoids_of_pairs.py."""

from __future__ import annotations

from typing import Any

import attrs

from ..kernel.language import Finish, Monoid
from ..types.elements import dtype_of
from ..types.monoids_of_pairs import Across, Along, FinishTwo
from ..types.scalars import U8, U16, U32
from .layout import Layout

READS_WORDS = frozenset({"cuda", "wgsl"})  # the targets where it pays
_WIDER: dict[object, Any] = {U8: U16, U16: U32}
_SHORT_BYTES = 8  # of rows that one load, or two, have anyway
_STORED = 16  # bytes of results that an invocation stores as fast as its neighbours' are not
_LONG_COLUMN = 64  # of whose results no store is felt


@attrs.frozen
class Reduced:
    """What a reduction along a layout combines, and what it writes."""

    monoid: Monoid[Any, Any]
    finish: Finish[Any, Any]
    layout: Layout

    def by_words(self) -> Reduced:
        """The same by the widest pairs, up to a word, that the layout is made of and that pay. The memory begins with a
        word, and the monoid ignores indices."""
        element, layout = self.monoid.element, self.layout
        wider = _WIDER.get(element)
        if wider is None:
            return self
        along, across = layout.of_pairs("length"), layout.of_pairs("inner")
        if along is not None and layout.length * dtype_of(element).itemsize > _SHORT_BYTES:
            return Reduced(Along(self.monoid, wider), self.finish, along).by_words()
        both = FinishTwo(self.finish)
        if across is not None and (layout.length >= _LONG_COLUMN or dtype_of(both.result).itemsize <= _STORED):
            return Reduced(Across(self.monoid, wider), both, across).by_words()
        return self
