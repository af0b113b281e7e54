"""Workgroup memories that are done with before others begin give those their place.

Where a barrier parts the last access to one memory from the first access to another, both can lie in one. Some
drivers have so little workgroup memory that this doubles how many workgroups live side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

import attrs

from .. import ir
from .walk import rewritten, statements_in


def overlaid(program: ir.Program) -> ir.Program:
    """The program with fewer workgroup memories, those of one type that are never in use together being one."""
    spans = dict(_lifetimes(program.body, program.memories))
    homes: dict[ir.Memory, ir.Memory] = {}
    for slot in _slots(sorted(spans.items(), key=lambda item: item[1].first), _kinds(program.body)):
        name, length = "_or_".join(memory.name for memory in slot), _longest(slot)
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
    """Which memories have atomics, and which are loaded for all: WGSL has none of which both is true."""
    found: dict[ir.Memory, bool] = {}
    for statement in statements_in(block):
        if isinstance(statement, ir.Atomic):
            found[statement.memory] = True
        elif isinstance(statement, ir.Load) and statement.for_all:
            found.setdefault(statement.memory, False)
    return found


@lru_cache(maxsize=512)
def packed_bytes(program: ir.Program) -> int:
    """The workgroup memory that a program needs where memories of all types can take each other's place."""
    spans = sorted(_lifetimes(program.body, program.memories), key=lambda item: item[1].first)
    return sum(max(map(_nbytes, slot)) for slot in _slots(spans, any_type=True))


def _nbytes(memory: ir.Memory) -> int:
    return (memory.length or 0) * memory.type.size


@attrs.frozen
class _Lifetime:
    """From which statement of a block to which a memory is in use, and where the block's barriers stand."""

    first: int
    last: int
    barriers: Sequence[int]

    def ends_before(self, other: _Lifetime) -> bool:
        return any(self.last < barrier < other.first for barrier in self.barriers)


def _lifetimes(
    block: ir.Block, among: Collection[ir.Memory], earlier: Collection[ir.Memory] = ()
) -> Iterator[tuple[ir.Memory, _Lifetime]]:
    """When memories are in use in a block, some of them from before it. Where several come to their end in one branch
    they are looked at there: only its barriers stand between them.
    """
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
    """Each block of a branch that has barriers, the memories in use there and not after, and those of them in use
    before."""
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
    """Which statements use each memory."""
    found: dict[ir.Memory, list[int]] = {}
    for position, statement in enumerate(block):
        for memory in _workgroup_memories((statement,)):
            if memory in among:
                found.setdefault(memory, []).append(position)
    return found


def _workgroup_memories(block: ir.Block) -> dict[ir.Memory, None]:
    accesses = (statement for statement in statements_in(block) if isinstance(statement, ir.Access))
    return dict.fromkeys(access.memory for access in accesses if access.memory.space is ir.Space.WORKGROUP)


def _slots(
    spans: Sequence[tuple[ir.Memory, _Lifetime]], kinds: Mapping[ir.Memory, bool] | None = None, any_type: bool = False
) -> list[list[ir.Memory]]:
    """Memories that follow one another, in the order in which they begin: each in the largest place that is free."""
    known: Mapping[ir.Memory, bool] = kinds or {}

    def fits(memory: ir.Memory, slot: Sequence[ir.Memory]) -> bool:
        together = {known[one] for one in (memory, *slot) if one in known}
        return any_type or (slot[0].type is memory.type and len(together) < 2)

    slots: list[list[ir.Memory]] = []
    ends: list[_Lifetime] = []
    for memory, span in spans:
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
    return max(memory.length or 0 for memory in slot)
