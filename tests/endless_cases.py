"""Kernels that never end, if they are told so, in a process of their own: what cannot be stopped would take ours along.

Run as `python -m tests.endless_cases TARGET KERNEL`. Says "begins" once all is compiled, and then what became of it.
"""

from __future__ import annotations

import signal
import sys

import numpy as np
import numpy.typing as npt

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


@kernel
def marking(cx: Invocation, data: Storage[U32]) -> None:
    """A launch behind an endless one: whoever stops that is not to begin this."""
    data[data.length - 1] = U32(1)


def run(target: str, name: str, endless: bool, array: npt.NDArray[np.uint32]) -> None:
    found = {"spinning": spinning, "counting": counting, "meeting": meeting}[name]
    groups = (array.size - 2) // 8
    data: Buffer[U32] = Buffer("data", U32, array.size, Role.INOUT)
    array[:] = 0
    array[0] = endless
    launches = found.launch(Grid(groups, 8), data, Workgroup(U32, 1)), marking.launch(Grid(1, 1), data)
    gpusort.target(target).run(Schedule((data,), launches), {"data": array})


def main() -> None:
    target, name = sys.argv[1:]
    groups = 20_000 if target == "cpu" else 2  # enough for several threads
    array = np.zeros(groups * 8 + 2, np.uint32)
    run(target, name, False, array)
    assert array[-1] == 1
    print("begins", flush=True)
    try:
        run(target, name, True, array)
    except KeyboardInterrupt:
        outcome = "interrupted, and went on" if array[-1] else "interrupted"
    except gpusort.CapabilityError as error:
        outcome = f"refused: {error}"
    else:
        outcome = "ended"
    run(target, name, False, array)
    print(outcome, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
    main()
