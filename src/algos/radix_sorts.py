"""Schedules of the radix sort, in both its forms: keys alone, keys that take values along, and where keys come from."""

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
from .radix import radix_add_up, radix_count, radix_scatter
from .radix_sweep import MOST_ELEMENTS, sweep
from .radix_tile import RadixMode
from .sizes import require_countable, require_digits
from .sweep_state import SweepState, prepare

A = TypeVar("A", U8, U16, U32, U64)
V = TypeVar("V", U8, U16, U32, U64)
W = TypeVar("W", U32, U64)
E = TypeVar("E")
_Three: TypeAlias = tuple[Buffer[E], Buffer[E], Buffer[E]]

_UP = SortOrder.ASCENDING
_NONE = Buffer("none", U32, 1, Role.SCRATCH)  # in place of what a mode does without; no target gets to see it


@kernel
def widen_places(cx: Invocation, places: Storage[U32], wide: Storage[U64], params: RadixParams) -> None:
    """Places as the host's 64-bit indices."""
    for i in dynamic_range(cx.global_id, params.num_elements, cx.num_groups * cx.group_size):
        wide[i] = U64(places[i])


def radix_sort(
    key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int, in_place: bool = False
) -> Schedule:
    """Sorts `data` into `results`, or in place.

    `key_bits` says how many bits of a word differ at all; in place they must make an even number of digits.
    """
    data = Buffer("data", key.element, length, Role.INOUT if in_place else Role.INPUT)
    results = data if in_place else Buffer("results", key.element, length, Role.OUTPUT)
    words = _between("words", key.element, length, policy, key_bits)
    none: Any = _NONE
    sort = _RadixSort(key, key_bits, length, order, RadixMode(U32, in_place=in_place), policy)
    arrays: list[Buffer[A]] = [data] if in_place else [data, results]
    return sort.schedule((data, results, words), (none, none, none), (*arrays, words))


def radix_sort_pairs(
    key: SortableKey[A, W], value: type[V], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int
) -> Schedule:
    """Sorts `data` into `results` and takes `values` along into `moved`. Equal words keep their order."""
    data, values = Buffer("data", key.element, length, Role.INPUT), Buffer("values", value, length, Role.INPUT)
    results, moved = Buffer("results", key.element, length, Role.OUTPUT), Buffer("moved", value, length, Role.OUTPUT)
    words = _between("words", key.element, length, policy, key_bits)
    spare = _between("spare", value, length, policy, key_bits)
    sort = _RadixSort(key, key_bits, length, order, RadixMode(value, takes_values=True), policy)
    buffers = (data, values, results, moved, words, spare)
    return sort.schedule((data, results, words), (values, moved, spare), buffers)


