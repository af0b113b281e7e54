"""Makes a sort of floats stable afterwards: zeros of both signs, and NaNs of different bits, in their original order.

Sorted by words, tied elements are contiguous, and a binary search finds whether there are any. Only then is the source
read: its zeros, or its NaNs, are compacted, in order, over those in the sorted row. Rows of more than one share take
two launches: one counts the ties in each share, the next writes them.
"""

from __future__ import annotations

from typing import Generic

import attrs

from ..kernel.language import *
from ..types.keys import FloatKey
from ..types.monoids import Count
from ..types.params import ScanPolicy
from .bitonic import to_ordered
from .cut import shares
from .reduce import reduce_workgroup
from .scan_tile import load_tile, scan_workgroup
from .sizes import LARGEST_U32, require_countable

NOWHERE = LARGEST_U32  # no index in a row
_NAN_BITS = 16  # the shift of the count of NaNs, packed in a word above that of zeros
_ZEROS = (1 << _NAN_BITS) - 1
_FEW_ROWS = 1 << 12  # fewer rows leave a device idle: searches make more loads at a time, to save round trips
_WIDE, _NARROW = 16, 4  # ways of a search
_MOST_ROUNDS = 33  # of one in two ways: a `while` would not be known to end, and have to poll


@attrs.frozen
class Ties:
    """The indices in a sorted row of the first zero and the first NaN to rewrite; NOWHERE if there are no ties."""

    zeros: U32
    nans: U32


@attrs.frozen
class TiesParams:
    """Short rows, several to a workgroup."""

    num_rows: U32
    num_elements: U32  # in one row
    rows_per_group: U32


@attrs.frozen
class SharesParams:
    """Long rows, several workgroups to each."""

    num_elements: U32  # in one row
    groups_per_row: U32
    share: U32  # elements for each workgroup, a multiple of the tile


@attrs.frozen
class TieCount(Generic[A, N]):
    """The monoid that counts zeros and NaNs, fewer than 2**16 of each, packed in a word."""

    key: FloatKey[A, N]
    state: type[U32] = U32

    @property
    def element(self) -> type[A]:
        return self.key.element

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: A, index: U32) -> U32:
        word = self.key.to_word(element)
        is_zero = (word == self.key.zero) | (word == self.key.zero - 1)
        return U32(is_zero) | (U32(word > self.key.last) << _NAN_BITS)

    def combine(self, a: U32, b: U32) -> U32:
        return a + b


@attrs.frozen
class Share:
    """A workgroup's share of a row."""

    number: U32  # of the share in its row
    first: U32  # the index of its first element
    count: U32

    @classmethod
    def of(cls, index: U32, params: SharesParams) -> Share:
        row = index // params.groups_per_row
        number = index - row * params.groups_per_row
        place = number * params.share
        return cls(number, row * params.num_elements + place, minimum(params.share, params.num_elements - place))


def first_not_below(
    key: FloatKey[A, N], results: Storage[A], first: U32, low: U32, high: U32, bound: N, order: SortOrder, ways: int
) -> U32:
    """The lower bound of a word in a sorted row, in [low, high): a `ways`-ary search, whose loads are independent."""
    for _ in dynamic_range(U32(0), U32(_MOST_ROUNDS)):
        if low >= high:
            break
        width = high - low
        step = width // ways if width >= ways else U32(1)
        below = U32(0)
        for part in dynamic_range(U32(1), U32(ways + 1)):
            place = low + minimum(part * step, width) - 1
            below = below + U32(to_ordered(key, results[first + place], order) < bound)
        if below < ways:
            high = low + minimum((below + 1) * step - 1, width)
        low = low + minimum(below * step, width)
    return low


def find_ties(key: FloatKey[A, N], results: Storage[A], first: U32, length: U32, order: SortOrder, ways: int) -> Ties:
    """Finds whether a sorted row has zeros of both signs, and NaNs of different bits, and where they start."""
    zeros = U32(NOWHERE)
    nans = U32(NOWHERE)
    numbers = length
    last = to_ordered(key, results[first + length - 1], order)
    if last > key.last:
        numbers = first_not_below(key, results, first, U32(0), length, key.word(key.last + 1), order, ways)
        if to_ordered(key, results[first + numbers], order) != last:
            nans = numbers
    lesser = lesser_zero(key, order)
    start = first_not_below(key, results, first, U32(0), numbers, lesser, order, ways)
    if start < numbers and to_ordered(key, results[first + start], order) == lesser:
        middle = first_not_below(key, results, first, start, numbers, lesser + 1, order, ways)
        if middle < numbers and to_ordered(key, results[first + middle], order) == lesser + 1:
            zeros = start
    return Ties(zeros, nans)


