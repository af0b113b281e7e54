"""What a kernel's text calls: types, helpers, new arrays."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .natives import Natives
from .numbers import I8, KINDS, U4, Kind, Untranslatable, Value, literal
from .places import Array

_COUNTS: Mapping[str, str] = {"count_ones": "ctpop", "leading_zeros": "ctlz", "trailing_zeros": "cttz"}
_UPDATES: Mapping[str, str] = {
    "atomic_add": "add", "atomic_min": "umin", "atomic_max": "umax", "atomic_and": "and", "atomic_or": "or",
    "atomic_xor": "xor", "atomic_exchange": "xchg",
}  # fmt: skip
_MATH = frozenset(["sqrt", "exp", "log"])
_DTYPES: Mapping[str, str] = {
    "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8", "int32": "i4", "int64": "i8", "float32": "f4",
    "float64": "f8",
}  # fmt: skip


class Calls(Natives):
    """Writes calls. Who translates expressions gives `value`."""

    def value(self, node: ast.expr, wanted: Kind | None = None) -> Value:
        raise NotImplementedError

    def is_array(self, node: ast.Call) -> bool:
        """Whether a call makes one."""
        match node.func:
            case ast.Name("stack") | ast.Attribute(ast.Name("np"), "empty"):
                return True
            case _:
                return False

    def new_array(self, node: ast.Call) -> Array:
        match node:
            case ast.Call(ast.Name("stack"), [ast.Name(kind), ast.Constant(int() as length)]):
                return self.on_stack(KINDS[kind], length)
            case ast.Call(_, [ast.Constant(int() as length), ast.Attribute(_, dtype)]):
                return self.on_heap(KINDS[_DTYPES[dtype]], length)
            case _:
                raise Untranslatable(ast.unparse(node))

    def effect(self, node: ast.Call) -> None:
        """A call for what it does."""
        match node:
            case ast.Call(ast.Name("atomic_store"), [ast.Name(name), index, value]):
                array = self.arrays[name]
                stored = self.converted(self.value(value), array.kind)
                place = self.element(array, self.value(index))
                self.lines.append(f"  store atomic {array.kind.llvm} {stored.text}, {place} monotonic, align 4")
            case ast.Call(ast.Name("copy_line"), [to, source]):
                self.copy_line(self.value(to), self.value(source))
            case ast.Call(ast.Name("fence"), []):
                self.fence()
            case _:
                self.call(node)

    def call(self, node: ast.Call) -> Value:
        match node:
            case ast.Call(ast.Name(name), [operand]) if name in KINDS:
                kind = KINDS[name]
                return self.converted(self.value(operand, kind), kind)
            case ast.Call(ast.Name("min" | "max" as name), [a, b]):
                return self.extreme("<" if name == "min" else ">", self.value(a), self.value(b))
            case ast.Call(ast.Name("select"), [condition, then, otherwise]):
                return self.chosen(self.value(condition), self.value(then), self.value(otherwise))
            case ast.Call(ast.Name("add_in_any_order" | "multiply_in_any_order" as name), [a, b]):
                return self.in_any_order("+" if name.startswith("add") else "*", self.value(a), self.value(b))
            case ast.Call(ast.Name("divide" | "remainder" as name), [a, b]):
                return self._divided("udiv" if name == "divide" else "urem", self.value(a), self.value(b))
            case ast.Call(ast.Name("len"), [ast.Name(name)]):
                return self.arrays[name].length
            case ast.Call(ast.Name("native"), [address, *given]):
                return self.native(self.value(address), [self.value(each) for each in given])
            case ast.Call(ast.Name("stopped"), [address]):
                return self._stopped(self.value(address))
            case ast.Call(ast.Name("atomic_load"), [ast.Name(name), index]):
                array = self.arrays[name]
                place = self.element(array, self.value(index))
                return self.made(array.kind, f"load atomic {array.kind.llvm}, {place} monotonic, align 4")
            case ast.Call(ast.Name("load_acquire"), [ast.Name(name), index]):
                array = self.arrays[name]
                place = self.element(array, self.value(index))
                align = array.kind.bits // 8
                return self.made(array.kind, f"load atomic {array.kind.llvm}, {place} acquire, align {align}")
            case ast.Call(ast.Name("fetch_add"), [ast.Name(name), index, value]):
                return self._updated("add", self.arrays[name], self.value(index), self.value(value), "acq_rel")
            case ast.Call(
                ast.Name("partition_vector"),
                [ast.Name(source), at, pivot, ast.Name(lows), low, ast.Name(highs), high],
            ):
                return self.partition_vector(
                    self.arrays[source], self.value(at), self.value(pivot), (self.arrays[lows], self.value(low)),
                    (self.arrays[highs], self.value(high)),
                )  # fmt: skip
            case ast.Call(ast.Name(function), [ast.Name(name), index, value]) if function in _UPDATES:
                return self._updated(_UPDATES[function], self.arrays[name], self.value(index), self.value(value))
            case ast.Call(ast.Name(function), [operand]) if function in _COUNTS:
                return self._counted(_COUNTS[function], self.value(operand))
            case ast.Call(ast.Name(function), [operand]) if function.removeprefix("bits_") in KINDS:
                return self._bits(self.value(operand), KINDS[function.removeprefix("bits_")])
            case ast.Call(ast.Attribute(ast.Name("math"), function), [operand]) if function in _MATH:
                return self._intrinsic(function, self.value(operand))
            case _:
                raise Untranslatable(ast.unparse(node))

    def _divided(self, word: str, a: Value, b: Value) -> Value:
        """Of unsigned integers, where zero divides as one does: x // 0 is x, and x % 0 is 0, as WebGPU has it."""
        kind = a.kind
        divisor = self.converted(b, kind)
        one = self.converted(self.compared("==", divisor, literal(0, kind)), kind)
        safe = self.made(kind, f"or {kind.llvm} {divisor.text}, {one.text}")
        return self.made(kind, f"{word} {kind.llvm} {a.text}, {safe.text}")

    def _stopped(self, address: Value) -> Value:
        """Whether another thread has written something to an eight-byte place by now."""
        place = self.made(I8, f"inttoptr i64 {address.text} to {self.pointer_type(I8)}")
        found = self.made(I8, f"load atomic i64, {self.pointer_type(I8)} {place.text} monotonic, align 8")
        return self.compared("!=", found, literal(0, I8))

    def _updated(self, word: str, array: Array, index: Value, value: Value, ordering: str = "monotonic") -> Value:
        """A read-modify-write; the result is what was there before."""
        place, kind = self.element(array, index), array.kind
        operand = self.converted(value, kind)
        return self.made(kind, f"atomicrmw {word} {place}, {kind.llvm} {operand.text} {ordering}")

    def _counted(self, word: str, value: Value) -> Value:
        """Zero is a value like others: all of its bits are zeros."""
        type = value.kind.llvm
        more, given = (", i1", ", i1 false") if word != "ctpop" else ("", "")
        self.declared[f"declare {type} @llvm.{word}.{type}({type}{more})"] = None
        found = self.made(value.kind, f"call {type} @llvm.{word}.{type}({type} {value.text}{given})")
        return self.converted(found, U4)

    def _bits(self, value: Value, kind: Kind) -> Value:
        if value.kind.is_float == kind.is_float:
            return self.converted(value, kind)
        return self.made(kind, f"bitcast {value.kind.llvm} {value.text} to {kind.llvm}")

    def _intrinsic(self, word: str, value: Value) -> Value:
        type, mark = value.kind.llvm, f"f{value.kind.bits}"
        self.declared[f"declare {type} @llvm.{word}.{mark}({type})"] = None
        return self.made(value.kind, f"call {type} @llvm.{word}.{mark}({type} {value.text})")
