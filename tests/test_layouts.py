"""Views of arrays as kernels go through them, against the elements that NumPy's own views have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest

from gpusort.algos.layout import Layout, layout_to_scan, layouts_to_reduce, require_addressable
from gpusort.types.errors import InvalidArgumentError

Places = list[list[int]]  # of each result, where its elements lie
ITEM = 4


def arrays() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Shapes, with strides in bytes: axes in any order, some of them cut, alone, or broadcast."""
    for order in permutations(range(3)):
        for sizes, cut, still in product(((2, 3, 4), (3, 1, 2), (1, 1, 5)), (None, 0, 1, 2), (None, 0, 1, 2)):
            base = np.zeros(sizes, np.int32).transpose(order)
            if cut is not None:
                base = base[tuple(slice(None, None, 2 if axis == cut else 1) for axis in range(3))]
            strides = tuple(0 if axis == still else stride for axis, stride in enumerate(base.strides))
            yield base.shape, strides


def places_in(shape: Sequence[int], strides: Sequence[int], axes: Sequence[int]) -> Places:
    """By NumPy: in the order of the axes that stay, each in that of the flattened others."""
    at = sum(
        (
            (np.arange(size) * (stride // ITEM)).reshape([-1 if one == axis else 1 for one in range(len(shape))])
            for axis, (size, stride) in enumerate(zip(shape, strides, strict=True))
        ),
        np.zeros((1,) * len(shape), np.int64),
    )
    length = math.prod(shape[axis] for axis in axes)
    last = np.moveaxis(at, axes, range(-len(axes), 0)) if axes else at
    return last.reshape(-1, length).tolist()


def places_of(layout: Layout) -> Places:
    return [
        [
            outer * layout.outer_stride + at * layout.length_stride + inner * layout.inner_stride
            for at in range(layout.length)
        ]
        for outer in range(layout.outer)
        for inner in range(layout.inner)
    ]


def are_even(lines: Iterable[list[int]]) -> bool:
    """Whether there is one distance from each place of a line to the next."""
    return len({after - before for line in lines for before, after in pairwise(line)}) <= 1


def is_one_layout(places: Places, inner: int) -> bool:
    """Whether any layout has these places, with so many results in a row: elements are evenly spaced, and so are the
    first elements of results, in each row and from row to row."""
    starts = [one[0] for one in places]
    rows = [starts[at : at + inner] for at in range(0, len(starts), inner)]
    return are_even(places) and are_even(rows) and are_even([[row[0] for row in rows]]) and len(rows[-1]) == inner


def is_any_layout(places: Places) -> bool:
    return any(is_one_layout(places, inner) for inner in range(1, len(places) + 1))


AXES = [axes for count in range(4) for axes in combinations(range(3), count)]


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_a_reduction_in_order_has_a_layout_where_there_is_one(axes: tuple[int, ...]) -> None:
    seen = set[bool]()
    for shape, strides in arrays():
        wanted = places_in(shape, strides, axes)
        found = layouts_to_reduce(shape, strides, ITEM, axes, in_order=True)
        assert (found is not None) == is_any_layout(wanted), (shape, strides)
        seen.add(found is not None)
        if found is not None:
            assert [places_of(one) for one in found] == [wanted]
    assert True in seen


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_a_reduction_in_any_order_has_one_layout_where_there_is_one(axes: tuple[int, ...]) -> None:
    """And goes over packed states in further ones else."""
    for shape, strides in arrays():
        wanted = [sorted(one) for one in places_in(shape, strides, axes)]
        found = layouts_to_reduce(shape, strides, ITEM, axes, in_order=False)
        assert (found is not None and len(found) == 1) == is_any_layout(wanted), (shape, strides)
        if found is not None:
            assert [sorted(one) for one in places_through(found)] == wanted


def places_through(layouts: Sequence[Layout]) -> Places:
    """Of each layout after the first, what its elements are the states of."""
    states = places_of(layouts[0])
    for layout in layouts[1:]:
        states = [[place for at in one for place in states[at]] for one in places_of(layout)]
    return states


def test_axes_that_lie_alike_are_not_one() -> None:
    """Two that are broadcast, of one size, around those that go."""
    shape, strides = (3, 2, 3, 2), (0, 40, 0, 8)
    found = layouts_to_reduce(shape, strides, ITEM, (1, 3), in_order=False)
    assert found is not None
    assert len(found) == 2
    assert [sorted(one) for one in places_through(found)] == [[0, 2, 10, 12]] * 9


@pytest.mark.parametrize("axis", range(3))
def test_a_scan_has_a_layout_where_there_is_one(axis: int) -> None:
    """Whose results lie as the array's elements are told. Rows of one element are all side by side."""
    for shape, strides in arrays():
        wanted = places_in(shape, strides, (axis,))
        found = layout_to_scan(shape, strides, ITEM, axis)
        inner = math.prod(shape[axis + 1 :]) if shape[axis] > 1 else len(wanted)
        assert (found is not None) == is_one_layout(wanted, inner), (shape, strides)
        if found is not None:
            assert places_of(found) == wanted
            assert found.inner == inner


def test_columns_that_lie_closer_than_their_elements_are_the_inner_ones() -> None:
    """So that neighbouring invocations read them; a broadcast axis is the farthest."""
    for strides, found in (
        ((4, 16), Layout(1, 5, 4, 0, 4, 1)), ((16, 4), Layout(4, 5, 1, 4, 1, 1)), ((4, 4), Layout(4, 5, 1, 1, 1, 1)),
        ((4, 0), Layout(1, 5, 4, 0, 0, 1)), ((0, 4), Layout(4, 5, 1, 0, 1, 1)), ((0, 0), Layout(4, 5, 1, 0, 0, 1)),
    ):  # fmt: skip
        assert layouts_to_reduce((4, 5), strides, ITEM, (1,), in_order=True) == (found,)
    assert layouts_to_reduce((4, 1), (8, 4), ITEM, (1,), in_order=True) == (Layout(1, 1, 4, 0, 1, 2),)
    assert layouts_to_reduce((1, 1), (8, 4), ITEM, (1,), in_order=True) == (Layout(1, 1, 1, 0, 1, 1),)


def test_steps_are_whole_elements_forwards() -> None:
    """But for an axis of one, which has none."""
    for strides, is_read in (((20, 4), True), ((20, -4), False), ((22, 4), False), ((20, 2), False), ((-20, 4), False)):
        assert (layouts_to_reduce((4, 5), strides, ITEM, (1,), in_order=False) is not None) is is_read
        assert (layout_to_scan((4, 5), strides, ITEM, 1) is not None) is is_read
        assert layout_to_scan((1, 5), (strides[0], 4), ITEM, 1) == Layout(1, 5, 1, 0, 1, 1)
        assert layout_to_scan((4, 1), (20, strides[1]), ITEM, 0) == Layout(1, 4, 1, 0, 5, 1)


@pytest.mark.parametrize("itemsize", [1, 4])
def test_the_least_step_backwards_is_one_too(itemsize: int) -> None:
    assert layouts_to_reduce((5,), (-itemsize,), itemsize, (0,), in_order=False) is None
    assert layout_to_scan((5,), (-itemsize,), itemsize, 0) is None
    assert layout_to_scan((5,), (itemsize,), itemsize, 0) == Layout(1, 5, 1, 0, 1, 1)


def test_arrays_of_nothing_have_layouts_of_nothing() -> None:
    for axes, outer, length in (((0,), 0, 2), ((1,), 6, 0), ((0, 2), 0, 6), ((0, 1, 2), 1, 0), ((), 0, 1)):
        found = layouts_to_reduce((2, 0, 3), (-3, 1, 7), ITEM, axes, in_order=True)
        assert found is not None
        assert [(layout.results, layout.length) for layout in found] == [(outer, length)]
    for axis, sizes in ((0, (1, 2, 0)), (1, (2, 0, 3)), (2, (0, 3, 1))):
        scanned = layout_to_scan((2, 0, 3), (-3, 1, 7), ITEM, axis)
        assert scanned is not None
        assert (scanned.outer, scanned.length, scanned.inner) == sizes


def test_two_elements_are_a_row_and_two_columns_are_none() -> None:
    assert Layout(3, 2, 1, 7, 5, 1).row_stride is Layout(1, 1, 2, 9, 1, 1).row_stride is None
    assert Layout(3, 2, 1, 7, 1, 1).row_stride == 7
    assert layouts_to_reduce((3, 2), (8, 4), ITEM, (1,), in_order=True) == (Layout.rows(3, 2),)


def test_a_layout_has_as_many_elements_as_its_loops_and_spans_none_without_any() -> None:
    assert (Layout(2, 3, 4, 12, 4, 1).size, Layout(2, 3, 4, 12, 4, 1).results) == (24, 8)
    assert Layout(3, 0, 1, 7, 1, 1).span == Layout(0, 3, 1, 7, 1, 1).span == Layout(3, 4, 0, 7, 1, 1).span == 0
    assert Layout(1, 1, 1, 7, 3, 5).span == 1


def test_indices_have_32_bits() -> None:
    most = (1 << 32) - 1
    for layout in (Layout(1, most, 1, 0, 1, 1), Layout(1, most, 1, 0, 0, 1), Layout(2, 1, 1, most - 1, 1, 1)):
        require_addressable(layout, most)
        with pytest.raises(InvalidArgumentError, match="expected indices of no more than 4294967295"):
            require_addressable(layout, most + 1)
    for layout in (Layout(1, most + 1, 1, 0, 0, 1), Layout(2, 1, 1, most, 1, 1)):
        with pytest.raises(InvalidArgumentError, match="over "):
            require_addressable(layout, 1)
