"""Subgroup operations in terms of the few that every machine has: ballot, a shuffle from a lane that is
there, sums."""

from __future__ import annotations

from collections.abc import Sequence

from ...types import ops
from ...types.layout import Type
from ...types.ops import SubgroupOp
from .. import ir
from .legalize_build import Builder
from .legalize_words import Pair, Value

MASK_BITS = 64  # lanes that a mask has room for
_SHUFFLES = (SubgroupOp.SHUFFLE, SubgroupOp.SHUFFLE_XOR, SubgroupOp.SHUFFLE_UP, SubgroupOp.SHUFFLE_DOWN)


class Lanes:
    """Emits subgroup statements; each method gives the value that the statement's variable takes."""

    def __init__(self, build: Builder, group_size: int, most: int) -> None:
        self.most = most  # lanes in a subgroup
        self.build = build
        self.group_size = group_size

    def subgroup(self, op: SubgroupOp, operands: Sequence[Value], bits: int) -> Value:
        """`bits` is how many of the first operand's may be set."""
        first = operands[0]
        if op in _SHUFFLES:
            assert not isinstance(operands[1], Pair)
            return self._shuffle(op, first, operands[1])
        assert not isinstance(first, Pair)
        if op is SubgroupOp.BALLOT:
            return self._ballot(first)
        if op is SubgroupOp.MATCH:
            return self._match(first, bits)
        return self._own(op, "sum", Type.U32, first)

    def _own(self, op: SubgroupOp, name: str, type: Type, *operands: ir.Expression) -> ir.Read:
        result = self.build.fresh(name, type)
        self.build.emit(ir.Subgroup(result, op, operands, self.build.span))
        return self.build.read(result)

    def _ballot(self, condition: ir.Expression) -> Pair:
        mask = self._own(SubgroupOp.BALLOT, "mask", Type.U64, condition)
        if self.most <= 32:  # half of the mask is empty, and costs nothing
            return Pair(self.build.cast(Type.U32, mask), self.build.word(0))
        high = self.build.apply(ops.SHR, mask, self.build.word(32))
        return Pair(self.build.cast(Type.U32, mask), self.build.cast(Type.U32, high))

    def _match(self, value: ir.Expression, bits: int) -> Pair:
        """The lanes that agree with mine in every bit: a ballot for each bit that a value may have."""
        build = self.build
        value = build.bound(value, "matched")
        low, high = build.fresh("match_low", Type.U32), build.fresh("match_high", Type.U32)
        everyone = self._ballot(build.truth(True))
        build.assign(low, everyone.low)
        build.assign(high, everyone.high)
        for bit in range(bits):
            shifted = build.apply(ops.SHR, value, build.word(bit))
            mine = build.bound(build.apply(ops.AND, shifted, build.word(1)), "mine")
            votes = self._ballot(build.apply(ops.NE, mine, build.word(0)))
            # All ones where my bit is clear: then the lanes that agree are those that did not vote.
            flip = build.bound(build.apply(ops.SUB, mine, build.word(1)), "flip")
            for half, vote in ((low, votes.low), (high, votes.high))[: 1 if self.most <= 32 else 2]:
                agree = build.apply(ops.XOR, vote, flip)
                build.assign(half, build.apply(ops.AND, build.read(half), agree))
        return Pair(build.read(low), build.read(high))

    # -- shuffles -----------------------------------------------------------------------------------------

    def _shuffle(self, op: SubgroupOp, value: Value, operand: ir.Expression) -> Value:
        lane = self.build.bound(self._source(op, operand), "source")
        if isinstance(value, Pair):
            low = self._own(SubgroupOp.SHUFFLE, "low", Type.U32, value.low, lane)
            return Pair(low, self._own(SubgroupOp.SHUFFLE, "high", Type.U32, value.high, lane))
        if value.type is Type.BOOL:  # not a thing that WGSL shuffles
            word = self._own(SubgroupOp.SHUFFLE, "flag", Type.U32, self.build.cast(Type.U32, value), lane)
            return self.build.apply(ops.NE, word, self.build.word(0))
        return self._own(SubgroupOp.SHUFFLE, "item", value.type, value, lane)

    def _source(self, op: SubgroupOp, operand: ir.Expression) -> ir.Expression:
        """The lane to read, one that there is. (A subgroup's size is a power of two.)"""
        build = self.build
        lane, size = self._identity(ir.Builtin.LANE), self._identity(ir.Builtin.SUBGROUP_SIZE)
        if op is SubgroupOp.SHUFFLE:
            return build.apply(ops.AND, operand, build.apply(ops.SUB, size, build.word(1)))
        if op is SubgroupOp.SHUFFLE_XOR:
            return build.apply(ops.XOR, lane, operand)
        operand = build.bound(operand, "distance")
        if op is SubgroupOp.SHUFFLE_UP:
            other = build.apply(ops.SUB, lane, operand)
            return build.apply(ops.SELECT, build.apply(ops.LE, operand, lane), other, lane)
        # Below the subgroup's size and, as a last subgroup may be short, below the workgroup's. Written as
        # what is left above me, so that no sum wraps.
        left = build.apply(ops.SUB, build.apply(ops.SUB, size, build.word(1)), lane)
        local = self._identity(ir.Builtin.LOCAL_ID)
        beyond = build.apply(ops.SUB, build.word(self.group_size - 1), local)
        there = build.apply(ops.LE, operand, build.apply(ops.MIN, left, beyond))
        return build.apply(ops.SELECT, there, build.apply(ops.ADD, lane, operand), lane)

    def _identity(self, builtin: ir.Builtin) -> ir.Identity:
        return ir.Identity(builtin, self.build.span)
