"""Overlays workgroup memories whose lifetimes do not overlap: liveness and interval colouring, as for registers. Two
memories can share one if a barrier separates the last access to the first from the first access to the second.
Workgroup memory limits occupancy: on some drivers this doubles the workgroups that are resident at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache

import attrs

from .. import ir
from .walk import rewritten, statements_in


def overlaid(program: ir.Program) -> ir.Program:
    """The program with workgroup memories of one type merged where they are never live together."""
    kinds, homes = _kinds(program.body), dict[ir.Memory, ir.Memory]()

    def fits(memory: ir.Memory, slot: Sequence[ir.Memory]) -> bool:
        return slot[0].type is memory.type and len({kinds[one] for one in (memory, *slot) if one in kinds}) < 2

    for slot in _slots(program, fits):
        others = {homes.get(memory, memory).name for memory in program.memories if memory not in slot}
        name, length = ir.unused("_or_".join(memory.name for memory in slot), others), _longest(slot)
        homes |= dict.fromkeys(slot, attrs.evolve(slot[0], name=name, length=length))

    def statement(node: ir.Statement) -> Iterator[ir.Statement]:
        if isinstance(node, ir.Access) and node.memory in homes:
            yield attrs.evolve(node, memory=homes[node.memory])
        elif isinstance(node, ir.If) and node.overridable is not None:
            memories = tuple(homes.get(memory, memory) for memory in node.overridable.memories)
            yield attrs.evolve(node, overridable=attrs.evolve(node.overridable, memories=memories))
        else:
            yield node

    memories = tuple(dict.fromkeys(homes.get(memory, memory) for memory in program.memories))
    return attrs.evolve(program, memories=memories, body=rewritten(program.body, statement))


def _kinds(block: ir.Block) -> dict[ir.Memory, bool]:
    """True for memories with atomics, False for those with uniform loads: in WGSL no memory can have both."""
    found: dict[ir.Memory, bool] = {}
    for statement in statements_in(block):
        if isinstance(statement, ir.Atomic):
            found[statement.memory] = True
        elif isinstance(statement, ir.Load) and statement.uniform:
            found.setdefault(statement.memory, False)
    return found


@lru_cache
def packed_bytes(program: ir.Program) -> int:
    """The bytes of workgroup memory a program needs where memories of different types can share."""
    slots = _slots(program, lambda memory, slot: True)
    known = {memory for slot in slots for memory in slot}
    slots += [[memory] for memory in _workgroup_memories(program.body) if memory not in known]
    return sum(max(m.length * m.type.size for m in slot if m.length is not None) for slot in slots)


@attrs.frozen
class _Lifetime:
    """The positions of a memory's first and last use in a block, and those of the block's barriers."""

    first: int
    last: int
    barriers: Sequence[int]

    def ends_before(self, other: _Lifetime) -> bool:
        return any(self.last < barrier < other.first for barrier in self.barriers)


def _lifetimes(
    block: ir.Block, among: Collection[ir.Memory], earlier: Collection[ir.Memory] = ()
) -> Iterator[tuple[ir.Memory, _Lifetime]]:
    """The lifetimes, in a block, of the memories in `among`; those in `earlier` are live on entry. If the last uses of
    several are in one branch, that branch's block is analysed instead, as only its barriers can separate them."""
    branch = max(_branches(block, among), key=lambda found: len(found[1]), default=None)
    if branch is not None and len(branch[1]) > 1:
        inside, ending, started = branch
        yield from _lifetimes(inside, ending, {*started, *earlier})
        return
    barriers = [position for position, statement in enumerate(block) if isinstance(statement, ir.Barrier)]
    for memory, positions in _positions(block, among).items():
        yield memory, _Lifetime(-1 if memory in earlier else positions[0], positions[-1], barriers)


def _branches(
    block: ir.Block, among: Collection[ir.Memory]
) -> Iterator[tuple[ir.Block, list[ir.Memory], list[ir.Memory]]]:
    """For each side of a branch that has barriers: its block, the memories whose last use is in it, and those of them
    that are live on entry."""
    positions = _positions(block, among)
    for number, statement in enumerate(block):
        if isinstance(statement, ir.If):
            then, otherwise = _workgroup_memories(statement.then), _workgroup_memories(statement.otherwise)
            for part, own, other in ((statement.then, then, otherwise), (statement.otherwise, otherwise, then)):
                if not any(isinstance(inside, ir.Barrier) for inside in part):
                    continue
                ending = [m for m in own if m in positions and m not in other and positions[m][-1] == number]
                yield part, ending, [m for m in ending if positions[m][0] < number]


def _positions(block: ir.Block, among: Collection[ir.Memory]) -> dict[ir.Memory, list[int]]:
    """The positions of the statements that use each memory."""
    found: dict[ir.Memory, list[int]] = {}
    for position, statement in enumerate(block):
        for memory in _workgroup_memories((statement,)):
            if memory in among:
                found.setdefault(memory, []).append(position)
    return found


def _workgroup_memories(block: ir.Block) -> dict[ir.Memory, None]:
    accesses = (statement for statement in statements_in(block) if isinstance(statement, ir.Access))
    return dict.fromkeys(access.memory for access in accesses if access.memory.space is ir.Space.WORKGROUP)


def _slots(program: ir.Program, fits: Callable[[ir.Memory, Sequence[ir.Memory]], bool]) -> list[list[ir.Memory]]:
    """Groups of memories that can share one, assigned greedily in the order of first use, each to the largest free
    one."""
    slots: list[list[ir.Memory]] = []
    ends: list[_Lifetime] = []
    for memory, span in sorted(_lifetimes(program.body, program.memories), key=lambda found: found[1].first):
        free = [number for number, slot in enumerate(slots) if fits(memory, slot) and ends[number].ends_before(span)]
        if free:
            number = max(free, key=lambda number: _longest(slots[number]))
            slots[number].append(memory)
            ends[number] = span
        else:
            slots.append([memory])
            ends.append(span)
    return slots


def _longest(slot: Sequence[ir.Memory]) -> int:
    return max(memory.length for memory in slot if memory.length is not None)
