"""What kernels' texts call on every machine: minima, divisions, bit counts, casts of bits, roots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from .numbers import KINDS, U4, Kind, Untranslatable, Value, literal
from .places import Array, Places

_COUNTS: Mapping[str, str] = {"count_ones": "ctpop", "leading_zeros": "ctlz", "trailing_zeros": "cttz"}
UPDATES: Mapping[str, str] = {
    "atomic_add": "add", "atomic_min": "umin", "atomic_max": "umax", "atomic_and": "and", "atomic_or": "or",
    "atomic_xor": "xor", "atomic_exchange": "xchg",
}  # fmt: skip

Operand: TypeAlias = Value | Array


class Calls(Places):
    """Writes calls."""

    def call(self, name: str, given: Sequence[Operand]) -> Value | None:
        """What a call gives; None from one that gives nothing."""
        match name, given:
            case "min" | "max", [Value() as a, Value() as b]:
                return self.extreme("<" if name == "min" else ">", a, b)
            case "select", [Value() as condition, Value() as then, Value() as otherwise]:
                return self.chosen(condition, then, otherwise)
            case "divide" | "remainder", [Value() as a, Value() as b]:
                return self._divided("udiv" if name == "divide" else "urem", a, b)
            case "len", [Array(length=Value() as length)]:
                return length
            case _, [Value() as a] if name in _COUNTS:
                return self._counted(_COUNTS[name], a)
            case _, [Value() as a] if name.removeprefix("bits_") in KINDS:
                return self._bits(a, KINDS[name.removeprefix("bits_")])
            case "math.sqrt" | "math.exp" | "math.log", [Value() as a]:
                return self.root(name.removeprefix("math."), a)
            case _:
                raise Untranslatable(f"{name} of {[operand.kind.name for operand in given]}")

    def root(self, word: str, value: Value) -> Value:
        """A square root, exponential or logarithm."""
        name = f"llvm.{word}.f{value.kind.bits}"
        return self.made(value.kind, self.function(name, value.kind.llvm, [(value.kind.llvm, value.text)]))

    def _divided(self, word: str, a: Value, b: Value) -> Value:
        """Of unsigned integers, where zero divides as one does: x // 0 is x, and x % 0 is 0, as WebGPU has it."""
        kind = a.kind
        divisor = self.converted(b, kind)
        one = self.converted(self.compared("==", divisor, literal(0, kind)), kind)
        safe = self.made(kind, f"or {kind.llvm} {divisor.text}, {one.text}")
        return self.made(kind, f"{word} {kind.llvm} {a.text}, {safe.text}")

    def _counted(self, word: str, value: Value) -> Value:
        """Zero is a value like others: all of its bits are zeros."""
        type = value.kind.llvm
        zero_has_a_count = [("i1", "false")] if word != "ctpop" else []
        call = self.function(f"llvm.{word}.{type}", type, [(type, value.text), *zero_has_a_count])
        return self.converted(self.made(value.kind, call), U4)

    def _bits(self, value: Value, kind: Kind) -> Value:
        if value.kind.is_float == kind.is_float:
            return self.converted(value, kind)
        return self.made(kind, f"bitcast {value.kind.llvm} {value.text} to {kind.llvm}")
