"""Sorting along an axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from ..machine import TargetInfo
from ..types.errors import CapabilityError
from ..types.indices import Placement, SortOrder
from ..types.keys import FloatKey, SortableKey, is_lossy
from ..types.scalars import U32
from ..types.specs import Spec
from .argsort import Argsort
from .base import AlongAxis, Copy, Output, Part, Work, Works, copying, key_of, rows_together, single
from .pieces import by_indices, fits_binding, parts_of, pieces_of

if TYPE_CHECKING:
    from ..algos.sorts import SortAlgorithm


@attrs.frozen
class Sort(AlongAxis):
    """A sorted copy; in place if input and output are the same array."""

    axis: int | None = -1
    order: SortOrder = SortOrder.ASCENDING
    stable: bool = False
    key: SortableKey[Any, Any] | None = None
    algorithm: SortAlgorithm | None = None

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        key_of("x", x, self.key, by_numbers=self._goes_by_places())
        return (self.output(x, x.dtype, is_like=True),)

    def _goes_by_places(self) -> bool:
        """Whether a key asks to argsort and gather: a lossy one, whose words do not give the elements back, or any in a
        stable sort, where elements of one rank keep their order whatever their words."""
        return self.key is not None and (self.stable or is_lossy(self.key))

    def _goes_by_permutation(self, given: Spec, info: TargetInfo) -> bool:
        """The same for a key, or for a stable sort of rows that exceed a binding."""
        _, length = self.rows(given)
        exceeds = self._has_ties(given) and not fits_binding(length, given.dtype.itemsize, info)
        return exceeds or self._goes_by_places()

    def _has_ties(self, given: Spec) -> bool:
        """Whether a stable order is asked for and ties can be told apart, which only floats can."""
        return self.stable and self.key is None and given.dtype.kind == "f"

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        (x,) = given
        _, length = self.rows(x)
        if self._goes_by_permutation(x, info):
            return by_indices(Argsort(self.axis, self.order, self.key, by_bits=not self.stable), given, length, info)
        key, chosen = key_of("x", x, self.key), self._chosen(x, info)
        if chosen is not None:
            in_place = Placement.ELSEWHERE not in chosen.placements(key)
            sort = self._sort(x, key, chosen, info, Placement.IN_PLACE if in_place else Placement.ELSEWHERE)
            sort = attrs.evolve(sort, copies=(Copy(1, 0),)) if in_place else sort
            return Works((sort, self._ties(x, key, info)) if self._has_ties(x) else (sort,))
        if length < 2:
            return Works((copying(Copy(1, 0)),))
        return Works(tuple(self._in_pieces(x, key, info)))

    def works_in_place(self, given: tuple[Spec, ...], info: TargetInfo) -> Works | None:
        (x,) = given
        chosen = None if self._goes_by_permutation(x, info) else self._chosen(x, info)
        key = key_of("x", x, self.key)
        if chosen is None or Placement.IN_PLACE not in chosen.placements(key) or self._has_ties(x):
            return None
        return Works((self._sort(x, key, chosen, info, Placement.IN_PLACE),))

    def _chosen(self, x: Spec, info: TargetInfo) -> SortAlgorithm | None:
        """What sorts whole rows; None where no algorithm does."""
        from ..algos.choice import choose_sort
        from ..algos.sorts import fitted

        key, (rows, length) = key_of("x", x, self.key), self.rows(x)
        if self.algorithm is not None:
            return fitted(self.algorithm, key, length, info)
        is_whole = length >= 2 and fits_binding(length, x.dtype.itemsize, info)
        return choose_sort(info, key, rows, length) if is_whole else None

    def _sort(
        self, x: Spec, key: SortableKey[Any, Any], chosen: SortAlgorithm, info: TargetInfo, placement: Placement
    ) -> Work:
        rows, length = self.rows(x)
        arrays = {"data": 1} if placement is Placement.IN_PLACE else {"data": 0, "results": 1}
        parts = {name: Part(array, length) for name, array in arrays.items()}
        together = sorted_together(chosen, length, x.dtype.itemsize, info)
        return Work(rows, together, lambda count: chosen.schedule(key, count, length, self.order, placement), parts)

    def _in_pieces(self, x: Spec, key: SortableKey[Any, Any], info: TargetInfo) -> Iterator[Work]:
        """A work for each row, for rows that exceed a binding."""
        from ..algos.choice import choose_bitonic, choose_sort
        from ..algos.sort_parts import sort_parts

        rows, length = self.rows(x)
        pieces = pieces_of(length, x.dtype.itemsize, info)
        lengths, most = [piece.count for piece in pieces], pieces[0].count
        chosen = choose_sort(info, key, 1, most)
        if chosen.most_rows(most, info.limits.groups) < 1:
            raise CapabilityError(f"x: a part of {most} elements is more than {chosen} takes on target {info.name!r}")
        once = sort_parts(key, lengths, self.order, chosen, choose_bitonic(key.word, info.limits).policy)
        in_place = Placement.ELSEWHERE not in chosen.placements(key)
        for row in range(rows):
            parts = {n: x for n, x in parts_of(pieces, row, "data", "results").items() if x.array == 1 or not in_place}
            yield single(once, parts, (Copy(1, 0),) if in_place and row == 0 else ())

    def _ties(self, x: Spec, key: SortableKey[Any, Any], info: TargetInfo) -> Work:
        """A second schedule that restores the order of tied floats, in rows that have any."""
        from ..algos.choice import choose_scan
        from ..algos.cut import shares
        from ..algos.ties import restore_ties

        assert isinstance(key, FloatKey), "of floats"
        rows, length = self.rows(x)
        policy = choose_scan(U32, length, info)
        together = rows_together(length, length * x.dtype.itemsize, shares(rows, length, policy)[1], info)
        parts = {"data": Part(0, length), "results": Part(1, length)}
        return Work(rows, together, lambda count: restore_ties(key, count, length, self.order, policy), parts)


def sorted_together(chosen: SortAlgorithm, length: int, itemsize: int, info: TargetInfo) -> int:
    """Rows per launch; raises CapabilityError if one row does not fit."""
    length = max(1, length)
    fitting, sortable = info.limits.storage_bytes // (length * itemsize), chosen.most_rows(length, info.limits.groups)
    row = f"x: a row of {length} elements of {itemsize} bytes is more than"
    if fitting < 1:
        most = info.limits.storage_bytes // itemsize
        raise CapabilityError(
            f"{row} {chosen} sorts in one binding of target {info.name!r}: at most {most} elements; with no algorithm "
            "named, long rows are sorted in several"
        )
    if sortable < 1:
        raise CapabilityError(f"{row} {chosen} takes on target {info.name!r}; leave the algorithm to the library")
    return min(fitting, sortable)
