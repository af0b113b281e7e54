"""A software pipeline over pieces: the next is read and the last is written while others are sorted, in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar

Loaded = TypeVar("Loaded")
Worked = TypeVar("Worked")
Result = TypeVar("Result")
P = ParamSpec("P")

SLOTS = 2  # double buffering: the slots of inputs, and of outputs, with one worker


def slots_for(workers: int) -> int:
    """The slots of inputs, and of outputs: one for each worker, and one being read or written."""
    return workers + 1


class _InlineExecutor(Executor):
    """An executor that runs calls at once in the caller's thread."""

    def submit(self, fn: Callable[P, Result], /, *args: P.args, **kwargs: P.kwargs) -> Future[Result]:
        done: Future[Result] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def run_pipeline(
    pieces: Sequence[int],
    load: Callable[[int, int], Loaded],
    work: Callable[[int, Loaded, int], Worked],
    keep: Callable[[int, Worked, int], Any],
    worked: Callable[[int], object] = lambda _: None,
    workers: int = 1,
) -> None:
    """Runs `load`, `work` and `keep` on each piece, overlapped. Slots are reused round-robin, which bounds memory.

    A single worker is the caller's thread; several are threads, and pieces are kept in order nevertheless. `worked` is
    called for each piece, in order, in the caller's thread. An exception is raised once all threads have stopped.
    """
    slots = slots_for(workers)
    with (
        ThreadPoolExecutor(1) as reader,
        ThreadPoolExecutor(1) as writer,
        ThreadPoolExecutor(workers) if workers > 1 else nullcontext(_InlineExecutor()) as pool,
    ):
        writes: list[Future[Any] | None] = [None] * slots
        under_way: deque[tuple[int, int, Future[Future[Any]]]] = deque()

        def make(piece: int, loaded: Loaded, slot: int, before: Future[Future[Any]] | None) -> Future[Any]:
            made = work(piece, loaded, slot)
            if before is not None:
                before.result()
            return writer.submit(keep, piece, made, slot)

        def wait_for_oldest() -> None:
            piece, slot, made = under_way.popleft()
            writes[slot] = made.result()
            worked(piece)

        ahead: Future[Loaded] | None = reader.submit(load, pieces[0], 0) if pieces else None
        for turn, piece in enumerate(pieces):
            slot = turn % slots
            assert ahead is not None  # each piece was requested one turn before
            loaded = ahead.result()
            while len(under_way) >= workers:
                wait_for_oldest()
            later = pieces[turn + 1 : turn + 2]
            ahead = reader.submit(load, later[0], (turn + 1) % slots) if later else None
            write = writes[slot]
            if write is not None:
                write.result()
            before = under_way[-1][2] if under_way else None
            under_way.append((piece, slot, pool.submit(make, piece, loaded, slot, before)))
            while under_way and under_way[0][2].done():
                wait_for_oldest()
        while under_way:
            wait_for_oldest()
        for turn in range(len(pieces), len(pieces) + slots):  # in order, so that the first failure is raised
            write = writes[turn % slots]
            if write is not None:
                write.result()
