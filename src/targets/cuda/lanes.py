"""Subgroup operations as warp intrinsics : ballot, match, shuffle, sums.

Every operation takes a member mask of the lanes that exist: bit i for lane i. The last warp of a workgroup may be
partial, and a `.sync` instruction that names an absent lane would wait for it forever.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

from llvmlite import ir

from .kinds import BOOLEAN, UINT32, UINT64, Boolean, Float, Integer, Kind, Number, Shared
from .lower import I1, I32, I64, Emit, Intrinsic, Lowering, call, constant, lowered
from .memory import shared_element

_WARP = 32
_INDEXED, _UP, _DOWN, _XOR = (constant(mode) for mode in range(4))
_FIRST_LANE, _LAST_LANE = constant(0), constant(_WARP - 1)


# -- votes and matches ------------------------------------------------------------------------------------


def _of_lanes(given: Kind, taken: Kind, body: Emit) -> Intrinsic:
    """An intrinsic of the member mask and a value of type `taken` from each lane."""

    def define(mask: Kind, value: Kind) -> Lowering:
        return Lowering(given, (UINT32, taken), body)

    return lowered(define)


def _vote(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
    mask, predicate = args
    ballot_mode, result = constant(3), ir.LiteralStructType((I32, I1))
    votes = call(builder, "llvm.nvvm.vote.sync", result, (mask, ballot_mode, predicate))
    return builder.zext(builder.extract_value(votes, 0), I64)


def _alike(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
    return builder.zext(call(builder, "llvm.nvvm.match.any.sync.i32", I32, args), I64)


# Masks as U64: of the lanes for which a predicate holds; and of those with this lane's value, by `match.any`, which
# takes longer the more distinct values there are.
ballot = _of_lanes(UINT64, BOOLEAN, _vote)
match = _of_lanes(UINT64, UINT32, _alike)


def _same_bit(builder: ir.IRBuilder, mask: ir.Value, value: ir.Value, bit: ir.Value) -> ir.Value:
    """The mask of lanes with the same value of a bit. In inline PTX, where one predicate serves both the vote and the
    negation: NVVM's intrinsics take two instructions more, and this is the innermost loop of a radix sort."""
    text = (
        "{ .reg .pred p; and.b32 $0, $1, $2; setp.ne.u32 p, $0, 0; "
        "vote.sync.ballot.b32 $0, p, $3; @!p not.b32 $0, $0; }"
    )
    assembly = ir.InlineAsm(ir.FunctionType(I32, [I32, I32, I32]), text, "=&r,r,n,r", side_effect=True)
    return builder.call(assembly, [value, bit, mask])


