"""Schedules of radix sort in both forms, with sweeps or counting launches: of keys, key-value pairs, and indices."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import attrs

from ..kernel.kernel import kernel
from ..kernel.launch import Buffer, Grid, Launch, Role, Schedule
from ..types.digits import DigitPlace
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.intrinsics import dynamic_range
from ..types.invocation import Invocation
from ..types.keys import SortableKey, UnsignedKey
from ..types.memory import Storage, Workgroup
from ..types.params import RadixParams, RadixPolicy
from ..types.scalars import U8, U16, U32, U64
from ..types.switched_keys import switched
from .radix import radix_add_up, radix_count, radix_scatter
from .radix_layout import Layout, ManyRows, OneRow
from .radix_sweep import sweep
from .radix_tile import RadixMode
from .sizes import LARGEST_U32, countable_rows, require_countable, require_digits
from .sweep_schedule import MOST_ROUNDS, SweepState, prepare
from .unbound import unbound

A = TypeVar("A", U8, U16, U32, U64)
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)
E = TypeVar("E")
_Three: TypeAlias = tuple[Buffer[E], Buffer[E], Buffer[E]]

_UP = SortOrder.ASCENDING
_MOST_BITS = 64  # of a word
_MOST_SHARED = 1 << 24  # words of scratch memory for counts, with many rows
_WIDENING = Grid(1024, 256)
_NO_VALUES = unbound(U32)


@kernel
def widen_places(cx: Invocation, places: Storage[U32], wide: Storage[U64], params: RadixParams) -> None:
    """Widens indices to 64 bits, as NumPy's."""
    for i in dynamic_range(cx.global_id, params.num_elements, cx.num_groups * cx.group_size):
        wide[i] = U64(places[i])


def widened(count: int) -> Schedule:
    """Widens as many indices."""
    places, wide = Buffer("places", U32, count, Role.INPUT), Buffer("wide", U64, count, Role.OUTPUT)
    return Schedule((places, wide), (_widening(places, wide, count, _WIDENING),))


