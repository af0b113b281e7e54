"""A software pipeline over pieces: the next is read and the last is written while others are sorted, in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from ..types.calls import Call
from .crew import Crew

Loaded = TypeVar("Loaded")
Worked = TypeVar("Worked")
T = TypeVar("T")

SLOTS = 2  # double buffering: the slots of inputs, and of outputs, with one worker


def slots_for(workers: int) -> int:
    """The slots of inputs, and of outputs: one for each worker, and one being read or written."""
    return workers + 1


def run_pipeline(
    pieces: Sequence[int],
    load: Callable[[int, int], Loaded],
    work: Callable[[int, Loaded, int], Worked],
    keep: Callable[[int, Worked, int], Any],
    worked: Callable[[int], object] = lambda _: None,
    workers: int = 1,
) -> None:
    """Runs `load`, `work` and `keep` on each piece, overlapped. Slots are reused round-robin, which bounds memory. A
    single worker is the caller's thread; several are threads, and pieces are kept in order nevertheless. `worked` is
    called for each piece, in order, in the caller's thread. An exception is raised once all threads have stopped."""
    reader, writer, pool = Crew(1), Crew(1), Crew(workers if workers > 1 else 0)
    slots = slots_for(workers)
    under_way: deque[tuple[int, Call[Call[Any]]]] = deque()
    writes: list[Call[Any]] = []  # one for each piece

    def make(piece: int, loaded: Loaded, slot: int, before: Call[Call[Any]] | None) -> Call[Any]:
        made = work(piece, loaded, slot)
        if before is not None:
            before.result()
        return writer.submit(partial(keep, piece, made, slot))

    def wait_for_oldest() -> None:
        piece, made = under_way.popleft()
        writes.append(made.result())
        worked(piece)

    # Of two that hand on to one another, the one that does so first is to end first.
    with writer, pool, reader, writer, pool, reader, writer, pool, reader:
        loads = [reader.submit(partial(load, first, 0)) for first in pieces[:1]]
        for turn, piece in enumerate(pieces):
            slot = turn % slots
            loaded = loads.pop().result()
            while len(under_way) >= workers:
                wait_for_oldest()
            loads += [reader.submit(partial(load, later, (turn + 1) % slots)) for later in pieces[turn + 1 : turn + 2]]
            if turn >= slots:
                writes[turn - slots].result()
            before = under_way[-1][1] if under_way else None
            under_way.append((piece, pool.submit(partial(make, piece, loaded, slot, before))))
            while under_way and under_way[0][1].is_done:
                wait_for_oldest()
        while under_way:
            wait_for_oldest()
        for write in writes[-slots:]:  # in order, so that the first failure is raised
            write.result()


def ahead(values: Iterator[T]) -> Generator[T]:
    """The same values, each made by a thread while the one before is used. To be closed if it is left early."""
    crew, end = Crew(1), object()
    with crew, crew:
        call = crew.submit(partial(next, values, end))
        while (value := call.result()) is not end:
            call = crew.submit(partial(next, values, end))
            yield cast(T, value)
