"""Drivers of ranks' generators: a single thread for all ranks of a process, or a communicator for one rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from ..external.cuts import Array
from .communicators import Communicator, gathered, tell_failure
from .interrupts import Interrupts
from .memory import Mark, Memory
from .shard import Exchange, Gather, Runs, Shard, Step, Swap, in_parts

_NOTHING = np.empty(0, np.uint8)


def drive_one(shard: Shard, communicator: Communicator, memory: Memory, interrupts: Interrupts) -> Runs:
    """Drives the rank of this process by a communicator. All ranks are there before each exchange, so that one that
    fails on the way, runs out of memory or is interrupted, is at a gather, where it can tell the others."""
    shard = _by_exchanges(shard, communicator.rank, memory)
    reply: Sequence[Array] = ()
    while True:
        try:
            with interrupts.let_in():
                step = _advanced(shard, reply)
        except BaseException as error:
            tell_failure(communicator, error)
            raise
        reply = ()
        if isinstance(step, list):
            return step
        if isinstance(step, Gather):
            reply = gathered(communicator, step.values)
        elif isinstance(step, Exchange):
            gathered(communicator, _NOTHING)
            communicator.exchange(step.pieces, step.received)
            if step.is_last:  # others are at no gather any more, where they could be told
                return cast(Runs, _advanced(shard, ()))


def drive_all(shards: Sequence[Shard], memories: Sequence[Memory]) -> list[Runs]:
    """Drives all ranks of this process, step by step. At each step all ranks yield the same kind of step."""
    results: list[Runs] = []
    replies: list[Sequence[Array]] = [()] * len(shards)
    try:
        while len(results) < len(shards):
            steps: list[Step] = []
            for shard, memory, reply in zip(shards, memories, replies, strict=True):
                with memory.scope():
                    step = _advanced(shard, reply)
                if isinstance(step, list):
                    results.append(step)
                else:
                    steps.append(step)
            gathers = [step.values for step in steps if isinstance(step, Gather)]
            swaps = [step.pieces for step in steps if isinstance(step, Swap)]
            replies = [*zip(*swaps, strict=True)] if swaps else [gathers] * len(shards)
            _exchange([step for step in steps if isinstance(step, Exchange)], memories)
    except BaseException:
        for memory in memories:
            memory.finish_copies()
        raise
    return results


def _advanced(shard: Shard, reply: Sequence[Array]) -> Step | Runs:
    """The next step, or the runs at the end."""
    try:
        return shard.send(reply) if reply else next(shard)
    except StopIteration as end:
        runs: Runs = end.value
        return runs


def _by_exchanges(shard: Shard, rank: int, memory: Memory) -> Shard:
    """The same steps, but for swaps, which are exchanges of the rank's memory: communicators have no other."""
    reply: Sequence[Array] = ()
    while True:
        step = _advanced(shard, reply)
        if isinstance(step, list):
            return step
        if not isinstance(step, Swap):
            reply = yield step
            continue
        pieces, counts = [*step.pieces], [*step.counts]
        stays, pieces[rank], counts[rank] = pieces[rank], pieces[rank][:0], 0
        sent = memory.from_host(np.concatenate(pieces))
        room = memory.empty(sum(counts), sent.dtype)
        yield Exchange(in_parts(sent, [piece.size for piece in pieces]), in_parts(room, counts))
        come = in_parts(memory.to_host(room), counts)
        reply = (*come[:rank], stays, *come[rank + 1 :])


def _exchange(steps: Sequence[Exchange], memories: Sequence[Memory]) -> None:
    """Starts all copies concurrently, each after the work of both ranks so far, then has streams wait for them."""
    marks = [memory.mark() for memory in memories] if steps else []
    copied: list[tuple[int, int, Mark]] = []
    for receiver, wanted in enumerate(steps):
        for sender, offered in enumerate(steps):
            target, source = wanted.received[sender], offered.pieces[receiver]
            if len(source):
                mark = memories[receiver].copy(target, source, (marks[receiver], marks[sender]))
                copied.append((receiver, sender, mark))
    for receiver, sender, mark in copied:
        come, gone = steps[receiver].marks, steps[sender].marks
        if come is None or gone is None:
            memories[receiver].wait(mark)
            memories[sender].wait(mark)  # before the sent memory is reused
        else:
            come.arrived.append(mark)
            gone.left.append(mark)
