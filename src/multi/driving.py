"""Drivers of ranks' generators: a single thread for all ranks of a process, or a communicator for one rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..external.agreed_cuts import Gather
from ..external.cuts import Array
from .agreement import gathered, tell_failure
from .communicators import Communicator
from .memory import Mark, Memory
from .shard import Exchange, Runs, Shard, Step

_NOTHING = np.empty(0, np.uint8)


def drive_one(shard: Shard, communicator: Communicator) -> Runs:
    """Drives the rank of this process by a communicator. All ranks are there before each exchange, so that one that
    fails on the way, or runs out of memory, is at a gather, where it can tell the others."""
    reply: Sequence[Array] = ()
    while True:
        try:
            step = shard.send(reply) if reply else next(shard)
        except StopIteration as end:
            runs: Runs = end.value
            return runs
        except BaseException as error:
            tell_failure(communicator, error)
            raise
        reply = ()
        if isinstance(step, Gather):
            reply = gathered(communicator, step.values)
        elif isinstance(step, Exchange):
            gathered(communicator, _NOTHING)
            communicator.exchange(step.pieces, step.received)


def drive_all(shards: Sequence[Shard], memories: Sequence[Memory]) -> list[Runs]:
    """Drives all ranks of this process, step by step. At each step all ranks yield the same kind of step."""
    results: list[Runs] = []
    replies: list[Sequence[Array]] = [()] * len(shards)
    try:
        while len(results) < len(shards):
            steps: list[Step] = []
            for shard, memory, reply in zip(shards, memories, replies, strict=True):
                with memory.scope():
                    try:
                        steps.append(shard.send(reply) if reply else next(shard))
                    except StopIteration as end:
                        results.append(end.value)
            replies = [[step.values for step in steps if isinstance(step, Gather)]] * len(shards)
            _exchange([step for step in steps if isinstance(step, Exchange)], memories)
    except BaseException:
        for memory in memories:
            memory.finish_copies()
        raise
    return results


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
