"""argmin and argmax as monoids; of equal elements the first wins."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeGuard, TypeVar

import attrs

from .keys import FloatKey, RankedKey
from .monoids import OfKeys
from .scalars import U32, U64, Bool

E = TypeVar("E")
W = TypeVar("W", U32, U64)


@attrs.frozen
class Ranked(Generic[W]):
    """A rank with its index; of equal ranks the lower index precedes."""

    rank: W
    index: U32

    def precedes(self, other: Ranked[W]) -> Bool:
        return (self.rank < other.rank) | ((self.rank == other.rank) & (self.index < other.index))


@attrs.frozen
class Search(OfKeys[E, W]):
    """The base of both: the index of the first element of the least rank. The rank of the least word is the least rank,
    so a block of elements is reduced by cheap words, and only the least one's rank is computed."""

    @property
    def state(self) -> type[Ranked[W]]:
        return Ranked[self.key.word]  # type: ignore[name-defined]  # the alias is made from a class known at run time

    @property
    def result(self) -> type[U64]:
        return U64  # as NumPy's indices

    def finish(self, state: Ranked[W]) -> U64:
        return U64(state.index)

    @abstractmethod
    def word(self, element: E) -> W:
        """The word by which elements are searched; the least wins."""

    @abstractmethod
    def rank(self, word: W) -> W:
        """The rank for a word, which is the same for elements that compare equal."""

    def identity(self) -> Ranked[W]:
        return Ranked(self.key.word((1 << self.key.word.type.bits) - 1), U32(0xFFFFFFFF))

    def lift(self, element: E, index: U32) -> Ranked[W]:
        return Ranked(self.rank(self.word(element)), index)

    def combine(self, a: Ranked[W], b: Ranked[W]) -> Ranked[W]:
        return a if a.precedes(b) else b

    def _word(self, element: E) -> W:
        return self.key.to_word(element) if _has_rank_of(self.key) else self.key.to_rank(element)

    def _rank(self, word: W) -> W:
        return self.key.rank_of(word) if _has_rank_of(self.key) else word


def _has_rank_of(key: RankedKey[E, W]) -> TypeGuard[FloatKey[Any, W]]:
    """Whether a key can compute a rank from a word, and they differ. For other keys `word` gives ranks."""
    return isinstance(key, FloatKey)


@attrs.frozen
class ArgMin(Search[E, W]):
    """The index of the least element: the first NaN if there is one, else the first of the least."""

    def word(self, element: E) -> W:
        return self._word(element) - self.key.word(self.key.last) - 1

    def rank(self, word: W) -> W:
        return self._rank(word + self.key.word(self.key.last) + 1) - self.key.word(self.key.last) - 1


@attrs.frozen
class ArgMax(Search[E, W]):
    """The index of the greatest element: the first NaN if there is one, else the first of the greatest."""

    def word(self, element: E) -> W:
        return ~self._word(element)

    def rank(self, word: W) -> W:
        return ~self._rank(~word)
