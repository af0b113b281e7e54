"""A software pipeline over pieces: the next is read and the last is written while others are sorted, in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from .crew import Call, Crew

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
    workers, slots = max(1, workers), slots_for(max(1, workers))
    writes: list[Call[Any] | None] = [None] * slots
    under_way: deque[tuple[int, int, Call[Call[Any]]]] = deque()

    def make(piece: int, loaded: Loaded, slot: int, before: Call[Call[Any]] | None) -> Call[Any]:
        made = work(piece, loaded, slot)
        if before is not None:
            before.result()
        return writer.submit(partial(keep, piece, made, slot))

    def wait_for_oldest() -> None:
        piece, slot, made = under_way.popleft()
        writes[slot] = made.result()
        worked(piece)

    def run() -> None:
        loads: Call[Loaded] | None = reader.submit(partial(load, pieces[0], 0)) if pieces else None
        for turn, piece in enumerate(pieces):
            slot = turn % slots
            assert loads is not None  # each piece was requested one turn before
            loaded = loads.result()
            while len(under_way) >= workers:
                wait_for_oldest()
            later = pieces[turn + 1 : turn + 2]
            loads = reader.submit(partial(load, later[0], (turn + 1) % slots)) if later else None
            write = writes[slot]
            if write is not None:
                write.result()
            before = under_way[-1][2] if under_way else None
            under_way.append((piece, slot, pool.submit(partial(make, piece, loaded, slot, before))))
            while under_way and under_way[0][2].is_done:
                wait_for_oldest()
        while under_way:
            wait_for_oldest()
        for turn in range(len(pieces), len(pieces) + slots):  # in order, so that the first failure is raised
            write = writes[turn % slots]
            if write is not None:
                write.result()

    try:
        try:
            try:
                run()
            finally:
                _close(reader, pool, writer)
        finally:
            _close(reader, pool, writer)  # an exception raised as a function begins skips all of it
    finally:
        _close(reader, pool, writer)


def ahead(values: Iterator[T]) -> Generator[T]:
    """The same values, each made by a thread while the one before is used. To be closed if it is left early."""
    crew, end = Crew(1), object()
    try:
        try:
            call = crew.submit(partial(next, values, end))
            while (value := call.result()) is not end:
                call = crew.submit(partial(next, values, end))
                yield cast(T, value)
        finally:
            crew.close()
    finally:
        crew.close()  # an exception raised as a function begins skips all of it


def _close(*crews: Crew) -> None:
    """Waits for the threads: of two that hand on to one another, for the one that does so first."""
    if crews:
        try:
            crews[0].close()
        finally:
            _close(*crews[1:])
