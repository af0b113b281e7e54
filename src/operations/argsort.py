"""Argsort, and sorting keys together with their values; and the steps of an argsort in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs

from ..machine import TargetInfo
from ..types.elements import dtype_of
from ..types.errors import CapabilityError, InvalidArgumentError, UnsupportedTypeError
from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey
from ..types.scalars import U32, U64, UNSIGNED
from ..types.specs import Spec
from .base import INDEX, AlongAxis, Operation, Output, Part, Work, Works, key_of, single
from .pieces import Piece, by_indices, fits_binding, parts_of, pieces_of, require_counted

if TYPE_CHECKING:
    from ..algos.sorts import Bitonic
    from ..kernel.launch import Schedule

_PLACE = 4  # bytes of a place in a row
_PLACED = 16  # of a word with its place, at most


@attrs.frozen
class Argsort(AlongAxis):
    """The permutation that sorts, as int64 indices; always stable."""

    axis: int | None = -1
    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    by_bits: bool = False  # -0.0 before 0.0, and NaNs by their bits; else all that are equal keep their order
    name: str = "x"
    takes_scalars = True

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        key_of(self.name, x, self.key, by_numbers=True)
        return (self.output(x, INDEX),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.argsort import placed_class
        from ..algos.choice import choose_bitonic, choose_pairs
        from ..algos.sorts import argsort

        (x,) = given
        key, (rows, length) = key_of(self.name, x, self.key), self.rows(x)
        ranks: Any = key if self.by_bits else RankKey(key)
        sort, network = (
            choose_pairs(info, key, rows, length, _PLACE),
            choose_bitonic(placed_class(key.word), info.limits),
        )
        each, limits = _PLACED if sort is None else INDEX.itemsize, info.limits
        if not fits_binding(length, each, info):
            require_counted(length, info, self.name)
            placed = dtype_of(placed_class(key.word)).itemsize
            pieces = pieces_of(length, max(INDEX.itemsize, x.dtype.itemsize, placed), info, self.name)
            return Works(tuple(self._in_pieces(ranks, rows, pieces, network, info)))
        most = min((sort or network).most_rows(length, limits.groups), limits.storage_bytes // (each * length))
        if sort is None and most < 1:
            raise CapabilityError(
                f"{self.name}: a row of {length} elements of {x.dtype.itemsize} bytes is more than target "
                f"{info.name!r} can argsort with {limits.groups} workgroups in a launch; argsort parts of it"
            )

        def schedule(count: int) -> Schedule:
            return argsort(sort, ranks, count, length, self.order, network.policy)

        parts = {"data": Part(0, length), "places": Part(1, length)}
        return Works((Work(rows, max(1, most), schedule, parts),))

    def _in_pieces(
        self, ranks: SortableKey[Any, Any], rows: int, pieces: Sequence[Piece], network: Bitonic, info: TargetInfo
    ) -> Iterator[Work]:
        """A work for each row that no binding holds, on all pieces of it."""
        from ..algos.choice import choose_pairs
        from ..algos.sort_parts import argsort_parts

        sorts = [choose_pairs(info, cast(Any, ranks), 1, piece.count, _PLACE) for piece in pieces]
        once = argsort_parts(ranks, [piece.count for piece in pieces], self.order, network.policy, sorts)
        for row in range(rows):
            yield single(once, parts_of(pieces, row, "data", "places"))


def require_plain(name: str, values: Spec) -> None:
    """Refuses values of dtype object: kernels would move references without counting them."""
    if values.dtype.hasobject:
        raise UnsupportedTypeError(
            f"{name}: elements of dtype {values.dtype} hold Python's objects, which no kernel moves; "
            "take them by their places, as values[gpusort.argsort(keys)]"
        )


def different_sizes(name: str, keys: tuple[int, ...], values: tuple[int, ...]) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name}: expected one for each key, in one dimension; found shapes {keys} and {values}"
    )


@attrs.frozen
class SortPairs(Operation):
    """Sorted keys, and values in the order of their keys; both of one dimension."""

    order: SortOrder = SortOrder.ASCENDING
    key: SortableKey[Any, Any] | None = None
    names = "keys", "values"
    title = "sort_by_key"

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        keys, values = given
        key_of("keys", keys, self.key, by_numbers=True)
        if len(keys.shape) != 1 or keys.shape != values.shape:
            raise different_sizes("values", keys.shape, values.shape)
        return Output(keys.shape, keys.dtype, (0,)), Output(values.shape, values.dtype, (0,))

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.batch import Batch
        from ..algos.choice import choose_pairs

        keys, values = given
        require_plain("values", values)
        key, length, itemsize, sort = key_of("keys", keys, self.key), keys.size, values.dtype.itemsize, None
        if itemsize in UNSIGNED and fits_binding(length, max(keys.dtype.itemsize, itemsize), info):
            sort = choose_pairs(info, key, 1, length, itemsize)
        if sort is None:  # which carries the values along
            return by_indices(Argsort(0, self.order, self.key, by_bits=True, name="keys"), given, length, info)
        once = sort.sort(Batch(key, 1, length, self.order, value=UNSIGNED[itemsize]))
        names = ("data", "values", "results", "moved")
        return Works((single(once, {name: Part(number, length) for number, name in enumerate(names)}),))


@attrs.frozen
class SortPlaced(SortPairs):
    """Sorted keys with their indices, counted from the one that is given: a piece of an argsort. It is stable by a
    RankKey; equal keys may come back as one of them."""

    names = "keys", "first"

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        keys, first = given
        return Output(keys.shape, keys.dtype, (0,)), Output(keys.shape, first.dtype, (0,))

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.radix_sorts import numbered

        keys, first = given
        unsorted = 4  # the number of the indices before the sort
        numbering = numbered(keys.size, U64 if first.dtype == INDEX else U32, limits=info.limits)
        sorting = super().works((keys, attrs.evolve(keys, dtype=first.dtype)), info)
        works = (
            single(numbering, {"first": Part(1, 1), "indices": Part(unsorted, keys.size)}),
            *sorting.within((0, unsorted, 2, 3), 1 + unsorted),
        )
        return Works(works, (Output(keys.shape, first.dtype, (0,)), *sorting.between))


@attrs.frozen
class SortIndices(SortPairs):
    """The indices that come with keys, in the order of these, as NumPy's; stable by a RankKey."""

    names = "keys", "indices"

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (Output(given[0].shape, INDEX, (0,)),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.radix_sorts import widened

        keys, indices = given
        sorting = super().works(given, info)
        moved = [Output(keys.shape, x.dtype, (0,)) for x in given]  # numbers 3 and 4
        if indices.dtype == INDEX:
            return Works(sorting.within((0, 1, 3, 2), 4), (moved[0], *sorting.between))
        widening = single(
            widened(keys.size, limits=info.limits), {"places": Part(4, keys.size), "wide": Part(2, keys.size)}
        )
        return Works((*sorting.within((0, 1, 3, 4), 5), widening), (*moved, *sorting.between))
