"""Reductions over axes: NumPy's functions, and any monoid."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, cast

import attrs
import numpy as np

from ..algos.sizes import LARGEST_U32
from ..machine import TargetInfo
from ..types.dtypes import SUPPORTED, is_ordered, native, number_for
from ..types.elements import dtype_of, encode
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.keys import SortableKey, is_lossy, ranked
from ..types.scalars import U32
from ..types.specs import DType, HostArray, Spec
from .base import INDEX, Operation, Output, Part, Work, Works, checked_axes, key_of, rows_together, single
from .monoids import ByMonoid, OverMonoid, adds_as_numpy, of_numbers, result_dtype
from .pieces import Slots, by_indices, pieces_of

if TYPE_CHECKING:
    from ..algos.layout import Layout
    from ..kernel.launch import Schedule
    from ..types.monoids import Monoid
    from ..types.params import ReducePolicy


class Reducer(Enum):
    """NumPy's reductions, by their names there."""

    SUM = "sum"
    PROD = "prod"
    MIN = "min"
    MAX = "max"
    ARGMIN = "argmin"
    ARGMAX = "argmax"
    ANY = "any"
    ALL = "all"

    @property
    def finds_index(self) -> bool:
        return self in (Reducer.ARGMIN, Reducer.ARGMAX)

    @property
    def adds(self) -> bool:
        return self in (Reducer.SUM, Reducer.PROD)


@attrs.frozen
class Reduction(OverMonoid):
    """An operation that reduces each row to one value."""

    reads_words: ClassVar[bool] = True
    axis: int | tuple[int, ...] | None = None
    keepdims: bool = False

    def axes(self, given: Spec) -> tuple[int, ...]:
        return checked_axes(self.axis, len(given.shape))

    def shape(self, given: Spec) -> tuple[int, ...]:
        axes, sizes = self.axes(given), enumerate(given.shape)
        if self.keepdims:
            return tuple(1 if axis in axes else size for axis, size in sizes)
        return tuple(size for axis, size in sizes if axis not in axes)

    def policy_for(self, monoid: Monoid[Any, Any], layout: Layout, info: TargetInfo) -> ReducePolicy:
        from ..algos.choice import choose_axis_reduction
        from ..algos.fit import fitted_reduce

        if self.policy is not None:
            return fitted_reduce(cast("ReducePolicy", self.policy), monoid.state, info)
        return choose_axis_reduction(monoid.state, layout, info, dtype_of(monoid.element).itemsize)

    def in_batches(self, given: Spec, info: TargetInfo) -> Work:
        from ..algos.layout import Layout
        from ..algos.reduce_axis import reduce_axis

        (rows, length), monoid, finish = self.rows(given), self.monoid(given), self.finish(given)
        largest = max(length * given.dtype.itemsize, dtype_of(finish.result).itemsize)
        together = min(rows, rows_together(length, largest, 1, info))
        policy = self.policy_for(monoid, Layout.rows(together, length), info)
        parts = {"data": Part(0, length), "results": Part(1, 1)}
        return Work(rows, together, lambda n: reduce_axis(monoid, Layout.rows(n, length), policy, finish), parts)

    def in_pieces(self, given: Spec, info: TargetInfo) -> Works:
        """A work for each piece of each row, whose states lie between, and one that combines them to results."""
        from ..algos.layout import Layout
        from ..algos.reduce_axis import reduce_axis
        from ..types.monoids import OverStates, StartingAt

        rows, length = self.rows(given)
        monoid, pieces = self.monoid(given), pieces_of(length, given.dtype.itemsize, info)
        state, works = dtype_of(monoid.state), list[Work]()
        slots = Slots.of(rows * len(pieces), state, info)
        for row in range(rows):
            for piece in pieces:
                own = monoid if self.ignores_indices else StartingAt(monoid, U32(piece.first))
                layout = Layout.rows(1, piece.count)
                once = reduce_axis(own, layout, self.policy_for(monoid, layout, info))
                slot = (row * len(pieces) + piece.number) * slots.apart
                works.append(single(once, {"data": piece.of(0, row), "results": Part(2, 1, slot)}))
        left = Layout(rows, len(pieces), 1, len(pieces) * slots.apart, slots.apart, 1)
        together = reduce_axis(OverStates(monoid), left, self.policy_for(monoid, left, info), self.finish(given))
        works.append(single(together, {"data": Part(2, slots.span, 0), "results": Part(1, rows, 0)}))
        return Works(tuple(works), (slots.output(state),))

    def as_it_lies(self, given: Spec, info: TargetInfo) -> Schedule | None:
        """In one step over an axis or in several."""
        from ..algos.layout import layouts_to_reduce
        from ..algos.reduce_axis import reduce_axes
        from ..algos.reduce_pairs import READS_WORDS, Reduced

        if not given.is_plain:
            return None
        place = given.shape, given.all_strides, given.dtype.itemsize, self.axes(given)
        layouts = layouts_to_reduce(*place, in_order=True)
        if layouts is None and self.ignores_indices:
            layouts = layouts_to_reduce(*place, in_order=False)
        if layouts is None or any(max(layout.span, layout.results) > LARGEST_U32 for layout in layouts):
            return None
        of = Reduced(self.monoid(given), self.finish(given), layouts[0])
        if len(layouts) == 1 and self.ignores_indices and given.is_on_words and info.name in READS_WORDS:
            of = of.by_words()
        layouts = (of.layout, *layouts[1:])
        policies = [self.policy_for(of.monoid, layout, info) for layout in layouts]
        return reduce_axes(of.monoid, layouts, policies, of.finish)


