"""The schedule of radix sort in both forms: with sweeps, or with counting launches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeVar

import attrs

from ..kernel.language import *
from ..kernel.launch import unbound
from ..machine import Limits
from ..types.errors import InvalidArgumentError
from ..types.keys import KeyWrapper, UnsignedKey
from ..types.params import RadixPolicy
from .batch import Batch, Mode, Three
from .fit import plain_grid
from .radix import Histograms, radix_add_up, radix_count, radix_scatter, spans_of
from .radix_layout import DigitPlace, Layout
from .radix_sweep import sweep
from .sizes import LARGEST_U32, countable_rows, require_countable, require_digits
from .sweep_state import MOST_ROUNDS, SweepState, prepare, sweep_clear

_MOST_BITS = 64  # of a word
_MOST_SHARED = 1 << 24  # words of scratch memory for counts, with many rows


@kernel
def widen_places(cx: Invocation, places: Storage[U32], wide: Storage[U64], num_elements: U32) -> None:
    """Widens indices to 64 bits, as NumPy's."""
    for i in dynamic_range(cx.global_id, num_elements, cx.num_groups * cx.group_size):
        wide[i] = U64(places[i])


def widened(count: int, *, limits: Limits) -> Schedule:
    places, wide = Buffer("places", U32, count, Role.INPUT), Buffer("wide", U64, count, Role.OUTPUT)
    return Schedule((places, wide), (widen_places.launch(plain_grid(count, limits), places, wide, U32(count)),))


def radix_sort(batch: Batch, policy: RadixPolicy, key_bits: int, shares: bool = False) -> Schedule:
    """Sorts every row, stably. With `shares`, all counting passes, in either order, share their kernels. `key_bits` is
    the number of low bits of a word that can differ; in place, their digits must be even in number."""
    return _RadixSort(batch, policy, key_bits, shares).schedule()


