"""Small kernels about operators: those of structs, and what Python's own bools and ints are in a kernel.

Each takes `data`, which holds 0, 1, 2, 3, and gives every invocation's result to `out`.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

import attrs

from gpusort.kernel.kernel import kernel
from gpusort.types.intrinsics import bitcast
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Registers
from gpusort.types.scalars import F32, U32, U64, Bool
from tests.reader_kernels import Words, gives

ALWAYS = 4
HUNDRED = U32(100)


@attrs.frozen
class Vector:
    """With operators that scalars lack, or that CPython looks for elsewhere."""

    x: U32
    y: U32

    def __matmul__(self, other: Vector) -> U32:
        return self.x * other.x + self.y * other.y

    def __pow__(self, power: int) -> Vector:
        return Vector(self.x + power, self.y)

    def __rmul__(self, times: int) -> Vector:
        return Vector(self.x * times, self.y * times)

    def __neg__(self) -> Vector:
        return Vector(self.y, self.x)

    def __pos__(self) -> Vector:
        return Vector(self.x + 100, self.y)

    def __invert__(self) -> Vector:
        return Vector(self.x, self.y + 1000)

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.x + other.x, self.y + other.y)

    def __iadd__(self, other: Vector) -> Vector:
        return Vector(self.x + 7 * other.x, self.y)


@gives(2, 14, 28, 44)
@kernel
def struct_operators_that_scalars_lack(cx: Invocation, data: Words, out: Words) -> None:
    v = Vector(data[cx.global_id], U32(1))
    out[cx.global_id] = v @ Vector(U32(1), U32(2)) + (v**10 @ Vector(data[cx.global_id], U32(0)))


@gives(7, 111, 115, 1126)
@kernel
def reflected_and_unary_operators_of_a_struct(cx: Invocation, data: Words, out: Words) -> None:
    v = Vector(data[cx.global_id], U32(7))
    out[cx.global_id] = (3 * v).x + (+v).x * U32(v.x > 0) + (~v).y * U32(v.x > 2) + (-v).x


@gives(14, 15, 16, 17)
@kernel
def a_struct_is_augmented_by_a_method_of_its_own(cx: Invocation, data: Words, out: Words) -> None:
    v = Vector(data[cx.global_id], U32(0))
    v += Vector(U32(2), U32(0))
    kept: Registers[Vector] = Registers(Vector, 1)
    kept[0] = v
    kept[0] += Vector(U32(0), U32(3))
    out[cx.global_id] = kept[0].x + kept[0].y


@gives(0, 0, 3, 2)
@kernel
def conditions_with_a_known_number(cx: Invocation, data: Words, out: Words) -> None:
    """Where only the truth of `and` and `or` matters, a number is true or false as in Python."""
    x = data[cx.global_id]
    one = U32(1) if x > 1 and ALWAYS else U32(0)
    out[cx.global_id] = one + U32(not (x != 2 or not (x == 2 and ALWAYS))) * 2 + U32(x == 3 and True)


class Suit(Enum):
    CLUBS = 0
    HEARTS = 1
    SPADES = 5


@attrs.frozen
class Card:
    suit: Suit
    rank: U32


def worth(card: Card) -> U32:
    match card.suit:
        case Suit.CLUBS:
            return card.rank
        case Suit.HEARTS | Suit.SPADES:
            return card.rank * 10
        case _:
            assert_never(card.suit)


@gives(0, 10, 20, 3)
@kernel
def a_case_that_is_never_reached(cx: Invocation, data: Words, out: Words) -> None:
    rank = data[cx.global_id]
    suit = Suit.SPADES if rank < 3 else Suit.CLUBS
    out[cx.global_id] = worth(Card(suit, rank))


@attrs.frozen
class Plain:
    x: U32

    def __add__(self, other: Plain) -> Plain:
        return Plain(self.x + other.x)

    def __radd__(self, other: Plain) -> Plain:
        return Plain(U32(50))

    def __lt__(self, other: Plain) -> Bool:
        return self.x < other.x

    def __gt__(self, other: Plain) -> Bool:
        return self.x == other.x


@attrs.frozen
class Derived(Plain):
    def __radd__(self, other: Plain, more: U32 = HUNDRED) -> Plain:
        return Plain(self.x + other.x + more)


@attrs.frozen
class Heir(Plain):
    """To Python what it has inherited is no answer of its own to a sum."""


@gives(1100, 1201, 1302, 1403)
@kernel
def a_derived_class_answers_first(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    total = Plain(x) + Derived(x)
    total += Heir(x)
    out[cx.global_id] = total.x + U32(Plain(x) < Derived(x)) * 1000 + (Derived(x) + Plain(x * 99)).x - x * 2


def more(number: int, x: U32) -> U32:
    return x + number * 2


@gives(79, 85, 91, 97)
@kernel
def numbers_of_enums(cx: Invocation, data: Words, out: Words) -> None:
    """To Python they are ints: they become scalars beside one."""
    suit = Suit.SPADES if data.length > 3 else Suit.CLUBS
    number, x = suit.value, data[cx.global_id]
    suit = Suit.HEARTS if data.length > 3 else suit
    sums = U32(U64(x) + number) + (x << number) // 8 + bitcast(U32, F32(x) * 0.0 + number) % 101
    out[cx.global_id] = sums + more(number, x) + U32(number > 4) + U32(number == 2) + suit.value + (number * 2 + 1) % 7


@gives(1, 1, 0, 1)
@kernel
def inverted_comparisons(cx: Invocation, data: Words, out: Words) -> None:
    suit = Suit.SPADES if data[cx.global_id] == 2 else Suit.CLUBS
    out[cx.global_id] = U32(~(data[cx.global_id] == 2) & ~Bool(suit == Suit.SPADES))


@kernel
def adds_a_neighbour(cx: Invocation, data: Words, out: Words) -> None:
    cx.barrier()
    out[cx.global_id] = data[(cx.global_id + 1) % data.length] + 10


@gives(12, 14, 16, 14)
@kernel
def a_kernel_calls_another(cx: Invocation, data: Words, out: Words) -> None:
    adds_a_neighbour(cx, data, out)
    out[cx.global_id] += data[cx.global_id] + 1


@gives(0, 0, 2, 2)
@kernel
def nearest_integers_of_floats(cx: Invocation, data: Words, out: Words) -> None:
    """As docs/kernel-language.md has it: floats do not convert."""
    x = F32(data[cx.global_id]) * 0.5 + F32(data[cx.global_id] // 2) * 0.5
    out[cx.global_id] = bitcast(U32, x + 8388608.0) & 0x7FFFFF


def ranked(suit: Suit, x: U32) -> tuple[int, U32]:
    if x > 1:
        return suit.value, x
    return suit.value, x + 1


@gives(12, 15, 16, 19)
@kernel
def numbers_of_enums_in_tuples(cx: Invocation, data: Words, out: Words) -> None:
    x = data[cx.global_id]
    suit = Suit.SPADES if data.length > 3 else Suit.CLUBS
    number, more = ranked(suit, x)
    pair = (suit.value, x) if x > 1 else (suit.value + 1, x)
    out[cx.global_id] = more + number
    out[cx.global_id] += pair[1] * 2 + pair[0]