@attrs.frozen
class Reduce(Reduction):
    """One of NumPy's reductions, with NumPy's result dtypes."""

    key: SortableKey[Any, Any] | None = None  # of min, max, argmin and argmax
    reducer: Reducer = Reducer.SUM

    @property
    def called(self) -> str:
        return self.reducer.value

    def is_the_hosts(self, given: Spec) -> bool:
        return self.reducer.adds and given.dtype.kind == "m"

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        if self.reducer.adds:
            number_for(x.dtype, "x")
        elif self.reducer in (Reducer.ANY, Reducer.ALL) and not is_ordered(x.dtype):
            raise UnsupportedTypeError(
                f"x: cannot tell whether elements of dtype {x.dtype} are true; supported: {SUPPORTED}"
            )
        else:
            key_of("x", x, self.key, by_numbers=True)
        found = Output(self.shape(x), self._result(x), (), is_scalar=True)
        if x.size == 0:
            self.answer(x)
        return (found,)

    def _result(self, given: Spec) -> DType:
        if self.reducer.finds_index:
            return INDEX
        return result_dtype(self.reducer.value, given.dtype) if self.key is None else native(given.dtype)

    def answer(self, *given: Spec) -> tuple[HostArray, ...] | None:
        (x,) = given
        if x.size:
            return None
        self.axes(x)
        if self.key is not None:
            if math.prod(self.shape(x)):
                raise InvalidArgumentError("x: an empty row has neither a least nor a greatest element")
            return (np.empty(self.shape(x), self._result(x)),)
        numpys: Callable[..., Any] = getattr(np, self.reducer.value)
        try:
            found = numpys(np.empty(x.shape, x.dtype), axis=self.axis, keepdims=self.keepdims)
        except ValueError as error:
            raise InvalidArgumentError(f"x: {error}") from error
        return (np.asarray(found, self._result(x)),)

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        if self.key is None or self.reducer.finds_index or not is_lossy(self.key):
            return super().works(given, info)
        # a lossy key's words do not tell the element
        place = attrs.evolve(self, reducer=Reducer.ARGMIN if self.reducer is Reducer.MIN else Reducer.ARGMAX)
        return by_indices(place, given, 1, info)

    def monoid(self, given: Spec) -> Monoid[Any, Any]:
        from ..types.monoids import AllTrue, AnyTrue, Maximum, Minimum, Product, Sum, over_bools
        from ..types.searches import ArgMax, ArgMin

        if self.reducer.adds:
            return of_numbers(Sum if self.reducer is Reducer.SUM else Product, given.dtype)
        key = ranked(cast(Any, key_of("x", given, self.key)))
        makers: dict[Reducer, Callable[[Any], Monoid[Any, Any]]] = {
            Reducer.MIN: Minimum, Reducer.MAX: Maximum, Reducer.ARGMIN: ArgMin, Reducer.ARGMAX: ArgMax,
            Reducer.ANY: AnyTrue, Reducer.ALL: AllTrue,
        }  # fmt: skip
        made = makers[self.reducer](key)
        return over_bools(made) if given.dtype.kind == "b" else made

    @property
    def ignores_indices(self) -> bool:
        return not self.reducer.finds_index


@attrs.frozen
class Fold(ByMonoid, Reduction):
    """A reduction by a monoid, whose states are the result."""

    title = "reduce"

    def simplest(self, *given: Spec) -> Operation:
        from ..types.monoids import Product, Sum

        (x,), numpys = given, {Sum: Reducer.SUM, Product: Reducer.PROD}
        known = numpys.get(cast("type[Any]", type(self.of))) if self.policy is None else None
        if known is None or not adds_as_numpy(self.of, known.value, x.dtype):
            return self
        return Reduce(self.axis, self.keepdims, reducer=known)

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        return (Output(self.shape(x), self.result(x), (), is_scalar=True),)

    def answer(self, *given: Spec) -> tuple[HostArray, ...] | None:
        (x,) = given
        if x.size:
            return None
        state = dtype_of(self.of.state)
        return (np.full(self.shape(x), np.array(encode(self.of.identity()), state)),)
