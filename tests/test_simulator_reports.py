"""Reports of a newcomer's mistakes: elements are counted as the kernel counts them, and what is below zero is said."""

from __future__ import annotations

import re

import attrs
import numpy as np
import pytest

from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.targets.python.target import PlainPython
from gpusort.targets.simulator.target import Simulator
from gpusort.types.errors import DataRaceError, OutOfBoundsError, UninitializedReadError
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage, Workgroup
from gpusort.types.scalars import F32, U8, U32, U64

GROUP = 8
OUT = Buffer("out", U32, GROUP, Role.INOUT)


@attrs.frozen
class Body:
    """Of three types: in memory 24 bytes, each by itself."""

    mass: F32
    index: U64
    kind: U8


def simulate(wrong: Kernel[...]) -> None:
    launch = wrong.launch(Grid(1, GROUP), Workgroup(Body, GROUP), OUT)
    Simulator().run(Schedule((OUT,), (launch,)), {"out": np.zeros(GROUP, np.uint32)})


@kernel
def forgets_a_barrier(cx: Invocation, bodies: Workgroup[Body], out: Storage[U32]) -> None:
    bodies[cx.local_id] = Body(F32(1), U64(cx.local_id), U8(1))
    out[cx.local_id] = U32(bodies[7 - cx.local_id].index)


@kernel
def goes_one_too_far(cx: Invocation, bodies: Workgroup[Body], out: Storage[U32]) -> None:
    bodies[cx.local_id + 1] = Body(F32(1), U64(cx.local_id), U8(1))


@kernel
def leaves_one_out(cx: Invocation, bodies: Workgroup[Body], out: Storage[U32]) -> None:
    if cx.local_id != 5:
        bodies[cx.local_id] = Body(F32(1), U64(cx.local_id), U8(1))
    cx.barrier()
    out[cx.local_id] = U32(bodies[(cx.local_id + 1) % 8].kind)


@kernel
def goes_one_below(cx: Invocation, bodies: Workgroup[Body], out: Storage[U32]) -> None:
    out[cx.local_id] = out[cx.local_id - 1]


@kernel
def goes_one_struct_below(cx: Invocation, bodies: Workgroup[Body], out: Storage[U32]) -> None:
    bodies[cx.local_id - 1] = Body(F32(1), U64(cx.local_id), U8(1))


@kernel
def reads_a_register_too_many(cx: Invocation, bodies: Workgroup[Body], out: Storage[U32]) -> None:
    mine: Registers[Body] = Registers(Body, 4)
    mine[cx.local_id] = Body(F32(1), U64(1), U8(1))
    out[cx.local_id] = U32(0)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (forgets_a_barrier, DataRaceError, r"data race on element 7 of workgroup memory 'bodies': read here by .* 0\)"),
        (goes_one_too_far, OutOfBoundsError, "index 8 is outside workgroup memory 'bodies' of 8 elements, in .* 7"),
        (leaves_one_out, UninitializedReadError, "element 5 of workgroup memory 'bodies' is read before .* 4"),
        (goes_one_below, OutOfBoundsError, r"index 4294967295, which is -1 modulo 2\*\*32, is outside storage .* 8 el"),
        (goes_one_struct_below, OutOfBoundsError, r"index 4294967295, which is -1 modulo 2\*\*32, is outside work"),
        (reads_a_register_too_many, OutOfBoundsError, "index 4 is outside registers of 4 elements, .* 4.* 3 more"),
    ],
    ids=lambda given: given.name if isinstance(given, Kernel) else "",
)  # fmt: skip
def test_a_report_counts_as_the_kernel_does(wrong: Kernel[...], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(__file__)}:[0-9]+: {says}"):
        simulate(wrong)


def test_cpython_says_the_same_of_what_is_below_zero() -> None:
    launch = goes_one_below.launch(Grid(1, GROUP), Workgroup(Body, GROUP), OUT)
    with pytest.raises(
        OutOfBoundsError, match=r"^index 4294967295, which is -1 modulo 2\*\*32, is outside an array of"
    ):
        PlainPython().run(Schedule((OUT,), (launch,)), {"out": np.zeros(GROUP, np.uint32)})
