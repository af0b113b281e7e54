"""Zeros keep their signs, on WGSL also where only the compiler of a driver sees that they are zero."""

from __future__ import annotations

import numpy as np
import pytest

from gpusort import target as target_of
from gpusort.kernel.kernel import Kernel, kernel
from gpusort.kernel.launch import Buffer, Grid, Role, Schedule
from gpusort.types.intrinsics import bitcast, dynamic_range, select
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage
from gpusort.types.scalars import F32, I64, U32, U64


@kernel
def a_sum_from_zero(cx: Invocation, data: Storage[F32], out: Storage[F32]) -> None:
    total = F32(0.0)
    for i in dynamic_range(U32(0), data.length):
        total = total + data[i]
    out[0] = total


@kernel
def zero_in_one_branch(cx: Invocation, data: Storage[F32], out: Storage[F32]) -> None:
    zero = data[0]
    if data.length - data.length == 0:
        zero = F32(0.0)
    out[0] = zero + data[0]


@kernel
def zero_of_two(cx: Invocation, data: Storage[F32], out: Storage[F32]) -> None:
    out[0] = select((data.length ^ data.length) == 0, F32(0.0), data[1]) + data[0]


@kernel
def zero_in_registers(cx: Invocation, data: Storage[F32], out: Storage[F32]) -> None:
    held: Registers[F32] = Registers(F32, 2)
    held[0] = F32(0.0)
    held[1] = F32(0.0)
    out[0] = held[1] + data[0]


@kernel
def converted_zero(cx: Invocation, data: Storage[F32], out: Storage[F32]) -> None:
    out[0] = F32(data.length ^ data.length) + data[0]


@kernel
def converted_wide_zero(cx: Invocation, data: Storage[F32], out: Storage[F32]) -> None:
    wide = U64(data.length)
    out[0] = data[0] + F32(wide - wide) + F32(I64(wide) - I64(wide))


@kernel
def converted_zero_as_a_factor(cx: Invocation, data: Storage[F32], out: Storage[F32]) -> None:
    out[0] = F32(data.length ^ data.length) * data[0]


@kernel
def bits_of_zero(cx: Invocation, data: Storage[F32], out: Storage[F32]) -> None:
    out[0] = data[0] + bitcast(F32, data.length ^ data.length)


KERNELS: tuple[Kernel[Storage[F32], Storage[F32]], ...] = (
    a_sum_from_zero, zero_in_one_branch, zero_of_two, zero_in_registers, converted_zero, converted_wide_zero,
    converted_zero_as_a_factor, bits_of_zero,
)  # fmt: skip


@pytest.mark.parametrize("each", KERNELS, ids=lambda each: each.name)
def test_a_negative_zero_meets_a_zero(each: Kernel[Storage[F32], Storage[F32]], target: str) -> None:
    data, out = Buffer("data", F32, 2, Role.INPUT), Buffer("out", F32, 1, Role.OUTPUT)
    schedule = Schedule((data, out), (each.launch(Grid(1, 1), data, out),))
    found = np.ones(1, np.float32)
    target_of(target).run(schedule, {"data": np.full(2, -0.0, np.float32), "out": found})
    assert found[0] == 0
    assert np.signbit(found[0]) == (each is converted_zero_as_a_factor)
