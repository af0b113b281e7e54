"""What types calls give, asked of Numba once: for the pipelines that compile kernels and loops of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numba.core.compiler import TypingContext
    from numba.core.typing import Signature
    from numba.types import Type


class Remembering:
    """Numba's knowledge of types, which it looks through anew for each call of a function: here once a compiled
    function for each that it calls with operands of the same types."""

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
