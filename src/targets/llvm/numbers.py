"""Scalars of a kernel's text as LLVM has them: types by their short names, conversions, arithmetic, comparisons.

The rules are Numba's, as far as texts can tell: what is computed is at last cast to a type, and up to there no sum or
product loses a bit that the cast would keep.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import attrs


class Untranslatable(Exception):
    """A text that is not of the language in which kernels are written: a mistake of the writer's."""


@attrs.frozen
class Kind:
    """A type of scalars."""

    name: str
    bits: int
    is_float: bool = False
    is_signed: bool = False

    @property
    def llvm(self) -> str:
        if self.is_float:
            return "float" if self.bits == 32 else "double"
        return f"i{self.bits}"

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def is_bool(self) -> bool:
        return self.bits == 1

    @property
    def zero(self) -> str:
        return "0.0" if self.is_float else "0"


B1, U1, U4, U8 = Kind("b1", 1), Kind("u1", 8), Kind("u4", 32), Kind("u8", 64)
I8 = Kind("i8", 64, is_signed=True)
F8 = Kind("f8", 64, is_float=True)
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        B1, U1, Kind("u2", 16), U4, U8, Kind("i1", 8, is_signed=True), Kind("i2", 16, is_signed=True),
        Kind("i4", 32, is_signed=True), I8, Kind("f4", 32, is_float=True), F8,
    )
}  # fmt: skip


@attrs.frozen
class Value:
    """A scalar: what LLVM calls it, and its number where the text has it."""

    kind: Kind
    text: str
    number: int | float | None = None


def literal(number: int | float, kind: Kind) -> Value:
    """A number as this type has it."""
    if kind.is_float:
        return Value(kind, _float(float(number), kind), float(number))
    whole = int(number) % (1 << kind.bits)
    if kind.is_signed and whole >> (kind.bits - 1):
        whole -= 1 << kind.bits
    return Value(kind, str(whole), whole)


def _float(number: float, kind: Kind) -> str:
    """LLVM writes both types by the bits of a double."""
    if number != number:
        return "0x7FF8000000000000"
    if kind.bits == 32:
        (number,) = struct.unpack("<f", struct.pack("<f", number))
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


