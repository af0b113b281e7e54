"""The host's own sort, as an algorithm like any other: NumPy's SIMD sort behind a parallel partition, and no kernel.

A target with Capability.HOST_SORT does it. From which size on each of its ways pays is plain data, measured, and free
to be measured anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import attrs
import numpy as np

from ..machine import Capability, TargetInfo
from ..types.checks import holds, within
from ..types.errors import CapabilityError, InvalidArgumentError
from ..types.indices import Placement, SortOrder

if TYPE_CHECKING:
    from ..kernel.launch import Schedule
    from ..types.keys import SortableKey, Word

E = TypeVar("E")
W = TypeVar("W", bound="Word")

MEASURED = frozenset({"part_bytes_from", "count_bytes_from", "count_pairs_from"})  # what tune() finds out

_SIZE = within(0, 1 << 62)  # from some size on, or never
_FEW_THREADS = 4
_SOME = within(1, 1 << 30)  # counted in 64 bits, with room to spare


def _share(instance: object, attribute: attrs.Attribute[float], value: object) -> None:
    if not isinstance(value, float | int) or not 0 <= value <= 1:
        raise InvalidArgumentError(f"HostSortPolicy: {attribute.name}: expected a number from 0 to 1, found {value!r}")


def _is_whether(instance: object, attribute: attrs.Attribute[bool | None], value: object) -> None:
    if not (value is None or isinstance(value, bool)):
        raise InvalidArgumentError(f"HostSortPolicy: {attribute.name}: expected a bool or None, found {value!r}")


@attrs.frozen
class HostSortPolicy:
    """Sizes are in elements. Below `serial_below` the caller works alone, and nothing loads Numba; where NumPy's own
    sort is slow, below `radix_from`."""

    # waking a thread costs about as long as sorting this many
    serial_below: int = attrs.field(default=1 << 16, validator=_SIZE)
    # a row of 32- or 64-bit elements this long is parted, its parts sorted side by side
    part_bytes_from: int = attrs.field(default=3 << 19, validator=_SIZE)
    # in a row this long, few different elements are worth counting
    few_bytes_from: int = attrs.field(default=1 << 23, validator=_SIZE)
    # a row of bytes this long is sorted by counting
    count_bytes_from: int = attrs.field(default=1 << 17, validator=_SIZE)
    # so many bytes are counted two at a time
    count_in_pairs_from: int = attrs.field(default=1 << 22, validator=_SIZE)
    # a row of 16-bit elements this long is sorted by counting
    count_pairs_from: int = attrs.field(default=1 << 20, validator=_SIZE)
    # the same where NumPy's own sort of 16 bits is slow
    count_slow_pairs_from: int = attrs.field(default=1 << 17, validator=_SIZE)
    # argsort deals out the places of 8- and 16-bit elements; NumPy those of shorter rows
    deal_from: int = attrs.field(default=1 << 18, validator=_SIZE)
    # argsort packs ranks and places of so many 32- or 64-bit elements; of fewer a processor foresees most of what
    # NumPy's merge asks
    pack_from: int = attrs.field(default=1 << 13, validator=_SIZE)
    # of 240 neighbours, so few that turn from rising to falling or back show runs to merge
    few_turns: int = attrs.field(default=24, validator=_SIZE)
    most_threads: int = attrs.field(default=16, validator=_SOME)
    # a row that is parted is worth one more thread for so many bytes of it, but four in any case
    thread_bytes: int = attrs.field(default=1 << 18, validator=_SOME)
    # whether rows of 32- or 64-bit elements are sorted by radix; None: where NumPy's sort was measured to be slow
    by_radix: bool | None = attrs.field(default=None, validator=_is_whether)
    # from so many elements on
    radix_from: int = attrs.field(default=1 << 14, validator=_SOME)
    # elements that a thread parts at a time, in the nearer caches
    block: int = attrs.field(default=1 << 16, validator=_SOME)
    # elements looked at before a plan is made
    sample: int = attrs.field(default=1024, validator=_SOME)
    # so few different ones in the sample are counted one by one
    few: int = attrs.field(default=16, validator=_SIZE)
    # elements looked at before more are, where a look for few different ones costs an argsort time
    glance: int = attrs.field(default=256, validator=_SOME)
    # so few different ones in the sample, and a row shorter than few_bytes_from is left to NumPy alone
    some: int = attrs.field(default=700, validator=_SIZE)
    # so few, though others are there too, and equal elements leave NumPy little to do
    skewed: int = attrs.field(default=150, validator=_SIZE)
    # a row this long is parted nevertheless
    skewed_bytes_from: int = attrs.field(default=1 << 25, validator=_SIZE)
    # a part as large as this share of the row is not worth the partition
    most_share: float = attrs.field(default=0.8, validator=_share)
    # short rows are sorted so many elements at a time, which stay in the cache
    chunk: int = attrs.field(default=1 << 16, validator=_SOME)

    def threads_for(self, nbytes: int) -> int:
        """How many threads a row of so many bytes is worth."""
        return min(self.most_threads, max(_FEW_THREADS, nbytes // self.thread_bytes))

    def part_from(self, dtype: np.dtype[np.generic], threads: int = 2) -> int:
        """How long a row is worth the work of so many threads: two save half of it, four three quarters."""
        match dtype.itemsize:
            case 1:
                return self.count_bytes_from
            case 2:
                return self.count_pairs_from
            case size:
                return self.part_bytes_from * (3 if threads < _FEW_THREADS else 2) // 3 // size

    def packs(self, size: int, length: int, dtype: np.dtype[np.generic]) -> bool:
        """Whether rows of a length, of so many elements in all, are worth packing for argsort: the shorter they are,
        the more it takes. Elements of 64 bits are packed twice."""
        return dtype.itemsize > 2 and size >= self.pack_from and size * length >= 8 * dtype.itemsize * self.pack_from


@attrs.frozen
class HostSort:
    """NumPy's SIMD sort. Long rows are parted among threads first, or counted, or packed with their indices. Where
    NumPy has no SIMD sort, or a slow one, they are sorted by the kernels of SerialRadix.

    For arrays in the host's memory, by any key, on targets with Capability.HOST_SORT; stable where it is asked for.
    """

    policy: HostSortPolicy = attrs.field(factory=HostSortPolicy, validator=holds(HostSortPolicy))

    def fitted(self, key: SortableKey[E, W], length: int, info: TargetInfo, /) -> HostSort:
        if Capability.HOST_SORT not in info.capabilities:
            raise CapabilityError(
                f"algorithm: HostSort is {Capability.HOST_SORT.value}, which target {info.name!r} has not; it runs "
                "kernels: Radix() or Bitonic()"
            )
        return self

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        return (Placement.ELSEWHERE, Placement.IN_PLACE)

    def most_rows(self, length: int, groups: int, /) -> int:
        return 1 << 62

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        raise CapabilityError("algorithm: HostSort runs no kernels; Radix() or Bitonic() makes a schedule of them")
