"""How an array lies where a reduction or a scan goes along some of its axes: three nested loops over one buffer.

Strides are counted in elements and are not negative; 0 is a broadcast axis. Whatever collapses into such a layout is
read once, as it lies: C and Fortran order, transposes, slices with a step, broadcasts. The caller packs the rest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import attrs

from ..types.errors import InvalidArgumentError
from .sizes import LARGEST_U32

_MOST = 1 << 63


@attrs.frozen(eq=False)
class Axis:
    """One loop over a buffer: how often, and how many elements apart."""

    size: int
    stride: int


def is_closer(stride: int, other: int) -> bool:
    """Whether one axis' elements are closer neighbours than another's. One element again and again has none."""
    return 0 < stride < (other or _MOST)


@attrs.frozen
class Layout:
    """A view `outer x length x inner` of a buffer that begins with its first element.

    A reduction leaves `outer x inner` results, packed; a scan `outer x length x inner`.
    """

    outer: int
    length: int
    inner: int
    outer_stride: int
    length_stride: int
    inner_stride: int

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            if not isinstance(value, int) or not 0 <= value <= _MOST:
                raise InvalidArgumentError(f"Layout: {name}: expected an int from 0 to 2**63, found {value!r}")

    @classmethod
    def rows(cls, rows: int, length: int) -> Layout:
        """Rows of one length that lie one behind the other."""
        return cls(rows, length, 1, length, 1, 1)

    @property
    def results(self) -> int:
        """Of a reduction."""
        return self.outer * self.inner

    @property
    def size(self) -> int:
        """Elements of the view."""
        return self.outer * self.length * self.inner

    @property
    def span(self) -> int:
        """Elements of the buffer from the first that the view touches to the last: what has to be bound."""
        if self.size == 0:
            return 0
        axes = ((self.outer, self.outer_stride), (self.length, self.length_stride), (self.inner, self.inner_stride))
        return 1 + sum((size - 1) * stride for size, stride in axes)

    @property
    def row_stride(self) -> int | None:
        """How far apart rows lie, where this is a batch of rows of neighbouring elements; None where it is not."""
        if self.length > 1 and self.length_stride != 1:
            return None
        if self.inner == 1:
            return self.outer_stride
        return self.inner_stride if self.outer == 1 else None


def require_addressable(layout: Layout, results: int) -> None:
    """Refuses what kernels cannot count: they have 32 bits for an index into the buffer, and into the results."""
    if max(layout.span, results, layout.length) > LARGEST_U32:
        raise InvalidArgumentError(
            f"layout: expected indices of no more than {LARGEST_U32}, found {layout.outer} x {layout.length} x "
            f"{layout.inner} elements over {layout.span}"
        )


def layout_to_reduce(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, axes: Collection[int]
) -> Layout | None:
    """How an array lies for a reduction along `axes`; None where it has to be packed first.

    `strides` are in bytes, as NumPy's. An index along `length` counts along the flattened axes that go, in C order;
    results are those of the axes that stay, in C order.
    """
    if 0 in shape:
        return _of_nothing(shape, axes)
    counted = _axes_of(shape, strides, itemsize)
    if counted is None:
        return None
    along = _merged([axis for number, axis in enumerate(counted) if number in axes])
    kept = [axis for number, axis in enumerate(counted) if number not in axes]
    return _nested(kept, along[0] if along else Axis(1, 1)) if len(along) < 2 else None


def layouts_to_reduce(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, axes: Collection[int]
) -> tuple[Layout, ...] | None:
    """The same for monoids that ask for no index, which may take elements in any order: reductions one after another,
    the first of the array, each other of the packed states of the one before. More arrays lie so: with axes that go in
    any order, and with several that do not merge. None where the array has to be packed first.
    """
    if 0 in shape:
        return (_of_nothing(shape, axes),)
    counted = _axes_of(shape, strides, itemsize)
    if counted is None:
        return None
    along = _merged(sorted((axis for number, axis in enumerate(counted) if number in axes), key=_distance))
    kept = [axis for number, axis in enumerate(counted) if number not in axes]
    found: list[Layout] = []
    while len(along) > 1:  # the closest in memory goes first; what is left is packed as it lay
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
    layout = _nested(kept, along[0] if along else Axis(1, 1))
    return None if layout is None else (*found, layout)


def _of_nothing(shape: Sequence[int], axes: Collection[int]) -> Layout:
    gone = math.prod(size for number, size in enumerate(shape) if number in axes)
    return Layout(math.prod(size for number, size in enumerate(shape) if number not in axes), gone, 1, 0, 0, 0)


def _nested(others: Sequence[Axis], length: Axis) -> Layout | None:
    """A loop inside of, or between, those of the axes that stay, in their order, if these are two at most."""
    kept = _merged(others)
    if len(kept) > 2:
        return None
    if len(kept) == 2:
        outer, inner = kept
    elif kept and length.size > 1 and is_closer(kept[0].stride, length.stride):
        outer, inner = Axis(1, 0), kept[0]
    else:
        outer, inner = kept[0] if kept else Axis(1, 0), Axis(1, 1)
    return Layout(outer.size, length.size, inner.size, outer.stride, length.stride, inner.stride)


def _distance(axis: Axis) -> int:
    """To sort by: the farthest first, those of one element again and again before all."""
    return -(axis.stride or _MOST)


def layout_to_scan(shape: Sequence[int], strides: Sequence[int], itemsize: int, axis: int) -> Layout | None:
    """How an array lies for a scan along one axis; None where it has to be packed first.

    Results lie packed in the array's shape, in C order.
    """
    if 0 in shape:
        return Layout(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]), 0, 0, 0)
    counted = _axes_of(shape, strides, itemsize)
    if counted is None:
        return None
    before, after = _merged(counted[:axis]), _merged(counted[axis + 1 :])
    if len(before) > 1 or len(after) > 1:
        return None
    outer, inner = before[0] if before else Axis(1, 0), after[0] if after else Axis(1, 1)
    length = counted[axis]
    return Layout(outer.size, length.size, inner.size, outer.stride, length.stride, inner.stride)


def _axes_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> list[Axis] | None:
    """All axes with their strides in elements, if these are whole and not negative."""
    found: list[Axis] = []
    for size, stride in zip(shape, strides, strict=True):
        if size > 1 and (stride < 0 or stride % itemsize):
            return None
        found.append(Axis(size, stride // itemsize if size > 1 else 1))
    return found


def _merged(axes: Sequence[Axis]) -> list[Axis]:
    """The same loops in the same order in as few as possible: without those of one round, neighbours as one."""
    found: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if found and found[-1].stride == axis.size * axis.stride:
            found[-1] = Axis(found[-1].size * axis.size, axis.stride)
        else:
            found.append(axis)
    return found
