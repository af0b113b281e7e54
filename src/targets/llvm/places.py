"""Where a kernel's text keeps things: variables, arrays of its own, arrays it is given; and what a module has besides
its function's instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from .numbers import I8, Kind, Numbers, Value


@attrs.frozen
class Slot:
    """A variable that is assigned more than once. LLVM makes registers of them."""

    kind: Kind
    pointer: str


@attrs.frozen
class Array:
    """Elements that lie side by side; in which of LLVM's address spaces, and how many if the text can tell."""

    kind: Kind
    pointer: str
    length: Value | None = None
    space: int = 0


class Places(Numbers):
    """Loads and stores."""

    in_bounds: ClassVar[str] = "inbounds "  # what LLVM may take for granted of an element's address
    stack_align: ClassVar[str] = ""

    def __init__(self, *, is_opaque: bool) -> None:
        super().__init__()
        self.is_opaque = is_opaque  # whether LLVM's pointers have lost their types, as they have since LLVM 17
        self.slots: dict[str, Slot] = {}
        self.fixed: dict[str, Value] = {}  # variables that are their one value
        self.arrays: dict[str, Array] = {}
        self.declared: dict[str, None] = {}
        self.facts: list[str] = []  # metadata that instructions refer to by number, behind the function
        self.first: list[str] = []  # what is done before all else

    def fact(self, text: str) -> int:
        """The number of some metadata. `%` in its text stands for that number."""
        self.facts.append(f"!{len(self.facts)} = {text.replace('%', f'!{len(self.facts)}')}")
        return len(self.facts) - 1

    def pointer_type(self, type: str, space: int = 0) -> str:
        where = f" addrspace({space})" if space else ""
        return f"ptr{where}" if self.is_opaque else f"{type}{where}*"

    def named(self, instruction: str) -> str:
        name = self.new()
        self.lines.append(f"  {name} = {instruction}")
        return name

    def function(self, name: str, result: str, operands: Sequence[tuple[str, str]]) -> str:
        """A call of a function of LLVM's or of a library. Operands are types and values."""
        self.declared[f"declare {result} @{name}({', '.join(type for type, _ in operands)})"] = None
        return f"call {result} @{name}({', '.join(' '.join(operand) for operand in operands)})"

    def slot(self, name: str, kind: Kind) -> Slot:
        found = self.slots.get(name)
        if found is None:
            place = f"%v.{name}"
            found = self.slots[name] = Slot(kind, f"{self.pointer_type(kind.llvm)} {place}")
            # A value from the start: what a path may leave out is not undefined.
            self.first += [f"  {place} = alloca {kind.llvm}", f"  store {kind.llvm} {kind.zero}, {found.pointer}"]
        return found

    def on_stack(self, kind: Kind, length: int) -> Array:
        array, name, block = self.new(), self.new(), f"[{length} x {kind.llvm}]"
        self.first.append(f"  {array} = alloca {block}{self.stack_align}")
        self.first.append(f"  {name} = bitcast {self.pointer_type(block)} {array} to {self.pointer_type(kind.llvm)}")
        return Array(kind, name, Value(I8, str(length)))

    def element(self, array: Array, index: Value) -> str:
        """The typed pointer to an element. Indices are not negative."""
        wide = self.converted(index, I8)
        type = self.pointer_type(array.kind.llvm, array.space)
        place = f"{array.kind.llvm}, {type} {array.pointer}, i64 {wide.text}"
        return f"{type} {self.named(f'getelementptr {self.in_bounds}{place}')}"

    def load(self, array: Array, index: Value) -> Value:
        return self.made(array.kind, f"load {array.kind.llvm}, {self.element(array, index)}")

    def store(self, array: Array, index: Value, value: Value) -> None:
        self.lines.append(f"  store {value.kind.llvm} {value.text}, {self.element(array, index)}")
