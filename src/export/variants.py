"""The checked arguments of an export, and its variants: one for each combination of operation, type and row length."""

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

# Names of element types, and NumPy's codes for them.
TYPES = {
    name: f"{name[0]}{int(name[1:]) // 8}"
    for name in ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64")
}


def any_device(lanes: int) -> TargetInfo:
    """A device with WebGPU's default limits; with subgroups of at least `lanes` lanes if not 0."""
    limits = attrs.evolve(DEFAULTS, subgroup_size=lanes, most_subgroup_size=max(lanes, 32)) if lanes else DEFAULTS
    return TargetInfo("webgpu", "any device", "", limits, frozenset({Capability.SUBGROUPS} if lanes else ()))


class Rows(Enum):
    """Rows of any length, known only when the export runs."""

    ANY = "any"


@attrs.frozen
class Request:
    """The checked arguments of an export."""

    keys: Mapping[str, SortableKey[Any, Any]]  # by the name of their type
    values: tuple[int, ...]  # sizes of values in bytes
    info: TargetInfo
    monoids: Mapping[str, Monoid[Any, Any]] = attrs.field(factory=dict[str, Monoid[Any, Any]])  # the user's, by name
    rows: tuple[int | Rows, ...] = ()  # lengths of independent rows
    k: tuple[int, ...] = ()  # of top_k
    schedules: Mapping[str, Callable[[int], Schedule]] = attrs.field(factory=dict[str, Callable[[int], Schedule]])


@attrs.frozen
class Variant:
    """An operation on one type, as a function from a length to a schedule, for both orders if it has any."""

    name: str
    make: Callable[..., Schedule]  # of a length
    descending: Callable[..., Schedule] | None
    # For each buffer of the schedule, the driver's argument; and the argument to use if the caller omits that.
    names: Mapping[str, tuple[str, ...]]
    shortest: int = 0
    of_rows: bool = False  # whether `make` takes the number of rows before the length
    result: tuple[str, int] = ("", 0)  # type and number of the scalars of a single result; 0 if it is an array

    def with_result(self, type: str, count: int) -> Variant:
        """The same with a result of `count` scalars of a type."""
        return attrs.evolve(self, result=(type, count))

    @classmethod
    def of_row(
        cls, name: str, make: Callable[[int, int, SortOrder], Schedule], row: int | Rows | None,
        names: Mapping[str, tuple[str, ...]],
    ) -> Variant:  # fmt: skip
        """From a function of a number of rows, their length, and an order."""

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
        """From a function with a keyword `order`."""
        up, down = (partial(make, order=order) for order in SortOrder)
        return cls(name, up, down, names)
