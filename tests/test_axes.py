"""Reductions along any axes of arrays as they lie, on every target, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.choice import choose_axis_reduction
from gpusort.algos.cut import Arrangement
from gpusort.algos.layout import Layout, layout_to_scan, layouts_to_reduce
from gpusort.algos.reduce_axis import reduce_axes, reduce_axis
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.elements import dtype_of
from gpusort.types.errors import InvalidArgumentError
from gpusort.types.finishes import AsItIs, Half, finish_of
from gpusort.types.monoids import AllTrue, AnyTrue, Maximum, Minimum, Monoid, Product, Sum, over_bools
from gpusort.types.numbers import HalfNumber
from gpusort.types.params import ReducePolicy, Totals
from gpusort.types.scalars import F32, U16, U32
from gpusort.types.searches import ArgMax, ArgMin
from tests.covering import InTurn
from tests.reference import DTYPES, Array, sample, whole_numbers


def layout_to_reduce(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, axes: Collection[int]
) -> Layout | None:
    """The one layout for monoids that need the index; None if there is none."""
    found = layouts_to_reduce(shape, strides, itemsize, axes, in_order=True)
    return None if found is None else found[0]


def buffer_of(x: Array, count: int) -> Array:
    """The elements that an array lies among, from its first on."""
    flat = np.lib.stride_tricks.as_strided(x, (count,), (x.itemsize,))
    return np.ascontiguousarray(flat)


def reduced(
    target: str, monoid: Monoid[Any, Any], x: Array, axes: Sequence[int], dtype: Any, policy: ReducePolicy | None = None
) -> Array | None:
    """What a monoid makes of an array along axes, as NumPy would shape it; None where it would have to be packed."""
    layout = layout_to_reduce(x.shape, x.strides, x.itemsize, axes)
    if layout is None:
        return None
    chosen = policy or choose_axis_reduction(monoid.state, layout, target_of(target).info)
    finish = finish_of(monoid)
    schedule = reduce_axis(monoid, layout, chosen, finish)
    data = buffer_of(x, layout.span).view(dtype_of(monoid.element))
    results = np.zeros(layout.results, dtype_of(finish.result))
    target_of(target).run(schedule, {"data": data, "results": results})
    kept = [size for axis, size in enumerate(x.shape) if axis not in axes]
    shaped: Array = results.view(dtype).reshape(kept)
    return shaped


def views(base: Array) -> Iterator[Array]:
    """An array, and others of which its memory makes one: Fortran order, transposed, every other, broadcast."""
    yield base
    yield np.asfortranarray(base)
    yield base.swapaxes(0, -1)
    yield base[::2]
    yield base[..., ::3]
    yield np.broadcast_to(base, (2, *base.shape))


SUM = Sum(number_for("u4"))
# Few invocations for much: shares, ranks, lanes, whole blocks and rests, in every arrangement.
POLICIES = (
    ReducePolicy(8, 2, 5),
    ReducePolicy(16, 3, 40, subgroups=True, line=16, short=50, strand=4),
    ReducePolicy(16, 3, 40, subgroups=True, line=16, short=50, strand=4, totals=Totals.ONE),
    ReducePolicy(8, 1, 3, line=8, side_by_side=True),
    ReducePolicy(8, 4, 3, line=8, alone=True),
)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_sums_along_all_axes_of_all_layouts(policy: ReducePolicy) -> None:
    collapsed = 0
    for shape in ((5,), (40, 3), (3, 40), (2, 33, 7), (1, 70, 1)):
        for x in views(np.random.default_rng(1).integers(0, 1 << 32, shape, np.uint32)):
            for count in range(x.ndim + 1):
                for axes in itertools.combinations(range(x.ndim), count):
                    found = reduced("simulator", SUM, x, axes, "u8", policy)
                    if found is not None:
                        np.testing.assert_array_equal(found, x.sum(axis=axes, dtype=np.uint64))
                        collapsed += 1
    assert collapsed > 100


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_any_axes_of_any_layout_in_several_steps(policy: ReducePolicy) -> None:
    steps = 0
    for shape in ((7, 9, 5), (3, 4, 5, 2)):
        for x in views(np.random.default_rng(1).integers(0, 1 << 32, shape, np.uint32)):
            for count in range(1, x.ndim + 1):
                for axes in itertools.combinations(range(x.ndim), count):
                    layouts = layouts_to_reduce(x.shape, x.strides, 4, axes, in_order=False)
                    if layouts is None or (len(layouts) == 1 and len(axes) == 1):
                        continue
                    steps = max(steps, len(layouts))
                    schedule = reduce_axes(SUM, layouts, [policy] * len(layouts))
                    results = np.zeros(layouts[-1].results, "u8")
                    data = buffer_of(x, layouts[0].span)
                    target_of("simulator").run(schedule, {"data": data, "results": results})
                    np.testing.assert_array_equal(results, x.sum(axis=axes, dtype=np.uint64).reshape(-1))
    assert steps == 3


def test_axes_that_do_not_merge_on_every_target(target: str) -> None:
    x = np.random.default_rng(6).integers(0, 1 << 32, (4, 3, 5) if target == "python" else (9, 4, 70), np.uint32)
    layouts = layouts_to_reduce(x.shape, x.strides, 4, (0, 2), in_order=False)
    assert layouts is not None
    assert len(layouts) == 2
    info = target_of(target).info
    schedule = reduce_axes(SUM, layouts, [choose_axis_reduction(SUM.state, layout, info) for layout in layouts])
    results = np.zeros(x.shape[1], "u8")
    target_of(target).run(schedule, {"data": x.reshape(-1), "results": results})
    np.testing.assert_array_equal(results, x.sum(axis=(0, 2), dtype=np.uint64))


SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((1, 1), 0), ((3, 1), 1), ((1, 5), 0), ((2, 9), 1), ((130, 3), 0), ((3, 130), 0), ((70, 70), 0), ((70, 70), 1),
    ((4, 33, 9), 1), ((600,), 0), ((5, 0), 0),
]  # fmt: skip


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_every_target_reduces_along_every_axis(target: str, layout: str) -> None:
    few = SHAPES[4:8] if layout == "C" else SHAPES[6:7]  # each of the CPU's kernels compiles for seconds
    for shape, axis in few if target == "cpu" else SHAPES[:6] if target == "python" else SHAPES:
        base = np.random.default_rng(axis).integers(0, 1 << 32, shape, np.uint32)
        x = {"C": base, "F": np.asfortranarray(base), "strided": np.repeat(base, 2, axis=-1)[..., ::2]}[layout]
        found = reduced(target, SUM, x, (axis,), "u8")
        assert found is not None
        np.testing.assert_array_equal(found, x.sum(axis=axis, dtype=np.uint64))


EXTREMES: list[tuple[Callable[[Any], Any], Callable[..., Any]]] = [
    (Minimum, np.min), (Maximum, np.max), (ArgMin, np.argmin), (ArgMax, np.argmax),
]  # fmt: skip


def few_dtypes(target: str, dtypes: Sequence[str], few: Sequence[str]) -> Sequence[str]:
    """Each is a kernel to compile for a second or more: all of them run in the simulator."""
    return dtypes if target == "simulator" else few


@pytest.mark.parametrize(("make", "numpys"), EXTREMES)
def test_extremes_and_where_they_are(
    target: str, make: Callable[[Any], Any], numpys: Callable[..., Any], in_turn: InTurn
) -> None:
    is_place, has_all = make in (ArgMin, ArgMax), make in (Minimum, ArgMax)
    # Without times: the two integers of 64 bits say enough of them.
    dtypes = [dtype for dtype in DTYPES if np.dtype(dtype).kind not in "mM"] if has_all else ["?", "i2", "f8"]
    shapes = ((9, 3),) if target == "python" else ((9, 3), (70, 5))
    for dtype, shape, axis in in_turn(few_dtypes(target, dtypes, ["f4"][: int(has_all)]), shapes, range(2)):
        x = sample(dtype, shape, seed=shape[0])
        if x.dtype.kind == "f" and shape[0] != 9:
            x[np.isnan(x)] = 1
        made = cast("Monoid[Any, Any]", make(key_for(dtype)))
        monoid: Monoid[Any, Any] = over_bools(made) if dtype == "?" else made
        found = reduced(target, monoid, x, (axis,), np.int64 if is_place else x.dtype)
        assert found is not None
        np.testing.assert_array_equal(found, numpys(x, axis=axis))


def test_the_index_counts_along_all_axes_that_go(target: str) -> None:
    x = np.arange(3 * 4 * 5, dtype=np.uint32).reshape(3, 4, 5)[::-1] ^ 21
    x = np.ascontiguousarray(x)
    found = reduced(target, ArgMax(key_for("u4")), x, (0, 1), np.int64)
    assert found is not None
    np.testing.assert_array_equal(found, x.reshape(12, 5).argmax(axis=0))


@pytest.mark.parametrize(("make", "numpys"), [(AnyTrue, np.any), (AllTrue, np.all)])
def test_truths_are_bytes(target: str, make: Callable[[Any], Any], numpys: Callable[..., Any]) -> None:
    for dtype in few_dtypes(target, ["?", "u1", "i8", "f2", "f8"], ["u1"] if make is AnyTrue else []):
        x = sample(dtype, (7, 3) if target == "python" else (61, 11), seed=2)
        x[:, 0], x[:, 1] = 0, 1
        for axis in range(2):
            found = reduced(target, make(key_for(dtype)), x, (axis,), np.bool_)
            assert found is not None
            np.testing.assert_array_equal(found, numpys(x, axis=axis))


@pytest.mark.parametrize(("make", "numpys"), [(Sum, np.sum), (Product, np.prod)])
def test_sums_and_products_have_numpys_dtype(
    target: str, make: Callable[[Any], Any], numpys: Callable[..., Any]
) -> None:
    dtypes = ["?", "u1", "i1", "i2", "u4", "i8", "f2", "f4"]
    for dtype in few_dtypes(target, dtypes, ["f2"] if make is Sum else []):
        x = whole_numbers(dtype, (5, 4) if target == "python" else (9, 70), seed=3)
        for axis in range(2):
            expected = numpys(x, axis=axis)
            found = reduced(target, make(number_for(dtype)), x, (axis,), expected.dtype)
            assert found is not None
            np.testing.assert_array_equal(found, expected)


def test_float_sums_err_less_than_numpys_may() -> None:
    x = np.random.default_rng(9).standard_normal((1000, 37)).astype(np.float32)
    for axis in range(2):
        found = reduced("simulator", Sum(number_for("f4")), x, (axis,), np.float32)
        assert found is not None
        np.testing.assert_allclose(found, x.sum(axis=axis, dtype=np.float64), rtol=1e-5, atol=1e-4)


@attrs.frozen
class Spread:
    """The least and the greatest, and the sum of all indices: a user's struct."""

    low: U32
    high: U32
    indices: U32