def lesser_zero(key: FloatKey[A, N], order: SortOrder) -> N:
    """The word of the zero that comes first in an order; that of the other zero is one more."""
    match order:
        case SortOrder.ASCENDING:
            return key.zero - 1
        case SortOrder.DESCENDING:
            return key.mirrored(key.zero)


def broadcast_from(cx: Invocation, invocation: U32, value: U32, shared: Workgroup[U32]) -> U32:
    cx.barrier()
    if cx.local_id == invocation:
        shared[0] = value
    return cx.load_uniform(shared, 0)


def workgroup_sum(cx: Invocation, value: U32, shared: Workgroup[U32]) -> U32:
    cx.barrier()
    shared[cx.local_id] = value
    cx.barrier()
    reduce_workgroup(cx, Count(), shared, cx.group_size)
    return cx.load_uniform(shared, 0)


def restore_share(
    cx: Invocation, key: FloatKey[A, N], data: Storage[A], results: Storage[A], row: U32, share: Share, ties: Ties,
    tile: Workgroup[U32], shared: Workgroup[U32], policy: ScanPolicy,
) -> None:  # fmt: skip
    """Writes the tied zeros and NaNs of a share of `data` to `results`, in their original order, from `ties` on."""
    monoid = TieCount(key)
    mine: Registers[U32] = Registers(U32, policy.items)
    zeros = ties.zeros
    nans = ties.nans
    for start in dynamic_range(U32(0), share.count, U32(policy.tile)):
        first = share.first + start
        total = load_tile(cx, monoid, data, first, start, share.count - start, tile, mine, policy)
        found = scan_workgroup(cx, monoid, shared, total, policy)
        before = found.before
        for i in dynamic_range(U32(0), U32(policy.items)):
            if mine[i] != 0:
                is_zero = mine[i] == 1
                start_of_kind = zeros if is_zero else nans
                if start_of_kind != NOWHERE:
                    earlier = before & _ZEROS if is_zero else before >> _NAN_BITS
                    results[row + start_of_kind + earlier] = data[first + cx.local_id * policy.items + i]
                before = before + mine[i]
        if zeros != NOWHERE:
            zeros = zeros + (found.total & _ZEROS)
        if nans != NOWHERE:
            nans = nans + (found.total >> _NAN_BITS)


@kernel
def restore_short(
    cx: Invocation, key: FloatKey[A, N], data: Storage[A], results: Storage[A], tile: Workgroup[U32],
    shared: Workgroup[U32], params: TiesParams, order: SortOrder, ways: int, policy: ScanPolicy,
) -> None:  # fmt: skip
    """Searches several short rows for ties, an invocation for each, and restores those that have any, one by one."""
    rows = minimum(params.rows_per_group, params.num_rows - cx.group_id * params.rows_per_group)
    block = cx.group_id * params.rows_per_group
    mine = Ties(U32(NOWHERE), U32(NOWHERE))
    if cx.local_id < rows:
        row = (block + cx.local_id) * params.num_elements
        mine = find_ties(key, results, row, params.num_elements, order, ways)
    has_ties = (mine.zeros != NOWHERE) | (mine.nans != NOWHERE)
    if workgroup_sum(cx, U32(has_ties), shared) != 0:
        for number in dynamic_range(U32(0), rows):
            zeros = broadcast_from(cx, number, mine.zeros, shared)
            nans = broadcast_from(cx, number, mine.nans, shared)
            if zeros != NOWHERE or nans != NOWHERE:
                row = (block + number) * params.num_elements
                share = Share(U32(0), row, params.num_elements)
                restore_share(cx, key, data, results, row, share, Ties(zeros, nans), tile, shared, policy)


