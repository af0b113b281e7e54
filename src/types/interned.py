"""One object for all that are made of the same value, so that to name a monoid in each call costs one look-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .bounded import Bounded

if TYPE_CHECKING:
    from abc import ABCMeta as OfProtocols
else:
    OfProtocols = type(Protocol)  # so that subclasses may name protocols too

_MOST = 1 << 8


class Interned(OfProtocols):
    """The class of classes whose objects are kept by their one field. (Equal ones may still be two: unpickled.)"""

    if not TYPE_CHECKING:  # checkers take a call of a class for what its __init__ says

        def __init__(cls, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            cls._kept = Bounded(_MOST)

        def __call__(cls, *args: Any, **named: Any) -> Any:
            if named or len(args) != 1:
                return super().__call__(*args, **named)
            try:
                made = cls._kept.get(args)
            except TypeError:  # a user's field that cannot be hashed
                return super().__call__(*args)
            if made is None:
                made = cls._kept[args] = super().__call__(*args)
            return made