@attrs.frozen
class Spreads:
    element: type[U32] = U32
    state: type[Spread] = Spread

    def identity(self) -> Spread:
        return Spread(U32(0xFFFFFFFF), U32(0), U32(0))

    def lift(self, element: U32, index: U32) -> Spread:
        return Spread(element, element, index)

    def combine(self, a: Spread, b: Spread) -> Spread:
        low = a.low if a.low < b.low else b.low
        return Spread(low, a.high if a.high > b.high else b.high, a.indices + b.indices)


def test_a_struct_comes_as_it_is(target: str) -> None:
    x = np.random.default_rng(4).integers(0, 1 << 32, (12, 7), np.uint32)
    for axis in range(2):
        layout = layout_to_reduce(x.shape, x.strides, 4, (axis,))
        assert layout is not None
        policy = choose_axis_reduction(Spread, layout, target_of(target).info)
        results: Array = np.zeros(layout.results, dtype_of(Spread))
        schedule = reduce_axis(Spreads(), layout, policy)
        target_of(target).run(schedule, {"data": x.reshape(-1), "results": results})
        np.testing.assert_array_equal(results["low"], x.min(axis=axis))
        np.testing.assert_array_equal(results["high"], x.max(axis=axis))
        length = x.shape[axis]
        np.testing.assert_array_equal(results["indices"], length * (length - 1) // 2)


# -- layouts ----------------------------------------------------------------------------------------------


def test_layouts_say_how_an_array_lies() -> None:
    x = np.zeros((2, 3, 4, 5), np.float32)

    def of(view: Array, *axes: int) -> Layout | None:
        return layout_to_reduce(view.shape, view.strides, view.itemsize, axes)

    assert of(x, 3) == Layout(24, 5, 1, 5, 1, 1)
    assert of(x, 0) == Layout(1, 2, 60, 0, 60, 1)
    assert of(x, 1, 2) == Layout(2, 12, 5, 60, 5, 1)
    assert of(x, 0, 1, 2, 3) == Layout(1, 120, 1, 0, 1, 1)
    assert of(x, 1, 3) is None
    assert of(x.T, 3) is None  # the axes that stay are three, in the order of the results
    assert of(x[0, 0].T, 0) == Layout(4, 5, 1, 5, 1, 1)
    assert of(x[0, 0].T, 1) == Layout(1, 4, 5, 0, 5, 1)
    assert of(x[:, :, 0, 0], 1) == Layout(2, 3, 1, 60, 20, 1)
    assert of(x[0, ::2, :1], 0) == Layout(1, 2, 5, 0, 40, 1)
    assert of(np.broadcast_to(x[0, 0, 0], (3, 5)), 0) == Layout(1, 3, 5, 0, 0, 1)
    assert of(x[::-1], 0) is None
    assert of(x) == Layout(1, 1, 120, 0, 1, 1)
    assert layout_to_reduce((3,), (3,), 2, (0,)) is None
    for layout, stride in (
        (Layout(4, 5, 1, 9, 1, 1), 9), (Layout(4, 5, 1, 9, 2, 1), None), (Layout(4, 1, 1, 9, 7, 1), 9),
        (Layout(1, 5, 3, 0, 1, 8), 8), (Layout(2, 5, 3, 40, 1, 8), None), (Layout(1, 1, 3, 0, 1, 8), None),
    ):  # fmt: skip
        assert layout.row_stride == stride, layout
    assert layouts_to_reduce(x.T.shape, x.T.strides, 4, (0, 1, 2, 3), in_order=False) == (Layout(1, 120, 1, 0, 1, 1),)
    assert layouts_to_reduce(x.shape, x.strides, 4, (0, 2, 3), in_order=False) == (
        Layout(6, 20, 1, 20, 1, 1),
        Layout(1, 2, 3, 0, 3, 1),
    )
    assert layouts_to_reduce(x[::-1].shape, x[::-1].strides, 4, (1,), in_order=False) is None
    assert of(np.zeros((0, 3), np.float32), 0) == Layout(3, 0, 1, 0, 0, 0)
    assert layout_to_scan((2, 3, 0), (4, 4, 4), 4, 1) == Layout(2, 3, 0, 0, 0, 0)
    assert layout_to_scan((0, 2, 3), (24, 12, 4), 4, 1) == Layout(0, 2, 3, 0, 0, 0)
    assert layout_to_scan(x.shape, x.strides, 4, 1) == Layout(2, 3, 20, 60, 20, 1)
    assert layout_to_scan(x.T.shape, x.T.strides, 4, 1) is None
    assert layout_to_scan((4, 1, 5), (20, 20, 4), 4, 1) == Layout(1, 1, 20, 0, 1, 1)
    assert layout_to_scan((4, 5), (4, 16), 4, 0) == Layout(1, 4, 5, 0, 1, 4)
    assert layout_to_scan((4, 5), (40, 8), 4, 1) == Layout(4, 5, 1, 10, 2, 1)
    assert layout_to_scan((5,), (8,), 4, 0) == Layout(1, 5, 1, 0, 2, 1)
    assert layout_to_scan((1, 5), (-7, 4), 4, 1) == Layout(1, 5, 1, 0, 1, 1), "one is not a step away from any"
    assert layout_to_scan((2, 5), (-20, 4), 4, 1) is layout_to_scan((2, 5), (22, 4), 4, 1) is None


def test_rows_are_reduced_several_to_a_workgroup_where_they_are_shorter_than_told() -> None:
    policy = ReducePolicy(group_size=64, short=50)
    columns, rows = (reduce_axis(SUM, Layout.rows(3, length), policy).launches for length in (49, 50))
    assert [launch.arguments[-1] for launch in (*columns, *rows)] == [Arrangement.GRID, Arrangement.ROWS]


def test_what_32_bits_cannot_count_is_refused() -> None:
    for layout in (
        Layout(1 << 20, 1 << 12, 1, 1 << 12, 1, 1),
        Layout(1, 2, 1 << 32, 0, 0, 0),
        Layout(1, 1 << 32, 1, 0, 0, 1),
    ):
        with pytest.raises(InvalidArgumentError, match="expected indices of no more than 4294967295"):
            reduce_axis(SUM, layout, ReducePolicy())
    with pytest.raises(InvalidArgumentError, match="outer: expected an int"):
        Layout(-1, 1, 1, 1, 1, 1)


# -- finishes ---------------------------------------------------------------------------------------------


def test_floats_become_float16_as_numpy_rounds_them() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)[:: 1 << 4].view(np.float16)
    between = np.concatenate([halves, np.nextafter(halves, np.float16(0))]).astype(np.float32)
    with np.errstate(all="ignore"):
        near = np.concatenate([between, between * np.float32(1 + 2**-12), between * np.float32(1 + 2**-11)])
        edges = np.array([65519.996, 65520, 65536, 1e10, 2**-24, 2**-25, 1.5 * 2**-25, 2**-14, 1e-40, np.inf], "f4")
        x = np.concatenate([near, edges, -edges]).astype(np.float32)
        expected = x.astype(np.float16)
    found = np.array([int(Half().finish(F32(float(value)))) for value in x[::7]], np.uint16).view(np.float16)
    np.testing.assert_array_equal(found, expected[::7])
    ordinary = ~np.isnan(expected[::7])
    np.testing.assert_array_equal(found.view("u2")[ordinary], expected[::7].view("u2")[ordinary])


def test_a_monoid_of_no_name_finishes_as_it_is() -> None:
    assert finish_of(Spreads()) == AsItIs(Spread)
    assert finish_of(Sum(HalfNumber())).result is U16


@pytest.mark.parametrize("function", [gpusort.sort, gpusort.argsort, gpusort.max])
@pytest.mark.parametrize("key", [None, key_for("f4")], ids=["", "key"])
def test_arrays_of_more_axes_than_numpy_sorts(target: str, function: Any, key: Any) -> None:
    x = sample("f4", 30)
    many = x.reshape(3, *[1] * 40, 2, *[1] * 20, 5)
    found = np.squeeze(function(many, axis=41, key=key, target=target))
    assert np.array_equal(found, function(x.reshape(3, 2, 5), axis=1), equal_nan=True)
