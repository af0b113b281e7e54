"""What an export is asked for, and what it is made of: schedules by the names that the driver knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any

import attrs

from ..kernel.launch import Schedule
from ..machine import Capability, TargetInfo
from ..targets.wgsl.defaults import DEFAULTS
from ..types.indices import SortOrder
from ..types.keys import SortableKey
from ..types.monoids import Monoid

# Types of elements, by the name they have here, as NumPy calls them.
TYPES = {
    name: f"{name[0]}{int(name[1:]) // 8}"
    for name in ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64")
}


def any_device(lanes: int) -> TargetInfo:
    """A device with the limits that all have; with subgroups of so many lanes at least, if any."""
    limits = attrs.evolve(DEFAULTS, subgroup_size=lanes, most_subgroup_size=max(lanes, 32)) if lanes else DEFAULTS
    return TargetInfo("webgpu", "any device", "", limits, frozenset({Capability.SUBGROUPS} if lanes else ()))


class Rows(Enum):
    """Rows of lengths that are not known yet."""

    ANY = "any"


@attrs.frozen
class Asked:
    """What an export is asked for."""

    keys: Mapping[str, SortableKey[Any, Any]]  # by the name of their type
    values: tuple[int, ...]  # sizes of what is taken along, in bytes
    info: TargetInfo
    monoids: Mapping[str, Monoid[Any, Any]] = attrs.field(factory=dict[str, Monoid[Any, Any]])  # one's own, by name
    rows: tuple[int | Rows, ...] = ()  # lengths of rows that are sorted each for itself
    k: tuple[int, ...] = ()  # how many are selected
    schedules: Mapping[str, Callable[[int], Schedule]] = attrs.field(factory=dict[str, Callable[[int], Schedule]])


@attrs.frozen
class Variant:
    """One schedule for every length, in either order where there is one."""

    name: str
    make: Callable[..., Schedule]  # of a length
    descending: Callable[..., Schedule] | None
    # For a buffer of the schedule: what the caller calls it; and what takes its place where the caller gives none.
    names: Mapping[str, tuple[str, ...]]
    shortest: int = 0
    of_rows: bool = False  # whether it is also given, first, how many rows there are
    result: tuple[str, int] = ("", 0)  # the type of the numbers that a result is made of, and how many it has

    def giving(self, type: str, count: int) -> Variant:
        """With results that are so many numbers of a type each."""
        return attrs.evolve(self, result=(type, count))

    @classmethod
    def of_row(
        cls, name: str, make: Callable[[int, int, SortOrder], Schedule], row: int | Rows | None,
        names: Mapping[str, tuple[str, ...]],
    ) -> Variant:  # fmt: skip
        """Of a function of how many rows there are, how long one is, and an order."""

        def one(length: int, order: SortOrder) -> Schedule:
            return make(1, length, order)

        match row:
            case None:
                return cls.ordered(name, one, names)
            case Rows.ANY:
                return attrs.evolve(cls.ordered(f"{name} rows any", make, names), of_rows=True)
            case int():

                def rows(number: int, order: SortOrder) -> Schedule:
                    return make(number, row, order)

                return cls.ordered(f"{name} rows {row}", rows, names)

    @classmethod
    def ordered(cls, name: str, make: Callable[..., Schedule], names: Mapping[str, tuple[str, ...]]) -> Variant:
        """Of a function that is also given an order."""
        up, down = (partial(make, order=order) for order in SortOrder)
        return cls(name, up, down, names)
