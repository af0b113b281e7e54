"""The exportable operations by name, as functions from a length to a schedule: variants for each type and row length.

All run on any device, with few kernels for all lengths and both orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs
import numpy as np

from ..algos.batch import Batch
from ..algos.bitonic import bitonic_launches
from ..algos.copy import copy_whole
from ..algos.fit import fitted_radix, fitted_reduce, fitted_scan_policy
from ..algos.radix_sorts import SwitchedKey, radix_sort
from ..algos.reduce_axis import reduce_rows
from ..algos.scan import scan_rows
from ..algos.select import SelectByParts, top_k
from ..algos.select_rows import PartPolicy
from ..algos.sorts import bits_of, require_integers
from ..algos.table import by_masks
from ..kernel.launch import Buffer, Role, Schedule
from ..machine import TargetInfo
from ..operations.monoids import OverMonoid
from ..operations.reduce import Reduce, Reducer
from ..operations.scan import Cumsum
from ..types.elements import dtype_of, leaves
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.finishes import AsItIs, Finish
from ..types.indices import ScanKind, SortOrder
from ..types.keys import RankKey, SortableKey, is_lossy
from ..types.monoids import Monoid
from ..types.params import BitonicPolicy, RadixPolicy, ReducePolicy, ScanPolicy
from ..types.scalars import U32, UNSIGNED
from ..types.specs import Memory, Spec
from .request import TYPES, Request, Rows

Names = Mapping[str, tuple[str, ...]]


@attrs.frozen
class Variant:
    """An operation on one type, as functions from a length to a schedule."""

    name: str
    makes: tuple[Callable[..., Schedule], ...]  # one, or one for each order
    # For each buffer of the schedule, the driver's argument; and the argument to use if the caller omits that.
    names: Names
    shortest: int = 0
    of_rows: bool = False  # whether it takes the number of rows before the length
    result: tuple[str, int] = ("", 0)  # type and number of the scalars of a single result; 0 if it is an array
    scalars: int = 1  # of an element of the data, in its typed array

    @classmethod
    def of_row(cls, name: str, make: Callable[..., Schedule], row: int | Rows | None, names: Names) -> Variant:
        """From a function of a number of rows, their `length`, and an `order`."""
        if row is Rows.ANY:
            return attrs.evolve(cls.ordered(f"{name} rows any", make, names), of_rows=True)
        if row is None:
            return cls.ordered(name, partial(make, 1), names)
        return cls.ordered(f"{name} rows {row}", partial(make, length=row), names)

    @classmethod
    def ordered(cls, name: str, make: Callable[..., Schedule], names: Names) -> Variant:
        """From a function with a keyword `order`."""
        return cls(name, tuple(partial(make, order=order) for order in SortOrder), names)


# With subgroups: larger digits and workgroups, with as many items as fit into workgroup memory.
_BY_SUBGROUPS = RadixPolicy(items=14)
# Without: small workgroups and tiles, which compile fast. One digit size for all keys, so that they share kernels.
_ANYWHERE = attrs.evolve(by_masks(7).policy, items=20)
# A page's first sort is mostly compilation. So short arrays are sorted by a bitonic sort, whose kernels compile in a
# fraction of the time of radix sort's. Small tiles and workgroups, as some drivers clear workgroup memory word by word,
# and software drivers are slow with large workgroups.
LONGEST_BITONIC = 1 << 16
_SHORT = BitonicPolicy(tile=512, group_size=64, fused_passes=1)


def _sorts(request: Request) -> Iterator[Variant]:
    """Sorts of keys, and of keys with values; of one row, and of many."""
    alone = {"data": ("keys",), "results": ("into", "keys")}
    beside = {**alone, "values": ("values",), "moved": ("valuesInto", "values")}
    for name, key in request.keys.items():
        radix = _radix(key, request.info, 0)
        yield Variant.ordered(f"sort {name}", partial(_sort_row, key, radix), alone)
        for length in request.rows:
            yield Variant.of_row(f"sort {name}", partial(_sort, key, radix), length, alone)
        for size in request.values:
            make = partial(_sort, key, _radix(key, request.info, size), value=UNSIGNED[size])
            for row in (None, *request.rows):
                yield Variant.of_row(f"sort {name} with u{8 * size}", make, row, beside)


def _argsorts(request: Request) -> Iterator[Variant]:
    """Argsorts of one row, and of many."""
    for name, key in request.keys.items():
        policy, ranks = _radix(key, request.info, dtype_of(key.word).itemsize), key if is_lossy(key) else RankKey(key)
        make = partial(_sort, ranks, policy, places=U32)
        for row in (None, *request.rows):
            yield Variant.of_row(f"argsort {name}", make, row, {"data": ("keys",), "places": ("into",)})


def _radix(key: SortableKey[Any, Any], info: TargetInfo, value_bytes: int) -> RadixPolicy:
    require_integers(key, "export", "keys", "")
    wished = _BY_SUBGROUPS if info.capabilities else _ANYWHERE
    return fitted_radix(wished, key, bits_of(key), info, value_bytes)


def _sort_row(key: SortableKey[Any, Any], policy: RadixPolicy, length: int, order: SortOrder) -> Schedule:
    if length > LONGEST_BITONIC:
        return _sort(key, policy, 1, length, order)
    data = Buffer("data", key.element, length, Role.INPUT)
    results = Buffer("results", key.element, length, Role.OUTPUT)
    if length == 0:
        return Schedule((data, results), ())
    network = bitonic_launches(key, results, 1, length, order, _SHORT, shares=True)
    return Schedule((data, results), (copy_whole(data, results), *network))


def _sort(
    key: SortableKey[Any, Any], policy: RadixPolicy, rows: int, length: int, order: SortOrder,
    value: type[Any] | None = None, places: type[U32] | None = None,
) -> Schedule:  # fmt: skip
    return radix_sort(Batch(key, rows, length, order, value=value, places=places), policy, bits_of(key), shares=True)


_FEW, _MANY = (SelectByParts(PartPolicy(group_size=128, items=16, sets=64)),
               SelectByParts(PartPolicy(group_size=256, items=16, sets=256)))  # fmt: skip


def _selections(request: Request) -> Iterator[Variant]:
    """Selections of each k, of one row, and of many. Raises InvalidArgumentError for k out of range."""
    names, most = {"data": ("keys",), "values": ("into",), "indices": ("indices",)}, _MANY.most_k
    for name, key in request.keys.items():
        require_integers(key, "export", "keys", "")
        for k in request.k:
            if not 1 <= k <= most:
                raise InvalidArgumentError(f"k: expected 1 to {most}, found {k}; a sort gives more")
            wished = _FEW if k <= _FEW.most_k else _MANY
            for row in (None, *[row for row in request.rows if row is Rows.ANY or row >= k]):
                selection = wished.fitted(key, row if isinstance(row, int) else k, k, request.info)
                made = Variant.of_row(f"top_k {name} {k}", partial(_top_k, key, selection, k), row, names)
                yield made if isinstance(row, int) else attrs.evolve(made, shortest=k)


def _top_k(
    key: SortableKey[Any, Any], selection: SelectByParts, k: int, rows: int, length: int, order: SortOrder
) -> Schedule:
    either_order = SwitchedKey.of(RankKey(key), True, order)  # the order is a parameter, so that both share a kernel
    return top_k(either_order, rows, length, k, SortOrder.ASCENDING, selection)


def _reductions(reducer: Reducer, request: Request) -> Iterator[Variant]:
    """One of NumPy's reductions, for every requested type; of a user's keys there is neither a sum nor a zero."""
    is_extreme = reducer.finds_index or reducer in (Reducer.MIN, Reducer.MAX)
    for name, key in request.keys.items():
        if is_extreme or name in TYPES:
            asked = Reduce(0, reducer=reducer, key=None if name in TYPES else key)
            made = _over(
                f"{reducer.value} {name}", *_of_numpys(asked, name, request), request.info, shortest=int(is_extreme)
            )
            if reducer in (Reducer.ANY, Reducer.ALL):
                made = attrs.evolve(made, result=("bool", 1))
            elif is_extreme and not reducer.finds_index and name in TYPES:
                made = attrs.evolve(made, result=(name, 1))
            yield made


def _cumsums(request: Request) -> Iterator[Variant]:
    for name in request.keys:
        if name in TYPES:
            yield _over(f"cumsum {name}", *_of_numpys(Cumsum(), name, request), request.info, ScanKind.INCLUSIVE)


_SCANS: Mapping[str, ScanKind | None] = {"scan {}": ScanKind.INCLUSIVE, "scan {} exclusive": ScanKind.EXCLUSIVE}


def _of_monoids(kinds: Mapping[str, ScanKind | None], request: Request) -> Iterator[Variant]:
    """By the user's monoids, to their states: scans, or reductions where there is no kind."""
    for name, monoid in request.monoids.items():
        for label, kind in kinds.items():
            yield _over(label.format(name), monoid, AsItIs(monoid.state), request.info, kind)


