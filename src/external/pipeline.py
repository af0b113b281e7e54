"""Reading the next piece, sorting this one and writing the last, all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Loaded = TypeVar("Loaded")
Made = TypeVar("Made")

SLOTS = 2  # of each kind of memory: one is in use, the other on its way


def side_by_side(
    pieces: Sequence[int],
    load: Callable[[int, int], Loaded],
    work: Callable[[int, Loaded, int], Made],
    keep: Callable[[int, Made, int], None],
) -> None:
    """Each piece is loaded into a slot, worked on into another, and kept from there. The work is done by the caller's
    thread. Whatever is raised comes out once nobody is at work any more."""
    if not pieces:
        return
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as writer:
        writes: list[Future[None] | None] = [None] * SLOTS
        ahead: Future[Loaded] | None = reader.submit(load, pieces[0], 0)
        for turn, piece in enumerate(pieces):
            slot = turn % SLOTS
            assert ahead is not None  # for every piece one is loaded
            loaded = ahead.result()
            later = pieces[turn + 1 : turn + 2]
            ahead = reader.submit(load, later[0], (turn + 1) % SLOTS) if later else None
            earlier = writes[slot]
            if earlier is not None:
                earlier.result()
            writes[slot] = writer.submit(keep, piece, work(piece, loaded, slot), slot)
        for write in writes:
            if write is not None:
                write.result()
