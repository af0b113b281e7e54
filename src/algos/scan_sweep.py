"""Prefix scan in one sweep over memory, for targets whose workgroups all make progress.

Every workgroup fetches its tile, publishes what it comes to, and looks back at what the tiles before it came to. So
that a sum of floats does not depend on who is faster, tiles are always combined in the same way: as many as a workgroup
has invocations make a block, whose last tile publishes what all of the block came to. A tile waits for the tiles of its
block before it, and for the blocks before that. Tiles are numbered in the order in which workgroups start, so nobody
waits for one that has not started.
"""

from __future__ import annotations

from typing import TypeVar

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.carriers import Carrier, receive, send
from ..types.indices import ScanKind
from ..types.intrinsics import dynamic_range, minimum
from ..types.invocation import Invocation
from ..types.memory import Registers, Storage, Workgroup
from ..types.monoids import Monoid
from ..types.params import ScanPolicy, SweptScanParams
from ..types.scalars import U32
from .scan_tile import load_tile, scan_workgroup, store_tile
from .sweep_state import sweep_clear

E = TypeVar("E")
S = TypeVar("S")


@kernel
def scan_sweep(
    cx: Invocation, monoid: Monoid[E, S], carrier: Carrier[S], data: Storage[E], tile: Workgroup[S],
    shared: Workgroup[S], number: Workgroup[U32], words: Storage[U32], results: Storage[S], params: SweptScanParams,
    policy: ScanPolicy, kind: ScanKind,
) -> None:  # fmt: skip
    """Scans one tile, from the state of all tiles before it."""
    if cx.local_id == 0:
        number[0] = words.atomic_add(params.ticket, U32(1))
    index = cx.load_for_all(number, 0)
    first = index * policy.tile
    count = params.num_elements - first
    mine: Registers[S] = Registers(monoid.state, policy.items)
    total = load_tile(cx, monoid, data, first, count, tile, mine, policy)
    found = scan_workgroup(cx, monoid, shared, total, policy)
    if cx.local_id == 0:
        send(carrier, words, index, params.cells, found.total)
    cx.barrier()
    before = look_back(cx, monoid, carrier, words, shared, index, found.total, params, policy)
    store_tile(cx, monoid, results, first, count, tile, mine, monoid.combine(before, found.before), kind, policy)


def look_back(
    cx: Invocation, monoid: Monoid[E, S], carrier: Carrier[S], words: Storage[U32], shared: Workgroup[S], index: U32,
    own: S, params: SweptScanParams, policy: ScanPolicy,
) -> S:  # fmt: skip
    """What all tiles before this one come to. `own` is what this one does."""
    block = index // cx.group_size
    place = index - block * cx.group_size
    mine = monoid.identity()
    if cx.local_id < place:
        mine = receive(carrier, words, index - place + cx.local_id, params.cells)
    in_block = scan_workgroup(cx, monoid, shared, mine, policy).total
    if place == cx.group_size - 1 and cx.local_id == 0:
        send(carrier, words, params.first_block + block, params.cells, monoid.combine(in_block, own))
    cx.barrier()
    each = (block + cx.group_size - 1) // cx.group_size
    first = cx.local_id * each
    mine = monoid.identity()
    for i in dynamic_range(first, minimum(first + each, block)):
        mine = monoid.combine(mine, receive(carrier, words, params.first_block + i, params.cells))
    return monoid.combine(scan_workgroup(cx, monoid, shared, mine, policy).total, in_block)


def scan_in_one_sweep(
    monoid: Monoid[E, S], carrier: Carrier[S], length: int, kind: ScanKind, policy: ScanPolicy
) -> Schedule:
    """Scans `data` into `results`."""
    tiles = -(-length // policy.tile)
    cells = tiles + tiles // policy.group_size  # of the tiles, then of the blocks that are whole
    data = Buffer("data", monoid.element, length, Role.INPUT)
    results = Buffer("results", monoid.state, length, Role.OUTPUT)
    words = Buffer("words", U32, cells * carrier.pieces + 1, Role.SCRATCH)
    if length == 0:
        return Schedule((data, words, results), ())
    params = SweptScanParams(U32(length), U32(cells), U32(tiles), U32(cells * carrier.pieces))
    clearing = Grid(-(-words.count // policy.group_size), policy.group_size)
    sweep = scan_sweep.launch(
        Grid(tiles, policy.group_size), monoid, carrier, data, Workgroup(monoid.state, policy.tile),
        Workgroup(monoid.state, policy.group_size), Workgroup(U32, 1), words, results, params, policy, kind,
    )  # fmt: skip
    return Schedule((data, words, results), (sweep_clear.launch(clearing, words, U32(0)), sweep))
