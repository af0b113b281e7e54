"""A bounded cache, for values that can be recomputed; and interning: one object for equal arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from abc import ABCMeta as ProtocolMeta
else:
    ProtocolMeta = type(Protocol)  # so that interned classes may derive from Protocols

K = TypeVar("K")
V = TypeVar("V")

_MOST = 1 << 8


class Bounded(dict[K, V]):
    """A dict that is cleared when full. Unlike an LRU cache, a hit costs no more than a dict's look-up."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._most:
            self.clear()
        super().__setitem__(key, value)


class Interned(ProtocolMeta):
    """A metaclass that caches instances by their single field. Unpickled instances are not interned."""

    if not TYPE_CHECKING:  # type checkers use the signature of a class's __init__

        def __init__(cls, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            cls._instances = Bounded(_MOST)

        def __call__(cls, *args: Any, **named: Any) -> Any:
            if named or len(args) != 1:
                return super().__call__(*args, **named)
            try:
                made = cls._instances.get(args)
            except TypeError:  # an unhashable field of the user's
                return super().__call__(*args)
            if made is None:
                made = cls._instances[args] = super().__call__(*args)
            return made
