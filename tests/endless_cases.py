"""Kernels that never end, if they are told so, in a process of their own: what cannot be stopped would take ours along.

Run as `python -m tests.endless_cases TARGET KERNEL`. Says "begins" once all is compiled, and then what became of it.
"""

from __future__ import annotations

import signal
import sys

import numpy as np

import gpusort
from gpusort.kernel.kernel import kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage, Workgroup
from gpusort.types.scalars import U32


@kernel
def spinning(cx: Invocation, data: Storage[U32], shared: Workgroup[U32]) -> None:
    """Each invocation by itself, behind a barrier."""
    cx.barrier()
    total = U32(0)
    while data[0] == 1:
        total = total + 1
    data[cx.global_id + 1] = total


@kernel
def counting(cx: Invocation, data: Storage[U32], shared: Workgroup[U32]) -> None:
    """Loops that end, in some centuries."""
    total = U32(0)
    for i in dynamic_range(U32(0), data[0] * 0xFFFFFFFF):
        for j in dynamic_range(U32(0), data[0] * 0xFFFFFFFF):
            total = total ^ (i * j)
    data[cx.global_id + 1] = total


@kernel
def meeting(cx: Invocation, data: Storage[U32], shared: Workgroup[U32]) -> None:
    """All together, from barrier to barrier."""
    if cx.local_id == 0:
        shared[0] = data[0]
    cx.barrier()
    while cx.load_uniform(shared, 0) == 1:
        data[cx.global_id + 1] = cx.local_id


def run(target: str, name: str, endless: bool) -> None:
    found = {"spinning": spinning, "counting": counting, "meeting": meeting}[name]
    groups = 20_000 if target == "cpu" else 2  # enough for several threads
    data: Buffer[U32] = Buffer("data", U32, groups * 8 + 1, Role.INOUT)
    array = np.zeros(data.count, np.uint32)
    array[0] = endless
    schedule = Schedule((data,), (found.launch(Grid(groups, 8), data, Workgroup(U32, 1)),))
    gpusort.target(target).run(schedule, {"data": array})


def main() -> None:
    target, name = sys.argv[1:]
    run(target, name, endless=False)
    print("begins", flush=True)
    try:
        run(target, name, endless=True)
    except KeyboardInterrupt:
        outcome = "interrupted"
    except gpusort.CapabilityError as error:
        outcome = f"refused: {error}"
    else:
        outcome = "ended"
    run(target, name, endless=False)
    print(outcome, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
    main()
