"""Reading the next piece, sorting some and writing the last, all at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar

Loaded = TypeVar("Loaded")
Made = TypeVar("Made")
Result = TypeVar("Result")
P = ParamSpec("P")

SLOTS = 2  # of each kind of memory, where one piece is sorted at a time: one is in use, the other on its way


def slots_for(workers: int) -> int:
    """Of each kind of memory: one for every worker, and one on its way."""
    return workers + 1


class _Here(Executor):
    """Does at once, in the caller's thread, what it is handed."""

    def submit(self, fn: Callable[P, Result], /, *args: P.args, **kwargs: P.kwargs) -> Future[Result]:
        done: Future[Result] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def side_by_side(
    pieces: Sequence[int],
    load: Callable[[int, int], Loaded],
    work: Callable[[int, Loaded, int], Made],
    keep: Callable[[int, Made, int], Any],
    worked: Callable[[int], object] = lambda _: None,
    workers: int = 1,
) -> None:
    """Each piece is loaded into a slot, worked on into another, and kept from there.

    One worker is the caller's thread; several are threads of their own, and pieces are kept in order nevertheless.
    `worked` is told of each piece in the caller's thread, in order. Whatever is raised comes out once nobody is at work
    any more.
    """
    slots = slots_for(workers)
    with (
        ThreadPoolExecutor(1) as reader,
        ThreadPoolExecutor(1) as writer,
        ThreadPoolExecutor(workers) if workers > 1 else nullcontext(_Here()) as crew,
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
            assert ahead is not None  # for every piece one is loaded
            loaded = ahead.result()
            while len(under_way) >= workers:
                wait_for_oldest()
            later = pieces[turn + 1 : turn + 2]
            ahead = reader.submit(load, later[0], (turn + 1) % slots) if later else None
            write = writes[slot]
            if write is not None:
                write.result()
            before = under_way[-1][2] if under_way else None
            under_way.append((piece, slot, crew.submit(make, piece, loaded, slot, before)))
            while under_way and under_way[0][2].done():
                wait_for_oldest()
        while under_way:
            wait_for_oldest()
        for turn in range(len(pieces), len(pieces) + slots):  # the first that failed is the one to tell of
            write = writes[turn % slots]
            if write is not None:
                write.result()