def _of_numpys(asked: OverMonoid, name: str, request: Request) -> tuple[Monoid[Any, Any], Finish[Any, Any]]:
    dtype = np.dtype(TYPES[name]) if name in TYPES else dtype_of(request.keys[name].element)
    given = Spec((1,), dtype, Memory.HOST)
    return asked.monoid(given), asked.finish(given)


def _over(
    name: str, monoid: Monoid[Any, Any], finish: Finish[Any, Any], info: TargetInfo, kind: ScanKind | None = None,
    shortest: int = 0,
) -> Variant:  # fmt: skip
    """A scan of one row; a reduction if there is no kind."""
    reduce = fitted_reduce(ReducePolicy(subgroups=bool(info.capabilities)), monoid.state, info)
    scan = fitted_scan_policy(ScanPolicy(subgroups=bool(info.capabilities)), monoid.state, info)

    def make(length: int) -> Schedule:
        if kind is None:
            return reduce_rows(monoid, 1, length, reduce, finish)
        return scan_rows(monoid, 1, length, kind, scan, finish)

    names = {"data": ("data",), "results": ("into",)}
    result, (_, scalars) = scalars_of(finish.result), scalars_of(monoid.element)
    return Variant(name, (make,), names, shortest=shortest, result=result, scalars=scalars)


