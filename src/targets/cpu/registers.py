"""Finds register arrays that a single region of a split kernel uses, so that all lanes share one array."""

from __future__ import annotations

from ...kernel import ir
from ...kernel.passes.walk import statements_in
from .barrier_split import BarrierSplit, Group, Pieces, Region


def private_registers(split: BarrierSplit) -> frozenset[ir.Memory]:
    """Register arrays that one region alone uses, outside of group loops: one array does for all lanes."""
    users: dict[ir.Memory, int] = {}

    def visit(pieces: Pieces, weight: int) -> None:
        for piece in pieces:
            match piece:
                case Region():
                    for memory in _registers_in(piece.statements):
                        users[memory] = users.get(memory, 0) + weight
                case Group():
                    for block in piece.blocks:
                        visit(block, weight if isinstance(piece.statement, ir.If) else 2)
                case _:
                    pass

    visit(split.pieces, 1)
    return frozenset(memory for memory, weight in users.items() if weight == 1)


def _registers_in(block: ir.Block) -> set[ir.Memory]:
    touching = [s for s in statements_in(block) if isinstance(s, ir.Load | ir.Store)]
    return {s.memory for s in touching if s.memory.space is ir.Space.REGISTERS}
