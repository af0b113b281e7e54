"""Strided layouts for reductions and scans along axes: three nested loops over one buffer, read in place. Strides are
in elements and not negative; 0 is a broadcast axis. The caller packs arrays that do not collapse into one."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import attrs

from ..types.errors import InvalidArgumentError
from ..types.specs import merged_axes
from .sizes import LARGEST_U32


@attrs.frozen(eq=False)
class Axis:
    """A loop over a buffer: trip count, and stride in elements."""

    size: int
    stride: int


def is_closer(stride: int, other: int) -> bool:
    """Whether one stride is less than another; a broadcast axis (0) counts as the farthest."""
    return 0 < stride < (other or math.inf)


@attrs.frozen
class Layout:
    """A view `outer x length x inner` of a buffer that starts with the view's first element. A reduction along `length`
    has `outer x inner` results, packed; a scan `outer x length x inner`."""

    outer: int
    length: int
    inner: int
    outer_stride: int
    length_stride: int
    inner_stride: int

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            if not isinstance(value, int) or not 0 <= value <= 2**63:
                raise InvalidArgumentError(f"Layout: {name}: expected an int from 0 to 2**63, found {value!r}")

    @classmethod
    def rows(cls, rows: int, length: int) -> Layout:
        """Contiguous rows of one length."""
        return cls(rows, length, 1, length, 1, 1)

    @property
    def results(self) -> int:
        return self.outer * self.inner

    @property
    def size(self) -> int:
        return self.outer * self.length * self.inner

    @property
    def span(self) -> int:
        """The elements of the buffer from the first to the last that the view has: what must be bound."""
        if self.size == 0:
            return 0
        axes = ((self.outer, self.outer_stride), (self.length, self.length_stride), (self.inner, self.inner_stride))
        return 1 + sum((size - 1) * stride for size, stride in axes)

    def of_pairs(self, along: str) -> Layout | None:
        """The layout of pairs of neighbours along an axis; None if its elements are no neighbours, or a pair would have
        elements of two rows."""
        sizes = {name: getattr(self, name) for name in ("outer", "length", "inner")}
        strides = {name: getattr(self, f"{name}_stride") for name in sizes}
        apart = [stride for name, stride in strides.items() if name != along and sizes[name] > 1]
        if sizes[along] < 2 or strides.pop(along) != 1 or any(number % 2 for number in (sizes[along], *apart)):
            return None
        halves = {f"{name}_stride": stride // 2 for name, stride in strides.items()}
        return attrs.evolve(self, **{along: sizes[along] // 2}, **halves)

    @property
    def row_stride(self) -> int | None:
        """The distance of rows, if this is a batch of rows of contiguous elements; else None."""
        if (self.length_stride != 1) if self.length > 1 else (self.inner > 1):
            return None
        if self.inner == 1:
            return self.outer_stride
        return self.inner_stride if self.outer == 1 else None


def require_addressable(layout: Layout, results: int) -> None:
    """Raises InvalidArgumentError where indices into the buffer or the results exceed 32 bits."""
    if layout.span > LARGEST_U32 or results > LARGEST_U32 or layout.length > LARGEST_U32:
        raise InvalidArgumentError(
            f"layout: expected indices of no more than {LARGEST_U32}, found {layout.outer} x {layout.length} x "
            f"{layout.inner} elements over {layout.span}"
        )


def layouts_to_reduce(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, axes: Collection[int], *, in_order: bool
) -> tuple[Layout, ...] | None:
    """The layouts of an array for a reduction along `axes`; None if it must be packed first. With `in_order`, there is
    one, whose index along `length` is that in the flattened reduced axes. Without, for monoids that ignore the index,
    the first layout is of the array, each further one of the packed states of the reduction before: this covers reduced
    axes in any order."""
    if 0 in shape:
        gone = math.prod(size for number, size in enumerate(shape) if number in axes)
        results = math.prod(size for number, size in enumerate(shape) if number not in axes)
        return (Layout(results, gone, 1, 0, 0, 0),)
    counted = _axes_of(shape, strides, itemsize)
    if counted is None:
        return None
    reduced = [axis for number, axis in enumerate(counted) if number in axes]
    along = _merged(reduced if in_order else sorted(reduced, key=_distance))
    kept = [axis for number, axis in enumerate(counted) if number not in axes]
    if in_order and len(along) > 1:
        return None
    found: list[Layout] = []
    while len(along) > 1:  # reduce the axis of the least stride; the states are packed in the order of strides
        closest = along.pop()
        others = sorted((*kept, *along), key=_distance)
        layout = _nested(others, closest)
        if layout is None:
            return None
        found.append(layout)
        packed: dict[Axis, Axis] = {}
        stride = 1
        for axis in reversed(others):
            packed[axis] = Axis(axis.size, stride)
            stride *= axis.size
        kept = [packed[axis] for axis in kept]
        along = _merged([packed[axis] for axis in along])
    (last,) = along or [Axis(1, 1)]
    layout = _nested(kept, last)
    return None if layout is None else (*found, layout)


def _nested(others: Sequence[Axis], length: Axis) -> Layout | None:
    """The layout of a loop within those of the other axes, in their order; None if these do not merge into two."""
    outer, inner = Axis(1, 0), Axis(1, 1)
    match _merged(others):
        case []:
            pass
        case [one] if length.size == 1 or is_closer(one.stride, length.stride):
            inner = one
        case [one]:
            outer = one
        case [first, second]:
            outer, inner = first, second
        case _:
            return None
    return Layout(outer.size, length.size, inner.size, outer.stride, length.stride, inner.stride)


def _distance(axis: Axis) -> float:
    """A sort key: descending stride, broadcast axes first."""
    return -(axis.stride or math.inf)


def layout_to_scan(shape: Sequence[int], strides: Sequence[int], itemsize: int, axis: int) -> Layout | None:
    """The layout of an array for a scan along an axis, with packed results; None if it must be packed first."""
    if 0 in shape:
        return Layout(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]), 0, 0, 0)
    counted = _axes_of(shape, strides, itemsize)
    if counted is None:
        return None
    if shape[axis] == 1:  # side by side
        before, after = [], _merged(counted)
    else:
        before, after = _merged(counted[:axis]), _merged(counted[axis + 1 :])
    if len(before) > 1 or len(after) > 1:
        return None
    (outer,), (inner,) = before or [Axis(1, 0)], after or [Axis(1, 1)]
    length = counted[axis]
    return Layout(outer.size, length.size, inner.size, outer.stride, length.stride, inner.stride)


def _axes_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> list[Axis] | None:
    """All axes, with strides in elements; None if a stride is negative or no multiple of the item size."""
    found: list[Axis] = []
    for size, stride in zip(shape, strides, strict=True):
        if size > 1 and (stride < 0 or stride % itemsize):
            return None
        found.append(Axis(size, stride // itemsize if size > 1 else 1))
    return found


def _merged(axes: Sequence[Axis]) -> list[Axis]:
    return [Axis(*axis) for axis in merged_axes((axis.size, axis.stride) for axis in axes)]


def merged(shape: tuple[int, ...], *all_strides: tuple[int, ...]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The shape and strides with as few axes as possible: drops axes of length 1, merges contiguous neighbours."""
    axes = merged_axes(zip(shape, *all_strides, strict=True))
    sizes, *lines = (tuple(axis[n] for axis in axes) for n in range(1 + len(all_strides)))
    return sizes, lines
