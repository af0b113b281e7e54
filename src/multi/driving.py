"""Drivers of ranks' generators: a single thread for all ranks of a process, or a communicator for one rank, in whose
collective calls interrupts wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import numpy as np

from ..external.cuts import Array
from .communicators import Communicator, gathered, tell_failure
from .memory import Mark, Memory
from .shard import Exchange, Gather, Runs, Shard, Step, Swap, in_parts

Handler = Callable[[int, FrameType | None], Any]  # what it returns, Python drops


class Interrupts:
    """Of SIGINT, as the caller's handler raises them: from `held` on only within `let_in`, but for a second one.

    A rank that Ctrl-C took out of the midst of a collective call would leave the others in it for good: kernels of NCCL
    wait on the device, and a process that waits for them can only be killed. So an interrupt is raised between such
    calls, where the rank can still tell the others. A second one is raised at once, for it may be that another process
    is gone, and then the call never ends. The communicator is of no use afterwards.
    """

    def __init__(self) -> None:
        self._handler: Handler | None = None
        self._waiting: list[int] = []
        self._are_let_in = False

    @contextmanager
    def held(self) -> Generator[None]:
        """Raises at its end what waits then."""
        handler = signal.getsignal(signal.SIGINT)
        # Handlers run in the main thread, which alone may set them. One that is no function of Python's raises nothing.
        if threading.current_thread() is not threading.main_thread() or not callable(handler):
            yield
            return
        self._handler = handler
        own = self._come
        signal.signal(signal.SIGINT, own)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGINT) is own:
                signal.signal(signal.SIGINT, handler)
            self._raise_waiting()

    @contextmanager
    def let_in(self) -> Generator[None]:
        self._are_let_in = True
        try:
            self._raise_waiting()
            yield
        finally:
            self._are_let_in = False

    def _come(self, number: int, frame: FrameType | None) -> None:
        if self._handler is not None and (self._are_let_in or self._waiting):
            self._handler(number, frame)
        else:
            self._waiting.append(number)

    def _raise_waiting(self) -> None:
        if self._waiting and self._handler is not None:
            self._handler(self._waiting.pop(), None)


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
