"""Keys: order-preserving transforms from elements to unsigned words, which sorting moves and compares, and back. They
are bijections: every bit comes back, that of -0.0, and a NaN's payload."""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar, cast

import attrs

from .errors import InvalidArgumentError
from .intrinsics import minimum
from .scalars import U8, U16, U32, U64, Bool

E = TypeVar("E")
WordT = TypeVar("WordT", bound="Word")
Memory = TypeVar("Memory", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


class Word(Protocol):
    """A total order, which is all that a comparison sort needs. U32 and U64 have one; a frozen attrs class may."""

    def __lt__(self, other: Self, /) -> Bool: ...


class SortableKey(Protocol[E, WordT]):
    """The trait of what can be sorted: elements E in memory, words W to compare by."""

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
        """The greatest word: padding where there is no element."""
        ...

    def to_word(self, element: E, /) -> WordT:
        """The word that orders an element. A bijection."""
        ...

    def from_word(self, word: WordT, /) -> E:
        """The element of a word: the inverse of to_word."""
        ...

    def to_rank(self, element: E, /) -> WordT:
        """Like to_word, but elements that compare equal have one rank: 0.0 and -0.0; all NaNs."""
        ...

    def mirrored(self, word: WordT, /) -> WordT:
        """The word for descending order; what sorts last in both orders is unchanged. Its own inverse."""
        ...


def is_lossy(key: SortableKey[E, WordT]) -> bool:
    """Whether different elements may have one word, which a key declares by `is_lossy = True`. Then from_word is not
    used, and elements with the same word keep their order."""
    return bool(getattr(key, "is_lossy", False))


def no_inverse(key: object, given: object, found: object) -> InvalidArgumentError:
    """For a key that gives another element back than it was given, and does not declare it."""
    return InvalidArgumentError(
        f"key: {key} makes {found} of the word of {given}; from_word must give back the element, or the key must say "
        "`is_lossy = True`"
    )


@attrs.frozen
class _BitsKey(Generic[Memory, W]):
    """The base of keys over `bits` bits, each of whose words is a number's."""

    element: type[Memory]
    word: type[W]
    bits: int

    @property
    def greatest(self) -> W:
        return self.word((1 << self.word.type.bits) - 1)

    @property
    def last(self) -> int:
        """The greatest word that `mirrored` reverses."""
        return (1 << self.bits) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    def mirrored(self, word: W) -> W:
        return self.last - word


@attrs.frozen
class UnsignedKey(_BitsKey[Memory, W]):
    """Unsigned integers; also bool, as a byte. Of integers a word is the element with some bits flipped, here none."""

    @property
    def flipped(self) -> int:
        return 0

    @property
    def zero(self) -> W:
        """The rank of the element that is false."""
        return self.word(self.flipped)

    def to_word(self, element: Memory) -> W:
        return self.word(element) ^ self.flipped

    def from_word(self, word: W) -> Memory:
        return self.element(word ^ self.flipped)

    def to_rank(self, element: Memory) -> W:
        return self.to_word(element)


@attrs.frozen
class SignedKey(UnsignedKey[Memory, W]):
    """Two's complement integers: the sign bit flipped."""

    @property
    def flipped(self) -> int:
        return self.sign


@attrs.frozen
class TimeKey:
    """datetime64 and timedelta64: signed integers, of which the least is NaT and sorts last in both orders."""

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
        return (1 << 64) - 2  # the next word is NaT's

    def to_word(self, element: U64) -> U64:
        return element - ((1 << 63) + 1)

    def from_word(self, word: U64) -> U64:
        return word + ((1 << 63) + 1)

    def to_rank(self, element: U64) -> U64:
        return self.to_word(element)

    def mirrored(self, word: U64) -> U64:
        return self.last - word if word <= self.last else word


@attrs.frozen
class FloatKey(_BitsKey[Memory, W]):
    """IEEE 754 floats, as unsigned integers of the same bits.

    Flipping all bits of a negative and the sign bit of a positive orders numbers, with NaNs at both ends. Subtracting
    -inf's word, modulo the width, then moves the negative NaNs to the top, so every NaN sorts last.
    """

    infinity: int  # the bits of +inf

    @property
    def zero(self) -> W:
        return self.word(self.sign - self.lowest)

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1

    @property
    def lowest(self) -> int:
        """-inf with its bits flipped: the least number."""
        return self.mask ^ (self.sign | self.infinity)

    @property
    def last(self) -> int:
        """The word of +inf; greater words are NaNs."""
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
        """The rank of the element with a word."""
        merged = self.zero if word == self.zero - 1 else word  # -0.0 is one below 0.0
        return minimum(merged, self.word(self.last + 1))

    def mirrored(self, word: W) -> W:
        return self.last - word if word <= self.last else word


@attrs.frozen
class KeyWrapper(Generic[E, WordT]):
    """The base of adapters: another key's elements and words."""

    key: SortableKey[E, WordT]

    @property
    def element(self) -> type[E]:
        return self.key.element

    @property
    def word(self) -> type[WordT]:
        return self.key.word

    @property
    def greatest(self) -> WordT:
        return self.key.greatest

    def from_word(self, word: WordT) -> E:
        return self.key.from_word(word)

    def mirrored(self, word: WordT) -> WordT:
        return self.key.mirrored(word)

    def to_word(self, element: E) -> WordT:
        return self.key.to_word(element)

    def to_rank(self, element: E) -> WordT:
        return self.key.to_rank(element)


@attrs.frozen
class RankKey(KeyWrapper[E, WordT]):
    """Orders elements by another key's ranks: lossy, for stable sorts that move indices or values."""

    @property
    def is_lossy(self) -> bool:
        return True

    @property
    def bits(self) -> int | None:
        said: object = getattr(self.key, "bits", None)
        return said if isinstance(said, int) else None

    def to_word(self, element: E) -> WordT:
        return self.key.to_rank(element)


class RankedKey(SortableKey[E, W], Protocol[E, W]):
    """A key that also knows which words are numbers and which is zero, as extrema and truth tests need."""

    @property
    def last(self) -> int: ...  # the greatest word of a number; greater ones are NaN or NaT
    @property
    def zero(self) -> W: ...  # the rank of zero, the element that is false


@attrs.frozen
class OrdinaryKey(KeyWrapper[E, W]):
    """Wraps a user's key, which has no NaN or NaT, and of whose elements none is false."""

    @property
    def last(self) -> int:
        return (1 << self.key.word.type.bits) - 1

    @property
    def zero(self) -> W:
        return self.key.greatest


def ranked(key: SortableKey[E, W]) -> RankedKey[E, W]:
    """A key as it is if it has `last` and `zero`, else wrapped."""
    if hasattr(key, "last") and hasattr(key, "zero"):
        return cast("RankedKey[E, W]", key)
    return OrdinaryKey(key)
