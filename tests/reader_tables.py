"""Small kernels about what Python computes before the launch: tables, classes, powers, functions of math.

Each takes `data`, which holds 0, 1, 2, 3, and gives every invocation's result to `out`.
"""

from __future__ import annotations

import math
from typing import Final, TypeVar

from gpusort.kernel.kernel import kernel
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers
from gpusort.types.scalars import F32, U32, U64, Scalar
from tests.reader_kernels import Words, gives

TABLE: Final = (3, 1, 4)
PAIRS: Final = ((2, U32(5)), (3, U32(6)))
N = TypeVar("N", U32, U64)


@gives(314, 315, 316, 317)
@kernel
def as_long_as_its_table(cx: Invocation, data: Words, out: Words) -> None:
    total = U32(0)
    for i in range(len(TABLE)):
        total = total * 10 + TABLE[i]
    out[cx.global_id] = total + data[cx.global_id]


@gives(65, 65, 65, 65)
@kernel
def the_number_of_a_letter(cx: Invocation, data: Words, out: Words) -> None:
    out[cx.global_id] = U32(ord("A"))


@gives(38, 38, 38, 38)
@kernel
def pairs_of_numbers_and_scalars(cx: Invocation, data: Words, out: Words) -> None:
    total = U32(len(PAIRS)) + U32(sum(TABLE))
    for times, value in PAIRS:
        total = total + value * times
    out[cx.global_id] = total


@gives(23, 27, 31, 35)
@kernel
def members_of_a_table(cx: Invocation, data: Words, out: Words) -> None:
    table = TABLE + (9,)  # noqa: RUF005  # no stars in a kernel
    found = U32(0)
    for i in range(5):
        if i in table:
            found = found + 1
        if i not in table:
            found = found + 10
    out[cx.global_id] = found + data[cx.global_id] * len(table)


@gives(64, 65, 66, 67)
@kernel
def powers(cx: Invocation, data: Words, out: Words) -> None:
    out[cx.global_id] = data[cx.global_id] + 2 ** (math.isqrt(40))


@gives(3, 4, 5, 6)
@kernel
def roots_of_numbers(cx: Invocation, data: Words, out: Words) -> None:
    whole = U32(math.ceil(math.sqrt(6.5)))
    out[cx.global_id] = data[cx.global_id] + (whole if F32(math.pi) > 3.14 else U32(0))


def doubled(value: N) -> N:
    """For any integer: its class makes the literal."""
    return value * type(value)(2)


def is_wide(value: Scalar) -> bool:
    return isinstance(value, U64)


@gives(0, 4, 8, 12)
@kernel
def classes_of_scalars(cx: Invocation, data: Words, out: Words) -> None:
    wide = doubled(U64(data[cx.global_id]))
    if is_wide(wide) and not is_wide(data[cx.global_id]):
        out[cx.global_id] = doubled(U32(wide))
    else:
        out[cx.global_id] = U32(99)


@gives(1, 3, 5, 7)
@kernel
def several_targets(cx: Invocation, data: Words, out: Words) -> None:
    """The value is computed once, though the second target changes what it was read from."""
    mine: Registers[U32] = Registers(U32, 2)
    total: U32
    mine[0] = data[cx.global_id]
    first = mine[0] = total = mine[0] + 1
    out[cx.global_id] = first + mine[0] + total - data[cx.global_id] - 2
