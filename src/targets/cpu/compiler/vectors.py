"""What a kernel's text does with 64 bytes of elements at once."""

from __future__ import annotations

from ...llvm.numbers import I8, Value
from ...llvm.places import Array, Places

_BITS = 512


class Vectors(Places):
    """Writes instructions on whole vectors."""

    compresses: bool  # whether the processor can compress vectors

    def partition_vector(
        self, source: Array, at: Value, pivot: Value, lows: tuple[Array, Value], highs: tuple[Array, Value]
    ) -> Value:
        """Parts a vector of elements of 4 or 8 bytes: those below the pivot go to `lows`, all others to `highs`, in
        their order. 64 bytes are written at each: what is too much is anything. The count of lows."""
        kind = source.kind
        low, high = (self.element(array, index) for array, index in (lows, highs))
        if not self.compresses:
            return self._one_by_one(source, at, pivot, low, high)
        lanes, align = _BITS // kind.bits, kind.bits // 8
        vector, words, mask = (f"<{lanes} x {type}>" for type in (kind.llvm, f"i{kind.bits}", "i1"))
        place = self._as_vector(self.element(source, at), kind.llvm, vector)
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
            self.lines.append(f"  store {words} {found}, {self._as_vector(to, kind.llvm, words)}, align {align}")
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

    def _as_vector(self, place: str, element: str, vector: str) -> str:
        """The same typed pointer, as one to a vector."""
        if self.is_opaque:
            return place
        return f"{vector}* {self.named(f'bitcast {place} to {vector}*')}"
