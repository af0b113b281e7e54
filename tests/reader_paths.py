"""Small kernels whose paths are easily read wrongly: names that change on the way, and jumps that skip a change.

Each takes `data`, which holds 0, 1, 2, 3, and gives every invocation's result to `out`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

import attrs

from gpusort.kernel.kernel import kernel
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import F32, U32, Bool
from tests.reader_kernels import gives

T = TypeVar("T")

NEVER = False
NO_COUNT = 0


# -- loops ------------------------------------------------------------------------------------------------


@gives(1, 1, 1, 1)
@kernel
def set_before_break(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    found = Bool(False)
    for i in dynamic_range(U32(0), U32(4)):
        if data[i] == 2:
            found = Bool(True)
            break
    out[cx.global_id] = U32(found)


@gives(25, 25, 25, 25)
@kernel
def set_before_continue(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    skipped = U32(0)
    total = U32(0)
    for i in range(4):
        if data[U32(i)] == 2:
            skipped = skipped + 5
            continue
        total = total + data[U32(i)]
    out[cx.global_id] = skipped * 5 - total + total // 4 * 3 + 1


@gives(13, 13, 13, 13)
@kernel
def a_loop_that_never_comes_to_its_second_round(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    total = U32(0)
    for i in dynamic_range(data[1], data.length, data[2]):
        for j in dynamic_range(i, data.length):
            total = total + 10 + j
            break
        total = total + 2
        break
    out[cx.global_id] = total


@gives(203, 213, 223, 233)
@kernel
def unrolled_loops_in_a_loop(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    total = U32(0)
    for i in range(3):
        total = total + i
    for _ in dynamic_range(U32(0), U32(2)):
        for i in range(5):
            total = total + i * 10
    out[cx.global_id] = total + data[cx.global_id] * 10


def total_of(data: Storage[U32]) -> U32:
    total = U32(0)
    for i in dynamic_range(U32(0), U32(4)):
        if NEVER:
            return U32(9)
        total = total + data[i]
    total = total + 100  # this belongs to every path, though the loop holds a `return`
    return total


@gives(106, 106, 106, 106)
@kernel
def return_that_never_happens(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = total_of(data)


def first_above(data: Storage[U32], limit: U32) -> U32:
    for i in range(4):
        if data[U32(i)] > limit:
            return U32(i)
    return U32(9)


@gives(1, 2, 3, 9)
@kernel
def return_from_an_unrolled_loop(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = first_above(data, data[cx.global_id])


@gives(63, 63, 63, 63)
@kernel
def loops_in_loops(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    i, total = U32(0), U32(0)
    while i < data.length and data[i] != 3:
        i += 1
        j = i
        while True:
            j = j + 1
            if j > 3:
                break
            if j == 2:
                continue
            total += j
    out[cx.global_id] = total * 10 + i


# -- what is computed only where it counts ----------------------------------------------------------------


@gives(7, 100, 50, 33)
@kernel
def guarded_division(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    x = data[cx.global_id]
    out[cx.global_id] = U32(100) // x if x != 0 else U32(7)


@gives(0, 0, 0, 1)
@kernel
def guarded_remainder(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    x = data[cx.global_id]
    out[cx.global_id] = U32(x != 0 and U32(7) % x == 1 and x > 2)


@gives(9, 1, 2, 3)
@kernel
def guarded_load(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    before = cx.global_id - 1
    if before >= 4 or data[before] > 90:
        out[cx.global_id] = U32(9)
    else:
        out[cx.global_id] = data[before] + 1


@gives(5, 0, 0, 0)
@kernel
def index_is_computed_once(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = U32(0)
    cx.barrier()
    if cx.global_id == 0:
        out[data.atomic_add(0, U32(1))] += 5


@gives(3, 3, 3, 3)
@kernel
def known_or(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    total = U32(0)
    for i in range(NO_COUNT or 3):
        total = total + data[U32(i)]
    out[cx.global_id] = total


def perhaps_plus(x: U32, more: U32 | None = None) -> U32:
    if more is None:
        return x
    return x + more


@gives(3, 5, 7, 9)
@kernel
def optional_argument(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    x = data[cx.global_id]
    out[cx.global_id] = perhaps_plus(x) + perhaps_plus(x, U32(3))


# -- structs and methods ----------------------------------------------------------------------------------


@attrs.frozen
class Step:
    size: U32

    def up(self, x: U32) -> U32:
        return x + self.size

    def down(self, x: U32) -> U32:
        return x - self.size


@gives(12, 13, 14, 15)
@kernel
def method_by_name(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    step = Step(U32(5))
    move = step.up
    moved = move(data[cx.global_id]) + 10
    move = step.down
    step = Step(U32(1000))  # the method keeps the object on which it was found
    moved = move(moved) + 2 + step.size // 1000 - 1
    out[cx.global_id] = moved


@gives(0, 2, 22, 33)
@kernel
def method_of_either_object(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    x = data[cx.global_id]
    if x > 1:
        move = Step(x * 10).up
    else:
        move = Step(x).up
    out[cx.global_id] = move(x)


STEP = Step(U32(7))
DOWN = STEP.down


@gives(0, 1, 2, 3)
@kernel
def method_of_a_known_object(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = DOWN(data[cx.global_id] + 7)


@attrs.frozen
class Triple:
    first: U32
    second: U32 = attrs.field(kw_only=True)
    third: U32


@gives(231, 231, 231, 231)
@kernel
def field_by_name(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    triple = Triple(U32(1), U32(2), second=U32(3))
    out[cx.global_id] = triple.first + triple.second * 10 + triple.third * 100 + data[0] * 0


@attrs.frozen
class Pair(Generic[T]):
    low: T
    high: T

    @classmethod
    def of(cls, low: T, high: T) -> Pair[T]:
        return cls(low, high)


@gives(203, 213, 223, 233)
@kernel
def held_struct(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    pair = Pair[U32].of(data[cx.global_id], U32(2))
    pair = Pair(pair.high, pair.low)
    before = pair
    pair = Pair(pair.low + 1, pair.high)
    out[cx.global_id] = pair.low + pair.high * 10 + before.low * 100


class Odd:
    # fmt: off
    @staticmethod
    def documented(x: U32) -> U32:
        """A text whose lines
