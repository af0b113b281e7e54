"""Where a sweep gets keys and values from, and where it writes them.

The host does not know which passes run, so the plan says at run time between which memories this one moves elements.
"""

from __future__ import annotations

from typing import TypeVar

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


def load_keys(
    plan: PassPlan, key: SortableKey[A, W], plain: UnsignedKey[A, W], data: Storage[A], results: Storage[A],
    words: Storage[A], order: SortOrder, here: TilePlace, strand: Strand, mine: Registers[W],
    mode: RadixMode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Reads the strand's keys: as words, which the first pass that runs makes of them."""
    if plan.reads_data():
        if mode.in_place:
            load_tile(key, results, order, here, strand, mine, policy)
        else:
            load_tile(key, data, order, here, strand, mine, policy)
    elif plan.goes_into_words():
        load_tile(plain, results, SortOrder.ASCENDING, here, strand, mine, policy)
    else:
        load_tile(plain, words, SortOrder.ASCENDING, here, strand, mine, policy)


def put_values(
    plan: PassPlan, values: Storage[V], moved: Storage[V], spare: Storage[V], here: TilePlace,
    strand: Strand, places: Registers[U32], beside: Workgroup[V], mode: RadixMode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Reads the strand's values, each into its key's place in the sorted tile."""
    if plan.reads_data():
        if mode.counts_places:
            place_numbers(mode.value, here, strand, places, beside, policy)
        else:
            place_values(values, here, strand, places, beside, policy)
    elif plan.goes_into_words():
        place_values(moved, here, strand, places, beside, policy)
    else:
        place_values(spare, here, strand, places, beside, policy)


def write_keys(
    cx: Invocation, plan: PassPlan, key: SortableKey[A, W], plain: UnsignedKey[A, W], tile: Workgroup[W],
    results: Storage[A], words: Storage[A], bases: Workgroup[U32], targets: Registers[U32],
    here: TilePlace, place: DigitPlace, order: SortOrder, mode: RadixMode[V], policy: RadixPolicy,
) -> None:  # fmt: skip
    """Writes the sorted tile: elements at the end, words before. Keeps in mind where each went, for its value."""
    ascending = SortOrder.ASCENDING
    if plan.is_last():
        store_keys(cx, tile, key, results, order, mode.keeps_keys, here, bases, targets, place, policy)
    elif plan.goes_into_words():
        store_keys(cx, tile, plain, words, ascending, True, here, bases, targets, place, policy)
    else:
        store_keys(cx, tile, plain, results, ascending, True, here, bases, targets, place, policy)


def write_values(
    cx: Invocation, plan: PassPlan, beside: Workgroup[V], moved: Storage[V], spare: Storage[V],
    targets: Registers[U32], here: TilePlace, policy: RadixPolicy,
) -> None:  # fmt: skip
    """Writes the values to where their keys went."""
    if plan.goes_into_words():
        store_values(cx, beside, spare, targets, here, policy)
    else:
        store_values(cx, beside, moved, targets, here, policy)