def radix_argsort(
    key: SortableKey[A, W], length: int, order: SortOrder, policy: RadixPolicy, key_bits: int
) -> Schedule:
    """Where the elements of `data` come from in order, into `places`. Equal words keep their order."""
    data, places = Buffer("data", key.element, length, Role.INPUT), Buffer("places", U64, length, Role.OUTPUT)
    results = _between("results", key.element, length, policy, key_bits)
    words = _between("words", key.element, length, policy, key_bits)
    moved, spare = Buffer("moved", U32, length, Role.SCRATCH), _between("spare", U32, length, policy, key_bits)
    mode = RadixMode(U32, takes_values=True, counts_places=True, keeps_keys=False)
    sort = _RadixSort(key, key_bits, length, order, mode, policy)
    made: Schedule = sort.schedule(
        (data, results, words), (_NONE, moved, spare), (data, places, results, words, moved, spare)
    )
    if not length:
        return made
    grid = Grid(min(policy.count_groups, -(-length // policy.group_size)), policy.group_size)
    widening = widen_places.launch(grid, moved, places, RadixParams(U32(length)))
    return Schedule(made.buffers, (*made.launches, widening))


def _between(name: str, element: type[A], length: int, policy: RadixPolicy, key_bits: int) -> Buffer[A]:
    """Where elements lie between two passes: no memory to speak of where there is one."""
    return Buffer(name, element, length if key_bits > policy.digit_bits else min(1, length), Role.SCRATCH)


@attrs.frozen
class _RadixSort:
    """One sort of a length: what all its launches have in common."""

    key: SortableKey[Any, Any]
    key_bits: int
    length: int
    order: SortOrder
    mode: RadixMode[Any]
    policy: RadixPolicy

    @property
    def passes(self) -> int:
        return -(-self.key_bits // self.policy.digit_bits)

    @property
    def plain(self) -> UnsignedKey[Any, Any]:
        """Words that are in order already: the first pass's reading saw to that."""
        return UnsignedKey(self.key.element, self.key.word, self.key_bits)

    def schedule(self, keys: _Three[A], values: _Three[V], buffers: tuple[Buffer[Any], ...]) -> Schedule:
        """All launches. `keys` and `values` are where they come from, where they end, and what lies between."""
        require_countable(-(-self.length // self.policy.tile), self.policy.tile)
        require_digits(self.key_bits, self.key.word.type.bits)
        if self.policy.sweeps and self.length >= MOST_ELEMENTS:
            raise InvalidArgumentError(
                f"a single-sweep radix sort takes fewer than {MOST_ELEMENTS} elements, not {self.length}"
            )
        if self.mode.in_place and self.passes % 2 == 1:
            raise InvalidArgumentError(f"a radix sort in place takes an even number of passes, not {self.passes}")
        if not self.length:
            return Schedule(buffers, ())
        return self._by_sweeps(keys, values, buffers) if self.policy.sweeps else self._by_counts(keys, values, buffers)

    def _by_sweeps(self, keys: _Three[A], values: _Three[V], buffers: tuple[Buffer[Any], ...]) -> Schedule:
        """One launch a pass."""
        policy = self.policy
        state = SweepState(self.length, self.passes, policy)
        launches = list(prepare(self.key, keys[0], state, self.order, self.mode.in_place))
        for number in range(self.passes):
            launches.append(
                sweep.launch(
                    Grid(state.tiles, policy.group_size), self.key, self.plain, *keys, *values, *self._workgroup(),
                    state.buffer(), RadixParams(U32(self.length)), U32(state.tickets + number), state.plan(number),
                    state.start(number), self._place(number), self.order, self.mode, policy,
                )
            )  # fmt: skip
        return Schedule((*buffers, state.buffer()), tuple(launches))

    def _by_counts(self, keys: _Three[A], values: _Three[V], buffers: tuple[Buffer[Any], ...]) -> Schedule:
        """Three launches a pass: count, add up, move."""
        policy, params = self.policy, RadixParams(U32(self.length))
        tiles = -(-self.length // policy.tile)
        counts = Buffer("counts", U32, tiles * policy.radix, Role.SCRATCH)
        totals = Buffer("totals", U32, policy.radix + 1, Role.SCRATCH)
        grid, launches = Grid(tiles, policy.group_size), list[Launch]()
        before, beside = keys[0], values[0]
        for number in range(self.passes):
            is_first, is_last = number == 0, number == self.passes - 1
            side = 1 if (self.passes - number) % 2 == 1 else 2
            source, target = self.key if is_first else self.plain, self.key if is_last else self.plain
            orders = (self.order if is_first else _UP, self.order if is_last else _UP)
            mode = attrs.evolve(
                self.mode, in_place=False, counts_places=self.mode.counts_places and is_first,
                keeps_keys=self.mode.keeps_keys or not is_last,
            )  # fmt: skip
            launches += (
                radix_count.launch(
                    grid, source, before, Workgroup(U32, policy.radix), counts, totals, params, self._place(number),
                    orders[0], policy,
                ),
                radix_add_up.launch(
                    Grid(policy.radix, policy.group_size), counts, totals, Workgroup(U32, policy.scanned),
                    Workgroup(U32, 1), U32(tiles), params, policy,
                ),
                radix_scatter.launch(
                    grid, source, before, target, keys[side], beside, values[side], *self._workgroup(), counts,
                    totals, params, self._place(number), orders, mode, policy,
                ),
            )  # fmt: skip
            before, beside = keys[side], values[side]
        return Schedule((*buffers, counts, totals), tuple(launches))

    def _place(self, number: int) -> DigitPlace:
        return DigitPlace(U32(number), self.policy.digit_bits)

    def _workgroup(self) -> tuple[Workgroup[Any], Workgroup[Any], Workgroup[U32], Workgroup[U32], Workgroup[U32]]:
        policy = self.policy
        return (
            Workgroup(self.key.word, policy.tile), Workgroup(self.mode.value, policy.tile),
            Workgroup(U32, policy.counters), Workgroup(U32, policy.scanned), Workgroup(U32, policy.radix),
        )  # fmt: skip