stand where they like.
"""
        return x + 2
    # fmt: on


@gives(2, 3, 4, 5)
@kernel
def docstring_at_the_margin(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = Odd.documented(data[cx.global_id])


@attrs.define(slots=False, eq=False)
class Chosen:
    """A compile-time object that holds a function, which takes no `self`."""

    function: Callable[[U32], U32]


def tripled(x: U32) -> U32:
    return x * 3


CHOSEN = Chosen(tripled)


@gives(0, 3, 6, 9)
@kernel
def function_in_a_field(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = CHOSEN.function(data[cx.global_id])


class Kind(Enum):
    EVEN = 0
    ODD = 1
    BIG = 2


def kind_of(x: U32) -> Kind:
    if x > 2:
        return Kind.BIG
    return Kind.EVEN if (x & 1) == 0 else Kind.ODD


def code_of(kind: Kind) -> U32:
    match kind:
        case Kind.EVEN:
            return U32(10)
        case Kind.ODD:
            return U32(20)
        case Kind.BIG:
            return U32(30)


@gives(10, 20, 10, 31)
@kernel
def enum_at_run_time(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    kind = kind_of(data[cx.global_id])
    out[cx.global_id] = code_of(kind) + U32(kind is Kind.BIG)


@gives(0, 2, 4, 6)
@kernel
def float_round_trip(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    half = F32(data[cx.global_id]) / 2
    count = U32(0)
    while F32(count) / 4 < half:
        count += 1
    out[cx.global_id] = count


def three(out: Storage[U32], me: U32) -> int:
    out[me] = out[me] + 1
    return 3


@gives(13, 13, 13, 13)
@kernel
def the_bound_of_a_range_is_evaluated_once(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    me = cx.global_id
    out[me] = U32(10)
    for _ in range(three(out, me)):
        data[me] = data[me] + 1
    out[me] = out[me] + 2 + (data[me] - data[me])


@gives(10, 11, 10, 11)
@kernel
def zeros_of_an_unrolled_loop_keep_their_signs(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    for is_first, zero in ((True, 0.0), (False, -0.0)):
        if is_first or data[cx.global_id] % 2 == 0:
            x = F32(zero)
        above = 1.0 / x > 0.0  # type: ignore[possibly-undefined]  # set in the first round
        out[cx.global_id] = out[cx.global_id] * 10 + U32(above)


def searched(data: Storage[U32], x: U32, least: U32) -> U32:
    for k in range(150):  # each of which has two paths to the next
        if data[k % 4] == x:
            if U32(k) > least:
                return U32(k)
    return U32(99)


@gives(8, 9, 10, 11)
@kernel
def what_follows_two_paths_is_read_once(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    out[cx.global_id] = searched(data, cx.global_id, cx.global_id + 5)


@gives(52, 52, 52, 63)
@kernel
def continue_on_one_of_two_paths(cx: Invocation, data: Storage[U32], out: Storage[U32]) -> None:
    total = U32(0)
    for i in dynamic_range(U32(0), U32(6)):
        if i % 2 == 0:
            for k in range(2):
                if i == k:
                    continue
                total += 0
            if i == cx.global_id * 2:
                continue
            total += 1
        total += 10
    out[cx.global_id] = total
