"""A kernel of one's own: the histogram of bytes, counted in workgroup memory, on any target."""

from __future__ import annotations

import numpy as np

from gpusort import target
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import U8, U32


@kernel
def histogram(cx: Invocation, data: Storage[U8], counts: Workgroup[U32], totals: Storage[U32]) -> None:
    """Counts bytes; `totals` starts at zero."""
    for i in dynamic_range(cx.local_id, counts.length, cx.group_size):
        counts[i] = U32(0)
    cx.barrier()
    for i in dynamic_range(cx.global_id, data.length, cx.num_groups * cx.group_size):
        counts.atomic_add(U32(data[i]), U32(1))
    cx.barrier()
    for i in dynamic_range(cx.local_id, counts.length, cx.group_size):
        totals.atomic_add(i, counts[i])


def count_bytes(
    data: np.ndarray[tuple[int], np.dtype[np.uint8]], where: str
) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    totals = np.zeros(256, np.uint32)
    buffers = Buffer("data", U8, len(data), Role.INPUT), Buffer("totals", U32, 256, Role.INOUT)
    launch = histogram.launch(Grid(groups=4, group_size=64), buffers[0], Workgroup(U32, 256), buffers[1])
    target(where).run(Schedule(buffers, (launch,)), {"data": data, "totals": totals})
    return totals


def main(where: str = "cpu") -> None:
    data = np.random.default_rng(1).integers(0, 256, 5000, dtype=np.uint8)
    found = count_bytes(data, where)
    print(found[:8], "…")
    assert found.tolist() == np.bincount(data, minlength=256).tolist()


if __name__ == "__main__":
    main()
