"""Where a sweep gets keys and values from, and where it writes them.

The host does not know which passes run, so the plan says at run time between which memories this one moves elements.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from ..types.digits import DigitPlace
from ..types.indices import SortOrder
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Registers, Storage, Workgroup
from ..types.params import RadixPolicy
from ..types.scalars import U8, U16, U32, U64
from .radix_layout import TilePlace
from .radix_tile import RadixMode, Strand, load_tile, place_numbers, place_values, store_keys, store_values
from .sweep_state import PassPlan

A = TypeVar("A", U8, U16, U32, U64)
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)


@attrs.frozen
class SweepKeys(Generic[A, W]):
    """The keys, and the memories that they may lie in."""

    key: SortableKey[A, W]
    plain: UnsignedKey[A, W]  # of the words that the first pass has made
    data: Storage[A]
    results: Storage[A]
    words: Storage[A]

    def load(
        self, plan: PassPlan, order: SortOrder, here: TilePlace, strand: Strand, mine: Registers[W],
        mode: RadixMode[V], policy: RadixPolicy,
    ) -> None:  # fmt: skip
        """Reads the strand's keys: as words, which the first pass that runs makes of them."""
        if plan.reads_data():
            if mode.in_place:
                load_tile(self.key, self.results, order, here, strand, mine, policy)
            else:
                load_tile(self.key, self.data, order, here, strand, mine, policy)
        elif plan.goes_into_words():
            load_tile(self.plain, self.results, SortOrder.ASCENDING, here, strand, mine, policy)
        else:
            load_tile(self.plain, self.words, SortOrder.ASCENDING, here, strand, mine, policy)

    def write(
        self, cx: Invocation, plan: PassPlan, tile: Workgroup[W], order: SortOrder, bases: Workgroup[U32],
        targets: Registers[U32], here: TilePlace, place: DigitPlace, mode: RadixMode[V], policy: RadixPolicy,
    ) -> None:  # fmt: skip
        """Writes the sorted tile: elements at the end, words before. Keeps in mind where each went, for its value."""
        results, words, ascending = self.results, self.words, SortOrder.ASCENDING
        if plan.is_last():
            store_keys(cx, tile, self.key, results, order, mode.keeps_keys, here, bases, targets, place, policy)
        elif plan.goes_into_words():
            store_keys(cx, tile, self.plain, words, ascending, True, here, bases, targets, place, policy)
        else:
            store_keys(cx, tile, self.plain, results, ascending, True, here, bases, targets, place, policy)


@attrs.frozen
class SweepValues(Generic[V]):
    """The values, the memories that they may lie in, and where a tile of them is put in order."""

    values: Storage[V]
    moved: Storage[V]
    spare: Storage[V]
    beside: Workgroup[V]

    def put(
        self, plan: PassPlan, here: TilePlace, strand: Strand, places: Registers[U32], mode: RadixMode[V],
        policy: RadixPolicy,
    ) -> None:  # fmt: skip
        """Reads the strand's values, each into its key's place in the sorted tile."""
        if plan.reads_data():
            if mode.counts_places:
                place_numbers(mode.value, here, strand, places, self.beside, policy)
            else:
                place_values(self.values, here, strand, places, self.beside, policy)
        elif plan.goes_into_words():
            place_values(self.moved, here, strand, places, self.beside, policy)
        else:
            place_values(self.spare, here, strand, places, self.beside, policy)

    def write(
        self, cx: Invocation, plan: PassPlan, targets: Registers[U32], here: TilePlace, policy: RadixPolicy
    ) -> None:
        """Writes the values to where their keys went."""
        if plan.goes_into_words():
            store_values(cx, self.beside, self.spare, targets, here, policy)
        else:
            store_values(cx, self.beside, self.moved, targets, here, policy)
