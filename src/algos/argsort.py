"""Argsort by the bitonic network, where no radix sort is chosen: sorts (word, index) pairs, which makes it stable."""

from __future__ import annotations

from typing import Any, Generic, Self, cast

import attrs

from ..kernel.language import *
from ..types.params import BitonicPolicy, RowsParams
from .batch import looping_grid
from .bitonic import bitonic_launches, to_ordered
from .sizes import LARGEST_U32, require_countable


@attrs.frozen(order=False)
class Placed(Generic[N]):
    """A word with its index in the row, as tie-breaker: no two are equal, so any sort of them is stable."""

    word: N
    place: U32

    def __lt__(self, other: Self, /) -> Bool:
        return (self.word < other.word) | ((self.word == other.word) & (self.place < other.place))


@attrs.frozen
class OwnWords(Generic[W]):
    """The base of keys whose elements are words, which compare as they are."""

    element: type[W]
    word: type[W]

    def to_word(self, element: W) -> W:
        return element

    def from_word(self, word: W) -> W:
        return word

    def to_rank(self, element: W) -> W:
        return element

    def mirrored(self, word: W) -> W:
        return word


@attrs.frozen
class PlacedKey(OwnWords[Placed[N]], Generic[N]):
    of: type[N]

    @property
    def greatest(self) -> Placed[N]:
        return Placed(self.of((1 << self.of.type.bits) - 1), U32(LARGEST_U32))


def placed_key(word: type[Any]) -> PlacedKey[Any]:
    entry: Any = placed_class(word)
    return PlacedKey(entry, entry, word)


@kernel
def place_words(
    cx: Invocation, key: SortableKey[E, N], data: Storage[E], placed: Storage[Placed[N]], params: RowsParams,
    order: SortOrder,
) -> None:  # fmt: skip
    """Writes every element's word with its index in the row."""
    for i in dynamic_range(cx.global_id, params.num_rows * params.length, cx.num_groups * cx.group_size):
        placed[i] = Placed(to_ordered(key, data[i], order), i % params.length)


@kernel
def take_places(
    cx: Invocation, of: type[N], placed: Storage[Placed[N]], places: Storage[U64], params: RowsParams
) -> None:
    """Extracts the indices, widened to 64 bits as NumPy's."""
    for i in dynamic_range(cx.global_id, params.num_rows * params.length, cx.num_groups * cx.group_size):
        places[i] = U64(placed[i].place)


def placed_class(word: type[N]) -> type[Placed[N]]:
    """`Placed[word]`, for a class that is known at run time only."""
    return cast("type[Placed[N]]", cast(Any, Placed)[word])


def bitonic_argsort(
    key: SortableKey[E, N], rows: int, length: int, order: SortOrder, policy: BitonicPolicy
) -> Schedule:
    """Writes the permutation that sorts each row of `data` into `places` (U64); stable."""
    own: SortableKey[Any, Any] = placed_key(key.word)
    require_countable(rows, length)
    count = rows * length
    data, places = Buffer("data", key.element, count, Role.INPUT), Buffer("places", U64, count, Role.OUTPUT)
    placed: Buffer[Any] = Buffer("placed", own.element, count, Role.SCRATCH)
    if count == 0:
        return Schedule((data, places), ())
    params, grid = RowsParams(U32(rows), U32(length)), looping_grid(count, policy.group_size)
    launches = (
        place_words.launch(grid, key, data, placed, params, order),
        *bitonic_launches(own, placed, rows, length, SortOrder.ASCENDING, policy),
        take_places.launch(grid, key.word, placed, places, params),
    )
    return Schedule((data, places), launches)
