"""Who gives ranks what they ask for: one thread for all of a process, or a communicator for one of many processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import attrs

from ..external.agreed_cuts import Gather, HostArray
from .memory import DeviceArray, Mark, Memory
from .shard import Exchange, Shard, Started, Step
from .work import Columns


@runtime_checkable
class Communicator(Protocol):
    """How processes with one rank each reach each other. Every rank makes the same calls in the same order."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def gather(self, values: HostArray, /) -> Sequence[HostArray]:
        """Every rank's values of one dimension and one dtype, though not of one length, in the order of ranks."""
        ...

    def exchange(self, pieces: Sequence[DeviceArray], received: Sequence[DeviceArray], /) -> None:
        """A piece to every rank, and from every rank one, packed; in the order of the current stream. Some are empty,
        and so are a rank's to itself."""
        ...


@attrs.define
class Traffic:
    """What ranks have asked of each other."""

    gathered_bytes: int = 0  # received by one rank
    moved_bytes: int = 0  # from one rank to another, of all
    messages: int = 0  # of all, for these


def alone(shard: Shard, communicator: Communicator) -> Columns:
    """Drives this process's rank."""
    reply: Sequence[HostArray] = ()
    while True:
        try:
            step = shard.send(reply) if reply else next(shard)
        except StopIteration as end:
            columns: Columns = end.value
            return columns
        reply = ()
        if isinstance(step, Gather):
            reply = communicator.gather(step.values)
        elif isinstance(step, Exchange):
            communicator.exchange(step.pieces, step.received)


def in_lockstep(shards: Sequence[Shard], memories: Sequence[Memory], traffic: Traffic | None = None) -> list[Columns]:
    """Drives all ranks, each a step further in turn. All come to the same kind of step, for they agree on sizes."""
    results: list[Columns] = []
    replies: list[Sequence[HostArray]] = [()] * len(shards)
    while True:
        steps: list[Step] = []
        for shard, memory, reply in zip(shards, memories, replies, strict=True):
            with memory.scope():
                try:
                    steps.append(shard.send(reply) if reply else next(shard))
                except StopIteration as end:
                    results.append(end.value)
        if not steps:
            return results
        replies = _answered(steps, memories, traffic)


def _answered(
    steps: Sequence[Step], memories: Sequence[Memory], traffic: Traffic | None
) -> list[Sequence[HostArray]]:  # fmt: skip
    nothing: list[Sequence[HostArray]] = [()] * len(steps)
    if isinstance(steps[0], Started):
        return nothing
    gathered = [step.values for step in steps if isinstance(step, Gather)]
    if gathered:
        if traffic is not None:
            traffic.gathered_bytes += sum(values.nbytes for values in gathered)
        return [gathered] * len(steps)
    _exchange([step for step in steps if isinstance(step, Exchange)], memories, traffic)
    return nothing


def _exchange(steps: Sequence[Exchange], memories: Sequence[Memory], traffic: Traffic | None) -> None:
    """All copies at once: none waits for what another is waited for by."""
    marks = [memory.mark() for memory in memories]
    copied: list[tuple[int, int, Mark]] = []
    for receiver, (wanted, memory) in enumerate(zip(steps, memories, strict=True)):
        for sender, offered in enumerate(steps):
            target, source = wanted.received[sender], offered.pieces[receiver]
            if len(source):
                copied.append((receiver, sender, memory.copy(target, source, (marks[receiver], marks[sender]))))
                if traffic is not None:
                    traffic.moved_bytes += source.nbytes
                    traffic.messages += 1
    for receiver, sender, mark in copied:
        come, gone = steps[receiver].marks, steps[sender].marks
        if come is None or gone is None:
            memories[receiver].wait(mark)
            memories[sender].wait(mark)  # or what was sent might be written anew
        else:
            come.arrived.append(mark)
            gone.left.append(mark)
