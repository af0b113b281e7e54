"""Workgroup memories that are done with before others begin give those their place.

Where a barrier parts the last access to one memory from the first access to another, both can lie in one. Some
drivers have so little workgroup memory that this doubles how many workgroups live side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from .. import ir
from .walk import rewritten, statements_in


def overlaid(program: ir.Program) -> ir.Program:
    """The program with fewer workgroup memories, those of one type that are never in use together being one."""
    spans = dict(_lifetimes(program.body))
    homes: dict[ir.Memory, ir.Memory] = {}
    for slot in _slots(sorted(spans.items(), key=lambda item: item[1].first)):
        name, length = "_or_".join(memory.name for memory in slot), max(memory.length or 0 for memory in slot)
        homes |= dict.fromkeys(slot, attrs.evolve(slot[0], name=name, length=length))

    def statement(node: ir.Statement) -> Iterator[ir.Statement]:
        if isinstance(node, ir.Load | ir.Store | ir.Atomic) and node.memory in homes:
            yield attrs.evolve(node, memory=homes[node.memory])
        elif isinstance(node, ir.If) and node.idiom is not None:
            memories = tuple(homes.get(memory, memory) for memory in node.idiom.memories)
            yield attrs.evolve(node, idiom=attrs.evolve(node.idiom, memories=memories))
        else:
            yield node

    memories = tuple(dict.fromkeys(homes.get(memory, memory) for memory in program.memories))
    return attrs.evolve(program, memories=memories, body=rewritten(program.body, statement))


@attrs.frozen
class _Lifetime:
    """From which statement of a block to which a memory is in use, and where the block's barriers stand."""

    first: int
    last: int
    barriers: Sequence[int]

    def ends_before(self, other: _Lifetime) -> bool:
        return any(self.last < barrier < other.first for barrier in self.barriers)


def _lifetimes(block: ir.Block) -> Iterator[tuple[ir.Memory, _Lifetime]]:
    """Of the memories in use in a block. Inside a branch that all of them are in, that branch's own count."""
    used = [_workgroup_memories((statement,)) for statement in block]
    users = [position for position, memories in enumerate(used) if memories]
    if len(users) == 1 and isinstance(only := block[users[0]], ir.If):
        inside = [part for part in (only.then, only.otherwise) if _workgroup_memories(part)]
        if len(inside) == 1:
            yield from _lifetimes(inside[0])
            return
    barriers = [position for position, statement in enumerate(block) if isinstance(statement, ir.Barrier)]
    for memory in dict.fromkeys(memory for memories in used for memory in memories):
        positions = [position for position in users if memory in used[position]]
        yield memory, _Lifetime(positions[0], positions[-1], barriers)


def _workgroup_memories(block: ir.Block) -> dict[ir.Memory, None]:
    accesses = (s.memory for s in statements_in(block) if isinstance(s, ir.Load | ir.Store | ir.Atomic))
    return dict.fromkeys(memory for memory in accesses if memory.space is ir.Space.WORKGROUP)


def _slots(spans: Sequence[tuple[ir.Memory, _Lifetime]]) -> list[list[ir.Memory]]:
    """Memories that follow one another, in the order in which they begin."""
    slots: list[list[ir.Memory]] = []
    ends: list[_Lifetime] = []
    for memory, span in spans:
        for number, slot in enumerate(slots):
            if slot[0].type is memory.type and ends[number].ends_before(span):
                slot.append(memory)
                ends[number] = span
                break
        else:
            slots.append([memory])
            ends.append(span)
    return slots