def scalars_of(element: object) -> tuple[str, int]:
    """The type and number of an element's scalars; words of 32 bits, or fewer, if they are of several types."""
    dtype = dtype_of(element)
    parts = {leaf.type for leaf in leaves(element)}
    each = np.dtype(f"u{min(dtype.alignment, 4)}") if len(parts) > 1 else leaves(element)[0].type.dtype
    name = next((name for name, code in TYPES.items() if np.dtype(code) == each), "u8")
    return name, dtype.itemsize // np.dtype(TYPES[name]).itemsize


def _schedules(request: Request) -> Iterator[Variant]:
    """The user's functions from a length to a schedule; buffers keep their names."""
    for name, function in request.schedules.items():
        make = partial(_schedule, name, function)
        given = [buffer.name for buffer in make(1).buffers if buffer.role is not Role.SCRATCH]
        yield Variant(name, (make,), {buffer: (buffer,) for buffer in given})


def _schedule(name: str, function: Callable[[int], object], length: int) -> Schedule:
    made = function(length)
    if not isinstance(made, Schedule):
        raise UnsupportedTypeError(f"schedules: expected a Schedule of a length from {name!r}, found {made!r}")
    return made


@attrs.frozen
class Operation:
    part: str  # of the ES module, with its functions
    variants: Callable[[Request], Iterator[Variant]]


OPERATIONS: Mapping[str, Operation] = {
    "sort": Operation("sort", _sorts),
    "argsort": Operation("argsort", _argsorts),
    "top_k": Operation("top_k", _selections),
    **{reducer.value: Operation("reduce", partial(_reductions, reducer)) for reducer in Reducer},
    "reduce": Operation("reduce", partial(_of_monoids, {"reduce {}": None})),
    "cumsum": Operation("scan", _cumsums),
    "scan": Operation("scan", partial(_of_monoids, _SCANS)),
    "schedule": Operation("schedule", _schedules),
}
