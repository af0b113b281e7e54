"""The exportable operations by name, as functions from a length to a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from ..algos.batch import Batch
from ..algos.fit import fitted_radix
from ..algos.radix_sorts import radix_sort
from ..algos.sorts import bits_of, require_integers
from ..algos.table import by_masks
from ..kernel.launch import Role, Schedule
from ..machine import TargetInfo
from ..types.elements import dtype_of
from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey, is_lossy
from ..types.params import RadixPolicy
from ..types.scalars import U32, UNSIGNED
from .reductions import REDUCTIONS, cumsums, reductions, user_reductions, user_scans
from .selections import selections
from .short_sort import MOST, sort_short
from .variants import Request, Variant

# With subgroups: larger digits and workgroups, with as many items as fit into workgroup memory.
_BY_SUBGROUPS = RadixPolicy(items=14)
# Without: small workgroups and tiles, which compile fast. One digit size for all keys, so that they share kernels.
_ANYWHERE = attrs.evolve(by_masks(7).policy, items=20)


def sorts(request: Request) -> Iterator[Variant]:
    """Sorts of keys, and of keys with values; of one row, and of many."""
    alone = {"data": ("keys",), "results": ("into", "keys")}
    beside = {**alone, "values": ("values",), "moved": ("valuesInto", "values")}
    for name, key in request.keys.items():
        for size in (0, *request.values):
            radix = _radix(key, request.info, size)
            if size:
                make, label, names = (
                    partial(_pairs, key, UNSIGNED[size], radix),
                    f"sort {name} with u{8 * size}",
                    beside,
                )
                yield Variant.of_row(label, make, None, names)
            else:
                make, label, names = partial(_sort, key, radix), f"sort {name}", alone
                yield Variant.ordered(label, partial(_sort_row, key, radix), names)
            for row in request.rows:
                yield Variant.of_row(label, make, row, names)


def argsorts(request: Request) -> Iterator[Variant]:
    """Argsorts of one row, and of many."""
    for name, key in request.keys.items():
        make = partial(_argsort, key, _radix(key, request.info, dtype_of(key.word).itemsize))
        for row in (None, *request.rows):
            yield Variant.of_row(f"argsort {name}", make, row, {"data": ("keys",), "places": ("into",)})


def user_schedules(request: Request) -> Iterator[Variant]:
    """The user's functions from a length to a schedule; buffers keep their names."""
    for name, make in request.schedules.items():
        given = [buffer.name for buffer in make(1).buffers if buffer.role is not Role.SCRATCH]
        yield Variant(name, make, None, {buffer: (buffer,) for buffer in given})


@attrs.frozen
class Operation:
    """An exportable operation."""

    part: str  # of the ES module, with its functions
    variants: Callable[[Request], Iterator[Variant]]


OPERATIONS: Mapping[str, Operation] = {
    "sort": Operation("sort", sorts),
    "argsort": Operation("argsort", argsorts),
    "top_k": Operation("top_k", selections),
    **{name: Operation("reduce", partial(reductions, name)) for name in REDUCTIONS},
    "reduce": Operation("reduce", user_reductions),
    "cumsum": Operation("scan", cumsums),
    "scan": Operation("scan", user_scans),
    "schedule": Operation("schedule", user_schedules),
}


def _radix(key: SortableKey[Any, Any], info: TargetInfo, value_bytes: int) -> RadixPolicy:
    """The policy of a sort that runs on any device, with few kernels for all lengths and both orders."""
    require_integers(key, "export")
    wished = _BY_SUBGROUPS if info.capabilities else _ANYWHERE
    return fitted_radix(wished, key, bits_of(key), info, value_bytes)


def _sort_row(key: SortableKey[Any, Any], policy: RadixPolicy, length: int, order: SortOrder) -> Schedule:
    return sort_short(key, length, order) if length <= MOST else _sort(key, policy, 1, length, order)


def _sort(key: SortableKey[Any, Any], policy: RadixPolicy, rows: int, length: int, order: SortOrder) -> Schedule:
    return radix_sort(Batch(key, rows, length, order), policy, bits_of(key), shares=True)


def _pairs(
    key: SortableKey[Any, Any], value: type[Any], policy: RadixPolicy, rows: int, length: int, order: SortOrder
) -> Schedule:
    return radix_sort(Batch(key, rows, length, order, value=value), policy, bits_of(key), shares=True)


def _argsort(key: SortableKey[Any, Any], policy: RadixPolicy, rows: int, length: int, order: SortOrder) -> Schedule:
    ranks: Any = key if is_lossy(key) else RankKey(key)
    return radix_sort(Batch(ranks, rows, length, order, places=U32), policy, bits_of(key), shares=True)