def _all_three(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a & b & c in one instruction, into which the assembler does not fuse two ANDs on its own."""
    assembly = ir.InlineAsm(ir.FunctionType(I32, [I32, I32, I32]), "lop3.b32 $0, $1, $2, $3, 0x80;", "=r,r,r,r")
    return builder.call(assembly, [a, b, c])


def lanes_alike(builder: ir.IRBuilder, mask: ir.Value, value: ir.Value, bits: int) -> ir.Value:
    """The mask of lanes with this lane's value, for values of a known number of bits: the AND of a ballot a bit."""
    masks = [mask, *(_same_bit(builder, mask, value, constant(1 << bit)) for bit in range(bits))]
    while len(masks) > 2:
        masks = [*masks[3:], _all_three(builder, masks[0], masks[1], masks[2])]
    return functools.reduce(builder.and_, masks)


@lowered
def match_low_bits(mask: Kind, value: Kind, bits: Kind) -> Lowering | None:
    """`match` for values of a known number of bits (a literal): one ballot a bit."""
    if not isinstance(bits, Number):
        return None
    count = bits.value

    def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        return builder.zext(lanes_alike(builder, args[0], args[1], count), I64)

    return Lowering(UINT64, (UINT32, UINT32, bits), body)


# -- shuffles ---------------------------------------------------------------------------------------------

Exchange: TypeAlias = Callable[[ir.Value], ir.Value]
Clamp: TypeAlias = Callable[[ir.IRBuilder, ir.Value], ir.Value]  # from the member mask: the first or last lane in range
Asked: TypeAlias = Callable[[ir.IRBuilder, ir.Value], ir.Value]  # the lane or distance as `shfl.sync` takes it


def _in_words(builder: ir.IRBuilder, kind: Kind, value: ir.Value, exchange: Exchange) -> ir.Value:
    """Exchanges any scalar by exchanges of 32-bit words."""
    if isinstance(kind, Boolean):
        return builder.trunc(exchange(builder.zext(value, I32)), I1)
    if isinstance(kind, Float):
        word, scalar = (I32, ir.FloatType()) if kind.bitwidth == 32 else (I64, ir.DoubleType())
        integer = UINT32 if kind.bitwidth == 32 else UINT64
        return builder.bitcast(_in_words(builder, integer, builder.bitcast(value, word), exchange), scalar)
    assert isinstance(kind, Integer), kind
    if kind.bitwidth == 32:
        return exchange(value)
    half = ir.Constant(I64, 32)
    low = exchange(builder.trunc(value, I32))
    high = exchange(builder.trunc(builder.lshr(value, half), I32))
    return builder.or_(builder.shl(builder.zext(high, I64), half), builder.zext(low, I64))


def _shuffled(
    builder: ir.IRBuilder, mask: ir.Value, mode: ir.Value, value: ir.Value, other: ir.Value, clamp: ir.Value
) -> ir.Value:
    """`shfl.sync`: a word from another lane, and whether that was in range (if not, the word is this lane's own)."""
    result = ir.LiteralStructType((I32, I1))
    return call(builder, "llvm.nvvm.shfl.sync.i32", result, (mask, mode, value, other, clamp))


def _short(builder: ir.IRBuilder, distance: ir.Value) -> ir.Value:
    """A distance, or 0 (this lane's own value) if it is beyond a warp: the hardware takes only its five low bits."""
    within = builder.icmp_unsigned("<", distance, constant(_WARP))
    return builder.select(within, distance, constant(0))


def _last_lane(builder: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    """The highest existing lane: one less than the mask's population count, for lanes exist from 0 on."""
    return builder.sub(call(builder, "llvm.ctpop.i32", I32, (mask,)), constant(1))


def _exchange(mode: ir.Value, clamp: Clamp, asked: Asked) -> Intrinsic:
    """A shuffle of any scalar. The operands are the member mask, the value, and the lane or distance."""

    def define(mask: Kind, value: Kind, other: Kind) -> Lowering:
        def body(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
            mask, other = args[0], asked(builder, args[2])
            farthest = clamp(builder, mask)

            def exchange(word: ir.Value) -> ir.Value:
                return builder.extract_value(_shuffled(builder, mask, mode, word, other, farthest), 0)

            return _in_words(builder, value, args[1], exchange)

        return Lowering(value, (UINT32, value, UINT32), body)

    return lowered(define)


def _as_it_is(_: ir.IRBuilder, other: ir.Value) -> ir.Value:
    return other


# The value of: the lane of an index modulo 32; the lane whose index is this one's xor a mask; the lane at a distance
# below or above, and this lane's own value if there is no such lane.
shuffle = _exchange(_INDEXED, lambda builder, mask: _LAST_LANE, _as_it_is)
shuffle_xor = _exchange(_XOR, lambda builder, mask: _LAST_LANE, _as_it_is)
shuffle_up = _exchange(_UP, lambda builder, mask: _FIRST_LANE, _short)
shuffle_down = _exchange(_DOWN, _last_lane, _short)


# -- reductions and scans ---------------------------------------------------------------------------------


def _inclusive_add(builder: ir.IRBuilder, mask: ir.Value, value: ir.Value) -> ir.Value:
    total = value
    for distance in (1, 2, 4, 8, 16):
        pair = _shuffled(builder, mask, _UP, total, constant(distance), _FIRST_LANE)
        below, exists = builder.extract_value(pair, 0), builder.extract_value(pair, 1)
        total = builder.select(exists, builder.add(total, below), total)
    return total


def _sum(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
    """The sum over all lanes: the inclusive scan's last value, broadcast."""
    total = _inclusive_add(builder, *args)
    found = _shuffled(builder, args[0], _INDEXED, total, _last_lane(builder, args[0]), _LAST_LANE)
    return builder.extract_value(found, 0)


def _sum_below(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
    """The exclusive scan."""
    return builder.sub(_inclusive_add(builder, *args), args[1])


lanes_add = _of_lanes(UINT32, UINT32, _sum)
lanes_exclusive_add = _of_lanes(UINT32, UINT32, _sum_below)


# -- match and rank ---------------------------------------------------------------------------------------

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
sub.u32 $0, upto, 1; }"""


@lowered
def match_and_rank(
    mask: Kind, counters: Kind, first: Kind, digit: Kind,
    bits: Kind,
) -> Lowering | None:  # fmt: skip
    """Increments the digit's counter (that of digit 0 is at index `first`) once a lane; returns the count before.

    Lanes with one digit are counted in the order of lanes, so ranks are stable.
    """
    if not isinstance(bits, Number) or not isinstance(counters, Shared):
        return None
    count = bits.value

    def emit(builder: ir.IRBuilder, args: tuple[ir.Value, ...]) -> ir.Value:
        mask, digit = args[0], args[3]
        address = shared_element(builder, counters, args[1:])
        lane = builder.call(ir.InlineAsm(ir.FunctionType(I32, []), "mov.u32 $0, %laneid;", "=r"), [])
        upto = builder.sub(builder.shl(constant(2), lane), constant(1))
        alike = lanes_alike(builder, mask, digit, count)
        kind = ir.FunctionType(I32, [address.type, I32, I32, I32])
        assembly = ir.InlineAsm(kind, _TAKE.replace("\n", " "), "=r,l,r,r,r,~{memory}", side_effect=True)
        return builder.call(assembly, [address, alike, upto, mask])

    return Lowering(UINT32, (UINT32, counters, UINT32, UINT32, bits), emit)
