"""Where the elements of a memory lie once its memory holds 32-bit words only."""

from __future__ import annotations

import attrs

from ...types import ops
from ...types.layout import Type
from ...types.ops import AtomicOp
from .. import ir
from .legalize_build import Builder
from .legalize_words import Pair, Value

WIDE = frozenset({Type.U64, Type.I64, Type.F64})
NARROW = frozenset({Type.BOOL, Type.U8, Type.U16})


@attrs.frozen
class Place:
    """A memory as it was, the one that takes its place, and how to get at an element there.

    - 64-bit elements: two words, low first; in workgroup memory all low words lie before all high ones, so
      that neighbours keep to different banks.
    - Bool, U8 and U16 in storage: four, four and two to a word. Where the kernel stores to the memory, all
      its accesses are atomic, as invocations that own different bytes of one word meet there.
    - U8 and U16 of a workgroup or of registers: a word each (Bool stays Bool: no host looks there).
    """

    before: ir.Memory
    after: ir.Memory
    stored: bool

    @staticmethod
    def of(memory: ir.Memory, stored: bool) -> Place:
        length = memory.length
        shared = memory.space is ir.Space.STORAGE
        if memory.type in WIDE:
            after = ir.Memory(memory.name, memory.space, Type.U32, None if length is None else 2 * length)
        elif memory.type is Type.BOOL and not shared:
            after = memory
        elif memory.type in NARROW:
            after = ir.Memory(memory.name, memory.space, Type.U32, length)
        else:
            after = memory
        return Place(memory, after, stored)

    @property
    def packed(self) -> bool:
        return self.before.space is ir.Space.STORAGE and self.before.type in NARROW

    def load(self, build: Builder, index: ir.Expression) -> Value:
        """The element, as what stands for its type: a U32 for U8 and U16, a pair for 64 bits."""
        if self.before.type in WIDE:
            low, high = self._halves(build, index)
            return Pair(self._word(build, low, "low"), self._word(build, high, "high"))
        if not self.packed:
            return self._word(build, index, "item", self.after.type)
        where, shift = self._where(build, index)
        value = self._field(build, self._word(build, where, "packed"), shift)
        return build.apply(ops.NE, value, build.word(0)) if self.before.type is Type.BOOL else value

    def store(self, build: Builder, index: ir.Expression, value: Value) -> None:
        if isinstance(value, Pair):
            low, high = self._halves(build, index)
            build.emit(ir.Store(self.after, low, value.low, build.span))
            build.emit(ir.Store(self.after, high, value.high, build.span))
        elif self.packed:
            self._replace(build, index, build.cast(Type.U32, value))
        else:
            build.emit(ir.Store(self.after, index, value, build.span))

    def _halves(self, build: Builder, index: ir.Expression) -> tuple[ir.Expression, ir.Expression]:
        index = build.bound(index, "place")
        if self.before.space is ir.Space.WORKGROUP and self.before.length is not None:
            return index, build.apply(ops.ADD, index, build.word(self.before.length))
        low = build.bound(build.apply(ops.MUL, index, build.word(2)), "place")
        return low, build.apply(ops.ADD, low, build.word(1))

    def _word(self, build: Builder, index: ir.Expression, name: str, type: Type = Type.U32) -> ir.Expression:
        loaded = build.fresh(name, type)
        if self.packed and self.stored:
            build.emit(ir.Atomic(loaded, AtomicOp.LOAD, self.after, index, None, build.span))
        else:
            build.emit(ir.Load(loaded, self.after, index, build.span))
        return build.read(loaded)

    def _where(self, build: Builder, index: ir.Expression) -> tuple[ir.Expression, ir.Expression]:
        """Which word an element lies in, and how far from its low end (in bits)."""
        index = build.bound(index, "place")
        per_word_log2, bits_log2 = (1, 4) if self.before.type is Type.U16 else (2, 3)
        inside = build.apply(ops.AND, index, build.word((1 << per_word_log2) - 1))
        where = build.apply(ops.SHR, index, build.word(per_word_log2))
        return where, build.apply(ops.SHL, inside, build.word(bits_log2))

    def _field(self, build: Builder, word: ir.Expression, shift: ir.Expression) -> ir.Expression:
        mask = build.word((1 << self.before.type.bits) - 1)
        return build.apply(ops.AND, build.apply(ops.SHR, word, shift), mask)

    def _replace(self, build: Builder, index: ir.Expression, value: ir.Expression) -> None:
        """Flips the bits in which the element differs from its new value: what others do to the rest of the
        word meanwhile is not lost. (Two invocations that store to one element race, here as anywhere.)"""
        where, shift = self._where(build, index)
        where, shift = build.bound(where, "where"), build.bound(shift, "shift")
        old = self._word(build, where, "packed")
        change = self._field(build, build.apply(ops.XOR, build.apply(ops.SHR, old, shift), value), build.word(0))
        shifted = build.apply(ops.SHL, change, shift)
        build.emit(ir.Atomic(None, AtomicOp.XOR, self.after, where, shifted, build.span))
