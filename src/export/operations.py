"""What can be exported: each operation by its name, as functions from a length to a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from ..algos.fit import fitted_radix
from ..algos.radix_sorts import radix_argsort, radix_sort, radix_sort_pairs
from ..algos.sorts import bits_of, require_integers
from ..algos.table import by_masks
from ..kernel.launch import Role, Schedule
from ..machine import TargetInfo
from ..types.elements import dtype_of
from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey, is_lossy
from ..types.params import RadixPolicy
from ..types.scalars import UNSIGNED
from .reductions import REDUCTIONS, cumsums, own_reductions, own_scans, reductions
from .variants import Asked, Variant

# With subgroups, the items of an invocation: as many as leave room for what is counted beside a tile of 32-bit words.
_ITEMS = 14
_DIGIT_BITS = 7  # without them, of all keys: so that these share kernels


def sorts(asked: Asked) -> Iterator[Variant]:
    """Keys alone, and with values."""
    for name, key in asked.keys.items():
        make = partial(_sort, key, _radix(key, asked.info, 0))
        yield Variant.ordered(f"sort {name}", make, {"data": ("keys",), "results": ("into", "keys")})
        for size in asked.values:
            names = {
                "data": ("keys",),
                "values": ("values",),
                "results": ("into", "keys"),
                "moved": ("valuesInto", "values"),
            }
            take = partial(_pairs, key, UNSIGNED[size], _radix(key, asked.info, size))
            yield Variant.ordered(f"sort {name} with u{8 * size}", take, names)
        for row in asked.rows:
            each = partial(_sort_rows, key, _radix(key, asked.info, 0), row)
            yield Variant.ordered(f"sort {name} rows {row}", each, {"data": ("keys",), "results": ("into", "keys")})


def argsorts(asked: Asked) -> Iterator[Variant]:
    """Where keys come from."""
    for name, key in asked.keys.items():
        make = partial(_argsort, key, _radix(key, asked.info, dtype_of(key.word).itemsize))
        names = {"data": ("keys",), "places": ("into",)}
        yield Variant.ordered(f"argsort {name}", make, names)
        for row in asked.rows:
            each = partial(_argsort_rows, key, _radix(key, asked.info, dtype_of(key.word).itemsize), row)
            yield Variant.ordered(f"argsort {name} rows {row}", each, names)


def own_schedules(asked: Asked) -> Iterator[Variant]:
    """Functions of one's own, whose buffers keep their names."""
    for name, make in asked.schedules.items():
        given = [buffer.name for buffer in make(1).buffers if buffer.role is not Role.SCRATCH]
        yield Variant(name, make, None, {buffer: (buffer,) for buffer in given})


@attrs.frozen
class Operation:
    """Something that can be exported."""

    part: str  # of the module, which has its functions
    variants: Callable[[Asked], Iterator[Variant]]


OPERATIONS: Mapping[str, Operation] = {
    "sort": Operation("sort", sorts),
    "argsort": Operation("argsort", argsorts),
    **{name: Operation("reduce", partial(reductions, name)) for name in REDUCTIONS},
    "reduce": Operation("reduce", own_reductions),
    "cumsum": Operation("scan", cumsums),
    "scan": Operation("scan", own_scans),
    "schedule": Operation("schedule", own_schedules),
}


def _radix(key: SortableKey[Any, Any], info: TargetInfo, value_bytes: int) -> RadixPolicy:
    """The sort that runs on any device: of a few kernels, whatever the length and the order."""
    require_integers(key, "export")
    wished = RadixPolicy(items=_ITEMS) if info.capabilities else by_masks(_DIGIT_BITS).policy
    return fitted_radix(wished, key, bits_of(key), info, value_bytes)


def _sort(key: SortableKey[Any, Any], policy: RadixPolicy, length: int, order: SortOrder) -> Schedule:
    return radix_sort(key, 1, length, order, policy, bits_of(key), shares=True)


def _sort_rows(key: SortableKey[Any, Any], policy: RadixPolicy, row: int, rows: int, order: SortOrder) -> Schedule:
    return radix_sort(key, rows, row, order, policy, bits_of(key), shares=True)


def _pairs(
    key: SortableKey[Any, Any], value: type[Any], policy: RadixPolicy, length: int, order: SortOrder
) -> Schedule:
    return radix_sort_pairs(key, value, 1, length, order, policy, bits_of(key), shares=True)


def _argsort(key: SortableKey[Any, Any], policy: RadixPolicy, length: int, order: SortOrder) -> Schedule:
    return _argsort_rows(key, policy, length, 1, order)


def _argsort_rows(key: SortableKey[Any, Any], policy: RadixPolicy, row: int, rows: int, order: SortOrder) -> Schedule:
    ranks: Any = key if is_lossy(key) else RankKey(key)
    return radix_argsort(ranks, rows, row, order, policy, bits_of(key), shares=True, wide=False)