def shared_words(rows: int, length: int, passes: int, policy: RadixPolicy) -> int:
    """The words of scratch memory for counts, where there are many."""
    if policy.sweeps:
        return SweepState(rows, length, passes, policy).at.end if rows * length else 0
    return (rows * -(-length // policy.tile) + 1) * policy.radix


def most_radix_rows(policy: RadixPolicy, length: int, groups: int) -> int:
    """The rows that fit one schedule, on a target with `groups` workgroups a launch; 0 if one row does not fit. Scratch
    memory for counts is limited: beyond some number of rows, larger batches are no faster."""
    passes = -(-_MOST_BITS // policy.digit_bits) if policy.sweeps else 0
    tiles = max(1, -(-length // policy.tile))
    is_long = policy.sweeps and length > policy.portion
    launched = SweepState(1, length, passes, policy).portion_tiles if is_long else tiles
    if length > LARGEST_U32 or launched > groups or shared_words(1, length, passes, policy) > LARGEST_U32:
        return 0
    if is_long or (policy.sweeps and groups < MOST_ROUNDS * policy.count_groups):
        return 1
    taken = (tiles + passes) * policy.radix
    most = min(countable_rows(length), groups // max(tiles, passes), _MOST_SHARED // taken)
    return max(1, most)


@attrs.frozen
class SwitchedKey(KeyWrapper[A, N]):
    """A key with a run-time switch, so that all passes share a kernel: where it is off, elements are words already."""

    is_on: Bool
    mirrors: Bool  # whether words are mirrored too, for descending order

    @classmethod
    def of(cls, key: SortableKey[Any, Any], is_on: bool, order: SortOrder) -> SwitchedKey[Any, Any]:
        """The key for one pass; the order is part of its words."""
        return SwitchedKey[Any, Any](key, Bool(is_on), Bool(is_on and order is SortOrder.DESCENDING))

    def to_word(self, element: A) -> N:
        word = self.key.word(element)
        if self.is_on:
            word = self.key.to_word(element)
        if self.mirrors:
            word = self.key.mirrored(word)
        return word

    def from_word(self, word: N) -> A:
        if self.mirrors:
            word = self.key.mirrored(word)
        element = self.key.element(word)
        if self.is_on:
            element = self.key.from_word(word)
        return element

    def to_rank(self, element: A) -> N:
        return self.to_word(element)


@attrs.frozen
class _RadixSort:
    batch: Batch
    policy: RadixPolicy
    key_bits: int
    shares: bool

    @property
    def passes(self) -> int:
        return -(-self.key_bits // self.policy.digit_bits)

    @property
    def plain(self) -> UnsignedKey[Any, Any]:
        """The key of passes between the first and the last: elements are words already."""
        return UnsignedKey(self.batch.key.element, self.batch.key.word, self.key_bits)

    def schedule(self) -> Schedule:
        batch, policy = self.batch, self.policy
        rows, length = batch.rows, batch.length
        require_countable(rows, length)
        require_digits(self.key_bits, batch.key.word.type.bits)
        if shared_words(rows, length, self.passes, policy) > LARGEST_U32:
            raise InvalidArgumentError(
                f"rows, length: a radix sort of {rows} rows of {length} in tiles of {policy.tile} elements shares more "
                f"than {LARGEST_U32} words"
            )
        if rows > 1 and policy.sweeps and length > policy.portion:
            raise InvalidArgumentError(
                f"rows, length: sweeps take several rows of at most {policy.portion} elements, not {rows} rows of "
                f"{length}"
            )
        if batch.in_place and self.passes % 2 == 1:
            raise InvalidArgumentError(f"a radix sort in place takes an even number of passes, not {self.passes}")
        if not batch.count:
            return batch.schedule(())
        mode = attrs.evolve(batch.mode(U32), keeps_keys=batch.places is None or self.shares)
        keys, values = batch.alternating(mode, self.passes)
        return batch.schedule((self._by_sweeps if policy.sweeps else self._by_counts)(keys, values, mode))

    def _by_sweeps(self, keys: Three, values: Three, mode: Mode[Any]) -> Iterator[Launch]:
        """One launch a pass; for a row beyond 30-bit counts, one for each of its portions."""
        batch, policy = self.batch, self.policy
        state = SweepState(batch.rows, batch.length, self.passes, policy)
        at, layout = state.at, state.layout()
        wide = batch.permutation if mode.widens else unbound(U64)
        yield from prepare(batch.key, keys[0], state, batch.order, batch.in_place)
        for number, tiles in product(range(self.passes), state.sweeps()):
            yield sweep.launch(
                Grid(tiles, policy.group_size), batch.key, self.plain, *keys, *values, wide,
                *self._workgroup(mode), state.buffer(), layout, U32(at.tickets + number), U32(at.plans + number),
                U32(at.starts + number * policy.radix), DigitPlace(U32(number), policy.digit_bits), batch.order, mode,
                policy,
            )  # fmt: skip

    def _by_counts(self, keys: Three, values: Three, mode: Mode[Any]) -> Iterator[Launch]:
        """Three launches a pass: histogram, prefix sum, scatter; with few tiles, no prefix sum."""
        policy, batch = self.policy, self.batch
        of_row = -(-batch.length // policy.tile)
        tiles, has_rows = batch.rows * of_row, batch.rows > 1
        layout = Layout(*map(U32, (batch.length, batch.rows, of_row, 0)), has_rows=has_rows)
        spans = 0 if self.shares else spans_of(batch.rows, tiles)  # an exported module has few kernels
        counts = Buffer("counts", U32, tiles * policy.radix, Role.SCRATCH)
        totals = Buffer("totals", U32, max(1, self.passes * spans) * policy.radix, Role.SCRATCH)
        grid = Grid(tiles, policy.group_size)
        if spans:
            yield sweep_clear.launch(grid, totals, U32(0))
        before, beside = keys[0], values[0]
        for number in range(self.passes):
            is_first, is_last = number == 0, number == self.passes - 1
            place = DigitPlace(U32(number), policy.digit_bits)
            side = 1 if (self.passes - number) % 2 == 1 else 2
            source, target = self._key(is_first), self._key(is_last)
            orders, own = (self._order(is_first), self._order(is_last)), mode.in_pass(is_first, is_last)
            histograms = Histograms(has_rows, U32(number * spans) if spans else None)
            yield radix_count.launch(
                grid, source, before, Workgroup(U32, policy.radix), counts, totals, histograms, layout, place,
                orders[0], policy,
            )  # fmt: skip
            if not spans:
                yield radix_add_up.launch(
                    Grid(policy.radix, policy.group_size), counts, totals, Workgroup(U32, policy.scanned),
                    Workgroup(U32, 1), U32(tiles), policy,
                )  # fmt: skip
            yield radix_scatter.launch(
                grid, source, before, target, keys[side], beside, batch.permutation if own.widens else values[side],
                *self._workgroup(mode), counts, totals, histograms, layout, place, orders, own, policy,
            )  # fmt: skip
            before, beside = keys[side], values[side]

    def _key(self, is_at_end: bool) -> SortableKey[Any, Any]:
        """The key of a pass: the caller's for the first load and the last store, else that of words."""
        if self.shares:
            return SwitchedKey.of(self.batch.key, is_at_end, self.batch.order)
        return self.batch.key if is_at_end else self.plain

    def _order(self, is_at_end: bool) -> SortOrder:
        return self.batch.order if is_at_end and not self.shares else SortOrder.ASCENDING

    def _workgroup(
        self, mode: Mode[Any]
    ) -> tuple[Workgroup[Any], Workgroup[Any], Workgroup[U32], Workgroup[U32], Workgroup[U32]]:
        policy = self.policy
        return (
            Workgroup(self.batch.key.word, policy.tile), Workgroup(mode.value, policy.tile),
            Workgroup(U32, policy.counters), Workgroup(U32, policy.scanned), Workgroup(U32, policy.radix),
        )  # fmt: skip


P = TypeVar("P", U32, U64)


@kernel
def number_elements(cx: Invocation, first: Storage[P], indices: Storage[P], index: type[P], num_elements: U32) -> None:
    """Counts from the element of `first` on."""
    for i in dynamic_range(cx.global_id, num_elements, cx.num_groups * cx.group_size):
        indices[i] = first[0] + index(i)


def numbered(count: int, index: type[Any], *, limits: Limits) -> Schedule:
    """Writes `count` indices from the one in `first` on."""
    first, indices = Buffer("first", index, 1, Role.INPUT), Buffer("indices", index, count, Role.OUTPUT)
    launch = number_elements.launch(plain_grid(count, limits), first, indices, index, U32(count))
    return Schedule((first, indices), (launch,))
