"""Kernels that are wrong, each in one way, and what is said of them."""

from __future__ import annotations

import numpy as np

from gpusort import target
from gpusort.kernel.language import U32, Buffer, Grid, Invocation, Launch, Role, Schedule, Storage, Workgroup, kernel


@kernel
def shift(cx: Invocation, data: Storage[U32]) -> None:
    """Takes from its neighbour; the last invocation has none."""
    data[cx.global_id] = data[cx.global_id + 1]


@kernel
def unwritten(cx: Invocation, data: Storage[U32], tile: Workgroup[U32]) -> None:
    """Counts in workgroup memory, which does not start at zero."""
    tile[cx.local_id] = tile[cx.local_id] + data[cx.local_id]


@kernel
def divergent(cx: Invocation, data: Storage[U32]) -> None:
    """Lets half of the workgroup wait for the other half, which never comes."""
    if cx.local_id < 32:
        cx.barrier()
    data[cx.local_id] = cx.local_id


@kernel
def chained(cx: Invocation, data: Storage[U32]) -> None:
    """Says what the kernel language has no meaning for."""
    if 10 < data[cx.local_id] < 20:
        data[cx.local_id] = U32(0)


DATA = Buffer("data", U32, 64, Role.INOUT)
LAUNCHES: tuple[Launch, ...] = (
    shift.launch(Grid(1, 64), DATA),
    unwritten.launch(Grid(1, 64), DATA, Workgroup(U32, 64)),
    divergent.launch(Grid(1, 64), DATA),
    chained.launch(Grid(1, 64), DATA),
    shift.launch(Grid(1, 4096), DATA),
)


def report(launch: Launch) -> str:
    """What the simulator says of a launch."""
    try:
        target("simulator").run(Schedule((DATA,), (launch,)), {"data": np.arange(64, dtype=np.uint32)})
    except (TypeError, IndexError, RuntimeError) as error:  # the standard bases of gpusort's own classes
        return f"{type(error).__name__}: {error}"
    return "nothing found"


if __name__ == "__main__":
    for mistake in LAUNCHES:
        print(report(mistake), end="\n\n")
