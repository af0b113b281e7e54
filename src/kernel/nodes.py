"""The decorator of what a kernel is read into: frozen attrs classes to type checkers, who see every assignment to one.
While a program runs they are ordinary ones, which are made in half the time: reading a kernel makes ten thousands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from attrs import frozen as node
else:

    def node(cls=None, *, eq=True):
        return attrs.define(cls, eq=eq, unsafe_hash=eq or None)


__all__ = ["node"]
