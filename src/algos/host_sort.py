"""HostSort: NumPy's SIMD sort behind a parallel partition, for targets with Capability.HOST_SORT, without kernels. Its
policy has the thresholds between its strategies, as measured; `tune()` measures some of them on the user's machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import attrs
import numpy as np
import numpy.typing as npt

from ..machine import Capability, TargetInfo
from ..types.checks import instance_of, require, within
from ..types.errors import CapabilityError
from ..types.indices import Placement, SortOrder

if TYPE_CHECKING:
    from ..kernel.launch import Schedule
    from ..types.keys import SortableKey, Word

E = TypeVar("E")
W = TypeVar("W", bound="Word")

MEASURED = frozenset({"part_bytes_from", "count_bytes_from", "count_pairs_from"})  # thresholds that tune() measures

FEW_THREADS = 4  # fewer save less than it takes to wake them, where work is short


def _threshold(usual: int) -> int:
    return attrs.field(default=usual, validator=within(0, 1 << 62))  # the greatest means never


def _count(usual: int) -> int:
    return attrs.field(default=usual, validator=within(1, 1 << 30))  # products of these fit 64 bits


class Partition(Protocol):
    """A partition of elements of one dtype about pivots, into 2, 8, 32, ... parts, by the calling thread alone. Gives
    where parts begin in the results, and the last one's end; the source is overwritten."""

    @property
    def most_parts(self) -> int: ...  # how many are made sooner than the elements are sorted
    def __call__(self, source: Any, results: Any, pivots: Any, /) -> npt.NDArray[np.int64]: ...


@attrs.frozen
class HostSortPolicy:
    """Thresholds of HostSort, in elements unless a name says bytes. Below `serial_below` one thread works, and no
    compiler is loaded; where NumPy's own sort is slow, below `radix_from`."""

    serial_below: int = _threshold(1 << 16)  # waking a thread costs more than sorting
    # rows of 32- or 64-bit elements from this size are partitioned, and the parts sorted in parallel
    part_bytes_from: int = _threshold(3 << 19)
    few_bytes_from: int = _threshold(1 << 21)  # rows with few distinct elements are sorted by counting these
    count_bytes_from: int = _threshold(1 << 17)  # rows of bytes are sorted by counting
    count_pairs_from: int = _threshold(1 << 20)  # and rows of 16-bit elements
    count_slow_pairs_from: int = _threshold(1 << 18)  # the same where NumPy has no vector code for 16 bits
    deal_from: int = _threshold(1 << 18)  # argsort of 8- and 16-bit elements scatters indices by a histogram
    # argsort of 32- or 64-bit elements sorts packed (rank, index) words from this size, and of one row sooner where
    # NumPy has vector code: of arrays by turns, as its merge sort takes a third of the time if branches are foreseen
    pack_from: int = _threshold(3 << 10)
    # at most so many changes of direction among 240 neighbours mean presorted runs, which are merged
    few_turns: int = _threshold(12)
    most_threads: int = _count(16)
    thread_bytes: int = _count(1 << 17)  # a partitioned row gets a thread for each so many, and at least four
    # rows of at least and of less than so many bytes are partitioned and sorted by threads that wait in compiled code,
    # one for each so many, if there are as many cores; longer ones by Python's threads, whom an interrupt stops
    crew_bytes_from: int = _threshold(1 << 18)
    crew_bytes_below: int = _threshold(1 << 26)
    crew_thread_bytes: int = _count(1 << 15)
    # whether rows of 32- or 64-bit elements are radix sorted; None: if NumPy's sort was measured to be slow
    by_radix: bool | None = None
    radix_from: int = _count(1 << 13)  # then rows from this size: launches for a shorter one take longer than NumPy
    radix_rows_from: int = _count(1 << 12)  # and several rows from this size, which the same launches sort
    radix_in_all_from: int = _count(1 << 17)  # of this many elements in all
    block: int = _count(1 << 16)  # elements that a thread partitions at a time: they fit its nearer caches
    sample: int = _count(1024)  # elements sampled before a strategy is chosen
    glance: int = _count(256)  # a first, smaller sample, where sampling for few distinct elements would take long
    # at most so many distinct elements in the sample: NumPy sorts rows shorter than few_bytes_from alone
    some: int = _threshold(700)
    # at most so many in the sample, and others elsewhere in the row: NumPy alone, for which equal elements are cheap
    skewed: int = _threshold(150)
    skewed_bytes_from: int = _threshold(1 << 25)  # but from this size such rows are partitioned
    most_share: float = 0.8  # no partition where a part would be as much
    chunk: int = _count(1 << 16)  # short rows are sorted in batches of so many elements, which stay in the cache

    def __attrs_post_init__(self) -> None:
        share = cast(object, self.most_share)
        is_share = isinstance(share, float | int) and 0 <= share <= 1
        require(is_share, self, "most_share", "a number from 0 to 1")
        require(self.by_radix is None or type(self.by_radix) is bool, self, "by_radix", "a bool or None")

    def threads_for(self, nbytes: int) -> int:
        return min(self.most_threads, max(FEW_THREADS, nbytes // self.thread_bytes))

    def crew_for(self, nbytes: int, threads: int, cores: int, least: int = FEW_THREADS) -> int:
        """The threads that wait in compiled code for a row of `nbytes`; 0 where they would share cores, or are fewer
        than `least`. Few save less, so that it takes twice as many bytes."""
        fewest = self.crew_bytes_from << (threads < FEW_THREADS)
        if not fewest <= nbytes < self.crew_bytes_below or not least <= threads <= cores:
            return 0
        return min(self.most_threads, threads, max(FEW_THREADS, nbytes // self.crew_thread_bytes))

    def part_from(self, dtype: np.dtype[np.generic], threads: int = 2) -> int:
        """The least length to sort in parallel; lower with four threads or more, which save more than two."""
        match dtype.itemsize:
            case 1:
                return self.count_bytes_from
            case 2:
                return self.count_pairs_from
            case size:
                return (self.part_bytes_from if threads < FEW_THREADS else self.part_bytes_from // 3) // size

    def packs(self, size: int, length: int, dtype: np.dtype[np.generic]) -> bool:
        """Whether argsort packs (rank, index) words. The shorter the rows, the more elements in all it takes."""
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
        return sys.maxsize

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        raise CapabilityError("algorithm: HostSort runs no kernels; Radix() or Bitonic() makes a schedule of them")