@kernel
def count_ties(
    cx: Invocation, key: FloatKey[A, N], data: Storage[A], results: Storage[A], shared: Workgroup[U32],
    starts: Storage[U32], counts: Storage[U32], params: SharesParams, order: SortOrder, ways: int, policy: ScanPolicy,
) -> None:  # fmt: skip
    """Searches a long row for ties, and counts those of every share if there are any."""
    share = Share.of(cx.group_id, params)
    number = cx.group_id // params.groups_per_row
    mine = Ties(U32(NOWHERE), U32(NOWHERE))
    if cx.local_id == 0:
        mine = find_ties(key, results, number * params.num_elements, params.num_elements, order, ways)
        if share.number == 0:
            starts[number * 2] = mine.zeros
            starts[number * 2 + 1] = mine.nans
    has_ties = (mine.zeros != NOWHERE) | (mine.nans != NOWHERE)
    if broadcast_from(cx, U32(0), U32(has_ties), shared) != 0:
        monoid = TieCount(key)
        zeros = U32(0)
        nans = U32(0)
        for i in dynamic_range(cx.local_id, share.count, cx.group_size):
            found = monoid.lift(data[share.first + i], i)
            zeros = zeros + (found & _ZEROS)
            nans = nans + (found >> _NAN_BITS)
        zeros = workgroup_sum(cx, zeros, shared)
        nans = workgroup_sum(cx, nans, shared)
        if cx.local_id == 0:
            counts[cx.group_id * 2] = zeros
            counts[cx.group_id * 2 + 1] = nans


@kernel
def restore_long(
    cx: Invocation, key: FloatKey[A, N], data: Storage[A], results: Storage[A], tile: Workgroup[U32],
    shared: Workgroup[U32], starts: Storage[U32], counts: Storage[U32], params: SharesParams, policy: ScanPolicy,
) -> None:  # fmt: skip
    """Writes a share's ties, if the row has any, after those of the shares before it."""
    share = Share.of(cx.group_id, params)
    row = cx.group_id // params.groups_per_row
    zeros = broadcast_from(cx, U32(0), starts[row * 2], shared)
    nans = broadcast_from(cx, U32(0), starts[row * 2 + 1], shared)
    if zeros != NOWHERE or nans != NOWHERE:
        zeros_before = U32(0)
        nans_before = U32(0)
        for i in dynamic_range(cx.group_id - share.number + cx.local_id, cx.group_id, cx.group_size):
            zeros_before = zeros_before + counts[i * 2]
            nans_before = nans_before + counts[i * 2 + 1]
        zeros_before = workgroup_sum(cx, zeros_before, shared)
        nans_before = workgroup_sum(cx, nans_before, shared)
        ties = Ties(
            zeros + zeros_before if zeros != NOWHERE else zeros, nans + nans_before if nans != NOWHERE else nans
        )
        first = row * params.num_elements
        restore_share(cx, key, data, results, first, share, ties, tile, shared, policy)


def restore_ties(key: FloatKey[A, N], rows: int, length: int, order: SortOrder, policy: ScanPolicy) -> Schedule:
    """Makes an unstable sort of every row of `data` stable; `results` (INOUT) has the rows sorted by words."""
    require_countable(rows, length)
    data = Buffer("data", key.element, rows * length, Role.INPUT)
    results = Buffer("results", key.element, rows * length, Role.INOUT)
    if length < 2 or not rows:
        return Schedule((data, results), ())
    policy = attrs.evolve(policy, items=min(policy.items, _ZEROS // policy.group_size))  # two counts to a word
    ways = _WIDE if rows < _FEW_ROWS else _NARROW
    tile, shared = Workgroup(U32, policy.tile), Workgroup(U32, policy.group_size)
    each, groups = shares(rows, length, policy)
    if groups == 1:
        together = min(policy.group_size, -(-rows // policy.groups))
        short = restore_short.launch(
            Grid(-(-rows // together), policy.group_size), key, data, results, tile, shared,
            TiesParams(U32(rows), U32(length), U32(together)), order, ways, policy,
        )  # fmt: skip
        return Schedule((data, results), (short,))
    starts = Buffer("starts", U32, 2 * rows, Role.SCRATCH)
    counts = Buffer("counts", U32, 2 * rows * groups, Role.SCRATCH)
    grid = Grid(rows * groups, policy.group_size)
    params = SharesParams(U32(length), U32(groups), U32(min(each * policy.tile, LARGEST_U32)))
    count = count_ties.launch(grid, key, data, results, shared, starts, counts, params, order, ways, policy)
    write = restore_long.launch(grid, key, data, results, tile, shared, starts, counts, params, policy)
    return Schedule((data, results), (count, write))
