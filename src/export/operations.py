"""What can be exported: each operation as a function from a length to a schedule, under the name the driver knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from ..algos.fit import fitted_radix
from ..algos.radix_sorts import radix_argsort, radix_sort, radix_sort_pairs
from ..algos.sorts import bits_of, require_integers
from ..kernel.launch import Schedule
from ..machine import Capability, Limits, TargetInfo
from ..types.elements import dtype_of
from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey, is_lossy
from ..types.params import RadixPolicy
from ..types.scalars import UNSIGNED

# Types of elements, by the name they have here, as NumPy calls them.
TYPES = {
    name: f"{name[0]}{int(name[1:]) // 8}"
    for name in ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64")
}

# What every device of WebGPU has, whatever else it is.
_LIMITS = Limits(
    group_size=256, workgroup_bytes=16384, groups=65535**2, storage_bytes=1 << 27, storage_buffers=8, subgroup_size=1,
    most_subgroup_size=1,
)  # fmt: skip


def any_device(lanes: int) -> TargetInfo:
    """A device with the limits that all have; with subgroups of so many lanes at least, if any."""
    limits = attrs.evolve(_LIMITS, subgroup_size=lanes, most_subgroup_size=max(lanes, 32)) if lanes else _LIMITS
    return TargetInfo("webgpu", "any device", "", limits, frozenset({Capability.SUBGROUPS} if lanes else ()))


@attrs.frozen
class Asked:
    """What an export is asked for."""

    keys: Mapping[str, SortableKey[Any, Any]]  # by the name of their type
    values: tuple[int, ...]  # sizes of what is taken along, in bytes
    info: TargetInfo


@attrs.frozen
class Variant:
    """One schedule for every length, in either order where there is one."""

    name: str
    make: Callable[[int], Schedule]
    descending: Callable[[int], Schedule] | None
    # For a buffer of the schedule: what the caller calls it; and what takes its place where the caller gives none.
    names: Mapping[str, tuple[str, ...]]

    @classmethod
    def ordered(cls, name: str, make: Callable[..., Schedule], names: Mapping[str, tuple[str, ...]]) -> Variant:
        """Of a function that is also given an order."""
        up, down = (partial(make, order=order) for order in SortOrder)
        return cls(name, up, down, names)


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


def argsorts(asked: Asked) -> Iterator[Variant]:
    """Where keys come from."""
    for name, key in asked.keys.items():
        make = partial(_argsort, key, _radix(key, asked.info, dtype_of(key.word).itemsize))
        yield Variant.ordered(f"argsort {name}", make, {"data": ("keys",), "places": ("into",)})


OPERATIONS: Mapping[str, Callable[[Asked], Iterator[Variant]]] = {"sort": sorts, "argsort": argsorts}


def _radix(key: SortableKey[Any, Any], info: TargetInfo, value_bytes: int) -> RadixPolicy:
    """The sort that runs on any device: of a few kernels, whatever the length and the order."""
    require_integers(key, "export")
    wished = RadixPolicy(digit_bits=8 if info.capabilities else 7, items=8)
    return fitted_radix(wished, key, bits_of(key), info, value_bytes)


def _sort(key: SortableKey[Any, Any], policy: RadixPolicy, length: int, order: SortOrder) -> Schedule:
    return radix_sort(key, 1, length, order, policy, bits_of(key), shares=True)


def _pairs(
    key: SortableKey[Any, Any], value: type[Any], policy: RadixPolicy, length: int, order: SortOrder
) -> Schedule:
    return radix_sort_pairs(key, value, 1, length, order, policy, bits_of(key), shares=True)


def _argsort(key: SortableKey[Any, Any], policy: RadixPolicy, length: int, order: SortOrder) -> Schedule:
    ranks: Any = key if is_lossy(key) else RankKey(key)
    return radix_argsort(ranks, 1, length, order, policy, bits_of(key), shares=True, wide=False)
