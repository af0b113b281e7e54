"""Small kernels about structs, methods, what is known before the launch, and elements of several fields in memory.

Each takes `data`, which holds 0, 1, 2, 3, and gives every invocation's result to `out`.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Protocol, TypeVar

import attrs

from gpusort.kernel.kernel import kernel
from gpusort.types.intrinsics import dynamic_range
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers
from gpusort.types.scalars import I32, U8, U16, U32, U64, Bool
from tests.reader_kernels import Pair, SmallKernel, Words, gives

T = TypeVar("T")
ONE = U32(1)
WEIGHTS = (1, 10, 100)


# -- structs and their methods ----------------------------------------------------------------------------


@attrs.frozen
class Length:
    """A newtype with operators."""

    value: U32
    unit: ClassVar[int] = 10

    def __add__(self, other: Length) -> Length:
        return Length(self.value + other.value)

    def __lt__(self, other: Length) -> Bool:
        return self.value < other.value

    def __mul__(self, times: U32) -> Length:
        return Length(self.value * times)

    @classmethod
    def of(cls, value: U32 = ONE) -> Length:
        return cls(value)

    @staticmethod
    def least(a: Length, b: Length) -> Length:
        return a if a < b else b

    @property
    def scaled(self) -> U32:
        return self.value * self.unit


@attrs.frozen
class Bits:
    """Methods and helpers whose names, without underscores, are keywords or none at all."""

    value: U32

    def __or__(self, other: Bits) -> Bits:
        if self.value == other.value:
            return self
        return Bits(self.value | other.value)

    def __and__(self, other: Bits) -> Bits:
        return Bits(self.value & other.value)


def _not(bits: Bits) -> U32:
    return bits.value ^ 7


def _(bits: U32) -> U32:
    return bits if bits == 0 else bits * 10


def _1(bits: U32) -> U32:
    return bits + 1


@gives(61, 61, 41, 41)
@kernel
def names_that_are_none(cx: Invocation, data: Words, out: Words) -> None:
    _x = Bits(data[cx.global_id])
    out[cx.global_id] = _1(_(_not((_x | Bits(U32(1))) & Bits(U32(3)))))


@gives(11, 21, 32, 32)
@kernel
def operators_of_a_struct(cx: Invocation, data: Words, out: Words) -> None:
    x = Length(data[cx.global_id])
    total = Length.of() + x
    total += x * U32(0)
    least = Length.least(total, x.of(value=U32(3)))
    out[cx.global_id] = least.scaled + U32(x < total) + U32(Length(U32(1)) < x)


@attrs.frozen
class Segment:
    """Structs in a struct."""

    ends: Pair[Length]
    kind: U32

    def length(self) -> Length:
        return Length(self.ends.high.value - self.ends.low.value)

    def moved(self, by: U32) -> Segment:
        return moved_by(self, by)


def moved_by(segment: Segment, by: U32) -> Segment:
    low, high = segment.ends.low, segment.ends.high
    return Segment(Pair(low + Length(by), high + Length(by)), segment.kind + 1)


@gives(504, 516, 528, 540)
@kernel
def structs_in_structs(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    segment = Segment(Pair(Length(U32(2)), Length(x + 6)), U32(0))
    before = segment
    while segment.kind < 5:
        segment = segment.moved(x)
    unchanged = before.ends.low.value + before.kind - 2
    out[cx.global_id] = segment.kind * 100 + segment.length().value + segment.ends.low.value * 2 + x - 4 + unchanged


@attrs.frozen
class Offset:
    by: U32
    times: U32 = ONE


@gives(15, 16, 17, 18)
@kernel
def defaults_and_keywords(cx: Invocation, data: Words, out: Words) -> None:
    first, second = Offset(U32(5)), Offset(times=U32(2), by=U32(5))
    out[cx.global_id] = data[cx.global_id] + first.by * first.times + second.by * second.times


# -- what is known before the launch ----------------------------------------------------------------------


class Direction(Enum):
    UP = 0
    DOWN = 1


@attrs.frozen
class Policy:
    items: int = 3
    direction: Direction = Direction.DOWN
    steps: tuple[int, ...] = (4, 2, 1)

    @property
    def last(self) -> int:
        return self.items - 1

    def place(self, i: U32) -> U32:
        match self.direction:
            case Direction.UP:
                return i
            case Direction.DOWN:
                return self.last - i


class Rule(Protocol):
    def __call__(self, x: U32) -> U32: ...


def closed_over(policy: Policy, factor: int, rule: Rule) -> SmallKernel:
    """A kernel that sees the names of the function around it."""

    @kernel
    def closure(cx: Invocation, data: Words, out: Words) -> None:
        total = U32(0)
        for step in policy.steps:
            if step == 2:
                continue
            for i in range(policy.last):
                total = total + WEIGHTS[i] * step
        if policy.items > 100:
            total = data[1000]
        out[cx.global_id] = rule(total + policy.place(data[cx.global_id] % 3)) * factor

    return closure


def doubled(x: U32) -> U32:
    return x * 2


def plus_one(x: U32) -> U32:
    return x + 1


gives(228, 224, 220, 228)(closed_over(Policy(), 2, doubled))
gives(168, 171, 174, 168)(closed_over(Policy(direction=Direction.UP), 3, plus_one))


# -- elements of several fields ---------------------------------------------------------------------------


@attrs.frozen
class Mixed:
    """Fields of all sizes, which leave gaps."""

    flag: Bool
    small: U8
    wide: U64
    middle: U16
    kind: Direction
    place: Pair[I32]

    def mix(self) -> U32:
        total = U32(self.wide >> 32) + U32(self.wide) + U32(self.flag) * 1000
        signed = U32(self.place.low + self.place.high)
        return total + U32(self.small) + U32(self.middle) + signed + U32(self.kind is Direction.DOWN) * 5000


@attrs.frozen
class Boxed:
    """A struct whose one field is a struct."""

    inner: Pair[U32]


@gives(0, 7, 26, 63)
@kernel
def generic_structs_in_registers(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    pairs: Registers[Pair[U32]] = Registers(Pair[U32], 3)
    for i in range(3):
        pairs[i] = Pair(x * i, x)
    pairs[1], pairs[2] = pairs[2], pairs[1]
    held = pairs[1]
    pairs[1] = Pair(held.high, held.low)
    total = U32(0)
    for k in dynamic_range(U32(0), U32(3)):
        total = total * x + pairs[k].low * k + pairs[k].high
    out[cx.global_id] = total


@gives(6103, 7108, 6113, 7118)
@kernel
def mixed_structs_in_registers(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    mine = Registers(Mixed, 2)
    wide = (U64(x) << 32) | 2
    mine[1] = Mixed(x % 2 == 1, U8(x * 3), wide, U16(100), Direction.DOWN, Pair(I32(-4), I32(5)))
    mine[0] = mine[1]
    mine[1] = Mixed(Bool(True), U8(0), U64(0), U16(0), Direction.UP, Pair(I32(0), I32(0)))
    out[cx.global_id] = mine[0].mix() + U32(mine[1].flag) * 1000 + x


@gives(10, 21, 32, 43)
@kernel
def a_struct_of_a_struct_in_registers(cx: Invocation, data: Words, out: Words) -> None:
    mine = Registers(Boxed, 2)
    mine[0] = Boxed(Pair(data[cx.global_id], data[cx.global_id] + 1))
    mine[1] = mine[0]
    out[cx.global_id] = mine[1].inner.low + mine[1].inner.high * 10


@gives(3, 13, 23, 33)
@kernel
def a_vector_of_words(cx: Invocation, data: Words, out: Words) -> None:
    lengths = Registers(Length, 2)
    lengths[0], lengths[1] = Length(data[cx.global_id]), Length.of(U32(3))
    lengths[1] += lengths[0] * U32(10)
    out[cx.global_id] = lengths[1].value


# -- several invocations ----------------------------------------------------------------------------------


@gives(3139, 2128, 1017, 6)
@kernel
def structs_are_shuffled(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    mine = Mixed(x > 1, U8(x), U64(x) << 34, U16(x * 10), Direction.UP, Pair(I32(0), I32(0)))
    other = cx.shuffle_xor(mine, U32(3))
    far, flag = cx.shuffle((other.wide, other.flag), cx.lane ^ 3)
    wide = U32(other.wide >> 34)
    check = U32(far >> 34) == x and flag ^ (x < 2)
    out[cx.global_id] = U32(other.middle) + U32(other.small) + U32(other.flag) * 100 + U32(check) * 6 + wide * 1000


@gives(10, 11, 12, 13)
@kernel
def atomics(cx: Invocation, data: Words, out: Words) -> None:
    me = cx.global_id
    if me == 0:
        out.atomic_store(0, U32(0))
    cx.barrier()
    out.atomic_add(U32(0), U32(2))
    out.atomic_max(0, me)
    cx.barrier()
    total = out.atomic_load(0)
    cx.barrier()
    old = out.atomic_exchange(me, total)
    out.atomic_xor(me, me + 2 + U32(old > 1000))
    out.atomic_and(me, U32(0))
    out.atomic_or(me, total + me)
    out.atomic_add(me, U32(2))


@attrs.frozen
class View:
    """What a helper needs, together."""

    __cx: Invocation = attrs.field(alias="cx")
    data: Words
    first: U32

    def __wait(self) -> None:
        self.__cx.barrier()

    def put(self, x: U32) -> None:
        self.data[self.first] = x
        self.__wait()

    def behind(self, by: U32) -> View:
        return View(self.__cx, self.data, self.first + by)


@gives(7, 8, 9, 10)
@kernel
def a_struct_may_hold_arrays_and_the_invocation(cx: Invocation, data: Words, out: Words) -> None:
    View(cx, out, U32(0)).behind(cx.global_id).put(data[cx.global_id] + 7)


@gives(101, 1, 11, 11)
@kernel
def narrow_numbers_are_equated(cx: Invocation, data: Words, out: Words) -> None:
    me = cx.global_id
    mine, turned = Registers(U8, 2), Registers(U16, 2)
    mine[0], mine[1] = U8(data[me] * 255 + 1), U8(1 - data[me] % 2)
    turned[0], turned[1] = U16(data[me] * 65537), U16(0)
    same = U32(mine[0] == mine[1])
    if same == 1:
        out[me] = U32(101) if turned[0] == 0 else U32(1)
    else:
        out[me] = U32(mine[0] != 1) * 10 + U32(mine[1] != 2)
