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
from .base import AlongAxis, Operation, Output, Part, Work, Works, fits, require_readable, rows_together, single
from .monoids import ByMonoid, OverMonoid, adds_as_numpy, require_floats, result_dtype
from .pieces import Pieces, Slots, fits_binding, pieces_of, require_counted

if TYPE_CHECKING:
    from ..algos.layout import Layout
    from ..types.monoids import Monoid
    from ..types.params import ScanPolicy


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

    def works(self, given: tuple[Spec, ...], info: TargetInfo) -> Works:
        from ..algos.layout import Layout
        from ..algos.scan import shares
        from ..algos.scan_axis import scan_axis

        (x,) = given
        monoid, finish, axes = self.monoid(x), self.finish(x), self.axes(x)
        require_floats(monoid, info)
        largest = self._largest(x)
        layout = _as_it_lies(x, axes, largest, info)
        if layout is not None:
            policy = self._policy(monoid, layout, info)
            whole = {"data": Part(0, layout.span), "results": Part(1, layout.size)}

            once = scan_axis(monoid, layout, self.kind, policy, finish)
            if fits(once, info):
                return Works((single(once, whole, as_it_lies=True),))
        rows, length = self.rows(x)
        if not fits_binding(length, largest, info):
            return self._in_pieces(x, rows, self._pieces(x, info), info)
        policy = self._policy(monoid, Layout.rows(rows, length), info)
        together = min(rows, rows_together(length, length * largest, shares(rows, length, policy)[1], info))
        parts = {"data": Part(0, length), "results": Part(1, length)}
        scanning = Work(
            rows,
            together,
            lambda count: scan_axis(monoid, Layout.rows(count, length), self.kind, policy, finish),
            parts,
        )
        return Works((scanning,))

    def _largest(self, given: Spec) -> int:
        """Bytes of an element or of its state, whichever is larger."""
        return max(given.dtype.itemsize, dtype_of(self.monoid(given).state).itemsize)

    def _pieces(self, given: Spec, info: TargetInfo) -> Pieces:
        length = self.rows(given)[1]
        if not self.ignores_indices:
            require_counted(length, info)
        return pieces_of(length, self._largest(given), info)

    def _in_pieces(self, x: Spec, rows: int, pieces: Pieces, info: TargetInfo) -> Works:
        """A work for each piece of each row, which starts from the carry of the piece before."""
        from ..algos.layout import Layout
        from ..algos.scan_pieces import scan_in_turn

        monoid, finish = self.monoid(x), self.finish(x)
        state, works = dtype_of(monoid.state), list[Work]()
        slots = Slots.of(rows * len(pieces) + 1, state, info)
        for row in range(rows):
            for piece in pieces:
                policy = self._policy(monoid, Layout.rows(1, piece.count), info)
                # where indices do not matter, any place but 0 says that this piece is a later one
                begins = min(piece.first, 1) if self.ignores_indices else piece.first
                once = scan_in_turn(monoid, begins, piece.count, slots.apart, self.kind, policy, finish)
                first, slot = row * pieces.length + piece.first, row * len(pieces) + piece.number
                parts = {
                    "data": Part(0, piece.count, first),
                    "results": Part(1, piece.count, first),
                    "carried": Part(2, slots.apart + 1, slot * slots.apart),
                }
                works.append(single(once, parts))
        return Works(tuple(works), (slots.output(state),))

    def _policy(self, monoid: Monoid[Any, Any], layout: Layout, info: TargetInfo) -> ScanPolicy:
        from ..algos.choice import choose_axis_scan
        from ..algos.fit import fitted_scan_policy

        if self.policy is not None:
            return fitted_scan_policy(cast("ScanPolicy", self.policy), monoid.state, info)
        return choose_axis_scan(monoid.state, layout, info)


_FEW_ROWS = 32  # of elements that lie apart: too few to keep a device busy one by one, so they are packed
_MANY = 1 << 16  # elements: copying them takes less time than reading as many lines of memory as there are lanes


def _as_it_lies(given: Spec, axes: tuple[int, ...], itemsize: int, info: TargetInfo) -> Layout | None:
    """The layout by which kernels read the strided array in place; None if it must be packed, or read in runs."""
    from ..algos.layout import Layout, layout_to_scan

    if not given.is_plain:
        return None
    if len(axes) == 1:
        layout = layout_to_scan(given.shape, given.all_strides, given.dtype.itemsize, axes[0])
    else:  # all of it, in one row
        layout = Layout.rows(1, given.size) if given.strides is None else None
    if layout is None or max(layout.span, layout.size) > LARGEST_U32:
        return None
    if layout.row_stride is None and layout.inner == 1:
        are_apart = Capability.SUBGROUPS in info.capabilities and layout.outer_stride > layout.length_stride
        if layout.outer < _FEW_ROWS or (are_apart and layout.size >= _MANY):
            return None
    is_bindable = max(layout.span * given.dtype.itemsize, layout.size * itemsize) <= info.limits.storage_bytes
    return layout if is_bindable else None


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

    def result(self, given: Spec) -> DType:
        require_readable("x", given, self.of.element, type(self.of).__name__)
        return dtype_of(self.of.state)


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

        return (Sum if self.from_zero else RunningSum)(number_for(given.dtype, "x"))
