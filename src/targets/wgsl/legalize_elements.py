"""How legalised memories hold elements: 64-bit ones as two words, bytes as parts of words."""

from __future__ import annotations

import attrs

from ...kernel import ir
from ...types.layout import Type
from ...types.ops import AtomicOp
from .legalize_pairs import Pair, Value
from .legalize_words import Word

WIDE = frozenset({Type.U64, Type.I64, Type.F64})
_NARROW = frozenset({Type.BOOL, Type.U8, Type.U16})


@attrs.frozen
class ElementLayout:
    """How a memory's elements are stored in 32-bit words.

    - 64-bit elements: two words, low first. In workgroup memory all low words come before all high ones, which avoids
      bank conflicts.
    - Bool, U8 and U16 in storage: packed, four, four and two in a word. If the kernel stores to the memory, all its
      accesses are atomic, as invocations may own different bytes of one word.
    - U8 and U16 in workgroup memory or registers: a word each. Bool stays Bool there.
    """

    before: ir.Memory
    after: ir.Memory
    packed: bool  # several elements in a word
    stored: bool  # whether the kernel stores to it

    @staticmethod
    def of(memory: ir.Memory, stored: bool) -> ElementLayout:
        packed = memory.type in _NARROW and memory.space is ir.Space.STORAGE
        after = memory
        if memory.type in WIDE:
            after = attrs.evolve(memory, type=Type.U32, length=None if memory.length is None else 2 * memory.length)
        elif packed or memory.type in (Type.U8, Type.U16):
            after = attrs.evolve(memory, type=Type.U32)
        return ElementLayout(memory, after, packed, stored)

    def load(self, index: Word) -> Value:
        """Loads an element: a U32 for U8 and U16, a pair for 64 bits."""
        if self.before.type in WIDE:
            low, high = self._halves(index)
            return Pair(self._word(low, "low"), self._word(high, "high"))
        if not self.packed:
            return self._word(index, "item")
        where, shift = self._where(index)
        value = (self._word(where, "packed") >> shift) & self._mask
        return value.differs(0) if self.before.type is Type.BOOL else value

    def store(self, index: Word, value: Value) -> None:
        if isinstance(value, Pair):
            low, high = self._halves(index)
            index.build.store(self.after, low, value.low)
            index.build.store(self.after, high, value.high)
        elif self.packed:
            self._replace(index, value.to(Type.U32))
        else:
            index.build.store(self.after, index, value)

    def _halves(self, index: Word) -> tuple[Word, Word]:
        index = index.bound("place")
        if self.before.space is ir.Space.WORKGROUP and self.before.length is not None:
            return index, index + self.before.length
        low = (index * 2).bound("place")
        return low, low + 1

    def _word(self, index: Word, name: str) -> Word:
        build, loaded = index.build, index.build.variable(name, self.after.type)
        if self.packed and self.stored:
            build.emit(ir.Atomic(loaded, AtomicOp.LOAD, self.after, index.node, None, build.span))
        else:
            build.emit(ir.Load(loaded, self.after, index.node, build.span))
        return build.read(loaded)

    @property
    def _mask(self) -> int:
        return (1 << self.before.type.bits) - 1

    def _where(self, index: Word) -> tuple[Word, Word]:
        """The index of a packed element's word, and its shift in bits."""
        index = index.bound("place")
        per_word_log2, bits_log2 = (1, 4) if self.before.type is Type.U16 else (2, 3)
        return index >> per_word_log2, (index & (1 << per_word_log2) - 1) << bits_log2

    def _replace(self, index: Word, value: Word) -> None:
        """Stores a packed element by an atomic xor with the bits that change, so that concurrent stores to other
        elements of the word are not lost. (Stores to one element by two invocations are a data race anyway.)"""
        where, shift = self._where(index)
        where, shift = where.bound("where"), shift.bound("shift")
        old = self._word(where, "packed")
        change = ((old >> shift) ^ value) & self._mask
        build = index.build
        build.emit(ir.Atomic(None, AtomicOp.XOR, self.after, where.node, (change << shift).node, build.span))