def _widening(places: Buffer[U32], wide: Buffer[U64], count: int, most: Grid) -> Launch:
    grid = Grid(max(1, min(most.groups, -(-count // most.group_size))), most.group_size)
    return widen_places.launch(grid, places, wide, RadixParams(U32(count)))


def radix_sort(
    key: SortableKey[A, W], rows: int, length: int, order: SortOrder, policy: RadixPolicy, key_bits: int,
    in_place: bool = False, shares: bool = False,
) -> Schedule:  # fmt: skip
    """Sorts every row of `data` into `results`, or in place. With `shares`, all counting passes share their kernels.

    `key_bits` is the number of low bits of a word that can differ; in place, their digits must be even in number.
    """
    count = rows * length
    data = Buffer("data", key.element, count, Role.INOUT if in_place else Role.INPUT)
    results = data if in_place else Buffer("results", key.element, count, Role.OUTPUT)
    words = _between("words", key.element, count, policy, key_bits)
    none: Any = _NO_VALUES
    sort = _RadixSort(key, key_bits, rows, length, order, RadixMode(U32, in_place=in_place), policy, shares)
    arrays: list[Buffer[A]] = [data] if in_place else [data, results]
    return sort.schedule((data, results, words), (none, none, none), (*arrays, words))


def radix_sort_pairs(
    key: SortableKey[A, W], value: type[V], rows: int, length: int, order: SortOrder, policy: RadixPolicy,
    key_bits: int, shares: bool = False,
) -> Schedule:  # fmt: skip
    """Sorts every row of `data` into `results`, and permutes `values` alike into `moved`; stable."""
    count = rows * length
    data, values = Buffer("data", key.element, count, Role.INPUT), Buffer("values", value, count, Role.INPUT)
    results, moved = Buffer("results", key.element, count, Role.OUTPUT), Buffer("moved", value, count, Role.OUTPUT)
    words = _between("words", key.element, count, policy, key_bits)
    spare = _between("spare", value, count, policy, key_bits)
    sort = _RadixSort(key, key_bits, rows, length, order, RadixMode(value, takes_values=True), policy, shares)
    buffers = (data, values, results, moved, words, spare)
    return sort.schedule((data, results, words), (values, moved, spare), buffers)


def radix_argsort(
    key: SortableKey[A, W], rows: int, length: int, order: SortOrder, policy: RadixPolicy, key_bits: int,
    shares: bool = False, wide: bool = True,
) -> Schedule:  # fmt: skip
    """Writes the permutation that sorts each row of `data` into `places`, as U64 if `wide`, else U32; stable."""
    count = rows * length
    data, places = Buffer("data", key.element, count, Role.INPUT), Buffer("places", U64, count, Role.OUTPUT)
    results = _between("results", key.element, count, policy, key_bits)
    words = _between("words", key.element, count, policy, key_bits)
    spare = _between("spare", U32, count, policy, key_bits)
    mode = RadixMode(U32, takes_values=True, counts_places=True, keeps_keys=shares)
    sort = _RadixSort(key, key_bits, rows, length, order, mode, policy, shares)
    if not wide:
        short = Buffer("places", U32, count, Role.OUTPUT)
        return sort.schedule((data, results, words), (_NO_VALUES, short, spare), (data, short, results, words, spare))
    moved = Buffer("moved", U32, count, Role.SCRATCH)
    made: Schedule = sort.schedule(
        (data, results, words), (_NO_VALUES, moved, spare), (data, places, results, words, moved, spare)
    )
    if not count:
        return made
    widening = _widening(moved, places, count, Grid(policy.count_groups, policy.group_size))
    return Schedule(made.buffers, (*made.launches, widening))


def _between(name: str, element: type[A], count: int, policy: RadixPolicy, key_bits: int) -> Buffer[A]:
    """The scratch buffer that passes alternate with; minimal if there is one pass."""
    return Buffer(name, element, count if key_bits > policy.digit_bits else min(1, count), Role.SCRATCH)


def shared_words(rows: int, length: int, passes: int, policy: RadixPolicy) -> int:
    """The words of scratch memory for counts."""
    if policy.sweeps:
        return SweepState(rows, length, passes, policy).words if rows * length else 0
    return (rows * -(-length // policy.tile) + 1) * policy.radix + 1


def most_radix_rows(policy: RadixPolicy, length: int, groups: int) -> int:
    """The rows that fit one schedule, on a target with `groups` workgroups a launch; 0 if one row does not fit.

    Scratch memory for counts is limited: beyond some number of rows, larger batches are no faster.
    """
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
class _RadixSort:
    """The parameters of a sort of rows, common to its launches."""

    key: SortableKey[Any, Any]
    key_bits: int
    rows: int
    length: int
    order: SortOrder
    mode: RadixMode[Any]
    policy: RadixPolicy
    shares: bool = False  # whether all counting passes, in either order, share their kernels

    @property
    def passes(self) -> int:
        return -(-self.key_bits // self.policy.digit_bits)

    @property
    def plain(self) -> UnsignedKey[Any, Any]:
        """The key of passes between the first and the last: elements are words already."""
        return UnsignedKey(self.key.element, self.key.word, self.key_bits)

    def schedule(self, keys: _Three[A], values: _Three[V], buffers: tuple[Buffer[Any], ...]) -> Schedule:
        """All launches. `keys` and `values` are (input, output, scratch) buffers."""
        require_countable(self.rows, self.length)
        require_digits(self.key_bits, self.key.word.type.bits)
        policy = self.policy
        if shared_words(self.rows, self.length, self.passes, policy) > LARGEST_U32:
            raise InvalidArgumentError(
                f"rows, length: a radix sort of {self.rows} rows of {self.length} in tiles of {policy.tile} elements "
                f"shares more than {LARGEST_U32} words"
            )
        if self.rows > 1 and policy.sweeps and self.length > policy.portion:
            raise InvalidArgumentError(
                f"rows, length: sweeps take several rows of at most {policy.portion} elements, not {self.rows} rows of "
                f"{self.length}"
            )
        if self.mode.in_place and self.passes % 2 == 1:
            raise InvalidArgumentError(f"a radix sort in place takes an even number of passes, not {self.passes}")
        if not self.rows * self.length:
            return Schedule(buffers, ())
        return self._by_sweeps(keys, values, buffers) if policy.sweeps else self._by_counts(keys, values, buffers)

    def _by_sweeps(self, keys: _Three[A], values: _Three[V], buffers: tuple[Buffer[Any], ...]) -> Schedule:
        """One launch a pass; for a row beyond 30-bit counts, one for each of its portions."""
        policy = self.policy
        state = SweepState(self.rows, self.length, self.passes, policy)
        layout, launches = state.layout(), list(prepare(self.key, keys[0], state, self.order, self.mode.in_place))
        for number in range(self.passes):
            launches += (
                sweep.launch(
                    Grid(tiles, policy.group_size), self.key, self.plain, *keys, *values, *self._workgroup(),
                    state.buffer(), layout, U32(state.tickets + number), state.plan(number), state.start(number),
                    self._place(number), self.order, self.mode, policy,
                )
                for tiles in state.sweeps()
            )  # fmt: skip
        return Schedule((*buffers, state.buffer()), tuple(launches))

    def _by_counts(self, keys: _Three[A], values: _Three[V], buffers: tuple[Buffer[Any], ...]) -> Schedule:
        """Three launches a pass: histogram, prefix sum, scatter."""
        policy, params = self.policy, RadixParams(U32(self.rows * self.length))
        of_row = -(-self.length // policy.tile)
        tiles, layout = self.rows * of_row, self._layout(of_row)
        counts = Buffer("counts", U32, tiles * policy.radix, Role.SCRATCH)
        totals = Buffer("totals", U32, policy.radix + 1, Role.SCRATCH)
        grid, launches = Grid(tiles, policy.group_size), list[Launch]()
        before, beside = keys[0], values[0]
        for number in range(self.passes):
            is_first, is_last = number == 0, number == self.passes - 1
            side = 1 if (self.passes - number) % 2 == 1 else 2
            source, target = self._key(is_first), self._key(is_last)
            orders = (self._order(is_first), self._order(is_last))
            mode = attrs.evolve(
                self.mode, in_place=False, counts_places=self.mode.counts_places and is_first,
                keeps_keys=self.mode.keeps_keys or not is_last,
            )  # fmt: skip
            launches += (
                radix_count.launch(
                    grid, source, before, Workgroup(U32, policy.radix), counts, totals, layout, self._place(number),
                    orders[0], policy,
                ),
                radix_add_up.launch(
                    Grid(policy.radix, policy.group_size), counts, totals, Workgroup(U32, policy.scanned),
                    Workgroup(U32, 1), U32(tiles), params, policy,
                ),
                radix_scatter.launch(
                    grid, source, before, target, keys[side], beside, values[side], *self._workgroup(), counts,
                    totals, layout, self._place(number), orders, mode, policy,
                ),
            )  # fmt: skip
            before, beside = keys[side], values[side]
        return Schedule((*buffers, counts, totals), tuple(launches))

    def _key(self, is_at_end: bool) -> SortableKey[Any, Any]:
        """The key of a pass: the caller's for the first load and the last store, else that of words."""
        if self.shares:
            return switched(self.key, is_at_end, self.order)
        return self.key if is_at_end else self.plain

    def _order(self, is_at_end: bool) -> SortOrder:
        return self.order if is_at_end and not self.shares else _UP

    def _layout(self, tiles: int) -> Layout:
        """The layout of the tiles of a counting pass, with `tiles` in each row."""
        if self.rows == 1:
            return OneRow(U32(self.length))
        return ManyRows(U32(self.rows), U32(self.length), U32(tiles), U32(0))

    def _place(self, number: int) -> DigitPlace:
        return DigitPlace(U32(number), self.policy.digit_bits)

    def _workgroup(self) -> tuple[Workgroup[Any], Workgroup[Any], Workgroup[U32], Workgroup[U32], Workgroup[U32]]:
        policy = self.policy
        return (
            Workgroup(self.key.word, policy.tile), Workgroup(self.mode.value, policy.tile),
            Workgroup(U32, policy.counters), Workgroup(U32, policy.scanned), Workgroup(U32, policy.radix),
        )  # fmt: skip
