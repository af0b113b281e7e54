"""Drivers of ranks' generators: a single thread for all ranks of a process, or a communicator for one rank."""

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
    """Collective communication between processes with one rank each. All make the same calls in the same order."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def gather(self, values: HostArray, /) -> Sequence[HostArray]:
        """All-gather: every rank's values, in the order of ranks. One-dimensional, of one dtype, of any lengths."""
        ...

    def exchange(self, pieces: Sequence[DeviceArray], received: Sequence[DeviceArray], /) -> None:
        """All-to-all: sends a piece to every rank and receives one from each, contiguous, ordered with the current
        stream. Pieces may be empty; a rank's piece to itself is."""
        ...


@attrs.define
class Traffic:
    """Communication volume, as counted by tests and benchmarks."""

    gathered_bytes: int = 0  # received by one rank in all-gathers
    moved_bytes: int = 0  # between ranks in exchanges, in all
    messages: int = 0  # of exchanges, in all


def drive_one(shard: Shard, communicator: Communicator) -> Columns:
    """Drives the rank of this process by a communicator."""
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


def drive_all(shards: Sequence[Shard], memories: Sequence[Memory], traffic: Traffic | None = None) -> list[Columns]:
    """Drives all ranks of this process, step by step. At each step all ranks yield the same kind of step."""
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
    """Starts all copies concurrently, each after the work of both ranks so far, then has streams wait for them."""
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
            memories[sender].wait(mark)  # before the sent memory is reused
        else:
            come.arrived.append(mark)
            gone.left.append(mark)
