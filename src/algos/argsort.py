"""Argsort by the bitonic network, where no radix sort is chosen: sorts (word, index) pairs, which makes it stable."""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar, cast

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Role, Schedule
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey
from ..types.memory import Storage
from ..types.params import BitonicPolicy, RowsParams
from ..types.scalars import U32, U64, Bool
from .bitonic import bitonic_launches, to_ordered
from .sizes import require_countable

E = TypeVar("E")
W = TypeVar("W", U32, U64)


@attrs.frozen(order=False)
class Placed(Generic[W]):
    """A word with its index in the row, as tie-breaker: no two are equal, so any sort of them is stable."""

    word: W
    place: U32

    def __lt__(self, other: Self, /) -> Bool:
        return (self.word < other.word) | ((self.word == other.word) & (self.place < other.place))


@attrs.frozen
class PlacedKey(Generic[W]):
    """The key of Placed words, which compare as they are."""

    of: type[W]
    element: type[Placed[W]]
    word: type[Placed[W]]

    @property
    def greatest(self) -> Placed[W]:
        return Placed(self.of((1 << self.of.type.bits) - 1), U32((1 << 32) - 1))

    def to_word(self, element: Placed[W]) -> Placed[W]:
        return element

    def from_word(self, word: Placed[W]) -> Placed[W]:
        return word

    def to_rank(self, element: Placed[W]) -> Placed[W]:
        return element

    def mirrored(self, word: Placed[W]) -> Placed[W]:
        return word


def placed_key(word: type[Any]) -> PlacedKey[Any]:
    """The key of Placed words of a class."""
    entry: Any = placed_class(word)
    return PlacedKey(word, entry, entry)


@kernel
def place_words(
    cx: Invocation, key: SortableKey[E, W], data: Storage[E], placed: Storage[Placed[W]], params: RowsParams,
    order: SortOrder,
) -> None:  # fmt: skip
    """Writes every element's word with its index in the row."""
    for i in dynamic_range(cx.global_id, params.num_rows * params.length, cx.num_groups * cx.group_size):
        placed[i] = Placed(to_ordered(key, data[i], order), i % params.length)


@kernel
def take_places(
    cx: Invocation, of: type[W], placed: Storage[Placed[W]], places: Storage[U64], params: RowsParams
) -> None:
    """Extracts the indices, widened to 64 bits as NumPy's."""
    for i in dynamic_range(cx.global_id, params.num_rows * params.length, cx.num_groups * cx.group_size):
        places[i] = U64(placed[i].place)


def placed_class(word: type[W]) -> type[Placed[W]]:
    """`Placed[word]`, for a class that is known at run time only."""
    return cast("type[Placed[W]]", cast(Any, Placed)[word])


def bitonic_argsort(
    key: SortableKey[E, W], rows: int, length: int, order: SortOrder, policy: BitonicPolicy
) -> Schedule:
    """Writes the permutation that sorts each row of `data` into `places` (U64); stable."""
    own: SortableKey[Any, Any] = placed_key(key.word)
    require_countable(rows, length)
    count = rows * length
    data, places = Buffer("data", key.element, count, Role.INPUT), Buffer("places", U64, count, Role.OUTPUT)
    placed: Buffer[Any] = Buffer("placed", own.element, count, Role.SCRATCH)
    if count == 0:
        return Schedule((data, places, placed), ())
    params = RowsParams(U32(rows), U32(length))
    grid = Grid(min(1024, -(-count // policy.group_size)), policy.group_size)
    return Schedule(
        (data, places, placed),
        (
            place_words.launch(grid, key, data, placed, params, order),
            *bitonic_launches(own, placed, rows, length, SortOrder.ASCENDING, policy),
            take_places.launch(grid, key.word, placed, places, params),
        ),
    )
