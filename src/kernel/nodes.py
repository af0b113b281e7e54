"""The decorator of IR nodes and reader values. Type checkers see frozen attrs classes, and report any assignment to a
field. At run time the classes are not frozen, as that halves the time to create one, and a kernel takes thousands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from attrs import frozen as node
else:

    def node(cls=None, *, eq=True):
        return attrs.define(cls, eq=eq, unsafe_hash=eq or None)


__all__ = ["node"]
