"""Barrier splitting (loop fission): cuts a kernel at barriers and subgroup operations into loops over lanes.

A region is a run of statements that every invocation goes through without waiting: it becomes one loop over
the lanes of the workgroup. Control flow around a barrier is uniform (the uniformity check has seen to that),
so it stays outside of those loops, run once for the whole group. Three kinds of variables come out of it:

- group variables: uniform ones that steer such control flow, or that several regions read; a scalar a group;
- context variables: those whose value passes from one region to the next; one element a lane;
- all others: a scalar inside one region's loop.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import attrs

from ...kernel import ir
from ...kernel.passes.scopes import Assignments
from ...kernel.passes.uniform import Uniformity
from ...kernel.passes.walk import blocks_of, statements_in, variables_read_by, variables_set_in


@attrs.frozen(eq=False)
class Exchange:
    """A subgroup operation between two regions, over what all lanes handed in. Consecutive ones take slots in turn: one
    is read while the next is filled."""

    statement: ir.Subgroup
    slot: int


@attrs.frozen
class Region:
    """A loop over the lanes: fetch from the exchange before, run the statements, hand in to the one after."""

    fetch: Exchange | None
    statements: ir.Block
    hand_in: Exchange | None


@attrs.frozen
class Group:
    """A statement that is run once for the whole group, and the pieces of the blocks inside it."""

    statement: ir.Assign | ir.Load | ir.If | ir.For | ir.Loop | ir.Break
    blocks: tuple[Pieces, ...] = ()


Piece: TypeAlias = Region | Exchange | Group
Pieces: TypeAlias = tuple[Piece, ...]


@attrs.frozen
class BarrierSplit:
    pieces: Pieces
    exchanges: tuple[Exchange, ...]
    group: frozenset[ir.Variable]
    context: frozenset[ir.Variable]
    private: frozenset[ir.Memory]  # register arrays of one region, outside of group loops: one does for all lanes


def split_at_barriers(program: ir.Program, uniformity: Uniformity) -> BarrierSplit:
    """Cuts until nothing moves: a variable found to be the group's may take more out of the lanes."""
    group: frozenset[ir.Variable] = frozenset()
    while True:
        cutter = _Cutter(group)
        pieces = cutter.block(program.body, in_group_loop=False)
        exposed = frozenset(v for region in cutter.regions for v in assignments_of(region).exposed)
        movable = frozenset(
            v for v in exposed - group if v not in uniformity.varying and v not in cutter.assigned_under_lane_control
        )
        wanted = group | cutter.steering | movable
        if wanted == group:
            private = frozenset(memory for memory, uses in cutter.uses.items() if uses == 1)
            return BarrierSplit(pieces, tuple(cutter.exchanges), group, exposed - group, private)
        group = wanted


def assignments_of(region: Region) -> Assignments:
    found = Assignments()
    found.block(_statements_of(region))
    return found


def _statements_of(region: Region) -> ir.Block:
    """A region as plain statements, for what it reads and assigns: handing in is an assignment to nothing."""
    before: ir.Block = ()
    after: ir.Block = ()
    if region.fetch is not None:
        statement = region.fetch.statement
        operands = statement.operands[1:] if statement.op.is_shuffle else ()
        before = (attrs.evolve(statement, operands=operands),)
    if region.hand_in is not None:
        statement = region.hand_in.statement
        nothing = ir.Variable("nothing", statement.operands[0].type)
        after = (ir.Assign(nothing, statement.operands[0], statement.span),)
    return before + region.statements + after


class _Cutter:
    """One attempt, with the group variables known so far."""

    def __init__(self, group: frozenset[ir.Variable]) -> None:
        self.group = group
        self.regions: list[Region] = []
        self.exchanges: list[Exchange] = []
        self.steering: set[ir.Variable] = set()  # variables that control flow outside of the lanes reads
        self.assigned_under_lane_control: set[ir.Variable] = set()
        self.uses = Counter[ir.Memory]()  # of register arrays, by regions: those in loops count twice

    def block(self, block: ir.Block, *, in_group_loop: bool) -> Pieces:
        pieces: list[Piece] = []
        pending: list[ir.Statement] = []
        fetch: Exchange | None = None

        def close(hand_in: Exchange | None = None) -> None:
            nonlocal fetch
            if pending or fetch is not None or hand_in is not None:
                region = Region(fetch, tuple(pending), hand_in)
                self.regions.append(region)
                for memory in _registers_in(region.statements):
                    self.uses[memory] += 2 if in_group_loop else 1
                pieces.append(region)
                pending.clear()
                fetch = None

        for statement in block:
            if not self._is_lifted(statement, in_group_loop):
                if blocks_of(statement):  # what lanes may each assign or not is not worth lifting for a reader's sake
                    self.assigned_under_lane_control.update(variables_set_in((statement,)))
                pending.append(statement)
                continue
            match statement:
                case ir.Barrier():
                    close()
                case ir.Subgroup():
                    exchange = Exchange(statement, len(self.exchanges) % 2)
                    self.exchanges.append(exchange)
                    close(exchange)
                    pieces.append(exchange)
                    fetch = exchange
                case ir.Assign():
                    # It can run before the region being made, unless that reads the variable's old value.
                    if statement.variable in _reads(Region(fetch, tuple(pending), None)):
                        close()
                    self.steering |= variables_read_by(statement)
                    pieces.append(Group(statement))
                case ir.Load():
                    close()
                    self.steering |= {statement.variable, *variables_read_by(statement)}
                    pieces.append(Group(statement))
                case ir.If() | ir.For() | ir.Loop() | ir.Break():
                    close()
                    pieces.append(self._control(statement, in_group_loop))
                case ir.Store() | ir.Atomic():
                    raise AssertionError(f"{statement.span}: memory is touched by lanes only")
        close()
        return tuple(pieces)

    def _control(self, statement: ir.If | ir.For | ir.Loop | ir.Break, in_group_loop: bool) -> Piece:
        self.steering |= variables_read_by(statement)
        if isinstance(statement, ir.For):
            self.steering.add(statement.variable)
        inside = in_group_loop or not isinstance(statement, ir.If)
        return Group(statement, tuple(self.block(block, in_group_loop=inside) for block in blocks_of(statement)))

    def _is_lifted(self, statement: ir.Statement, in_group_loop: bool) -> bool:
        """Whether a statement stands outside of the lane loops."""
        match statement:
            case ir.Barrier() | ir.Subgroup():
                return True
            case ir.Assign():
                return statement.variable in self.group
            case ir.Break():
                return in_group_loop
            case ir.For() if statement.variable in self.group:
                return True
            case ir.If() | ir.For() | ir.Loop():
                inside = in_group_loop and isinstance(statement, ir.If)
                return any(self._is_lifted(s, inside) for block in blocks_of(statement) for s in block)
            case ir.Load():
                return statement.uniform
            case ir.Store() | ir.Atomic():
                return False


def _reads(region: Region) -> set[ir.Variable]:
    return assignments_of(region).read


def _registers_in(block: ir.Block) -> set[ir.Memory]:
    touching = [s for s in statements_in(block) if isinstance(s, ir.Load | ir.Store)]
    return {s.memory for s in touching if s.memory.space is ir.Space.REGISTERS}
