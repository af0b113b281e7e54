"""A mistake that a GPU may hide for months, and the simulator's report of it."""

from __future__ import annotations

import numpy as np

from gpusort import target
from gpusort.kernel.language import U32, Buffer, Grid, Invocation, Role, Schedule, Storage, Workgroup, kernel
from gpusort.types.errors import DataRaceError


@kernel
def reverse(cx: Invocation, data: Storage[U32], tile: Workgroup[U32]) -> None:
    """Turns a tile around, but does not wait for it to be written."""
    tile[cx.local_id] = data[cx.local_id]
    data[cx.local_id] = tile[cx.group_size - 1 - cx.local_id]


def report() -> str:
    data = Buffer("data", U32, 64, Role.INOUT)
    schedule = Schedule((data,), (reverse.launch(Grid(1, 64), data, Workgroup(U32, 64)),))
    try:
        target("simulator").run(schedule, {"data": np.arange(64, dtype=np.uint32)})
    except (DataRaceError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing found"


if __name__ == "__main__":
    print(report())
