"""Where a kernel's text keeps things: variables, arrays of its own, arrays it is given; and the whole function."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .numbers import I8, Kind, Numbers, Value

_ALIGNED = 64
_BYTE = Kind("u1", 8)


@attrs.frozen
class Slot:
    """A variable. LLVM makes registers of them."""

    kind: Kind
    pointer: str


@attrs.frozen
class Array:
    """Elements that lie side by side."""

    kind: Kind
    pointer: str
    length: Value


class Places(Numbers):
    """Loads, stores, and what a function begins and ends with."""

    def __init__(self, *, is_opaque: bool, compresses: bool) -> None:
        super().__init__()
        self.is_opaque = is_opaque  # whether LLVM's pointers have lost their types, as they have since LLVM 17
        self.compresses = compresses  # whether the processor can compress vectors
        self.slots: dict[str, Slot] = {}
        self.numbers: dict[str, Value] = {}
        self.arrays: dict[str, Array] = {}
        self.declared: dict[str, None] = {}
        self.facts: list[str] = []  # metadata that instructions refer to by number, behind the function
        self._first: list[str] = []  # what is done before all else
        self._heap: list[str] = []

    def fact(self, text: str) -> int:
        """The number of some metadata. `%` in its text stands for that number."""
        self.facts.append(f"!{len(self.facts)} = {text.replace('%', f'!{len(self.facts)}')}")
        return len(self.facts) - 1

    def pointer_type(self, kind: Kind) -> str:
        return "ptr" if self.is_opaque else f"{kind.llvm}*"

    @property
    def _address(self) -> str:
        """The type of what the heap gives."""
        return self.pointer_type(_BYTE)

    def slot(self, name: str, kind: Kind) -> Slot:
        found = self.slots.get(name)
        if found is None:
            place = f"%v.{name}"
            found = self.slots[name] = Slot(kind, f"{self.pointer_type(kind)} {place}")
            # A value from the start: what a path may leave out is not undefined.
            self._first += [f"  {place} = alloca {kind.llvm}", f"  store {kind.llvm} {kind.zero}, {found.pointer}"]
        return found

    def on_stack(self, kind: Kind, length: int) -> Array:
        array, name = self.new(), self.new()
        block, type = f"[{length} x {kind.llvm}]", self.pointer_type(kind)
        self._first.append(f"  {array} = alloca {block}, align {_ALIGNED}")
        self._first.append(f"  {name} = bitcast {'ptr' if self.is_opaque else f'{block}*'} {array} to {type}")
        return Array(kind, name, Value(I8, str(length)))

    def on_heap(self, kind: Kind, length: int) -> Array:
        """Given back when the function ends."""
        place, name, address = self.new(), self.new(), self._address
        self.declared[f"declare noalias {address} @malloc(i64)"] = None
        self.declared[f"declare void @free({address})"] = None
        self._first.append(f"  {place} = call noalias {address} @malloc(i64 {length * kind.bits // 8})")
        self._first.append(f"  {name} = bitcast {address} {place} to {self.pointer_type(kind)}")
        self._heap.append(place)
        return Array(kind, name, Value(I8, str(length)))

    def element(self, array: Array, index: Value) -> str:
        """The typed pointer to an element. Indices are not negative."""
        wide = self.converted(index, I8)
        name = self.new()
        type = self.pointer_type(array.kind)
        self.lines.append(
            f"  {name} = getelementptr inbounds {array.kind.llvm}, {type} {array.pointer}, i64 {wide.text}"
        )
        return f"{type} {name}"

    def load(self, array: Array, index: Value) -> Value:
        return self.made(array.kind, f"load {array.kind.llvm}, {self.element(array, index)}")

    def store(self, array: Array, index: Value, value: Value) -> None:
        self.lines.append(f"  store {value.kind.llvm} {value.text}, {self.element(array, index)}")

    def assembled(self, name: str, arguments: Sequence[str]) -> str:
        """The module of the function. It ends before it begins where there is no memory left."""
        free = [f"  call void @free({self._address} {place})" for place in self._heap]
        lines = [
            *self.declared,
            f"define i32 @{name}({', '.join(arguments)}) nounwind {{",
            "entry:",
            *self._first,
            *self._refusal(free),
            "body:",
            *self.lines,
            *free,
            "  ret i32 0",
            "}",
            *self.facts,
        ]
        return "\n".join(lines) + "\n"

    def _refusal(self, free: Sequence[str]) -> list[str]:
        missing, lines = "false", list[str]()
        for place in self._heap:
            is_null, either = self.new(), self.new()
            lines.append(f"  {is_null} = icmp eq {self._address} {place}, null")
            lines.append(f"  {either} = or i1 {missing}, {is_null}")
            missing = either
        return [*lines, f"  br i1 {missing}, label %refused, label %body", "refused:", *free, "  ret i32 1"]
