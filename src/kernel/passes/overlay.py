"""Overlays workgroup memories whose lifetimes do not overlap: liveness and interval colouring, as for registers. Two
memories can share one if a barrier separates the last access to the first from the first access to the second.
Workgroup memory limits occupancy: on some drivers this doubles the workgroups that are resident at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count

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
    return sum(max(m.length * m.type.size for m in slot if m.length is not None) for slot in slots)


def _slots(program: ir.Program, fits: Callable[[ir.Memory, Sequence[ir.Memory]], bool]) -> list[list[ir.Memory]]:
    """Groups of memories that can share one, assigned greedily in the order of first use, each to the largest free
    one."""
    uses, barriers = _positions(program.body)

    def ends_before(memory: ir.Memory, other: ir.Memory) -> bool:
        """Whether a barrier is on every path between them, as its block has all uses of one of the two."""
        mine, others = uses[memory], uses[other]
        return any(
            mine[-1] < position < others[0] and (mine[0] in block or others[-1] in block)
            for position, block in barriers
        )

    slots: list[list[ir.Memory]] = []
    for memory in uses:
        free = [slot for slot in slots if fits(memory, slot) and all(ends_before(one, memory) for one in slot)]
        if free:
            max(free, key=_longest).append(memory)
        else:
            slots.append([memory])
    return slots


def _positions(body: ir.Block) -> tuple[dict[ir.Memory, list[int]], list[tuple[int, range]]]:
    """The positions of each workgroup memory's uses, in the order of first use; and those of each barrier and of its
    block. A loop is one position: its end is before its start, so a barrier in it separates nothing."""
    uses: dict[ir.Memory, list[int]] = {}
    barriers: list[tuple[int, range]] = []
    positions = count()

    def walk(block: ir.Block) -> None:
        first, found = next(positions), list[int]()
        for statement in block:
            if isinstance(statement, ir.If):
                walk(statement.then)
                walk(statement.otherwise)
                continue
            position = next(positions)
            if isinstance(statement, ir.Barrier):
                found.append(position)
            for inside in statements_in((statement,)):
                if isinstance(inside, ir.Access) and inside.memory.space is ir.Space.WORKGROUP:
                    uses.setdefault(inside.memory, []).append(position)
        within = range(first, next(positions))
        barriers.extend((position, within) for position in found)

    walk(body)
    return uses, barriers


def _longest(slot: Sequence[ir.Memory]) -> int:
    return max(memory.length for memory in slot if memory.length is not None)
