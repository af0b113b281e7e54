"""Keys as users write them: lossless and lossy, with branches and loops, of structs, of numbers known at run time."""

from __future__ import annotations

import attrs

from gpusort.types.intrinsics import bitcast, dynamic_range, select
from gpusort.types.memory import Registers
from gpusort.types.scalars import F32, I32, U8, U16, U32, U64


@attrs.frozen
class _Of32:
    """What keys with 32-bit words share."""

    @property
    def word(self) -> type[U32]:
        return U32

    @property
    def greatest(self) -> U32:
        return U32(0xFFFFFFFF)

    def mirrored(self, word: U32) -> U32:
        return ~word


@attrs.frozen
class Absolute(_Of32):
    """Integers by their absolute values: 2 and -2 share a word."""

    element: type[I32] = I32
    is_lossy: bool = True

    def to_word(self, element: I32) -> U32:
        return U32(-element) if element < 0 else U32(element)

    def from_word(self, word: U32) -> I32:
        return I32(word)

    def to_rank(self, element: I32) -> U32:
        return self.to_word(element)


@attrs.frozen
class AbsoluteFirst(_Of32):
    """The same without loss: negatives behind positives of one absolute value. Equal ones compare equal."""

    element: type[I32] = I32

    def to_word(self, element: I32) -> U32:
        return (U32(element) << 1) ^ U32(element >> 31)

    def from_word(self, word: U32) -> I32:
        return I32((word >> 1) ^ (U32(0) - (word & 1)))

    def to_rank(self, element: I32) -> U32:
        return self.to_word(element) + (U32(element) >> 31)


FLIPPED = U32(0)


@attrs.frozen
class Flipped(_Of32):
    """With some bits the other way round, as a global of this module says."""

    element: type[U32] = U32

    def to_word(self, element: U32) -> U32:
        return element ^ FLIPPED

    def from_word(self, word: U32) -> U32:
        return word ^ FLIPPED

    def to_rank(self, element: U32) -> U32:
        return element ^ FLIPPED


@attrs.frozen
class LowBitsFirst(_Of32):
    """By the lowest bits, then by the others; how many are low comes with the call."""

    count: U32
    element: type[U32] = U32

    def to_word(self, element: U32) -> U32:
        low = element & ((U32(1) << self.count) - 1)
        return (low << (32 - self.count)) | (element >> self.count)

    def from_word(self, word: U32) -> U32:
        return (word << self.count) | (word >> (32 - self.count))

    def to_rank(self, element: U32) -> U32:
        return self.to_word(element)


@attrs.frozen
class Nearest(_Of32):
    """By the distance from a number that comes with the call: those on both sides share a word."""

    to: U32
    element: type[U32] = U32
    is_lossy: bool = True

    def to_word(self, element: U32) -> U32:
        return element - self.to if element > self.to else self.to - element

    def from_word(self, word: U32) -> U32:
        return word

    def to_rank(self, element: U32) -> U32:
        return self.to_word(element)


@attrs.frozen
class Folded:
    """Eight letters in a U64, the first the highest: as if all were small. A loop over bytes, with a branch."""

    element: type[U64] = U64
    word: type[U64] = U64
    is_lossy: bool = True

    @property
    def greatest(self) -> U64:
        return U64(2**64 - 1)

    def to_word(self, element: U64) -> U64:
        folded = U64(0)
        for i in dynamic_range(U32(0), U32(8)):
            letter = U32(element >> (i * 8)) & 0xFF
            if letter == 0:
                continue
            if letter >= 65 and letter <= 90:
                letter = letter + 32
            folded = folded | (U64(letter) << (i * 8))
        return folded

    def from_word(self, word: U64) -> U64:
        return word

    def to_rank(self, element: U64) -> U64:
        return self.to_word(element)

    def mirrored(self, word: U64) -> U64:
        return ~word


@attrs.frozen
class Date:
    """A day as a record of a file has it."""

    day: U8
    month: U8
    year: U16


@attrs.frozen
class DateKey(_Of32):
    """Days in their order."""

    element: type[Date] = Date

    def to_word(self, element: Date) -> U32:
        return (U32(element.year) << 16) | (U32(element.month) << 8) | U32(element.day)

    def from_word(self, word: U32) -> Date:
        return Date(U8(word), U8(word >> 8), U16(word >> 16))

    def to_rank(self, element: Date) -> U32:
        return self.to_word(element)


