"""Small kernels, each about one thing that structs, enums, names or choices made before the launch may do.

Each takes `data`, which holds 0, 1, 2, 3, and gives every invocation's result to `out`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

import attrs

from gpusort.kernel.kernel import Kernel, kernel
from gpusort.types.intrinsics import dynamic_range, select
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers, Storage
from gpusort.types.scalars import U32, Bool

T = TypeVar("T")
Words = Storage[U32]
SmallKernel = Kernel[Words, Words]
WORKS: list[tuple[SmallKernel, list[int]]] = []

LIMIT = 2
OFFSET = U32(40)
WEIGHTS = (1, 10, 100)


def gives(*expected: int) -> Callable[[SmallKernel], SmallKernel]:
    """Says what invocations 0 to 3 leave in `out`."""

    def note(of: SmallKernel) -> SmallKernel:
        WORKS.append((of, list(expected)))
        return of

    return note


# -- early returns ----------------------------------------------------------------------------------------


@gives(9, 0, 0, 9)
@kernel
def returns_from_a_kernel(cx: Invocation, data: Words, out: Words) -> None:
    me = cx.global_id
    out[me] = U32(0)
    if me == 1:
        return
    if me > 1:
        if data[me] == 2:
            return
        out[me] = U32(8)
    out[me] = U32(9)


def graded(x: U32, y: U32) -> U32:
    grade = U32(0)
    if x < 2:
        grade = U32(5)
        if x == y:
            return grade + 10
        grade = grade + 1
    elif x == 2:
        return U32(70)
    else:
        grade = U32(1)
    grade = grade * 2
    if y == 3:
        return grade
    return grade + 100


@gives(15, 15, 70, 2)
@kernel
def nested_returns(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    out[cx.global_id] = graded(x, x)


@gives(15, 112, 70, 102)
@kernel
def nested_returns_that_fall_through(cx: Invocation, data: Words, out: Words) -> None:
    out[cx.global_id] = graded(data[cx.global_id], U32(0))


def bump_unless(out: Words, index: U32, stop: Bool) -> None:
    if stop:
        return
    out[index] += 1


@gives(2, 0, 2, 0)
@kernel
def a_helper_that_returns_nothing(cx: Invocation, data: Words, out: Words) -> None:
    me = cx.global_id
    out[me] = U32(0)
    bump_unless(out, me, me % 2 == 1)
    bump_unless(out, me, (data[me] & 1) != 0)


@attrs.frozen
class Pair(Generic[T]):
    low: T
    high: T

    @classmethod
    def same(cls, value: T) -> Pair[T]:
        return Pair(value, value)

    @property
    def swapped(self) -> Pair[T]:
        return Pair(self.high, self.low)


def spread(x: U32) -> Pair[U32]:
    if x == 0:
        return Pair[U32].same(U32(7))
    wide = Pair(x, x * x)
    if x == 3:
        return wide.swapped
    return wide


@gives(77, 11, 24, 93)
@kernel
def structs_are_returned(cx: Invocation, data: Words, out: Words) -> None:
    pair = spread(data[cx.global_id])
    out[cx.global_id] = pair.low * 10 + pair.high


def bounds_of(x: U32) -> tuple[U32, Bool]:
    if x > 1:
        return x * 2, Bool(True)
    return x, x == 0


@gives(100, 1, 104, 106)
@kernel
def tuples_are_returned(cx: Invocation, data: Words, out: Words) -> None:
    value, flag = bounds_of(data[cx.global_id])
    out[cx.global_id] = value + select(flag, U32(100), U32(0))


# -- names ------------------------------------------------------------------------------------------------


@gives(1, 111, 212, 323)
@kernel
def swaps(cx: Invocation, data: Words, out: Words) -> None:
    a, b, c = U32(0), U32(1), data[cx.global_id]
    for _ in dynamic_range(U32(0), c):
        a, b = b, a + b
    [a, b, c] = c, a, b
    out[cx.global_id] = a * 100 + b * 10 + c


@gives(12, 21, 12, 21)
@kernel
def structs_swap_their_fields(cx: Invocation, data: Words, out: Words) -> None:
    pair = Pair(U32(1), U32(2))
    for _ in dynamic_range(U32(0), data[cx.global_id]):
        pair = Pair(pair.high, pair.low)
    for _ in range(2):
        pair = pair.swapped
    out[cx.global_id] = pair.low * 10 + pair.high


@gives(5, 15, 25, 35)
@kernel
def a_held_value_stays(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    before = x
    x = x + 1
    later = x + 1
    x = U32(10)
    out[cx.global_id] = before * x + later - before + 3


@gives(20, 30, 40, 50)
@kernel
def a_loop_goes_over_what_was_there(cx: Invocation, data: Words, out: Words) -> None:
    a, b, total = data[cx.global_id], U32(5), U32(0)
    for value in (b, a, b, a):
        total = total + value * 5
        a, b = a + 100, U32(1000)
    out[cx.global_id] = total - 30


@gives(6, 16, 26, 36)
@kernel
def a_tuple_holds_values(cx: Invocation, data: Words, out: Words) -> None:
    x, y = data[cx.global_id], U32(1)
    both = (x, y)
    x, y = U32(2), U32(3)
    out[cx.global_id] = both[0] * 10 + both[-1] + x + y


def halved(x: U32, times: int) -> U32:
    for _ in range(times):
        x = x // 2
    x += 1
    return x


@gives(101, 1103, 2106, 3108)
@kernel
def a_parameter_is_changed(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    out[cx.global_id] = x * 1000 + halved(x * 5, 1) + halved(U32(99), 0)


@gives(19, 25, 19, 49)
@kernel
def augmented_variables(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    x += 1
    x *= x
    x <<= 1
    x ^= 1
    x |= 16
    x -= 7
    x //= U32(1)
    x %= U32(1000)
    x >>= 0
    x &= 0xFFFF
    x += 7
    out[cx.global_id] = x


@gives(13, 14, 15, 16)
@kernel
def augmented_elements(cx: Invocation, data: Words, out: Words) -> None:
    me = cx.global_id
    out[me] = data[me]
    out[me] += 1
    out[me] <<= 1
    out[me] -= data[me]
    mine = Registers(U32, 2)
    mine[0], mine[1] = U32(1), out[me]
    mine[mine[0]] += 10
    mine[0], mine[1] = mine[1], mine[0]
    out[me] = mine[0] + mine[1]


@gives(4, 14, 24, 34)
@kernel
def a_place_is_found_after_its_value(cx: Invocation, data: Words, out: Words) -> None:
    mine, i = Registers(U32, 3), U32(0)
    mine[0] = data[cx.global_id]
    i, mine[i] = U32(2), U32(4)
    out[cx.global_id] = mine[2] + mine[0] * 10


# -- what is computed only where it counts ----------------------------------------------------------------


@gives(4, 4, 4, 4)
@kernel
def a_while_stops_before_the_end(cx: Invocation, data: Words, out: Words) -> None:
    i = U32(0)
    while i < data.length and data[i] < 9:
        i += 1
    out[cx.global_id] = i


def is_there(data: Words, index: U32) -> Bool:
    if index >= data.length:
        return Bool(False)
    return data[index] == index


@gives(3, 3, 3, 3)
@kernel
def a_condition_with_early_returns(cx: Invocation, data: Words, out: Words) -> None:
    i, rounds = cx.global_id, U32(0)
    while is_there(data, i) or is_there(data, i - 4):
        i += 1
        rounds += 1
        if rounds == 3:
            break
    out[cx.global_id] = rounds


@gives(0, 10, 20, 0)
@kernel
def three_conditions(cx: Invocation, data: Words, out: Words) -> None:
    me = cx.global_id
    found = Bool(me != 0 and U32(6) // me > 1 and me < 3 and data[me] == me)
    other = Bool(not (me == 0 or U32(6) % me != 0 or me > 2))
    out[me] = (me * 10 if found else U32(0)) + U32(found ^ other)


@gives(51, 52, 53, 7)
@kernel
def choices_in_choices(cx: Invocation, data: Words, out: Words) -> None:
    next_ = cx.global_id + 1
    out[cx.global_id] = (data[next_] + 50 if data[next_] > 0 else U32(1)) if next_ < data.length else U32(7)


@gives(5, 6, 7, 33)
@kernel
def a_choice_of_structs(cx: Invocation, data: Words, out: Words) -> None:
    me = cx.global_id
    pair = Pair(U32(0), data[me + 1]) if me < 3 else Pair[U32].same(U32(3))
    other = select(me < 3, Pair(pair.low, pair.high), Pair(pair.low * 10, pair.high))
    out[me] = other.low + other.high + (U32(4) if me < 3 else U32(0))


# -- enums ------------------------------------------------------------------------------------------------


class Kind(Enum):
    LOW = 3
    MIDDLE = 5
    HIGH = 9

    @property
    def is_low(self) -> Bool:
        return Bool(self is Kind.LOW)

    def next(self) -> Kind:
        match self:
            case Kind.LOW:
                return Kind.MIDDLE
            case Kind.MIDDLE:
                return Kind.HIGH
            case Kind.HIGH:
                return Kind.LOW

    @classmethod
    def of(cls, x: U32) -> Kind:
        if x == 0:
            return Kind.LOW
        return cls.MIDDLE if x < 3 else cls.HIGH


def code_of(kind: Kind) -> U32:
    match kind:
        case Kind.LOW | Kind.HIGH:
            code = U32(1)
        case _:
            code = U32(2)
    return code


@gives(122, 210, 210, 111)
@kernel
def enums_at_run_time(cx: Invocation, data: Words, out: Words) -> None:
    kind = Kind.of(data[cx.global_id])
    code = code_of(kind) * 100 + code_of(kind.next()) * 10
    if kind.is_low:
        kind = Kind.MIDDLE
    else:
        kind = Kind.of(data[cx.global_id] // 3)
    out[cx.global_id] = code + (U32(2) if kind == Kind.MIDDLE and cx.global_id == 0 else U32(kind != Kind.LOW))


@gives(21, 21, 21, 21)
@kernel
def enums_before_the_launch(cx: Invocation, data: Words, out: Words) -> None:
    kind = Kind.HIGH
    out[cx.global_id] = code_of(kind.next().next()) * 10 + code_of(kind)


@gives(5, 9, 3, 5)
@kernel
def an_enum_changes_in_a_loop(cx: Invocation, data: Words, out: Words) -> None:
    kind = Kind.MIDDLE
    for _ in dynamic_range(U32(0), data[cx.global_id]):
        match kind:
            case Kind.LOW:
                kind = Kind.MIDDLE
            case Kind.MIDDLE:
                kind = Kind.HIGH
            case Kind.HIGH:
                kind = Kind.LOW
    kinds = Registers(Kind, 2)
    kinds[0], kinds[1] = Kind.LOW, kind
    kind = kinds[1]
    out[cx.global_id] = U32(3) if kind is Kind.LOW else U32(5) if kind is Kind.MIDDLE else U32(9)
