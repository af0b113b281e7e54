"""What the loops between pageable memory and a card call: C functions by address, and stores past the caches."""

from __future__ import annotations

from collections.abc import Sequence

from .numbers import I8, KINDS, Value
from .vectors import Vectors

_LINE = "<8 x i64>"  # a cache line


class Natives(Vectors):
    """Writes calls of C, and what goes past the caches."""

    def native(self, address: Value, given: Sequence[Value]) -> Value:
        """The status, of 32 bits, of a function of 64-bit arguments."""
        pointer = "ptr" if self.is_opaque else f"i32 ({', '.join(['i64'] * len(given))})*"
        function = self.named(f"inttoptr i64 {address.text} to {pointer}")
        arguments = ", ".join(f"i64 {self.converted(value, I8).text}" for value in given)
        return self.made(KINDS["i4"], f"call i32 {function}({arguments})")

    def copy_line(self, to: Value, source: Value) -> None:
        """Copies a cache line to an aligned address by a non-temporal store, which does not read the line first."""
        pointer = "ptr" if self.is_opaque else f"{_LINE}*"
        places = [self.named(f"inttoptr i64 {address.text} to {pointer}") for address in (to, source)]
        line = self.named(f"load {_LINE}, {pointer} {places[1]}, align 1")
        fact = self.fact("!{i32 1}")
        self.lines.append(f"  store {_LINE} {line}, {pointer} {places[0]}, align 64, !nontemporal !{fact}")

    def fence(self) -> None:
        """What was written past the caches becomes visible to other threads."""
        self.lines.append("  fence seq_cst")
