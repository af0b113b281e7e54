"""Interrupts of one of several ranks: no rank is left in a collective call for good."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs
import numpy as np
import pytest

from gpusort import multi
from gpusort.multi.communicators import Communicator
from tests.reference import Array
from tests.test_multi import Threads

pytestmark = pytest.mark.skipif(os.name == "nt", reason="its signals come otherwise")
RANKS = 2
T = TypeVar("T")


@attrs.frozen
class Interrupted:
    """A communicator that sees to an interrupt in the midst of one of its calls: before the others have come to it, and
    when they have gone."""

    within: Communicator
    number: int  # of the call
    times: int = 1
    _calls: list[str] = attrs.field(factory=list[str])

    @property
    def rank(self) -> int:
        return self.within.rank

    @property
    def size(self) -> int:
        return self.within.size

    def gather(self, values: Array, /) -> Sequence[Array]:
        return self._made("gather", lambda: self.within.gather(values))

    def exchange(self, pieces: Sequence[Array], received: Sequence[Array], /) -> None:
        self._made("exchange", lambda: self.within.exchange(pieces, received))

    def _made(self, name: str, call: Callable[[], T]) -> T:
        self._calls.append(name)
        for _ in range(self.times if len(self._calls) == self.number else 0):
            signal.raise_signal(signal.SIGINT)
        return call()


def outcomes(interrupted: Callable[[Communicator], Any], other: Callable[[Communicator], Any]) -> list[Any]:
    """What the rank of the main thread and the other one return or raise. Nobody waits for ever."""
    board: list[Any] = [None] * RANKS
    barrier = threading.Barrier(RANKS, timeout=20)
    found: list[Any] = [None] * RANKS

    def run(rank: int, work: Callable[[Communicator], Any]) -> None:
        try:
            found[rank] = work(Threads(rank, board, barrier))
        except BaseException as error:
            found[rank] = error

    thread = threading.Thread(target=run, args=(1, other))
    thread.start()
    run(0, interrupted)
    thread.join()
    return found


def arrays(rank: int) -> tuple[Array, Array]:
    x = np.random.default_rng(rank).standard_normal(500 + rank)
    return x, np.arange(x.size)


def test_an_interrupt_in_a_collective_call_is_told_to_the_others() -> None:
    handler = signal.getsignal(signal.SIGINT)
    whole = np.concatenate([arrays(rank)[0] for rank in range(RANKS)])
    expected, told = np.sort(whole)[500:], list[str]()
    while not told or told[-1] != "ended":
        number, calls = len(told) + 1, list[str]()
        mine, other = outcomes(
            lambda comm: multi.sort_by_key_shard(*arrays(0), Interrupted(comm, number, 1, calls)),  # noqa: B023 - called at once
            lambda comm: multi.sort_by_key_shard(*arrays(1), comm),
        )
        assert signal.getsignal(signal.SIGINT) is handler
        if len(calls) < number:
            assert not isinstance(mine, BaseException)
            told.append("ended")
            continue
        assert type(mine) is KeyboardInterrupt
        told.append(type(other).__name__)
        if isinstance(other, BaseException):
            assert str(other) == "communicator: rank 0 has failed: KeyboardInterrupt: "
        else:
            np.testing.assert_array_equal(other[0], expected)
    # Behind the last exchange, and behind the gather before it, the others need this rank no more.
    assert {*told[:-3]} == {"RankFailedError"}
    assert told[-3:] == ["tuple", "tuple", "ended"]


def test_a_second_interrupt_is_raised_at_once() -> None:
    """Where another process is gone, its collective call never ends."""

    @attrs.frozen
    class Alone:
        rank: int = 0
        size: int = 2

        def gather(self, values: Array, /) -> Sequence[Array]:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            gathered.append(values)
            raise AssertionError("nobody is there")

        def exchange(self, pieces: Sequence[Array], received: Sequence[Array], /) -> None:
            raise AssertionError("nobody is there")

    handler, gathered = signal.getsignal(signal.SIGINT), list[Array]()
    with pytest.raises(KeyboardInterrupt):
        multi.sort_shard(np.zeros(9), Alone())
    assert not gathered
    assert signal.getsignal(signal.SIGINT) is handler


def test_callers_that_ignore_interrupts_and_handlers_that_raise_nothing() -> None:
    came: list[int] = []

    def note(number: int, frame: object) -> None:
        came.append(number)

    x = np.array([2.0, 1.0])
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.SIG_IGN, note):
            signal.signal(signal.SIGINT, handler)
            mine, _ = outcomes(
                lambda comm: multi.sort_shard(x, Interrupted(comm, 2)), lambda comm: multi.sort_shard(x, comm)
            )
            assert mine.tolist() == [1, 1]
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [signal.SIGINT]


def test_a_handler_that_is_set_meanwhile_stays() -> None:
    """As by what else the process does, in a communicator's call."""

    def note(number: int, frame: object) -> None:
        raise AssertionError("nobody has interrupted")

    @attrs.frozen
    class Alone:
        rank: int = 0
        size: int = 1

        def gather(self, values: Array, /) -> Sequence[Array]:
            signal.signal(signal.SIGINT, note)
            return [values]

        def exchange(self, pieces: Sequence[Array], received: Sequence[Array], /) -> None:
            raise AssertionError("nobody else is there")

    before = signal.getsignal(signal.SIGINT)
    try:
        assert multi.sort_shard(np.array([2.0, 1.0]), Alone()).tolist() == [1, 2]
        assert signal.getsignal(signal.SIGINT) is note
    finally:
        signal.signal(signal.SIGINT, before)
