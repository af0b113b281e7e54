"""Where a kernel's text keeps things: variables, arrays of its own, arrays it is given; and the whole function."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .numbers import I8, Kind, Numbers, Value

_ALIGNED = 64


@attrs.frozen
class Slot:
    """A variable. LLVM makes registers of them."""

    kind: Kind
    pointer: str


@attrs.frozen
class Array:
    kind: Kind
    pointer: str
    length: Value


class Places(Numbers):
    """Loads, stores, and what a function begins and ends with."""

    def __init__(self, typed_pointers: bool = False) -> None:
        super().__init__()
        self.slots: dict[str, Slot] = {}
        self.numbers: dict[str, Value] = {}
        self.arrays: dict[str, Array] = {}
        self.declared: dict[str, None] = {}
        self._first: list[str] = []  # what is done before all else
        self._heap: list[str] = []

    def pointer_type(self, kind: Kind) -> str:
        return "ptr"

    def slot(self, name: str, kind: Kind) -> Slot:
        found = self.slots.get(name)
        if found is None:
            place = f"%v.{name}"
            found = self.slots[name] = Slot(kind, f"{self.pointer_type(kind)} {place}")
            # A value from the start: what a path may leave out is not undefined.
            self._first += [f"  {place} = alloca {kind.llvm}", f"  store {kind.llvm} {kind.zero}, {found.pointer}"]
        return found

    def on_stack(self, kind: Kind, length: int) -> Array:
        name = self.new()
        self._first.append(f"  {name} = alloca [{length} x {kind.llvm}], align {_ALIGNED}")
        return Array(kind, name, Value(I8, str(length)))

    def on_heap(self, kind: Kind, length: int) -> Array:
        """Given back when the function ends."""
        name = self.new()
        self.declared["declare noalias ptr @malloc(i64)"] = None
        self.declared["declare void @free(ptr)"] = None
        self._first.append(f"  {name} = call noalias ptr @malloc(i64 {length * kind.bits // 8})")
        self._heap.append(name)
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
        """The module of the function."""
        free = [f"  call void @free(ptr {place})" for place in self._heap]
        refuse: list[str] = []
        last = "body"
        if self._heap:
            missing = "%none.0"
            refuse.append(f"  {missing} = icmp eq ptr {self._heap[0]}, null")
            for number, place in enumerate(self._heap[1:], 1):
                refuse.append(f"  %null.{number} = icmp eq ptr {place}, null")
                refuse.append(f"  %none.{number} = or i1 {missing}, %null.{number}")
                missing = f"%none.{number}"
            refuse.append(f"  br i1 {missing}, label %refused, label %{last}")
            refuse += ["refused:", *free, "  ret i32 1"]
        else:
            refuse.append(f"  br label %{last}")
        lines = [
            *self.declared,
            f"define i32 @{name}({', '.join(arguments)}) nounwind {{",
            "entry:",
            *self._first,
            *refuse,
            f"{last}:",
            *self.lines,
            *free,
            "  ret i32 0",
            "}",
        ]
        return "\n".join(lines) + "\n"
