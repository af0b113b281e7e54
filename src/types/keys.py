"""Keys: how the elements of an array are ordered.

A key turns an element into an unsigned word, such that words compare as the elements should, and back. Sorting moves
and compares words only. The turn is a bijection, so every bit comes back: -0.0, and whatever a NaN carries.
"""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

import attrs

from .intrinsics import minimum
from .scalars import U8, U16, U32, U64, Bool

E = TypeVar("E")
WordT = TypeVar("WordT", bound="Word")
Memory = TypeVar("Memory", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


class Word(Protocol):
    """What a comparison sort needs of a word: an order. U32 and U64 have it; so may a frozen attrs class."""

    def __lt__(self, other: Self, /) -> Bool: ...


class SortableKey(Protocol[E, WordT]):
    """The trait of what can be sorted: elements E as they lie in memory, words W as they compare."""

    @property
    def element(self) -> type[E]:
        """The class of an element in memory."""
        ...

    @property
    def word(self) -> type[WordT]:
        """The class of a word."""
        ...

    @property
    def greatest(self) -> WordT:
        """A word that none is greater than: it stands where there is no element."""
        ...

    def to_word(self, element: E, /) -> WordT:
        """The element's place in the order. A bijection."""
        ...

    def from_word(self, word: WordT, /) -> E:
        """The element with this word: to_word backwards."""
        ...

    def to_rank(self, element: E, /) -> WordT:
        """Like to_word, but elements that compare equal share a rank (0.0 and -0.0; all NaNs)."""
        ...

    def mirrored(self, word: WordT, /) -> WordT:
        """The word's place in descending order; what sorts last in both orders stays. Its own inverse."""
        ...


def is_lossy(key: SortableKey[E, WordT]) -> bool:
    """Whether a key's words do not tell all elements apart, which it says by `is_lossy = True`: its to_word is no
    bijection then, and from_word is not used. Elements with one word keep their order."""
    return bool(getattr(key, "is_lossy", False))


@attrs.frozen
class UnsignedKey(Generic[Memory, W]):
    """Unsigned integers of so many bits; also bool, as a byte."""

    element: type[Memory]
    word: type[W]
    bits: int

    @property
    def greatest(self) -> W:
        return self.word((1 << self.word.type.bits) - 1)

    @property
    def zero(self) -> W:
        """The rank of the element that is false."""
        return self.word(0)

    @property
    def last(self) -> int:
        """The greatest word that is mirrored in descending order."""
        return (1 << self.bits) - 1

    def to_word(self, element: Memory) -> W:
        return self.word(element)

    def from_word(self, word: W) -> Memory:
        return self.element(word)

    def to_rank(self, element: Memory) -> W:
        return self.to_word(element)

    def mirrored(self, word: W) -> W:
        return self.last - word


@attrs.frozen
class SignedKey(Generic[Memory, W]):
    """Two's complement integers of so many bits: the sign bit flipped."""

    element: type[Memory]
    word: type[W]
    bits: int

    @property
    def greatest(self) -> W:
        return self.word((1 << self.word.type.bits) - 1)

    @property
    def zero(self) -> W:
        return self.word(self.sign)

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def last(self) -> int:
        return (1 << self.bits) - 1

    def to_word(self, element: Memory) -> W:
        return self.word(element) ^ self.sign

    def from_word(self, word: W) -> Memory:
        return self.element(word ^ self.sign)

    def to_rank(self, element: Memory) -> W:
        return self.to_word(element)

    def mirrored(self, word: W) -> W:
        return self.last - word


@attrs.frozen
class TimeKey:
    """datetime64 and timedelta64: signed integers whose least is NaT, which sorts last in both orders."""

    element: type[U64] = U64
    word: type[U64] = U64

    @property
    def greatest(self) -> U64:
        return U64((1 << 64) - 1)

    @property
    def zero(self) -> U64:
        return U64((1 << 63) - 1)

    @property
    def last(self) -> int:
        return (1 << 64) - 2  # the word above it is NaT's

    def to_word(self, element: U64) -> U64:
        return element - ((1 << 63) + 1)

    def from_word(self, word: U64) -> U64:
        return word + ((1 << 63) + 1)

    def to_rank(self, element: U64) -> U64:
        return self.to_word(element)

    def mirrored(self, word: U64) -> U64:
        return self.last - word if word <= self.last else word


@attrs.frozen
class FloatKey(Generic[Memory, W]):
    """IEEE 754 floats of so many bits, read as unsigned integers.

    Flipping all bits of a negative and the sign bit of a positive puts the numbers in order, with the NaNs at both
    ends. Counting from -inf instead of from zero, modulo the width, then moves those below it to the top: every NaN
    sorts last, whatever its sign.
    """

    element: type[Memory]
    word: type[W]
    bits: int
    infinity: int  # the bits of +inf

    @property
    def greatest(self) -> W:
        return self.word((1 << self.word.type.bits) - 1)

    @property
    def zero(self) -> W:
        return self.word(self.sign - self.lowest)

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    @property
    def lowest(self) -> int:
        """-inf, once flipped."""
        return self.mask ^ (self.sign | self.infinity)

    @property
    def last(self) -> int:
        """The word of +inf; those above are NaNs."""
        return (self.sign | self.infinity) - self.lowest

    def to_word(self, element: Memory) -> W:
        bits = self.word(element)
        flipped = bits ^ self.mask if (bits & self.sign) != 0 else bits ^ self.sign
        return (flipped - self.lowest) & self.mask

    def from_word(self, word: W) -> Memory:
        flipped = (word + self.lowest) & self.mask
        return self.element(flipped ^ self.sign if (flipped & self.sign) != 0 else flipped ^ self.mask)

    def to_rank(self, element: Memory) -> W:
        return self.rank_of(self.to_word(element))

    def rank_of(self, word: W) -> W:
        """The rank of the element with this word."""
        merged = self.zero if word == self.zero - 1 else word  # -0.0 lies one below 0.0
        return minimum(merged, self.word(self.last + 1))

    def mirrored(self, word: W) -> W:
        return self.last - word if word <= self.last else word


@attrs.frozen
class RankKey(Generic[E, WordT]):
    """Orders elements as another key does, but leaves those that compare equal in the order they came in.

    The way back leads to one of several equals, so it is for sorting that keeps something else.
    """

    key: SortableKey[E, WordT]

    @property
    def is_lossy(self) -> bool:
        return True

    @property
    def bits(self) -> int | None:
        """As many as the other key says."""
        said: object = getattr(self.key, "bits", None)
        return said if isinstance(said, int) else None

    @property
    def element(self) -> type[E]:
        return self.key.element

    @property
    def word(self) -> type[WordT]:
        return self.key.word

    @property
    def greatest(self) -> WordT:
        return self.key.greatest

    def to_word(self, element: E) -> WordT:
        return self.key.to_rank(element)

    def from_word(self, word: WordT) -> E:
        return self.key.from_word(word)

    def to_rank(self, element: E) -> WordT:
        return self.key.to_rank(element)

    def mirrored(self, word: WordT) -> WordT:
        return self.key.mirrored(word)
