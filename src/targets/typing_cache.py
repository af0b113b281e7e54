"""Memoises Numba's type resolution of calls within one compilation, to compile faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numba.core.compiler import TypingContext
    from numba.core.typing import Signature
    from numba.types import Type


class CachedTyping:
    """A proxy for Numba's typing context that caches overload resolution by function and operand types. Numba resolves
    each call anew. One is made for each compiled function."""

    def __init__(self, asked: TypingContext) -> None:
        self._asked = asked
        self._found: dict[tuple[object, ...], Signature | None] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self._asked, name)

    def resolve_function_type(self, func: Type, args: tuple[Type, ...], kws: Mapping[str, Type]) -> Signature | None:
        if kws:
            return self._asked.resolve_function_type(func, args, kws)
        key = func, *args
        if key not in self._found:
            self._found[key] = self._asked.resolve_function_type(func, args, kws)
        return self._found[key]