_FLOATS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
WRAPPING = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_BITS = frozenset("&|^")
_FLOAT_TESTS = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
_TESTS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Numbers:
    """Writes instructions on scalars, one line each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"%.{self._count}"  # which no name of Python's is

    def made(self, kind: Kind, instruction: str) -> Value:
        name = self.new()
        self.lines.append(f"  {name} = {instruction}")
        return Value(kind, name)

    def converted(self, value: Value, kind: Kind) -> Value:
        """The value as another type has it; of an integer, the bits that there is room for."""
        old = value.kind
        if old == kind:
            return value
        if value.number is not None and not (old.is_float and not kind.is_float):
            return literal(value.number, kind)
        if kind.is_bool:
            return self.compared("!=", value, literal(0, old))
        if old.is_float != kind.is_float:
            if old.is_float:
                raise Untranslatable(f"{old.name} as {kind.name}")
            return self.made(kind, f"{'si' if old.is_signed else 'ui'}tofp {old.llvm} {value.text} to {kind.llvm}")
        if old.bits == kind.bits:
            return attrs.evolve(value, kind=kind)
        if kind.is_float:
            word = "fptrunc" if kind.bits < old.bits else "fpext"
        elif kind.bits < old.bits:
            word = "trunc"
        else:
            word = "sext" if old.is_signed else "zext"
        return self.made(kind, f"{word} {old.llvm} {value.text} to {kind.llvm}")

    def computed(self, operator: str, a: Value, b: Value, wanted: Kind | None) -> Value:
        """`a operator b`, where `wanted` is what it is cast to at once."""
        if a.kind.is_float or b.kind.is_float:
            kind = a.kind if a.kind.is_float else b.kind
            a, b = self._floats(a, kind), self._floats(b, kind)
            return self.made(kind, f"{_FLOATS[operator]} {kind.llvm} {a.text}, {b.text}")
        if a.kind.is_bool and b.kind.is_bool and operator in _BITS:
            return self.made(B1, f"{WRAPPING[operator]} i1 {a.text}, {b.text}")
        if operator in WRAPPING:
            kind = wanted if wanted is not None and not (wanted.is_float or wanted.is_bool) else self._wide(a, b)
            word = WRAPPING[operator]
        elif operator == "<<":
            kind = max(a.kind, wanted or a.kind, key=lambda kind: kind.bits) if a.number is None else wanted or I8
            word = "shl"
        elif operator == ">>":
            kind, word = a.kind, "ashr" if a.kind.is_signed else "lshr"
        else:
            kind, word = self._common(a, b), {"//": "udiv", "%": "urem"}[operator]
            if kind.is_signed:
                raise Untranslatable(f"{operator} of signed integers")
        a, b = self.converted(a, kind), self.converted(b, kind)
        return self.made(kind, f"{word} {kind.llvm} {a.text}, {b.text}")

    def in_any_order(self, operator: str, a: Value, b: Value) -> Value:
        """A sum or product of many, of which this is one step: they may be taken as it suits the processor."""
        if not a.kind.is_float:
            return self.computed(operator, a, b, a.kind)
        b = self._floats(b, a.kind)
        return self.made(a.kind, f"{_FLOATS[operator]} reassoc {a.kind.llvm} {a.text}, {b.text}")

    def compared(self, operator: str, a: Value, b: Value) -> Value:
        if a.kind.is_float or b.kind.is_float:
            kind = a.kind if a.kind.is_float else b.kind
            a, b = self._floats(a, kind), self._floats(b, kind)
            return self.made(B1, f"fcmp {_FLOAT_TESTS[operator]} {kind.llvm} {a.text}, {b.text}")
        kind = self._common(a, b)
        a, b = self.converted(a, kind), self.converted(b, kind)
        sign = "" if operator in ("==", "!=") else "s" if kind.is_signed else "u"
        return self.made(B1, f"icmp {sign}{_TESTS[operator]} {kind.llvm} {a.text}, {b.text}")

    def chosen(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """One of two values of a type, without a branch."""
        kind = then.kind
        condition, otherwise = self.converted(condition, B1), self.converted(otherwise, kind)
        return self.made(kind, f"select i1 {condition.text}, {kind.llvm} {then.text}, {kind.llvm} {otherwise.text}")

    def extreme(self, operator: str, a: Value, b: Value) -> Value:
        """The first of two integers that compares so with the other one."""
        kind = self._common(a, b)
        a, b = self.converted(a, kind), self.converted(b, kind)
        return self.chosen(self.compared(operator, a, b), a, b)

    def negative(self, value: Value) -> Value:
        if value.number is not None:
            return literal(-value.number, value.kind)
        if value.kind.is_float:
            return self.made(value.kind, f"fneg {value.kind.llvm} {value.text}")
        return self.computed("-", literal(0, value.kind), value, value.kind)

    def inverted(self, value: Value) -> Value:
        return self.made(value.kind, f"xor {value.kind.llvm} {value.text}, -1")

    def _floats(self, value: Value, kind: Kind) -> Value:
        if value.kind != kind and value.number is None:
            raise Untranslatable(f"{value.kind.name} beside {kind.name}")
        return self.converted(value, kind)

    def _common(self, a: Value, b: Value) -> Kind:
        """A type that holds both as they are. A number of the text is of the other's type, if that has it."""
        if a.kind == b.kind:
            return a.kind
        for one, other in ((a, b), (b, a)):
            if one.number is not None and literal(one.number, other.kind).number == one.number:
                return other.kind
        return self._wide(a, b) if a.kind.is_signed != b.kind.is_signed else max(a.kind, b.kind, key=lambda k: k.bits)

    def _wide(self, a: Value, b: Value) -> Kind:
        """What a sum of both takes: 64 bits, signed where one of them is. A plain number takes either."""
        kinds = [value.kind for value in (a, b) if value.kind != I8 or value.number is None or value.number < 0] or [I8]
        if not any(kind.is_signed for kind in kinds):
            return U8
        if any(kind.bits == 64 and not kind.is_signed for kind in kinds):
            raise Untranslatable(f"{a.kind.name} beside {b.kind.name}")
        return I8
