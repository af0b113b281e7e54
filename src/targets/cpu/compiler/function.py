"""A kernel's text as a function of C's: what the CPU alone has of arrays, atomics, calls and loops."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from ....types.dtypes import name_of
from ...llvm.calls import UPDATES, Operand
from ...llvm.numbers import I8, KINDS, Kind, Value, literal
from ...llvm.places import Array
from ...llvm.translate import Translation

_LINE = "<8 x i64>"  # a cache line
_BITS = 512  # of its vectors
_FEW = 16  # rounds of a loop, of which LLVM does a last part with a mask and not one by one


def llvm_text(text: str, name: str, *, is_opaque: bool, compresses: bool) -> str:
    """LLVM's text of one function. It returns 0, or 1 where there is no memory left."""
    return _Function(text, is_opaque=is_opaque, compresses=compresses).whole(name)


class _Function(Translation):
    """Arrays that are too long for the stack are on the heap, and given back when the function ends."""

    stack_align: ClassVar[str] = ", align 64"

    def __init__(self, text: str, *, is_opaque: bool, compresses: bool) -> None:
        super().__init__(text, is_opaque=is_opaque)
        self._compresses = compresses  # whether the processor can compress vectors
        self._heap: list[str] = []

    def whole(self, name: str) -> str:
        """The module of the function. It ends before it begins where there is no memory left."""
        heads = self.translated()
        free = [f"  call void @free({self._address} {place})" for place in self._heap]
        lines = [
            *self.declared,
            f"define i32 @{name}({', '.join(heads)}) nounwind {{",
            "entry.0:",
            *self.first,
            *self._refusal(free),
            "body.0:",
            *self.lines,
            *free,
            "  ret i32 0",
            "}",
            *self.facts,
        ]
        return "\n".join(lines) + "\n"

    # -- arrays -------------------------------------------------------------------------------------------

    @property
    def _address(self) -> str:
        """The type of what the heap gives."""
        return self.pointer_type("i8")

    def new_array(self, name: str, given: Sequence[ast.expr]) -> Array | None:
        match name, given:
            case "stack", [ast.Name(kind), ast.Constant(int() as length)]:
                return self.on_stack(KINDS[kind], length)
            case "np.empty", [ast.Constant(int() as length), ast.Attribute(_, dtype)]:
                return self._on_heap(KINDS[name_of(np.dtype(dtype))], length)
            case _:
                return None

    def _on_heap(self, kind: Kind, length: int) -> Array:
        place, name, address = self.new(), self.new(), self._address
        self.declared[f"declare noalias {address} @malloc(i64)"] = None
        self.declared[f"declare void @free({address})"] = None
        self.first.append(f"  {place} = call noalias {address} @malloc(i64 {length * kind.bits // 8})")
        self.first.append(f"  {name} = bitcast {address} {place} to {self.pointer_type(kind.llvm)}")
        self._heap.append(place)
        return Array(kind, name, Value(I8, str(length)))

    def _refusal(self, free: Sequence[str]) -> list[str]:
        missing, lines = "false", list[str]()
        for place in self._heap:
            is_null, either = self.new(), self.new()
            lines.append(f"  {is_null} = icmp eq {self._address} {place}, null")
            lines.append(f"  {either} = or i1 {missing}, {is_null}")
            missing = either
        return [*lines, f"  br i1 {missing}, label %refused.0, label %body.0", "refused.0:", *free, "  ret i32 1"]

    # -- calls --------------------------------------------------------------------------------------------

    def chosen(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Without a branch in machine code either: LLVM makes one where a loop's next round waits for the choice, as
        that of a merge does, and takes it for foreseen."""
        found = super().chosen(condition, then, otherwise)
        self.lines[-1] += f", !unpredictable !{self._nothing}"
        return found

    @cached_property
    def _nothing(self) -> int:
        return self.fact("!{}")

    def call(self, name: str, given: Sequence[Operand]) -> Value | None:
        match name, given:
            case "add_in_any_order" | "multiply_in_any_order", [Value() as a, Value() as b]:
                return self.in_any_order("+" if name.startswith("add") else "*", a, b)
            case "from_half", [Value() as bits]:  # where the processor does it: else LLVM calls a library
                half = self.named(f"bitcast i16 {bits.text} to half")
                return self.made(KINDS["f4"], f"fpext half {half} to float")
            case "to_half", [Value() as number]:
                half = self.named(f"fptrunc float {number.text} to half")
                return self.made(KINDS["u2"], f"bitcast half {half} to i16")
            case "native", [Value() as address, *arguments]:
                return self._native(address, [value for value in arguments if isinstance(value, Value)])
            case "stopped", [Value() as address]:
                return self._stopped(address)
            case "copy_line", [Value() as to, Value() as source]:
                self._copy_line(to, source)
            case "fence", []:  # what was written past the caches becomes visible to other threads
                self.lines.append("  fence seq_cst")
            case "atomic_load", [Array() as array, Value() as index]:
                return self._atomic_load(array, index, "monotonic")
            case "load_acquire", [Array() as array, Value() as index]:
                return self._atomic_load(array, index, "acquire")
            case "atomic_store", [Array() as array, Value() as index, Value() as value]:
                stored = self.converted(value, array.kind)
                place = self.element(array, index)
                self.lines.append(f"  store atomic {array.kind.llvm} {stored.text}, {place} monotonic, align 4")
            case "fetch_add", [Array() as array, Value() as index, Value() as value]:
                return self._updated("add", array, index, value, "acq_rel")
            case _, [Array() as array, Value() as index, Value() as value] if name in UPDATES:
                return self._updated(UPDATES[name], array, index, value, "monotonic")
            case (
                "partition_vector",
                [
                    Array() as source, Value() as at, Value() as pivot, Array() as lows, Value() as low,
                    Array() as highs, Value() as high,
                ],
            ):  # fmt: skip
                return self._partition_vector(source, at, pivot, (lows, low), (highs, high))
            case _:
                return super().call(name, given)
        return None

    def _atomic_load(self, array: Array, index: Value, ordering: str) -> Value:
        place, align = self.element(array, index), array.kind.bits // 8
        return self.made(array.kind, f"load atomic {array.kind.llvm}, {place} {ordering}, align {align}")

    def _updated(self, word: str, array: Array, index: Value, value: Value, ordering: str) -> Value:
        """A read-modify-write; the result is what was there before."""
        place, kind = self.element(array, index), array.kind
        operand = self.converted(value, kind)
        return self.made(kind, f"atomicrmw {word} {place}, {kind.llvm} {operand.text} {ordering}")

    def _stopped(self, address: Value) -> Value:
        """Whether another thread has written something to an eight-byte place by now."""
        place = f"{self.pointer_type('i64')} {self._pointer_to(address, 'i64')}"
        return self.compared("!=", self.made(I8, f"load atomic i64, {place} monotonic, align 8"), literal(0, I8))

    def _native(self, address: Value, given: Sequence[Value]) -> Value:
        """The status, of 32 bits, of a function of 64-bit arguments."""
        function = self._pointer_to(address, f"i32 ({', '.join(['i64'] * len(given))})")
        arguments = ", ".join(f"i64 {self.converted(value, I8).text}" for value in given)
        return self.made(KINDS["i4"], f"call i32 {function}({arguments})")

    def _copy_line(self, to: Value, source: Value) -> None:
        """Copies a cache line to an aligned address by a non-temporal store, which does not read the line first."""
        pointer = self.pointer_type(_LINE)
        places = [self._pointer_to(address, _LINE) for address in (to, source)]
        line = self.named(f"load {_LINE}, {pointer} {places[1]}, align 1")
        fact = self.fact("!{i32 1}")
        self.lines.append(f"  store {_LINE} {line}, {pointer} {places[0]}, align 64, !nontemporal !{fact}")

    def _pointer_to(self, address: Value, type: str) -> str:
        return self.named(f"inttoptr i64 {address.text} to {self.pointer_type(type)}")

    # -- 64 bytes of elements at once ---------------------------------------------------------------------

    def _partition_vector(
        self, source: Array, at: Value, pivot: Value, lows: tuple[Array, Value], highs: tuple[Array, Value]
    ) -> Value:
        """Parts a vector of elements of 4 or 8 bytes: those below the pivot go to `lows`, all others to `highs`, in
        their order. 64 bytes are written at each: what is too much is anything. The count of lows."""
        kind = source.kind
        low, high = (self.element(array, index) for array, index in (lows, highs))
        if not self._compresses:
            return self._one_by_one(source, at, pivot, low, high)
        lanes, align = _BITS // kind.bits, kind.bits // 8
        vector, words, mask = (f"<{lanes} x {type}>" for type in (kind.llvm, f"i{kind.bits}", "i1"))
        place = self._as_vector(self.element(source, at), vector)
        elements = self.named(f"load {vector}, {place}, align {align}")
        first = self.named(f"insertelement {vector} undef, {kind.llvm} {pivot.text}, i32 0")
        pivots = self.named(f"shufflevector {vector} {first}, {vector} undef, <{lanes} x i32> zeroinitializer")
        test = "fcmp olt" if kind.is_float else f"icmp {'s' if kind.is_signed else 'u'}lt"
        below = self.named(f"{test} {vector} {elements}, {pivots}")
        others = self.named(f"xor {mask} {below}, <{', '.join(['i1 true'] * lanes)}>")
        moved = self.named(f"bitcast {vector} {elements} to {words}")
        compress = f"llvm.x86.avx512.mask.compress.v{lanes}i{kind.bits}"
        for chosen, to in ((below, low), (others, high)):
            found = self.named(self.function(compress, words, [(words, moved), (words, "undef"), (mask, chosen)]))
            self.lines.append(f"  store {words} {found}, {self._as_vector(to, words)}, align {align}")
        bits = self.named(f"bitcast {mask} {below} to i{lanes}")
        count = self.named(self.function(f"llvm.ctpop.i{lanes}", f"i{lanes}", [(f"i{lanes}", bits)]))
        return self.made(I8, f"zext i{lanes} {count} to i64")

    def _one_by_one(self, source: Array, at: Value, pivot: Value, low: str, high: str) -> Value:
        """Each is written to both sides, one of which comes on by a place."""
        kind, count = source.kind, Value(I8, "0")
        for lane in range(_BITS // kind.bits):
            index = self.made(I8, f"add nsw i64 {at.text}, {lane}")
            element = self.load(source, index)
            past = self.made(I8, f"sub nsw i64 {lane}, {count.text}")
            for place, offset in ((low, count), (high, past)):
                to = self.named(f"getelementptr inbounds {kind.llvm}, {place}, i64 {offset.text}")
                self.lines.append(f"  store {kind.llvm} {element.text}, {self.pointer_type(kind.llvm)} {to}")
            count = self.made(
                I8, f"add nsw i64 {count.text}, {self.converted(self.compared('<', element, pivot), I8).text}"
            )
        return count

    def _as_vector(self, place: str, vector: str) -> str:
        """The same typed pointer, as one to a vector."""
        if self.is_opaque:
            return place
        return f"{vector}* {self.named(f'bitcast {place} to {vector}*')}"

    # -- loops --------------------------------------------------------------------------------------------

    def loop_mark(self, body: Sequence[ast.stmt]) -> str:
        """LLVM 22 makes vectors of a division behind a branch that do it only where their first lane takes the branch,
        if all lanes divide the same: what the others get is any bits, and so are addresses that are made of it. And
        where rounds are so few that a vector has lanes without one, which it branches for, it may end the process by an
        assertion about the cost of two divisions. One by one divisions are done in any case."""
        if not any(map(self._may_divide_by_zero, self._behind.get(id(body), ()))):
            return ""
        scalar = self.fact('!{!"llvm.loop.vectorize.enable", i1 false}')
        return f", !llvm.loop !{self.fact(f'distinct !{{%, !{scalar}}}')}"

    @cached_property
    def _behind(self) -> dict[int, list[ast.AST]]:
        """Of each loop, by the `id` of its body, what divides behind a branch in it. It is found for all loops at once:
        one within others would be looked through again for each of them."""
        found: dict[int, list[ast.AST]] = {}

        def look(nodes: Iterable[ast.AST], loops: tuple[int, ...], branching: tuple[int, ...]) -> None:
            """`loops` are around the nodes, `branching` those of them that have a branch in between."""
            for node in nodes:
                match node:
                    case ast.If(test, then, otherwise):
                        look([test], loops, branching)
                        look([*then, *otherwise], loops, loops)
                    case ast.For(iter=head, body=body) | ast.While(test=head, body=body):
                        look([head], loops, branching)
                        short = (id(body),) if _fills_no_vector(head) else ()
                        look(body, (*loops, id(body)), (*branching, *short))
                    case ast.Call(ast.Name("divide" | "remainder")) | ast.BinOp(_, ast.FloorDiv() | ast.Mod(), _):
                        for loop in branching:
                            found.setdefault(loop, []).append(node)
                        look(ast.iter_child_nodes(node), loops, branching)
                    case _:
                        look(ast.iter_child_nodes(node), loops, branching)

        look([self._function], (), ())
        return found

    def _may_divide_by_zero(self, node: ast.AST) -> bool:
        """Of what divides, as far as LLVM sees."""
        match node:
            case ast.BinOp(right=ast.Name(name)):
                return name not in self.fixed or self.fixed[name].number is None
            case ast.BinOp(right=other):
                return not isinstance(other, ast.Constant)
            case _:
                return True


def _fills_no_vector(head: ast.expr) -> bool:
    """Whether a loop has so few rounds, and no power of two, that LLVM masks what it has of lanes beyond them."""
    bounds = head.args if isinstance(head, ast.Call) else []
    numbers = [bound.value for bound in bounds if isinstance(bound, ast.Constant) and isinstance(bound.value, int)]
    rounds = len(range(*numbers)) if 0 < len(numbers) == len(bounds) else 0
    return rounds < _FEW and rounds.bit_count() > 1
