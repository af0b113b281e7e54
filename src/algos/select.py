"""Top-k: the first k elements of every row in order, with their indices; the algorithms as values with their tuning.
The result is the first k of a stable argsort, whichever finds it."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs

from ..kernel.language import *
from ..machine import Limits, TargetInfo
from ..types.checks import instance_of
from ..types.elements import WORD_BYTES, bytes_held, dtype_of
from ..types.errors import CapabilityError, InvalidArgumentError
from ..types.keys import RankKey, UnsignedKey
from ..types.params import MOST_ITEMS, BitonicPolicy, FirstParams, RowsPolicy, power_above
from .argsort import placed_class
from .batch import Batch, PairsAlgorithm, looping_grid
from .candidates import DIGITS, first_of
from .fit import fitted_network, in_registers, lanes_within, power_below, scans_by_subgroups
from .select_digits import PICKED, DigitsPolicy, select_by_digits, take_chosen
from .select_lanes import select_by_lanes
from .select_long import Plan, select_sampled
from .select_rows import PartPolicy, parts_of, select_by_parts
from .select_sampled import SampledPolicy
from .sizes import LARGEST_U32, countable_rows, require_countable
from .sort_parts import within
from .sorts import Bitonic, argsort, bits_of


def top_k(key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder, selection: Selection) -> Schedule:
    """Selects the first k elements of every row of "data" (INPUT), sorted, into "values" (OUTPUT), and their indices in
    the row into "indices" (OUTPUT, U64). Rows are contiguous in all three."""
    require_countable(rows, length)
    if not 0 <= k <= length:
        raise InvalidArgumentError(f"k: expected 0 to the {length} elements of a row, found {k}")
    if rows * k == 0:
        return Schedule(known_buffers(key, rows, length, k), ())
    return selection.schedule(key, rows, length, k, order)


def known_buffers(key: SortableKey[E, N], rows: int, length: int, k: int) -> tuple[Buffer[E], Buffer[E], Buffer[U64]]:
    """The buffers that a caller binds by name: data, values, indices."""
    return (
        Buffer("data", key.element, rows * length, Role.INPUT),
        Buffer("values", key.element, rows * k, Role.OUTPUT),
        Buffer("indices", U64, rows * k, Role.OUTPUT),
    )


def rows_within(key: SortableKey[E, N], length: int, k: int, limits: Limits, scratch: int) -> int:
    """The rows that fit into storage buffers; `scratch` is the bytes a row takes in the largest scratch buffer."""
    largest = max(scratch, dtype_of(key.element).itemsize * length, dtype_of(U64).itemsize * k)
    return min(limits.storage_bytes // max(1, largest), countable_rows(length))


def _state_of(key: SortableKey[Any, N]) -> Any:
    """What is kept of an element in every launch but the first."""
    return first_of(key, SortOrder.ASCENDING).state


def state_bytes(key: SortableKey[E, N]) -> int:
    return bytes_held(_state_of(key))


@kernel
def take_first(
    cx: Invocation, data: Storage[E], places: Storage[U64], values: Storage[E], indices: Storage[U64],
    params: FirstParams,
) -> None:  # fmt: skip
    """Takes the first k indices of each row's sorted order, and gathers their elements."""
    for i in dynamic_range(cx.global_id, params.num_rows * params.k, cx.num_groups * cx.group_size):
        row = i // params.k
        place = places[row * params.length + (i - row * params.k)]
        indices[i] = place
        values[i] = data[row * params.length + U32(place)]


@attrs.frozen
class ArgsortAndTake:
    """A full argsort, of which the first k are taken: for short rows, for k near the length, and as the fallback. By
    `sort` if there is one, else by the bitonic network; in one launch by a sort that takes the first itself."""

    sort: PairsAlgorithm | None = None
    network: BitonicPolicy = attrs.field(factory=BitonicPolicy, validator=instance_of(BitonicPolicy))

    def fitted(self, key: SortableKey[E, N], length: int, k: int, info: TargetInfo, /) -> ArgsortAndTake:
        """The same, fitted to a target's limits; raises CapabilityError where nothing fits."""
        sort, ranks = self.sort, RankKey(key)
        return attrs.evolve(
            self, sort=None if sort is None else sort.fitted(ranks, length, info, dtype_of(U32).itemsize),
            network=fitted_network(self.network, placed_class(key.word), info.limits),
        )  # fmt: skip

    @property
    def _taking(self) -> PairsAlgorithm | None:
        """The sort, if it takes the first itself."""
        return self.sort if self.sort is not None and self.sort.takes_first else None

    def most_rows(self, key: SortableKey[E, N], length: int, k: int, limits: Limits, /) -> int:
        """The rows that fit one schedule within these limits; 0 if one row does not fit."""
        scratch = length * bytes_held(placed_class(key.word)) if self._taking is None else 0
        most = rows_within(key, length, k, limits, scratch)
        return min(most, (self.sort or Bitonic(self.network)).most_rows(length, limits.groups))

    def schedule(self, key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder, /) -> Schedule:
        """See `top_k`; rows * k is at least 1."""
        data, values, indices = known_buffers(key, rows, length, k)
        if self._taking is not None:
            first = self._taking.sort(Batch(RankKey(key), rows, length, order, places=U64, first=k))
            own: dict[str, Buffer[Any]] = {"data": data, "results": values, "places": indices}
            return Schedule((data, values, indices), tuple(within(first, own, "of_sort")))
        places = Buffer("places", U64, rows * length, Role.SCRATCH)
        permutation = argsort(self.sort, RankKey(key), rows, length, order, self.network)
        known: dict[str, Buffer[Any]] = {"data": data, "places": places}
        inner: tuple[Launch, ...] = tuple(within(permutation, known, "of_argsort"))
        grid = looping_grid(rows * k, self.network.group_size)
        take = take_first.launch(grid, data, places, values, indices, FirstParams(U32(rows), U32(length), U32(k)))
        return Schedule((data, values, indices), (*inner, take))


