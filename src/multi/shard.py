"""Distributed sort of one rank: local sort, exact splitters, all-to-all exchange, merge.

A rank is a generator (coroutine) that yields communication steps and receives their results. So one thread can drive
all ranks of a process in turn, a communicator can drive one rank of many processes, and tests any number. Device work
is asynchronous: it continues while other ranks are driven.

Elements are ordered by (word, rank, position), so sizes are exact whatever the data, and the sort is stable.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import attrs
import numpy as np

from ..external.agreed_cuts import Gather, agreed_cuts
from ..external.cuts import Array
from .memory import Mark, Memory
from .work import Columns, Work


@attrs.frozen
class Started:
    """A step without communication: device work is queued, and the next rank can be driven."""


@attrs.frozen(eq=False)
class Marks:
    """Events of an exchange: pieces received, and pieces sent. Empty if the rank's stream waits for them anyway."""

    arrived: list[Mark] = attrs.field(factory=list[Any])
    left: list[Mark] = attrs.field(factory=list[Any])


@attrs.frozen(eq=False)
class Exchange:
    """An all-to-all exchange: sends a piece to every rank, and receives one from each into given memory.

    The rank's stream waits for it. With `marks` it does not: the rank waits for these events itself.
    """

    pieces: tuple[Array, ...]
    received: tuple[Array, ...]
    marks: Marks | None = None


Step: TypeAlias = Started | Gather | Exchange
Runs: TypeAlias = list[Columns]
# Sent: the result of a Gather. Returned: sorted runs, whose merge is the rank's result, and waits for no other rank.
Shard: TypeAlias = Generator[Step, Sequence[Array], Runs]


def sort_shard(
    work: Work, memory: Memory, given: Columns, rank: int, lengths: Sequence[int], sizes: Sequence[int]
) -> Shard:
    """One rank's generator: ranks have `lengths` elements before, and `sizes` after."""
    held = work.sorted(given, sum(lengths[:rank]))
    yield Started()
    if len(lengths) == 1:
        return [held]

    def words(parts: list[slice]) -> Array:
        return work.words(np.concatenate([memory.to_host(held[0][part]) for part in parts]))

    cuts = yield from agreed_cuts(words, rank, lengths, sizes)
    counts = (cuts[rank + 1] - cuts[rank]).tolist()
    counts[rank] = 0  # the rank's own slice is merged in place, not sent
    columns: list[list[Array]] = []
    for column in held:
        pieces = [column[start:stop] for start, stop in pairwise(cuts[:, rank].tolist())]
        whole = memory.empty(sum(counts), column.dtype)
        room = [whole[start:stop] for start, stop in pairwise(accumulate(counts, initial=0))]
        stays, pieces[rank] = pieces[rank], room[rank]
        yield Exchange(tuple(pieces), tuple(room))
        room[rank] = stays
        columns.append(room)
    return list(zip(*columns, strict=True))


def merged(work: Work, runs: Runs) -> Columns:
    """Merges neighbouring runs pairwise, so that equal elements keep the order of ranks. Empties the list, so that runs
    are freed as soon as they are merged."""
    while len(runs) > 1:
        pairs = [runs[at : at + 2] for at in range(0, len(runs), 2)]
        runs[:] = [pair[0] if len(pair) == 1 else work.merged(*pair) for pair in pairs]
    return runs.pop()
