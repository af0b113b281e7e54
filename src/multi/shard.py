"""One rank's part of a sort over several devices: sort what is there, agree on exact cuts, exchange slices, merge.

A rank is a generator. It yields what it needs of the others, and is sent what comes of that; so one thread can drive
all ranks of a process in turn, a communicator one rank of many processes, and a test as many as it likes. What a rank
does not wait for goes on, on its device's stream, while the others are driven.

Elements are ordered by (word, rank, position), so sizes are what was asked for whatever the data, and all is stable.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import attrs
import numpy as np

from ..external.agreed_cuts import Gather, HostArray, agreed_cuts
from .memory import DeviceArray, Mark, Memory
from .work import Columns, Work


@attrs.frozen
class Started:
    """Work goes on without the host: time to start that of the next rank."""


@attrs.frozen(eq=False)
class Marks:
    """When pieces have come, and when pieces have gone: none where a rank's work waits for them in any case."""

    arrived: list[Mark] = attrs.field(factory=list[Any])
    left: list[Mark] = attrs.field(factory=list[Any])


@attrs.frozen(eq=False)
class Exchange:
    """A piece goes to every other rank, and one comes from each into memory that is there for it. What the rank does
    next waits for both; but with `marks` only what the rank makes wait for them."""

    pieces: tuple[DeviceArray, ...]
    received: tuple[DeviceArray, ...]
    marks: Marks | None = None


Step: TypeAlias = Started | Gather | Exchange
Shard: TypeAlias = Generator[Step, Sequence[HostArray], Columns]  # what is sent back is for Gather


def sort_shard(
    work: Work, memory: Memory, given: Columns, rank: int, lengths: Sequence[int], sizes: Sequence[int]
) -> Shard:
    """The rank's elements of all, in order. Each rank has so many, and gets so many."""
    held = work.sorted(given, sum(lengths[:rank]))
    yield Started()
    if len(lengths) == 1:
        return held

    def words(parts: list[slice]) -> HostArray:
        return work.words(np.concatenate([memory.on_host(held[0][part]) for part in parts]))

    cuts = yield from agreed_cuts(words, rank, lengths, sizes)
    counts = (cuts[rank + 1] - cuts[rank]).tolist()
    counts[rank] = 0  # what stays is merged from where it lies
    runs: list[tuple[DeviceArray, ...]] = []
    for column in held:
        pieces = [column[start:stop] for start, stop in pairwise(cuts[:, rank].tolist())]
        whole = memory.empty(sum(counts), column.dtype)
        room = [whole[start:stop] for start, stop in pairwise(accumulate(counts, initial=0))]
        stays, pieces[rank] = pieces[rank], room[rank]
        yield Exchange(tuple(pieces), tuple(room))
        room[rank] = stays
        runs.append(tuple(room))
    return _merged(work, list(zip(*runs, strict=True)))


def _merged(work: Work, runs: list[Columns]) -> Columns:
    """Neighbours first, so that equal elements keep the order of their ranks."""
    while len(runs) > 1:
        pairs = [runs[at : at + 2] for at in range(0, len(runs), 2)]
        runs = [pair[0] if len(pair) == 1 else work.merged(pair[0], pair[1]) for pair in pairs]
    return runs[0]