@attrs.frozen
class Trailing(_Of32):
    """By how often two divides a number, counted in a loop that is left early; then by the number."""

    element: type[U16] = U16

    def to_word(self, element: U16) -> U32:
        rest = U32(element)
        twos = U32(0)
        while twos < 16:
            if rest % 2 != 0:
                break
            rest = rest // 2
            twos = twos + 1
        return (twos << 16) | U32(element)

    def from_word(self, word: U32) -> U16:
        return U16(word)

    def to_rank(self, element: U16) -> U32:
        return self.to_word(element)


@attrs.frozen
class Cycled(Trailing):
    """By the rounds until a number's low bits are set, in a loop of which no proof says that it ends; then by it."""

    def to_word(self, element: U16) -> U32:
        rest, rounds = U32(element), U32(0)
        while rest & 7 != 7:
            rest = rest * 5 + 1
            rounds = rounds + 1
        return (rounds << 16) | U32(element)


@attrs.frozen
class InRounds(_Of32):
    """By a sum over as many rounds of a loop as the element's low bits say: each takes some of the elements."""

    element: type[U16] = U16
    is_lossy: bool = True

    def to_word(self, element: U16) -> U32:
        total = U32(0)
        for i in dynamic_range(U32(1), U32(element) & 15, U32(2)):
            total = total * 3 + i
        return total

    def from_word(self, word: U32) -> U16:
        return U16(word)

    def to_rank(self, element: U16) -> U32:
        return self.to_word(element)


@attrs.frozen
class Reciprocal(_Of32):
    """By 1000000 // n, and zero last: no division where the divisor is zero."""

    element: type[U32] = U32
    is_lossy: bool = True

    def to_word(self, element: U32) -> U32:
        if element == 0:
            return U32(0xFFFFFFFF)
        return 1000000 // element

    def from_word(self, word: U32) -> U32:
        return word

    def to_rank(self, element: U32) -> U32:
        return self.to_word(element)


@attrs.frozen
class ClosestTo(_Of32):
    """Floats by their distance from one; floats computed with, and a choice without a branch."""

    element: type[F32] = F32
    is_lossy: bool = True

    def to_word(self, element: F32) -> U32:
        distance = element - 1.0
        return bitcast(U32, select(distance < 0.0, -distance, distance))

    def from_word(self, word: U32) -> F32:
        return bitcast(F32, word)

    def to_rank(self, element: F32) -> U32:
        return self.to_word(element)


@attrs.frozen
class NotTheOther(_Of32):
    """Says that it is a bijection, and is none."""

    element: type[U32] = U32

    def to_word(self, element: U32) -> U32:
        return element >> 1

    def from_word(self, word: U32) -> U32:
        return word << 1

    def to_rank(self, element: U32) -> U32:
        return self.to_word(element)


@attrs.frozen
class WithMemory(NotTheOther):
    """Needs memory of its own."""

    def to_word(self, element: U32) -> U32:
        digits: Registers[U32] = Registers(U32, 2)
        digits[element & 1] = element
        return digits[element & 1]


@attrs.frozen
class OfStructs:
    """Its words are no integers."""

    element: type[U32] = U32
    word: type[Date] = Date

    @property
    def greatest(self) -> Date:
        return Date(U8(255), U8(255), U16(65535))

    def to_word(self, element: U32) -> Date:
        return Date(U8(element), U8(element >> 8), U16(element >> 16))

    def from_word(self, word: Date) -> U32:
        return (U32(word.year) << 16) | (U32(word.month) << 8) | U32(word.day)

    def to_rank(self, element: U32) -> Date:
        return self.to_word(element)

    def mirrored(self, word: Date) -> Date:
        return word


class OfFloats:
    """A key whose elements are floats as they are, which no sort by digits takes."""

    element, word = F32, U32
    greatest = U32(0)

    def to_word(self, element: F32) -> U32:
        return U32(0)

    def from_word(self, word: U32) -> F32:
        return F32(0.0)

    def to_rank(self, element: F32) -> U32:
        return U32(0)

    def mirrored(self, word: U32) -> U32:
        return word
