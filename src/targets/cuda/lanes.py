"""Subgroup operations as warp intrinsics: ballot, match, shuffle, sums.

Every operation takes a member mask of the lanes that exist: bit i for lane i. The last warp of a workgroup may be
partial, and a `.sync` instruction that names an absent lane would wait for it forever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..llvm.calls import Operand
from ..llvm.numbers import B1, U4, U8, Value, literal
from ..llvm.places import Array
from .memory import SharedMemory

_WARP = 32
_INDEXED, _UP, _DOWN, _XOR = range(4)
_BALLOT = 3
_FIRST_LANE, _LAST_LANE = literal(0, U4), literal(_WARP - 1, U4)
_PAIR = "{i32, i1}"

# The mask of lanes with the same value of a bit. One predicate serves both the vote and the negation: NVVM's intrinsics
# take two instructions more, and this is the innermost loop of a radix sort.
_SAME_BIT = (
    "{ .reg .pred p; and.b32 $0, $1, $2; setp.ne.u32 p, $0, 0; "
    "vote.sync.ballot.b32 $0, p, $3; @!p not.b32 $0, $0; }"
)  # fmt: skip

# Ranks lanes by digit with one shared counter a digit, cheaper than an atomic and a shuffle. `bar.warp.sync` orders it:
# all lanes read the counter before the highest lane of a digit writes the new count, and it has before they read again.
_TAKE = """{
.reg .pred last; .reg .u32 before, upto;
and.b32 upto, $2, $3;
setp.eq.u32 last, upto, $2;
popc.b32 upto, upto;
ld.volatile.shared.u32 before, [$1];
add.u32 upto, upto, before;
bar.warp.sync $4;
@last st.volatile.shared.u32 [$1], upto;
bar.warp.sync $4;
sub.u32 $0, upto, 1; }""".replace("\n", " ")

_Exchange: TypeAlias = Callable[[Value], Value]


class Lanes(SharedMemory):
    """Writes what the lanes of a warp do together."""

    def call(self, name: str, given: Sequence[Operand]) -> Value | None:
        match name, given:
            case "ballot", [Value() as mask, Value() as predicate]:
                return self._ballot(mask, predicate)
            case "match", [Value() as mask, Value() as value]:  # takes longer the more distinct values there are
                operands = [("i32", mask.text), ("i32", value.text)]
                return self.converted(self.made(U4, self.function("llvm.nvvm.match.any.sync.i32", "i32", operands)), U8)
            case "match_low_bits", [Value() as mask, Value() as value, Value(number=int() as bits)]:
                return self.converted(self._alike(mask, value, bits), U8)
            case "shuffle" | "shuffle_xor" | "shuffle_up" | "shuffle_down", [
                Value() as mask, Value() as value, Value() as other,
            ]:  # fmt: skip
                return self._shuffle(name, mask, value, other)
            case "lanes_add", [Value() as mask, Value() as value]:
                return self._sum(mask, value)
            case "lanes_exclusive_add", [Value() as mask, Value() as value]:
                return self.made(U4, f"sub i32 {self._inclusive_add(mask, value).text}, {value.text}")
            case "match_and_rank", [
                Value() as mask, Array(space=3) as counters, Value() as first, Value() as digit,
                Value(number=int() as bits),
            ]:  # fmt: skip
                return self._match_and_rank(mask, self.shared_element(counters, first, digit), digit, bits)
            case _:
                return super().call(name, given)

    # -- votes and matches --------------------------------------------------------------------------------

    def _ballot(self, mask: Value, predicate: Value) -> Value:
        operands = [("i32", mask.text), ("i32", str(_BALLOT)), ("i1", predicate.text)]
        votes = self.named(self.function("llvm.nvvm.vote.sync", _PAIR, operands))
        return self.converted(self.made(U4, f"extractvalue {_PAIR} {votes}, 0"), U8)

    def _alike(self, mask: Value, value: Value, bits: int) -> Value:
        """The mask of lanes with this lane's value, for values of a known number of bits: the AND of a ballot a bit."""
        masks = [mask]
        for bit in range(bits):
            operands = [value, literal(1 << bit, U4), mask]
            masks.append(self.made(U4, self.assembly(_SAME_BIT, "=&r,r,n,r", "i32", operands)))
        while len(masks) > 2:  # in one instruction, into which the assembler does not fuse two ANDs on its own
            three = self.assembly("lop3.b32 $0, $1, $2, $3, 0x80;", "=r,r,r,r", "i32", masks[:3], lasts=False)
            masks = [*masks[3:], self.made(U4, three)]
        return masks[0] if len(masks) == 1 else self.made(U4, f"and i32 {masks[0].text}, {masks[1].text}")

    def _match_and_rank(self, mask: Value, counter: str, digit: Value, bits: int) -> Value:
        """Increments the digit's counter once a lane; the count before. Lanes with one digit are counted in their
        order, so ranks are stable."""
        lane = self.made(U4, self.assembly("mov.u32 $0, %laneid;", "=r", "i32", [], lasts=False))
        upto = self.made(U4, f"sub i32 {self.named(f'shl i32 2, {lane.text}')}, 1")
        alike = self._alike(mask, digit, bits)
        operands = f"{counter}, i32 {alike.text}, i32 {upto.text}, i32 {mask.text}"
        return self.made(U4, self.inline(_TAKE, "=r,l,r,r,r,~{memory}", "i32", operands))

    # -- shuffles -----------------------------------------------------------------------------------------

    def _shuffle(self, name: str, mask: Value, value: Value, other: Value) -> Value:
        """The value of: the lane of an index modulo 32; the lane whose index is this one's xor a mask; the lane at a
        distance below or above, and this lane's own value if there is no such lane."""
        match name:
            case "shuffle":
                mode, farthest = _INDEXED, _LAST_LANE
            case "shuffle_xor":
                mode, farthest = _XOR, _LAST_LANE
            case "shuffle_up":
                mode, other, farthest = _UP, self._short(other), _FIRST_LANE
            case _:
                mode, other, farthest = _DOWN, self._short(other), self._last_lane(mask)
        return self._in_words(value, lambda word: self._shuffled(mask, mode, word, other, farthest)[0])

    def _in_words(self, value: Value, exchange: _Exchange) -> Value:
        """Exchanges any scalar by exchanges of 32-bit words."""
        kind = value.kind
        if kind.is_bool:
            return self.made(B1, f"trunc i32 {exchange(self.converted(value, U4)).text} to i1")
        if kind.is_float:
            word = U4 if kind.bits == 32 else U8
            bits = self._in_words(self.made(word, f"bitcast {kind.llvm} {value.text} to {word.llvm}"), exchange)
            return self.made(kind, f"bitcast {word.llvm} {bits.text} to {kind.llvm}")
        if kind.bits == 32:
            return Value(kind, exchange(value).text)
        low = exchange(self.converted(value, U4))
        high = exchange(self.converted(self.made(U8, f"lshr i64 {value.text}, 32"), U4))
        upper = self.named(f"shl i64 {self.converted(high, U8).text}, 32")
        return self.made(kind, f"or i64 {upper}, {self.converted(low, U8).text}")

    def _shuffled(self, mask: Value, mode: int, word: Value, other: Value, clamp: Value) -> tuple[Value, Value]:
        """`shfl.sync`: a word from another lane, and whether that was in range (if not, it is this lane's own)."""
        operands = [("i32", text) for text in (mask.text, str(mode), word.text, other.text, clamp.text)]
        pair = self.named(self.function("llvm.nvvm.shfl.sync.i32", _PAIR, operands))
        return self.made(U4, f"extractvalue {_PAIR} {pair}, 0"), self.made(B1, f"extractvalue {_PAIR} {pair}, 1")

    def _short(self, distance: Value) -> Value:
        """A distance, or 0 (this lane's own value) beyond a warp: the hardware takes only its five low bits."""
        return self.chosen(self.compared("<", distance, literal(_WARP, U4)), distance, literal(0, U4))

    def _last_lane(self, mask: Value) -> Value:
        """The highest existing lane: one less than the mask's population count, for lanes exist from 0 on."""
        count = self.named(self.function("llvm.ctpop.i32", "i32", [("i32", mask.text)]))
        return self.made(U4, f"sub i32 {count}, 1")

    # -- reductions and scans -----------------------------------------------------------------------------

    def _inclusive_add(self, mask: Value, value: Value) -> Value:
        total = value
        for distance in (1, 2, 4, 8, 16):
            below, exists = self._shuffled(mask, _UP, total, literal(distance, U4), _FIRST_LANE)
            total = self.chosen(exists, self.made(U4, f"add i32 {total.text}, {below.text}"), total)
        return total

    def _sum(self, mask: Value, value: Value) -> Value:
        """The sum over all lanes: the inclusive scan's last value, broadcast."""
        total = self._inclusive_add(mask, value)
        return self._shuffled(mask, _INDEXED, total, self._last_lane(mask), _LAST_LANE)[0]
