"""Monoids that find where an element stands."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeGuard, TypeVar

import attrs

from .keys import FloatKey
from .monoids import OfKeys
from .ranked_keys import RankedKey
from .scalars import U32, U64, Bool

E = TypeVar("E")
W = TypeVar("W", U32, U64)


@attrs.frozen
class Ranked(Generic[W]):
    """A rank and where it stands. Of equal ranks the first counts."""

    rank: W
    index: U32

    def precedes(self, other: Ranked[W]) -> Bool:
        return (self.rank < other.rank) | ((self.rank == other.rank) & (self.index < other.index))


@attrs.frozen
class Search(OfKeys[E, W]):
    """Those that tell where an element stands: the first of the least rank.

    A rank tells less than a word: equals share one. So the rank of the least word is the least rank, and of many words
    only that of the least has to be known.
    """

    @property
    def state(self) -> type[Ranked[W]]:
        return Ranked[self.key.word]  # type: ignore[name-defined]  # the alias is made from a class known at run time

    @abstractmethod
    def word(self, element: E) -> W:
        """The less, the sooner the element is found."""

    @abstractmethod
    def rank(self, word: W) -> W:
        """The same of an element with this word, but one for all that are equal."""

    def identity(self) -> Ranked[W]:
        return Ranked(self.key.word((1 << self.key.word.type.bits) - 1), U32(0xFFFFFFFF))

    def lift(self, element: E, index: U32) -> Ranked[W]:
        return Ranked(self.rank(self.word(element)), index)

    def combine(self, a: Ranked[W], b: Ranked[W]) -> Ranked[W]:
        return a if a.precedes(b) else b

    def _word(self, element: E) -> W:
        return self.key.to_word(element) if _tells_ranks(self.key) else self.key.to_rank(element)

    def _rank(self, word: W) -> W:
        return self.key.rank_of(word) if _tells_ranks(self.key) else word


def _tells_ranks(key: RankedKey[E, W]) -> TypeGuard[FloatKey[Any, W]]:
    """Whether a rank is made of a word, and there is something to it. Of a user's key only elements have ranks."""
    return isinstance(key, FloatKey)


@attrs.frozen
class ArgMin(Search[E, W]):
    """Where the least element stands; the first of equals, and the first NaN before anything else."""

    def word(self, element: E) -> W:
        return self._word(element) - self.key.word(self.key.last) - 1

    def rank(self, word: W) -> W:
        return self._rank(word + self.key.word(self.key.last) + 1) - self.key.word(self.key.last) - 1


@attrs.frozen
class ArgMax(Search[E, W]):
    """Where the greatest element stands; the first of equals, and the first NaN before anything else."""

    def word(self, element: E) -> W:
        return ~self._word(element)

    def rank(self, word: W) -> W:
        return ~self._rank(~word)
