"""HostSort: NumPy's SIMD sort behind a parallel partition, as an algorithm like the others, without kernels.

For targets with Capability.HOST_SORT; targets/cpu/host implements it. Its policy has the thresholds between its
strategies, as measured; `tune()` measures some of them on the user's machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import attrs
import numpy as np

from ..machine import Capability, TargetInfo
from ..types.checks import instance_of, within
from ..types.errors import CapabilityError, InvalidArgumentError
from ..types.indices import Placement, SortOrder

if TYPE_CHECKING:
    from ..kernel.launch import Schedule
    from ..types.keys import SortableKey, Word

E = TypeVar("E")
W = TypeVar("W", bound="Word")

MEASURED = frozenset({"part_bytes_from", "count_bytes_from", "count_pairs_from"})  # thresholds that tune() measures

_THRESHOLD = within(0, 1 << 62)  # a threshold; the greatest means never
_FEW_THREADS = 4
_COUNT = within(1, 1 << 30)  # products of these fit 64 bits


def _fraction(instance: object, attribute: attrs.Attribute[float], value: object) -> None:
    if not isinstance(value, float | int) or not 0 <= value <= 1:
        raise InvalidArgumentError(f"HostSortPolicy: {attribute.name}: expected a number from 0 to 1, found {value!r}")


def _bool_or_none(instance: object, attribute: attrs.Attribute[bool | None], value: object) -> None:
    if not (value is None or isinstance(value, bool)):
        raise InvalidArgumentError(f"HostSortPolicy: {attribute.name}: expected a bool or None, found {value!r}")


@attrs.frozen
class HostSortPolicy:
    """Thresholds of HostSort, in elements unless a name says bytes. Below `serial_below` one thread works, and no
    compiler is loaded; where NumPy's own sort is slow, below `radix_from`."""

    # below this, waking a thread costs more than sorting
    serial_below: int = attrs.field(default=1 << 16, validator=_THRESHOLD)
    # rows of 32- or 64-bit elements from this size are partitioned, and the parts sorted in parallel
    part_bytes_from: int = attrs.field(default=3 << 19, validator=_THRESHOLD)
    # rows from this size with few distinct elements are sorted by counting these
    few_bytes_from: int = attrs.field(default=1 << 21, validator=_THRESHOLD)
    # rows of bytes from this size are sorted by counting
    count_bytes_from: int = attrs.field(default=1 << 17, validator=_THRESHOLD)
    # rows of 16-bit elements from this size are sorted by counting
    count_pairs_from: int = attrs.field(default=1 << 20, validator=_THRESHOLD)
    # the same where NumPy's own sort of 16 bits is slow
    count_slow_pairs_from: int = attrs.field(default=1 << 17, validator=_THRESHOLD)
    # argsort of 8- and 16-bit elements scatters indices by a histogram from this size; below it NumPy argsorts
    deal_from: int = attrs.field(default=1 << 18, validator=_THRESHOLD)
    # argsort of 32- or 64-bit elements sorts packed (rank, index) words from this size; below it branch prediction
    # makes NumPy's merge sort faster
    pack_from: int = attrs.field(default=1 << 13, validator=_THRESHOLD)
    # at most so many changes of direction among 240 neighbours mean presorted runs, which are merged
    few_turns: int = attrs.field(default=24, validator=_THRESHOLD)
    most_threads: int = attrs.field(default=16, validator=_COUNT)
    # a partitioned row gets a thread for each so many bytes, and at least four
    thread_bytes: int = attrs.field(default=1 << 17, validator=_COUNT)
    # rows of at least and of less than so many bytes are partitioned and sorted by threads that wait in compiled code,
    # one for each so many, if there are as many cores; longer ones by Python's threads, whom an interrupt stops
    crew_bytes_from: int = attrs.field(default=1 << 18, validator=_THRESHOLD)
    crew_bytes_below: int = attrs.field(default=1 << 26, validator=_THRESHOLD)
    crew_thread_bytes: int = attrs.field(default=1 << 15, validator=_COUNT)
    # whether rows of 32- or 64-bit elements are radix sorted; None: if NumPy's sort was measured to be slow
    by_radix: bool | None = attrs.field(default=None, validator=_bool_or_none)
    # then rows from this size: the launches for a shorter one take longer than NumPy's sort
    radix_from: int = attrs.field(default=1 << 13, validator=_COUNT)
    # and several rows from this size, which the same launches sort
    radix_rows_from: int = attrs.field(default=1 << 12, validator=_COUNT)
    # of this many elements in all
    radix_in_all_from: int = attrs.field(default=1 << 17, validator=_COUNT)
    # elements that a thread partitions at a time: a block fits its nearer caches
    block: int = attrs.field(default=1 << 16, validator=_COUNT)
    # elements sampled before a strategy is chosen
    sample: int = attrs.field(default=1024, validator=_COUNT)
    # the size of a first, smaller sample, where sampling for few distinct elements would cost an argsort time
    glance: int = attrs.field(default=256, validator=_COUNT)
    # at most so many distinct elements in the sample: NumPy sorts rows shorter than few_bytes_from alone
    some: int = attrs.field(default=700, validator=_THRESHOLD)
    # at most so many in the sample, and others elsewhere in the row: NumPy alone, for which equal elements are cheap
    skewed: int = attrs.field(default=150, validator=_THRESHOLD)
    # but from this size such rows are partitioned
    skewed_bytes_from: int = attrs.field(default=1 << 25, validator=_THRESHOLD)
    # no partition where one part would be this fraction of the row
    most_share: float = attrs.field(default=0.8, validator=_fraction)
    # short rows are sorted in batches of so many elements, which stay in the cache
    chunk: int = attrs.field(default=1 << 16, validator=_COUNT)

    def threads_for(self, nbytes: int) -> int:
        """The number of threads for a row of `nbytes`."""
        return min(self.most_threads, max(_FEW_THREADS, nbytes // self.thread_bytes))

    def crew_for(self, nbytes: int, threads: int, cores: int) -> int:
        """The number of threads that wait in compiled code for a row of `nbytes`; 0 if the row should not use them:
        where threads share cores, all would wait for the slowest."""
        if not self.crew_bytes_from <= nbytes < self.crew_bytes_below or not _FEW_THREADS <= threads <= cores:
            return 0
        return min(self.most_threads, threads, max(_FEW_THREADS, nbytes // self.crew_thread_bytes))

    def part_from(self, dtype: np.dtype[np.generic], threads: int = 2) -> int:
        """The least length to sort in parallel; lower with four threads or more, which save more than two."""
        match dtype.itemsize:
            case 1:
                return self.count_bytes_from
            case 2:
                return self.count_pairs_from
            case size:
                return (self.part_bytes_from if threads < _FEW_THREADS else self.part_bytes_from // 3) // size

    def packs(self, size: int, length: int, dtype: np.dtype[np.generic]) -> bool:
        """Whether argsort packs (rank, index) words, for rows of a length, of `size` elements in all. The shorter the
        rows, the more elements it takes; 64-bit elements are packed twice."""
        return dtype.itemsize > 2 and size >= self.pack_from and size * length >= 8 * dtype.itemsize * self.pack_from


@attrs.frozen
class HostSort:
    """NumPy's SIMD sort. Long rows are first partitioned among threads, or sorted by counting; argsort packs indices
    beside ranks. Where NumPy has no SIMD sort, or a slow one, the kernels of SerialRadix sort long rows.

    For arrays in host memory, by any key, on targets with Capability.HOST_SORT; stable if requested.
    """

    policy: HostSortPolicy = attrs.field(factory=HostSortPolicy, validator=instance_of(HostSortPolicy))

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
