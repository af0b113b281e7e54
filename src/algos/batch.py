"""What a sort of rows is asked for, as one value: keys alone, keys with values, the permutation (argsort), or the first
of each row with their places (top-k)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import attrs

from ..kernel.language import *
from ..kernel.launch import unbound
from ..machine import TargetInfo
from ..types.params import FirstParams, RowsParams

T = TypeVar("T")
Q = TypeVar("Q", U8, U16, U32, U64)  # what is stored of a value
LOOPING_GROUPS = 1024  # workgroups of a looping grid, at most
Three: TypeAlias = tuple[Buffer[Any], Buffer[Any], Buffer[Any]]


@attrs.frozen
class Mode(Generic[V]):
    """What a sorting kernel reads and writes."""

    value: type[V]  # the class of what goes along with the keys
    takes_values: bool = False  # values, or indices, are permuted like the keys
    counts_places: bool = False  # and these are the keys' indices in their row, computed and not read
    keeps_keys: bool = True  # the sorted keys are written
    widens: bool = False  # the last pass writes 32-bit indices as 64-bit ones, NumPy's

    @property
    def stored(self) -> Any:
        """The class of what is written of `value`."""
        return U64 if self.widens else self.value

    def in_pass(self, is_first: bool, is_last: bool) -> Mode[V]:
        """The mode of one of several passes: the first reads the caller's buffers, the last writes them."""
        return attrs.evolve(
            self, counts_places=self.counts_places and is_first, keeps_keys=self.keeps_keys or not is_last,
            widens=self.widens and is_last,
        )  # fmt: skip


@attrs.frozen
class Batch:
    """Contiguous rows of one length to sort, by `data`'s keys, in an order."""

    key: SortableKey[Any, Any]
    rows: int
    length: int
    order: SortOrder
    in_place: bool = attrs.field(default=False, kw_only=True)  # else into `results`
    # the class of `values`, which are permuted like their keys into `moved`
    value: type[Any] | None = attrs.field(default=None, kw_only=True)
    # the class of indices, if the permutation is wanted, in `places`, and no keys
    places: type[U32 | U64] | None = attrs.field(default=None, kw_only=True)
    # how many of each permutation are wanted, and their elements too; see PairsAlgorithm.takes_first
    first: int | None = attrs.field(default=None, kw_only=True)

    @property
    def count(self) -> int:
        return self.rows * self.length

    def buffer(self, name: str, element: type[T], role: Role) -> Buffer[T]:
        """A buffer with one of something for each element."""
        return Buffer(name, element, self.count, role)

    def made(self, name: str, element: type[T]) -> Buffer[T]:
        """A buffer for one of something for each element that is wanted."""
        return Buffer(name, element, self.rows * (self.length if self.first is None else self.first), Role.OUTPUT)

    @property
    def params(self) -> RowsParams:
        """The sizes, for kernels that sort a row in one launch."""
        rows, length = U32(self.rows), U32(self.length)
        return RowsParams(rows, length) if self.first is None else FirstParams(rows, length, U32(self.first))

    @property
    def data(self) -> Buffer[Any]:
        return self.buffer("data", self.key.element, Role.INOUT if self.in_place else Role.INPUT)

    @property
    def results(self) -> Buffer[Any]:
        """The sorted keys, in place the buffer `data` itself; a stand-in if none are wanted."""
        if self.places is not None and self.first is None:
            return unbound(self.key.element)
        return self.data if self.in_place else self.made("results", self.key.element)

    @property
    def values(self) -> tuple[Buffer[Any], Buffer[Any]]:
        """The values, before and after, or the permutation after; stand-ins if there are none."""
        if self.places is not None:
            return unbound(self.places), self.permutation
        if self.value is None:
            return unbound(U32), unbound(U32)
        return self.buffer("values", self.value, Role.INPUT), self.made("moved", self.value)

    @property
    def permutation(self) -> Buffer[Any]:
        """The permutation; a stand-in if it is not wanted."""
        return unbound(U64) if self.places is None else self.made("places", self.places)

    @property
    def arguments(self) -> tuple[Buffer[Any], Buffer[Any], Buffer[Any], Buffer[Any]]:
        """Data, results, values, moved: for kernels that sort a row in one launch."""
        return self.data, self.results, *self.values

    @property
    def bound(self) -> tuple[Buffer[Any], ...]:
        """The buffers that the caller binds."""
        data, results, values, moved = self.arguments
        named = {buffer.name: buffer for buffer in (data, values, results, moved)}
        return tuple(buffer for buffer in named.values() if buffer.name != unbound(U32).name)

    def mode(self, index: type[Any] | None = None) -> Mode[Any]:
        """What kernels read and write; `index` is the class of the indices that travel, if it is an argsort and these
        are not the results'."""
        if self.places is not None:
            index = index or self.places
            widens = index is not self.places
            return Mode(index, takes_values=True, counts_places=True, keeps_keys=self.first is not None, widens=widens)
        return Mode(self.value or U32, takes_values=self.value is not None)

    def alternating(self, mode: Mode[Any], passes: int) -> tuple[Three, Three]:
        """The (input, output, scratch) buffers of the keys, and of what goes along, for so many passes, which alternate
        between the last two, and end with the output; where nothing is written at the end, two passes need none."""

        def between(name: str, element: type[Any], most: int = 1) -> Buffer[Any]:
            return Buffer(name, element, self.count if passes > most else min(1, self.count), Role.SCRATCH)

        element = self.key.element
        words = between("words", element)
        if self.places is not None:
            moved = between("moved", mode.value, 2) if mode.widens else self.permutation
            results = between("results", element, 0 if mode.keeps_keys else 2)
            return (self.data, results, words), (unbound(mode.value), moved, between("spare", mode.value))
        spare = unbound(U32) if self.value is None else between("spare", self.value)
        return (self.data, self.results, words), (*self.values, spare)

    def schedule(self, launches: Iterable[Launch]) -> Schedule:
        """The schedule of these launches."""
        return Schedule(self.bound, tuple(launches))


def looping_grid(count: int, group_size: int, groups: int = LOOPING_GROUPS) -> Grid:
    """The grid of a kernel whose invocations each loop over elements: at most `groups` workgroups, and one at least."""
    return Grid(max(1, min(groups, -(-count // group_size))), group_size)


class PairsAlgorithm(ABC):
    """The base of the algorithms that sort keys, key-value pairs and permutations alike, stably."""

    __slots__ = ()
    takes_first: ClassVar[bool] = False  # whether it sorts a batch of which the `first` are wanted

    @abstractmethod
    def fitted(self, key: SortableKey[E, W], length: int, info: TargetInfo, value_bytes: int = 0, /) -> PairsAlgorithm:
        """The same, fitted to a target, with values (or indices) of `value_bytes` each, if there are any."""

    @abstractmethod
    def most_rows(self, length: int, groups: int, /) -> int:
        """As a SortAlgorithm: the rows that fit one schedule; 0 if one row does not fit."""

    @abstractmethod
    def sort(self, batch: Batch, /) -> Schedule:
        """Sorts every row."""

    def placements(self, key: SortableKey[E, W], /) -> tuple[Placement, ...]:
        """As a SortAlgorithm: what it can do with such keys, the fastest first."""
        return (Placement.ELSEWHERE, Placement.IN_PLACE)

    def schedule(
        self, key: SortableKey[E, W], rows: int, length: int, order: SortOrder, placement: Placement, /
    ) -> Schedule:
        """As a SortAlgorithm: sorts every row of the buffer "data"."""
        return self.sort(Batch(key, rows, length, order, in_place=placement is Placement.IN_PLACE))
