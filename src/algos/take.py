"""How an invocation of a reduction takes a block: so many elements, a step apart, into its running total.

All loads of a block are issued before any is waited for, so that memory answers them together. Then its elements
combine in pairs, and only what they come to goes into the total: one total leaves registers to the loads, and a float
sum is rounded once for each halving of a block, and once a block.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, cast

import attrs

from ..types.intrinsics import dynamic_range, exact_sum, minimum
from ..types.memory import Registers, Storage
from ..types.monoids import Monoid, Ranked, Search
from ..types.params import ReducePolicy
from ..types.scalars import U32, U64

E = TypeVar("E")
S = TypeVar("S")
W = TypeVar("W", U32, U64)


class Taking(Protocol[E, S]):
    """The trait of how a block goes into a total."""

    @property
    def element(self) -> type[E]:
        """The class of an element in memory."""
        ...

    @property
    def state(self) -> type[S]:
        """The class of a total."""
        ...

    def take(self, total: S, found: Registers[E], index: U32, step: U32, count: U32, policy: ReducePolicy, /) -> S:
        """The total with the first `count` of the elements found. The first stands at `index` of its row, each other a
        step behind, and all behind those of the total."""
        ...


@attrs.frozen
class InPairs(Generic[E, S]):
    """For any monoid."""

    monoid: Monoid[E, S]

    @property
    def element(self) -> type[E]:
        return self.monoid.element

    @property
    def state(self) -> type[S]:
        return self.monoid.state

    def take(self, total: S, found: Registers[E], index: U32, step: U32, count: U32, policy: ReducePolicy) -> S:
        states: Registers[S] = Registers(self.state, policy.items)
        for i in dynamic_range(U32(0), U32(policy.items)):
            states[i] = self.monoid.lift(found[i], index + i * step) if i < count else self.monoid.identity()
        for width in policy.halvings:
            half = (width + 1) // 2
            for low in range(width - half):
                states[low] = self.monoid.combine(states[low], states[low + half])
        return self.monoid.combine(total, states[0])


@attrs.frozen
class ByRank(Generic[E, W]):
    """For what is looked for: of a block only the least word is found, which is cheap, and where it stands if it comes
    before the total. That is seldom."""

    search: Search[E, W]

    @property
    def element(self) -> type[E]:
        return self.search.element

    @property
    def state(self) -> type[Ranked[W]]:
        return self.search.state

    def take(
        self, total: Ranked[W], found: Registers[E], index: U32, step: U32, count: U32, policy: ReducePolicy
    ) -> Ranked[W]:
        nothing = self.search.identity()
        words: Registers[W] = Registers(self.search.key.word, policy.items)
        least = nothing.rank
        for i in dynamic_range(U32(0), U32(policy.items)):
            words[i] = self.search.word(found[i]) if i < count else nothing.rank
            least = minimum(least, words[i])
        rank = self.search.rank(least)
        if (count > 0) & Ranked(rank, index).precedes(total):
            place = nothing.index
            for i in dynamic_range(U32(0), U32(policy.items)):
                if self.search.rank(words[i]) == rank:
                    place = minimum(place, index + i * step)
            total = Ranked(rank, place)
        return total


def taking_of(monoid: Monoid[E, S]) -> Taking[E, S]:
    """How blocks go into a monoid's total."""
    searches = isinstance(cast(object, monoid), Search)
    return cast("Taking[E, S]", ByRank(cast("Search[Any, Any]", monoid)) if searches else InPairs(monoid))


def take_block(
    taking: Taking[E, S], total: S, data: Storage[E], first: U32, stride: U32, index: U32, step: U32,
    policy: ReducePolicy,
) -> S:  # fmt: skip
    """A whole block: elements from `index` of a row on, which begins at `first`; `stride` is from one to the next."""
    found: Registers[E] = Registers(taking.element, policy.items)
    place = first + index * stride
    for i in dynamic_range(U32(0), U32(policy.items)):
        found[i] = data[exact_sum(place, i * (step * stride))]
    return taking.take(total, found, index, step, U32(policy.items), policy)


def take_rest(
    taking: Taking[E, S], total: S, data: Storage[E], first: U32, stride: U32, whole: U32, length: U32, rank: U32,
    step: U32, policy: ReducePolicy,
) -> S:  # fmt: skip
    """What is left of a row behind its whole blocks: less than one of each rank together. What lies beyond is not
    taken, though the row's last element is loaded in its place."""
    found: Registers[E] = Registers(taking.element, policy.items)
    for i in dynamic_range(U32(0), U32(policy.items)):
        found[i] = data[first + minimum(whole + rank + i * step, length - 1) * stride]
    rest = length - whole
    count = (rest - minimum(rank, rest) + step - 1) // step
    return taking.take(total, found, whole + rank, step, count, policy)
