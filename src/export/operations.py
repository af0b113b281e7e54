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
from .few import MOST, sort_few
from .reductions import REDUCTIONS, cumsums, own_reductions, own_scans, reductions
from .selections import selections
from .variants import Asked, Variant

# With subgroups there is a larger digit, and a workgroup for it. As many items as leave room beside a tile.
_BY_SUBGROUPS = RadixPolicy(items=14)
# Without, small workgroups and tiles are soon compiled. One digit for all keys, so that these share kernels.
_ANYWHERE = attrs.evolve(by_masks(7).policy, items=20)


def sorts(asked: Asked) -> Iterator[Variant]:
    """Keys alone, and with values; of one row, and of rows."""
    alone = {"data": ("keys",), "results": ("into", "keys")}
    beside = {**alone, "values": ("values",), "moved": ("valuesInto", "values")}
    for name, key in asked.keys.items():
        for size in (0, *asked.values):
            radix = _radix(key, asked.info, size)
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
            for row in asked.rows:
                yield Variant.of_row(label, make, row, names)


def argsorts(asked: Asked) -> Iterator[Variant]:
    """Where keys come from."""
    for name, key in asked.keys.items():
        make = partial(_argsort, key, _radix(key, asked.info, dtype_of(key.word).itemsize))
        for row in (None, *asked.rows):
            yield Variant.of_row(f"argsort {name}", make, row, {"data": ("keys",), "places": ("into",)})


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
    "top_k": Operation("top_k", selections),
    **{name: Operation("reduce", partial(reductions, name)) for name in REDUCTIONS},
    "reduce": Operation("reduce", own_reductions),
    "cumsum": Operation("scan", cumsums),
    "scan": Operation("scan", own_scans),
    "schedule": Operation("schedule", own_schedules),
}


def _radix(key: SortableKey[Any, Any], info: TargetInfo, value_bytes: int) -> RadixPolicy:
    """The sort that runs on any device: of a few kernels, whatever the length and the order."""
    require_integers(key, "export")
    wished = _BY_SUBGROUPS if info.capabilities else _ANYWHERE
    return fitted_radix(wished, key, bits_of(key), info, value_bytes)


def _sort_row(key: SortableKey[Any, Any], policy: RadixPolicy, length: int, order: SortOrder) -> Schedule:
    return sort_few(key, length, order) if length <= MOST else _sort(key, policy, 1, length, order)


def _sort(key: SortableKey[Any, Any], policy: RadixPolicy, rows: int, length: int, order: SortOrder) -> Schedule:
    return radix_sort(key, rows, length, order, policy, bits_of(key), shares=True)


def _pairs(
    key: SortableKey[Any, Any], value: type[Any], policy: RadixPolicy, rows: int, length: int, order: SortOrder
) -> Schedule:
    return radix_sort_pairs(key, value, rows, length, order, policy, bits_of(key), shares=True)


def _argsort(key: SortableKey[Any, Any], policy: RadixPolicy, rows: int, length: int, order: SortOrder) -> Schedule:
    ranks: Any = key if is_lossy(key) else RankKey(key)
    return radix_argsort(ranks, rows, length, order, policy, bits_of(key), shares=True, wide=False)