@attrs.frozen
class SelectByParts:
    """Workgroups select from parts of rows that they hold in registers, in one launch or a few: for small k."""

    policy: PartPolicy = attrs.field(factory=PartPolicy, validator=instance_of(PartPolicy))
    groups: int = (1 << 31) - 1  # in a launch, at most

    def fitted(self, key: SortableKey[E, N], length: int, k: int, info: TargetInfo, /) -> SelectByParts:
        limits, policy = info.limits, self.policy
        held = (limits.workgroup_bytes - WORD_BYTES * (DIGITS + 2)) // state_bytes(key)
        size = min(policy.group_size, power_below(limits.group_size), power_below(held // 2))
        items = in_registers(min(MOST_ITEMS, policy.items * policy.group_size // size), _state_of(key), limits)
        kept = min(policy.kept, held - size - 1)
        if kept >= 1:
            smaller = attrs.evolve(policy, group_size=size, items=items, sets=min(policy.sets, size), kept=kept)
            found = SelectByParts(smaller, min(self.groups, limits.groups))
            if k <= found.most_k:
                return found
        raise CapabilityError(f"k: {k} is more than {self} finds with the workgroups of target {info.name!r}")

    def most_rows(self, key: SortableKey[E, N], length: int, k: int, limits: Limits, /) -> int:
        if k > self.most_k:
            return 0
        left = parts_of(length, self.policy) * k  # at most the length, as most_k is half a part at most
        return rows_within(key, length, k, limits, left * state_bytes(key))

    @property
    def most_k(self) -> int:
        """The largest k that it can select."""
        return min(self.policy.sets, self.policy.kept, self.policy.tile // 2)

    def schedule(self, key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder, /) -> Schedule:
        if k > self.most_k:
            raise InvalidArgumentError(f"k: expected at most {self.most_k}, as {self} selects, found {k}")
        buffers = known_buffers(key, rows, length, k)
        return select_by_parts(key, rows, length, k, order, buffers, self.groups, self.policy)


@attrs.frozen
class SelectByLanes:
    """Lanes of a subgroup go through a row, and keep the first in registers: for few of each of many short rows."""

    policy: RowsPolicy = attrs.field(factory=lambda: RowsPolicy(2, 8), validator=instance_of(RowsPolicy))

    def fitted(self, key: SortableKey[E, N], length: int, k: int, info: TargetInfo, /) -> SelectByLanes:
        policy, padded = self.policy, power_above(length)
        most = power_below(in_registers(policy.items, placed_class(key.word), info.limits))
        items, size = min(most, padded), min(policy.group_size, power_below(info.limits.group_size))
        if k > items:
            raise CapabilityError(f"k: {k} is more than {self} finds")
        return SelectByLanes(RowsPolicy(lanes_within(min(policy.lanes, padded // items), info), items, size))

    def most_rows(self, key: SortableKey[E, N], length: int, k: int, limits: Limits, /) -> int:
        policy = self.policy
        if k > policy.items or length > LARGEST_U32 - policy.held:
            return 0
        return min(limits.groups * policy.rows, LARGEST_U32 - policy.rows, rows_within(key, length, k, limits, 0))

    def schedule(self, key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder, /) -> Schedule:
        if k > self.policy.items:
            raise InvalidArgumentError(f"k: expected at most the {self.policy.items} that a lane holds, found {k}")
        return select_by_lanes(key, rows, length, k, order, known_buffers(key, rows, length, k), self.policy)


@attrs.frozen
class SelectBySamples:
    """Filters long rows by a threshold from a sample, in one pass, and sorts the few candidates."""

    policy: SampledPolicy = attrs.field(factory=SampledPolicy, validator=instance_of(SampledPolicy))

    def fitted(self, key: SortableKey[E, N], length: int, k: int, info: TargetInfo, /) -> SelectBySamples:
        limits, policy, state = info.limits, self.policy, state_bytes(key)
        most = power_below(limits.group_size)
        held = (limits.workgroup_bytes - WORD_BYTES * max(DIGITS + 1, policy.ranked)) // state
        if held < 2:
            raise CapabilityError(f"algorithm: {self} finds too little workgroup memory on target {info.name!r}")
        samples, size = min(policy.samples, power_below(held)), min(policy.group_size, most)
        network = fitted_network(policy.network, _state_of(key), limits)
        smaller = attrs.evolve(
            policy, samples=samples, group_size=size, ranked=min(policy.ranked, size, samples),
            filter_group=min(policy.filter_group, most), staged=min(policy.staged, held),
            groups=min(policy.groups, limits.groups), network=network,
            items=in_registers(policy.items, _state_of(key), limits),
        )  # fmt: skip
        if Plan.of(length, k, smaller) is None:
            raise CapabilityError(f"k: {k} of {length} elements are too many for {self} to find by samples")
        return SelectBySamples(smaller)

    def most_rows(self, key: SortableKey[E, N], length: int, k: int, limits: Limits, /) -> int:
        plan = Plan.of(length, k, self.policy)
        if plan is None:
            return 0
        policy = self.policy
        groups = max(-(-plan.capacity // policy.ranked), policy.samples // policy.ranked)
        return min(limits.groups // groups, rows_within(key, length, k, limits, plan.capacity * state_bytes(key)))

    def schedule(self, key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder, /) -> Schedule:
        plan = Plan.of(length, k, self.policy)
        if plan is None:
            raise InvalidArgumentError(f"k: {k} of {length} elements are too many for {self} to find by samples")
        return select_sampled(key, rows, length, k, order, known_buffers(key, rows, length, k), plan, self.policy)


@attrs.frozen
class SelectByDigits:
    """Radix select by a workgroup for each row, and a sort of the rows of the k that it chose: for many rows."""

    sort: ArgsortAndTake = attrs.field(factory=ArgsortAndTake, validator=instance_of(ArgsortAndTake))
    policy: DigitsPolicy = attrs.field(factory=DigitsPolicy, validator=instance_of(DigitsPolicy))

    def fitted(self, key: SortableKey[E, N], length: int, k: int, info: TargetInfo, /) -> SelectByDigits:
        size = min(self.policy.group_size, power_below(info.limits.group_size))
        bits, in_subgroups = min(self.policy.digit_bits, size.bit_length() - 1), scans_by_subgroups(size, info)
        if not bits:
            raise CapabilityError(f"algorithm: {self} finds workgroups of one invocation on target {info.name!r}")
        policy = attrs.evolve(
            self.policy,
            group_size=size,
            digit_bits=bits,
            subgroups=self.policy.subgroups and in_subgroups,
            items=in_registers(self.policy.items, key.element, info.limits),
        )
        if WORD_BYTES * (policy.counters + policy.group_size + PICKED) > info.limits.workgroup_bytes:
            raise CapabilityError(f"algorithm: {self} finds too little workgroup memory on target {info.name!r}")
        return SelectByDigits(self.sort.fitted(chosen_words(key), k, k, info), policy)

    def most_rows(self, key: SortableKey[E, N], length: int, k: int, limits: Limits, /) -> int:
        if length > LARGEST_U32 - self.policy.tile:
            return 0
        most = min(limits.groups, rows_within(key, length, k, limits, k * bytes_held(key.word)))
        return min(most, self.sort.most_rows(chosen_words(key), k, k, limits))

    def schedule(self, key: SortableKey[E, N], rows: int, length: int, k: int, order: SortOrder, /) -> Schedule:
        data, values, indices = known_buffers(key, rows, length, k)
        ranks, policy = RankKey(key), self.policy
        words = Buffer("words", key.word, rows * k, Role.SCRATCH)
        chosen, places = Buffer("chosen", U32, rows * k, Role.SCRATCH), Buffer("places", U64, rows * k, Role.SCRATCH)
        params = FirstParams(U32(rows), U32(length), U32(k))
        choose = select_by_digits.launch(
            Grid(rows, policy.group_size), ranks, data, Workgroup(U32, policy.counters),
            Workgroup(U32, policy.group_size), Workgroup(U32, PICKED), words, chosen, params,
            -(-bits_of(ranks) // policy.digit_bits), order, policy,
        )  # fmt: skip
        sort, network = self.sort.sort, self.sort.network
        permutation: Schedule = argsort(sort, chosen_words(key), rows, k, SortOrder.ASCENDING, network)
        known: dict[str, Buffer[Any]] = {"data": words, "places": places}
        grid = looping_grid(rows * k, network.group_size)
        take = take_chosen.launch(grid, data, chosen, places, values, indices, params)
        return Schedule((data, values, indices), (choose, *within(permutation, known, "of_argsort"), take))


def chosen_words(key: SortableKey[Any, N]) -> UnsignedKey[N, N]:
    """The key of a key's words as they are."""
    return UnsignedKey(key.word, key.word, bits_of(key))


Selection: TypeAlias = ArgsortAndTake | SelectByLanes | SelectByParts | SelectBySamples | SelectByDigits
