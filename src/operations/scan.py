"""Prefix scans along an axis: of any monoid, inclusive or exclusive, and NumPy's cumulative sum."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, cast

import attrs

from ..algos.sizes import LARGEST_U32
from ..machine import Capability, TargetInfo
from ..types.dtypes import number_for
from ..types.elements import dtype_of
from ..types.indices import ScanKind
from ..types.specs import DType, Spec
from .base import AlongAxis, Operation, Output, Part, Work, Works, rows_together, single
from .monoids import ByMonoid, OverMonoid, adds_as_numpy, of_numbers, result_dtype
from .pieces import Slots, pieces_of

if TYPE_CHECKING:
    from ..algos.layout import Layout
    from ..kernel.launch import Schedule
    from ..types.monoids import Monoid
    from ..types.params import ScanPolicy


_FEW_ROWS = 32  # of elements that lie apart: too few to keep a device busy one by one, so they are packed
_MANY = 1 << 16  # elements: copying them takes less time than reading as many lines of memory as there are lanes


@attrs.frozen
class Scanning(OverMonoid, AlongAxis):
    """An operation that replaces every element by a running state."""

    axis: int | None = -1
    kind: ScanKind = ScanKind.INCLUSIVE
    takes_scalars = True

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        (x,) = given
        return (self.output(x, self.result(x)),)

    @abstractmethod
    def result(self, given: Spec) -> DType: ...

    def largest(self, given: Spec) -> int:
        return max(given.dtype.itemsize, dtype_of(self.monoid(given).state).itemsize)

    def in_batches(self, given: Spec, info: TargetInfo) -> Work:
        from ..algos.cut import shares
        from ..algos.layout import Layout
        from ..algos.scan import scan_axis

        (rows, length), monoid, finish = self.rows(given), self.monoid(given), self.finish(given)
        policy = self._policy(monoid, Layout.rows(rows, length), info)
        most = rows_together(length, length * self.largest(given), shares(rows, length, policy)[1], info)
        parts = {"data": Part(0, length), "results": Part(1, length)}
        return Work(rows, most, lambda n: scan_axis(monoid, Layout.rows(n, length), self.kind, policy, finish), parts)

    def in_pieces(self, given: Spec, info: TargetInfo) -> Works:
        """A work for each piece of each row, which starts from the carry of the piece before."""
        from ..algos.layout import Layout
        from ..algos.scan import scan_in_turn

        rows, length = self.rows(given)
        pieces = pieces_of(length, self.largest(given), info)
        monoid, finish = self.monoid(given), self.finish(given)
        state, works = dtype_of(monoid.state), list[Work]()
        slots = Slots.of(rows * len(pieces) + 1, state, info)
        for row in range(rows):
            for piece in pieces:
                policy = self._policy(monoid, Layout.rows(1, piece.count), info)
                # where indices do not matter, any place but 0 says that this piece is a later one
                begins = min(piece.first, 1) if self.ignores_indices else piece.first
                once = scan_in_turn(monoid, begins, piece.count, slots.apart, self.kind, policy, finish)
                carried = Part(2, slots.apart + 1, (row * len(pieces) + piece.number) * slots.apart)
                works.append(single(once, {"data": piece.of(0, row), "results": piece.of(1, row), "carried": carried}))
        return Works(tuple(works), (slots.output(state),))

    def as_it_lies(self, given: Spec, info: TargetInfo) -> Schedule | None:
        from ..algos.layout import Layout, layout_to_scan
        from ..algos.scan import scan_axis

        axes, layout = self.axes(given), None
        if given.is_plain and len(axes) == 1:
            layout = layout_to_scan(given.shape, given.all_strides, given.dtype.itemsize, axes[0])
        elif given.is_plain and given.strides is None:  # all of it, in one row
            layout = Layout.rows(1, given.size)
        if layout is None or max(layout.span, layout.size) > LARGEST_U32:
            return None
        if layout.row_stride is None and layout.inner == 1:
            are_apart = Capability.SUBGROUPS in info.capabilities and layout.outer_stride > layout.length_stride
            if layout.outer < _FEW_ROWS or (are_apart and layout.size >= _MANY):
                return None
        monoid = self.monoid(given)
        return scan_axis(monoid, layout, self.kind, self._policy(monoid, layout, info), self.finish(given))

    def _policy(self, monoid: Monoid[Any, Any], layout: Layout, info: TargetInfo) -> ScanPolicy:
        from ..algos.choice import choose_axis_scan
        from ..algos.fit import fitted_scan_policy

        if self.policy is not None:
            return fitted_scan_policy(cast("ScanPolicy", self.policy), monoid.state, info)
        return choose_axis_scan(monoid.state, layout, info)


@attrs.frozen
class Scan(ByMonoid, Scanning):
    """A scan by a monoid, whose states are the result."""

    commutes = False

    def simplest(self, *given: Spec) -> Operation:
        from ..types.monoids import Sum

        (x,) = given
        is_plain = type(self.of) is Sum and self.policy is None
        if is_plain and x.dtype.kind in "iuf" and adds_as_numpy(self.of, "cumsum", x.dtype):
            return Cumsum(self.axis, self.kind, from_zero=x.dtype.kind == "f")
        return self


@attrs.frozen
class Cumsum(Scanning):
    """NumPy's cumulative sum."""

    from_zero: bool = attrs.field(default=False, kw_only=True)  # floats are added to 0.0: none is -0.0 then

    def is_the_hosts(self, given: Spec) -> bool:
        return given.dtype.kind == "m"

    @property
    def ignores_indices(self) -> bool:
        return True

    def result(self, given: Spec) -> DType:
        number_for(given.dtype, "x")
        return result_dtype("cumsum", given.dtype)

    def monoid(self, given: Spec) -> Monoid[Any, Any]:
        from ..types.monoids import RunningSum, Sum

        return of_numbers(Sum if self.from_zero else RunningSum, given.dtype)
