"""Loads and stores of a sweep (radix_sweep.py), between the buffers that the pass's plan says.

Passes with nothing to do are skipped on the device, so the host does not know which buffers a pass alternates between.
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
    """The keys, and the buffers that they may be in."""

    key: SortableKey[A, W]
    plain: UnsignedKey[A, W]  # for words, after the first pass
    data: Storage[A]
    results: Storage[A]
    words: Storage[A]

    def load(
        self, plan: PassPlan, order: SortOrder, here: TilePlace, strand: Strand, mine: Registers[W],
        mode: RadixMode[V], policy: RadixPolicy,
    ) -> None:  # fmt: skip
        """Loads the strand's keys as words; the first pass that runs transforms them."""
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
        """Stores the sorted tile: elements in the last pass, words before. Keeps each one's index in `targets`."""
        results, words, ascending = self.results, self.words, SortOrder.ASCENDING
        if plan.is_last():
            store_keys(cx, tile, self.key, results, order, mode.keeps_keys, here, bases, targets, place, policy)
        elif plan.goes_into_words():
            store_keys(cx, tile, self.plain, words, ascending, True, here, bases, targets, place, policy)
        else:
            store_keys(cx, tile, self.plain, results, ascending, True, here, bases, targets, place, policy)


@attrs.frozen
class SweepValues(Generic[V]):
    """The values, the buffers that they may be in, and workgroup memory to sort a tile of them."""

    values: Storage[V]
    moved: Storage[V]
    spare: Storage[V]
    beside: Workgroup[V]

    def put(
        self, plan: PassPlan, here: TilePlace, strand: Strand, places: Registers[U32], mode: RadixMode[V],
        policy: RadixPolicy,
    ) -> None:  # fmt: skip
        """Loads the strand's values, each to its key's index in the sorted tile."""
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
        """Stores the values to their keys' indices in the result."""
        if plan.goes_into_words():
            store_values(cx, self.beside, self.spare, targets, here, policy)
        else:
            store_values(cx, self.beside, self.moved, targets, here, policy)
