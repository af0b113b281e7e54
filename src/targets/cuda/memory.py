"""Workgroup memory and atomics.

Workgroup (shared) memory is addressed in 32 bits, as the hardware does: in 64 bits a constant part of an index would
not fold into the instruction's immediate offset. An index is given as two summands: the first is often loop invariant,
and is added to the base by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..llvm.calls import UPDATES, Calls, Operand
from ..llvm.numbers import U4, Value
from ..llvm.places import Array

_GLOBAL, SHARED = 1, 3  # LLVM's numbers of NVPTX address spaces


class SharedMemory(Calls):
    """Writes loads and stores of workgroup memory, relaxed atomics, and barriers."""

    def call(self, name: str, given: Sequence[Operand]) -> Value | None:
        match name, given:
            case "load_workgroup", [Array(space=3) as array, Value() as start, Value() as index]:
                place, align = self.shared_element(array, start, index), array.kind.bytes
                return self.made(array.kind, f"load {array.kind.llvm}, {place}, align {align}")
            case "store_workgroup", [Array(space=3) as array, Value() as start, Value() as index, Value() as value]:
                place, align = self.shared_element(array, start, index), array.kind.bytes
                stored = self.converted(value, array.kind)
                self.lines.append(f"  store {array.kind.llvm} {stored.text}, {place}, align {align}")
            case "atomic_load", [Array() as array, Value() as start, Value() as index]:
                return self._atomic_load(array, start, index)
            case "atomic_store", [Array() as array, Value() as start, Value() as index, Value() as value]:
                self._atomic_store(array, start, index, value)
            case _, [Array() as array, Value() as start, Value() as index, Value() as value] if name in UPDATES:
                place = self._place(array, start, index)
                return self.made(U4, f"atomicrmw {UPDATES[name]} {place}, i32 {value.text} monotonic")
            case "cuda.syncthreads", []:
                self.lines.append(f"  {self.function('llvm.nvvm.barrier0', 'void', [])}")
            case _:
                return super().call(name, given)
        return None

    def shared_element(self, array: Array, start: Value, index: Value) -> str:
        """The typed pointer to an element of workgroup memory."""
        type = self.pointer_type(array.kind.llvm, array.space)
        base = self.named(f"ptrtoint {type} {array.pointer} to i32")
        for summand in (start, index):
            nbytes = self.named(f"mul i32 {summand.text}, {array.kind.bytes}")
            base = self.named(f"add i32 {base}, {nbytes}")
        return f"{type} {self.named(f'inttoptr i32 {base} to {type}')}"

    def _place(self, array: Array, start: Value, index: Value) -> str:
        """The typed pointer to an element of either memory."""
        if array.space == SHARED:
            return self.shared_element(array, start, index)
        return self.element(array, self.made(U4, f"add i32 {start.text}, {index.text}"))

    # In inline PTX: NVVM may hoist a plain load out of a spin loop, and rejects LLVM's atomic loads and stores.

    def _atomic_load(self, array: Array, start: Value, index: Value) -> Value:
        """Never cached in a register."""
        place, suffix = self._in_its_space(array, start, index)
        return self.made(U4, self.inline(f"ld.{suffix} $0, [$1];", "=r,l,~{memory}", "i32", place))

    def _atomic_store(self, array: Array, start: Value, index: Value, value: Value) -> None:
        place, suffix = self._in_its_space(array, start, index)
        operands = f"{place}, i32 {value.text}"
        self.lines.append(f"  {self.inline(f'st.{suffix} [$0], $1;', 'l,r,~{memory}', 'void', operands)}")

    def _in_its_space(self, array: Array, start: Value, index: Value) -> tuple[str, str]:
        """The typed pointer in its own address space, as an instruction with a state space takes it; and the
        instruction's suffix: memory order, scope (workgroup or device), state space and type."""
        place = self._place(array, start, index)
        if array.space == SHARED:
            return place, "relaxed.cta.shared.u32"
        type = self.pointer_type("i32", _GLOBAL)
        return f"{type} {self.named(f'addrspacecast {place} to {type}')}", "relaxed.gpu.global.u32"

    def inline(self, text: str, constraints: str, result: str, operands: str, *, lasts: bool = True) -> str:
        """Inline PTX. What `lasts` is neither left out nor moved past its like."""
        return f'call {result} asm {"sideeffect " if lasts else ""}"{text}", "{constraints}"({operands})'

    def assembly(
        self, text: str, constraints: str, result: str, operands: Sequence[Value], *, lasts: bool = True
    ) -> str:
        """Inline PTX on scalars."""
        shown = ", ".join(f"{operand.kind.llvm} {operand.text}" for operand in operands)
        return self.inline(text, constraints, result, shown, lasts=lasts)
