"""The host's own reductions, below the front: found once for a function, dtype and axis, called for any array."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.operations.reduce import Reducer
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host import arg_reduce as extreme_places
from gpusort.targets.cpu.host import reduce as folding
from gpusort.targets.cpu.host import reduce_plans as fold_routes
from gpusort.targets.cpu.host import regrouped
from gpusort.targets.cpu.host.autotuned import Choices, Way, Ways
from gpusort.targets.cpu.host.reduce import Axes, Folding, host_reduction
from gpusort.targets.cpu.host.strides import LoopNest, Routes, lies_evenly
from gpusort.targets.cpu.pool import Pool
from tests.covering import few_cases
from tests.new_process import printed
from tests.reference import DTYPES, SWAPPED, laid_out, sample, whole_numbers

Array = npt.NDArray[Any]
NAMES = tuple(fold.value for fold in Reducer)
LAYOUTS = ("C", "Fortran", "strided", "mirrored", "cropped")
LONG_SHAPES = ((40_000,), (5000, 8), (8, 5000), (200, 200), (33, 35, 37), (3, 1200, 12), (20_000, 3), (40_000, 1))
COMPILED = (
    *((name, "f4") for name in NAMES), ("max", "i2"), ("argmin", "i2"), ("all", "i2"), ("sum", "u1"), ("prod", "i4"),
    ("min", "f2"), ("argmax", "f2"), ("any", "f2"), ("sum", "f2"), ("prod", "f2"),
    ("sum", "?"), ("any", "?"), ("min", "?"),
)  # fmt: skip


def reduced(name: str, x: Array, axis: Axes = None, keepdims: bool = False) -> Any:
    call = host_reduction(Reducer(name), x.dtype, x.ndim, axis, keepdims)
    assert call is not None
    return call(x)


def by_numpy(name: str, x: Array, axis: Axes = None, keepdims: bool = False) -> Any:
    single = {"dtype": np.float32} if x.dtype.newbyteorder("=") == np.float16 and name in ("sum", "prod") else {}
    with np.errstate(all="ignore"):
        found = getattr(np, name)(x, axis=axis, keepdims=keepdims, **single)
        return found.astype(np.float16) if single else found


def assert_same(found: Any, expected: Any, context: object = "") -> None:
    assert type(found) is type(expected), context
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), context
    assert np.array_equal(found, expected, equal_nan=found.dtype.kind in "fmM"), context


def _is_not_loaded(*given: object, **named: object) -> bool:
    return False


def _have_loops_reduce(monkeypatch: pytest.MonkeyPatch) -> None:
    """What NumPy would reduce sooner, too."""
    _have_way(monkeypatch, "loops", "rows", "columns")
    monkeypatch.setattr(Folding, "_suits_numpy", _never)
    monkeypatch.setattr(folding, "ADDED", 0)


def _have_places_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are asked for extremes of whole arrays that NumPy finds sooner, too."""
    for constant in ("_SPREAD", "_HALVES", "_FLAT_BYTES", "_CREW_BYTES"):
        monkeypatch.setattr(extreme_places, constant, 0)


def _have_way(monkeypatch: pytest.MonkeyPatch, *preferred: str) -> list[str]:
    """All results come by the first of these ways that there is, or else by any. Returns the names of those taken."""
    taken: list[str] = []

    def only(self: Choices, key: Hashable, **named: Way) -> Ways:
        name = next((name for name in preferred if name in named), next(iter(named)))
        taken.append(name)
        return among(self, key, **{name: named[name]})

    among = Choices.among
    monkeypatch.setattr(Choices, "among", only)
    return taken


def _never(*given: object, **named: object) -> bool:
    return False


def _nothing(*given: object) -> None:
    return None


def axes_of(x: Array, name: str) -> list[Axes]:
    several: list[Axes] = [(0, 1), (1, 2)] if x.ndim > 2 and not name.startswith("arg") else []
    return [None, *range(x.ndim), -1, *several]


# -- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*DTYPES, *SWAPPED])
@pytest.mark.parametrize("name", NAMES)
def test_short_arrays_reduce_as_numpys_do(name: str, dtype: str) -> None:
    kind = np.dtype(dtype).kind
    if (name == "sum" and kind == "M") or (name == "prod" and kind in "mM"):
        assert host_reduction(Reducer(name), np.dtype(dtype), 1, None, False) is None
        return
    for shape in ((7,), (3, 5), (2, 3, 4), (150, 1, 2)):
        exact = name in ("sum", "prod") and kind in "fm"
        x = whole_numbers(dtype, shape) if exact else sample(dtype, shape)
        for layout in LAYOUTS:
            y = laid_out(x, layout)
            for axis in axes_of(y, name):
                for keepdims in (False, True):
                    expected = by_numpy(name, y, axis, keepdims)
                    assert_same(reduced(name, y, axis, keepdims), expected, (shape, layout, axis))


@few_cases(pairs=False)
@pytest.mark.parametrize(("name", "dtype"), COMPILED)
def test_long_arrays_reduce_as_numpys_do(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By compiled loops, wherever there are any."""
    _have_loops_reduce(monkeypatch)
    for constant in ("ADDED", "LONG", "_EXACT"):
        monkeypatch.setattr(regrouped, constant, 0)
    monkeypatch.setattr(fold_routes, "_SHARED", 1 << 15)
    monkeypatch.setattr(fold_routes, "_SHARED_BYTES", 0)
    _have_places_of_all(monkeypatch)
    for number, shape in enumerate(LONG_SHAPES):
        x = whole_numbers(dtype, shape) if name in ("sum", "prod") else sample(dtype, shape, number)
        if name == "prod" and x.dtype.kind == "f":
            x = np.where(x == 0, 1, np.sign(x)).astype(dtype)
        if number % 2 and x.dtype.kind == "f":
            x[np.isnan(x)] = 1
        for layout in LAYOUTS:
            y = laid_out(x, layout)
            for axis in axes_of(y, name):
                keepdims = (number + len(layout)) % 2 == 0
                assert_same(reduced(name, y, axis, keepdims), by_numpy(name, y, axis, keepdims), (shape, layout, axis))


@pytest.mark.parametrize("name", ["any", "all"])
def test_one_element_far_from_the_first_decides(name: str) -> None:
    for dtype in ("f4", "f2", "i2"):
        x = np.full((300, 400), name == "all", dtype)
        assert reduced(name, x) == (name == "all")
        x[299, 399] = name == "any"
        if name == "all" and x.dtype.kind == "f":
            x[299, 399] = -0.0
        assert reduced(name, x) == (name == "any")
        assert reduced(name, x, 0).tolist() == [name == "all"] * 399 + [name == "any"]


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_one_element_decides_wherever_it_is(name: str, dtype: str) -> None:
    """What is settled ends loops early: at the edges of blocks of 2^10 elements, of parts of 2^15 and of rows."""
    decides = name == "any"
    for shape in ((1 << 20,), (5, 200_001), (260_000, 4)):
        x = np.full(shape, not decides, dtype)
        flat = x.reshape(-1)
        edges = (0, 1 << 10, 1 << 15, shape[-1], 3 << 18, flat.size)
        for place in {edge + off for edge in edges for off in (-1, 0, 1)}:
            if 0 <= place < flat.size:
                flat[place] = decides
                assert reduced(name, x) == decides, place
                if x.ndim > 1:
                    assert_same(reduced(name, x, 1), by_numpy(name, x, 1), place)
                    assert_same(reduced(name, x, 0), by_numpy(name, x, 0), place)
                flat[place] = not decides
        assert reduced(name, x) == (not decides)


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_first_elements_settle_rows_or_do_not(name: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are 32 of a row of 256 or more, whose elements may lie apart: one decides behind them in some rows."""
    _have_way(monkeypatch, "loops")
    decides = name == "any"
    for length in (255, 256, 257, 2000):
        x = np.full((300, length * step), decides, "i2")[:, ::step]
        x[...] = not decides
        x[::2, 20] = decides
        for row, column in enumerate((0, 31, 32, 33, 63, 64, length - 1)):
            x[2 * row + 1, column] = decides
        assert_same(reduced(name, x, 1), by_numpy(name, x, 1), length)


def test_bytes_of_bools_that_are_neither_0_nor_1_are_true() -> None:
    x = np.arange(300_000, dtype=np.uint8).view(np.bool_).reshape(-1, 3)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(reduced("sum", x, axis), (x.view(np.uint8) != 0).sum(axis))
        assert np.asarray(reduced("min", x, axis)).view(np.uint8).max() <= 1


@pytest.mark.parametrize(("shape", "axes"), [((300, 400), 0), ((300, 400), 1), ((20, 20, 20, 20, 20), (1, 3))])
def test_bools_that_are_repeated_are_counted_as_they_lie_once_copied(shape: tuple[int, ...], axes: Axes) -> None:
    row: Array = np.arange(shape[-1]) % 3 > 0
    with background.off():
        for x in (np.broadcast_to(row, shape), np.broadcast_to(row, shape).swapaxes(0, -1)):
            for name in ("sum", "prod", "any"):
                assert_same(reduced(name, x, axes), by_numpy(name, x, axes), (name, x.strides))


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_rows_that_are_repeated_are_read_by_neighbours(axes: tuple[int, ...]) -> None:
    """And not one element so many times, then the next: what has no stride is not near."""
    row: Array = np.arange(400, dtype=np.float32)
    for x in (np.broadcast_to(row, (300, 400)), np.broadcast_to(row[:, np.newaxis], (400, 300))):
        nest = LoopNest.of(x, axes)
        assert nest.nearest.stride == 1
        assert nest.nearest.length == 400
        assert_same(reduced("max", x, axes), by_numpy("max", x, axes))


def test_the_first_elements_can_decide() -> None:
    """Without a look at the others, of which there are more than the memory has room for."""
    x = np.broadcast_to(np.float32(1), (1 << 20, 1 << 20))
    assert reduced("any", x)
    assert not reduced("all", np.broadcast_to(np.int64(0), (1 << 20, 1 << 20)))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f8"])
def test_the_first_elements_of_rows_can_decide(dtype: str, axis: int, keepdims: bool) -> None:
    """Of all rows; one of which they say nothing is looked at to its end."""
    for name, usual in (("any", 1), ("all", 0), *([("max", 1), ("min", 0)] if dtype == "?" else [])):
        for shape in ((40, 3, 300), (300, 40, 3), (2, 300, 70)):
            x: Array = np.full((*shape[:-1], 2 * shape[-1]), usual, dtype)[..., ::2]
            assert_same(reduced(name, x, axis, keepdims), by_numpy(name, x, axis, keepdims), shape)
            line = np.moveaxis(x, axis, -1)[1, 1]
            for place in (0, 5, shape[axis] - 1):
                line[:] = 1 - usual
                line[place % len(line)] = usual
                assert_same(reduced(name, x, axis, keepdims), by_numpy(name, x, axis, keepdims), (shape, place))
            line[:] = 1 - usual
            assert_same(reduced(name, x, axis, keepdims), by_numpy(name, x, axis, keepdims), shape)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_which_zero_or_nan_is_the_extreme_does_not_depend_on_what_is_loaded(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = whole_numbers(dtype, (9000, 8))
    x[np.random.default_rng(1).random(x.shape) < 0.5] = -0.0
    x[:, 3] = abs(x[:, 3])
    without_sign = np.abs(x)
    without_sign[:, 2] += 1
    one = without_sign.copy()
    one[5000, 5] = -0.0
    with_nans = x.copy()
    with_nans[::3, 4] = np.nan
    with_nans[1::3, 4] = -np.nan
    for name in ("min", "max"):
        for axis in (0, 1, None):
            # each after others: what was found last must not tell what is found next
            for y in (with_nans, x, without_sign, one, -without_sign, -one, with_nans + 9, without_sign + 9, one):
                after = np.asarray(reduced(name, y, axis))
                with monkeypatch.context() as patch:
                    patch.setattr(folding, "can_fold", _is_not_loaded)
                    assert np.asarray(reduced(name, y, axis)).tobytes() == after.tobytes()
                assert np.array_equal(after, getattr(np, name)(y, axis=axis), equal_nan=True)
                if axis != 0:  # few long lines, or short ones, of which NumPy's loops choose any zero
                    continue
                zeros, signed = after == 0, np.signbit(y) & (y == 0)
                is_minus = signed.any(axis) if name == "min" else ~((y == 0) & ~signed).any(axis)
                assert np.array_equal(np.signbit(after)[zeros], np.asarray(is_minus)[zeros])


@pytest.mark.parametrize("axis", [0, None])
def test_extremes_that_are_zero_or_nan_and_others_by_turns(axis: Axes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which way is taken depends on what was found last, and no bit on the way."""
    x = 1 + np.random.default_rng(3).random((1000, 300))
    zeros, nans = x - 1, x.copy()
    zeros[::2, ::3], zeros[1::2, ::2] = -0.0, 0.0
    nans[5], nans[6, ::2] = np.nan, -np.nan
    for name in ("min", "max"):
        call = host_reduction(Reducer(name), x.dtype, 2, axis, False)
        assert call is not None
        for y in (x, x, zeros, -zeros, zeros, x, nans, nans, -nans, x, zeros):
            with background.off(), monkeypatch.context() as patch:
                _have_way(patch, "numpy")
                found = np.asarray(call(y)).tobytes()
            with background.off(), monkeypatch.context() as patch:
                _have_way(patch, "loops")
                assert np.asarray(reduced(name, y, axis)).tobytes() == found


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8", "f2", "M8[s]", "?"])
@pytest.mark.parametrize("name", ["min", "max", "any", "all", "sum", "argmin", "argmax"])
def test_each_way_gives_the_same_bits(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs of zeros and bits of NaNs, too, of which NumPy's loops choose any."""
    kind = np.dtype(dtype).kind
    if (name == "sum" and kind in "fM") or (name in ("any", "all") and kind == "M"):
        pytest.skip("there is one way")
    taken: set[str] = set()
    for shape, axis in (((20_000, 3), 1), ((9, 5000), 0), ((300, 200), 1), ((40, 12, 90), 1), ((70_000,), None)):
        x = sample(dtype, shape, 3)
        if x.dtype.kind == "f":
            x.reshape(-1)[::7] = 0.0
            x.reshape(-1)[::14] = -0.0
        for layout in LAYOUTS:
            y, found = laid_out(x, layout), set[bytes]()
            for way in ("loops", "rows", "columns", "numpy", "threads"):
                with monkeypatch.context() as patch, background.off():
                    names = _have_way(patch, way)
                    found.add(np.asarray(reduced(name, y, axis)).tobytes())
                    taken.update(names)
            assert len(found) == 1, (shape, layout)
    assert len(taken) > 1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_fewer_floats_are_added_in_numpys_order_by_loops_too(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where neighbours stay. Else, and where they lie backwards, NumPy adds them: whatever is loaded, the same bits."""
    taken: set[str] = set()
    monkeypatch.setattr(regrouped.Regrouped, "__call__", _nothing)
    for shape, axis in (
        ((2500, 3, 4), 1), ((300, 8, 16), 1), ((40, 500), 0), ((5000, 3), 0), ((5000, 3), 1), ((9, 30, 31), (0, 1)),
        ((20, 30, 5, 7), 1), ((16, 9, 40), (0, 2)), ((2, 2500), 0), ((100, 41, 33), 1),
        ((100, 40, 33), 1),
    ):  # fmt: skip
        x = (1 + np.random.default_rng(1).standard_normal(shape) / 8).astype(dtype)
        x.reshape(len(x), -1)[:, 1] = -0.0
        for layout in (*LAYOUTS, "backwards"):
            y = laid_out(x, layout)
            for way in ("loops", "numpy"):
                with monkeypatch.context() as patch, background.off():
                    names = _have_way(patch, way)
                    found = np.asarray(reduced(name, y, axis))
                assert found.tobytes() == np.asarray(by_numpy(name, y, axis)).tobytes(), (shape, axis, layout, way)
                taken.update(names)
    assert taken == {"loops", "numpy"}


def _leaves_lines(call: fold_routes.LoopCall) -> bool:
    """Whether neighbours among its results are wanted, in lines with gaps between them."""
    return call.seen_as is not None and call.seen_as[1][-1] == 1


@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
@pytest.mark.parametrize("name", ["all", "max", "sum", "prod", "argmin"])
def test_short_lines_with_short_gaps_are_reduced_as_one(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[bool] = []

    def noted(call: fold_routes.LoopCall, out: Array) -> Array:
        lines.append(_leaves_lines(call))
        return wanted(call, out)

    wanted = fold_routes.LoopCall.wanted
    monkeypatch.setattr(fold_routes.LoopCall, "wanted", noted)
    _have_loops_reduce(monkeypatch)
    monkeypatch.setattr(regrouped.Regrouped, "__call__", _nothing)
    for shape, kept, is_line in (
        ((1537, 30, 7), slice(1, 5), True), ((300, 60, 9), slice(6), True), ((40, 60, 40), slice(37), True),
        ((300, 60, 7), slice(3), False), ((4000, 4, 16), slice(0, 16, 2), False), ((60, 6, 132), slice(129), False),
        ((300, 100, 41), slice(0, 40, 2), False), ((300, 90, 21), slice(1, 20, 2), False),  # every second of a line
    ):  # fmt: skip
        x = np.random.default_rng(1).integers(1, 3, shape).astype(dtype)
        lines.clear()
        with background.off():
            found = reduced(name, x[..., kept], 0)
        assert_same(found, by_numpy(name, x[..., kept], 0), (shape, kept))
        if name != "argmin":
            assert lines
            assert all(line is is_line for line in lines), (shape, kept)


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_short_lines_are_regrouped_in_either_order(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def noted(self: regrouped.Regrouped, x: Array) -> object:
        seen.append(call(self, x))
        return seen[-1]

    call = regrouped.Regrouped.__call__
    monkeypatch.setattr(regrouped.Regrouped, "__call__", noted)
    x = sample(dtype, (300, 3))
    for turned, axis in ((x, 1), (x.T, 0)):
        seen.clear()
        assert_same(reduced(name, turned, axis), by_numpy(name, turned, axis))
        assert len(seen) == 1
        assert seen[0] is not None


@pytest.mark.parametrize(("name", "dtype"), [("max", "i4"), ("sum", "i8"), ("any", "u1"), ("all", "i2")])
def test_short_lines_are_regrouped_without_loops(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is loaded for these."""
    asked: list[Array] = []
    monkeypatch.setattr(Folding, "__call__", lambda _, x: asked.append(x))
    for shape in ((5000, 3), (7000, 4)):
        x = sample(dtype, shape)
        assert_same(reduced(name, x, 1), by_numpy(name, x, 1))
    assert not asked


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "any", "all"])
def test_a_few_columns_of_a_table(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours that stay, with a gap between: worked on side by side, gaps too, but for the last one."""
    calls: list[fold_routes.LoopCall] = []

    def noted(self: fold_routes.LoopCall, kernel: Any, *others: Any) -> None:
        calls.append(self)
        run(self, kernel, *others)

    run = fold_routes.LoopCall.run
    monkeypatch.setattr(fold_routes.LoopCall, "run", noted)
    monkeypatch.setattr(regrouped.Regrouped, "__call__", _nothing)
    _have_loops_reduce(monkeypatch)
    for shape, kept, axis, has_gaps in (
        ((20_001, 4), slice(3), 0, True), ((20_001, 4), slice(1, 4), 0, True), ((9000, 9), slice(2, 7), 0, True),
        ((7, 4001, 4), slice(3), 1, True), ((20_001, 8), slice(3), 0, False), ((500, 100), slice(99), 0, True),
        ((20_001, 6), slice(0, 6, 2), 0, False),
    ):  # fmt: skip
        for turned in (1, -1):
            x = np.random.default_rng(1).integers(0, 3, shape).astype(dtype)[..., kept].swapaxes(0, axis)[::turned]
            x = x.swapaxes(0, axis)
            calls.clear()
            with background.off():
                found = reduced(name, x, axis)
            assert_same(found, by_numpy(name, x, axis), (shape, kept))
            assert any(call.count > 1 and _leaves_lines(call) for call in calls) is has_gaps, (shape, kept)


def test_no_loops_go_between_elements() -> None:
    """As they would where the processor takes elements at less than multiples of their size."""
    routes = Routes(lambda x: x.shape)
    assert routes.of(np.zeros(4)) == (4,)
    assert routes.of(np.zeros(4, np.complex128)) is None
    assert routes.of(np.zeros(33, np.uint8)[1:].view(np.float64)) is None


@pytest.mark.parametrize("name", ["sum", "max", "argmax"])
def test_the_stride_of_an_axis_of_one_does_not_matter(name: str) -> None:
    """It may be no multiple of an element."""
    memory = np.random.default_rng(3).integers(-9, 9, 300_000).astype(np.float64)
    for shape, strides in (((1, 100_000), (3, 8)), ((300, 1, 1000), (8000, -5, 8)), ((1, 1000, 300), (5, 8, 8000))):
        x: Array = np.lib.stride_tricks.as_strided(memory, shape, strides)
        for axis in range(x.ndim):
            assert_same(reduced(name, x, axis), by_numpy(name, x, axis))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_loops_stay_within_the_memory_of_the_array(layout: str) -> None:
    for shape in (*LONG_SHAPES, (20_000, 4), (30, 2000, 5), (9, 4, 4000)):
        x = laid_out(np.zeros(shape, np.int32), layout)
        if not lies_evenly(x):
            continue
        for axes in ((0,), (x.ndim - 1,), tuple(range(x.ndim))):
            nest = LoopNest.of(x, axes)
            if len(nest.kept) > 2 or len(nest.reduced) > 2:
                continue
            for call in fold_routes.route_of(Reducer.PROD, x.dtype, nest).calls:
                start, *ways = (int(number) for number in call.plan[:9])
                ends = [(length - 1) * stride for length, stride in zip(ways[::2], ways[1::2], strict=True)]
                assert start + sum(end for end in ends if end < 0) >= 0
                assert start + sum(end for end in ends if end > 0) < nest.span.count, (shape, layout, axes)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_nan_is_found(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NumPy, which stops there: in each stretch of a row, and in any part of it that a thread takes."""
    monkeypatch.setattr(fold_routes, "_CREW_SHARED", 1 << 12)
    _have_places_of_all(monkeypatch)
    _have_loops_reduce(monkeypatch)
    x = np.random.default_rng(1).standard_normal(60_000).astype(dtype)
    for first in (0, 4095, 4096, 8191, 8192, 30_000, len(x) - 1):
        holed = x.copy()
        holed[[first, -1, min(first + 20_000, len(x) - 1)]] = np.nan
        for shaped in (holed, holed.reshape(300, 200), holed.reshape(3, 100, 200)):
            for axis in (None, -1):
                with background.off():
                    found = reduced(name, shaped, axis)
                assert_same(found, by_numpy(name, shaped, axis), (first, shaped.shape, axis))


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_in_rows_of_any_length(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of equals, in rows whose ends are no multiple of what is looked at together, and in their parts."""
    monkeypatch.setattr(extreme_places, "_MANY_ROWS", 0)
    monkeypatch.setattr(extreme_places, "_have_nan_soon", _never)
    monkeypatch.setattr(fold_routes, "_CREW_SHARED", 1 << 9)  # elements, of which few rows are cut into parts
    _have_loops_reduce(monkeypatch)
    generator = np.random.default_rng(1)
    with background.off():
        for shape in ((40, 9), (40, 16), (7, 5, 100), (30, 127), (30, 128), (30, 129), (2, 385), (3, 5000)):
            for most in (3, 120):
                x = generator.integers(0, most, shape).astype(dtype)
                if dtype[0] == "f":
                    x[x == 1] = -0.0
                    x[..., -2][x[..., 0] == 2] = np.nan
                    x[..., -1][x[..., 0] == 2] = -np.nan
                for layout in LAYOUTS:
                    lain = laid_out(x, layout)
                    assert_same(reduced(name, lain, -1), by_numpy(name, lain, -1), (shape, most, layout))


@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "f8", "M8[s]"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_in_arrays_that_may_only_be_read(name: str, dtype: str) -> None:
    """Which NumPy would copy first: columns of tables are such, and JAX's arrays."""
    for shape in ((140_000,), (70, 2000), (2000, 70)):
        x = sample(dtype, shape, seed=1)
        x.flags.writeable = False
        for lain in (x, x.T, x[::-1], np.broadcast_to(x[:1], (70, *x.shape[1:]))):
            for axis, keepdims in ((None, False), (0, True), (-1, False)):
                found = host_reduction(Reducer(name), x.dtype, x.ndim, axis, keepdims)
                assert found is not None
                result = found(lain)
                expected = getattr(np, name)(lain, axis=axis, keepdims=keepdims)
                assert type(result) is type(expected)
                np.testing.assert_array_equal(result, expected)
            assert not lain.flags.writeable


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_rows_that_suit_numpy_are_shared_by_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_THREADS", "3")
    monkeypatch.setattr(extreme_places, "_SPREAD_BYTES", 0)
    _have_way(monkeypatch, "threads")
    lengths: list[int] = []

    def noted(pool: Pool, length: int, work: Callable[[slice], None]) -> None:
        lengths.append(length)
        over(pool, length, work)

    over = Pool.over
    monkeypatch.setattr(Pool, "over", noted)
    x = np.random.default_rng(1).integers(0, 500, 60_000).astype("i4")
    for shape in ((300, 200), (3, 100, 200), (100, 3, 200), (100, 2, 3, 100), (2, 30_000)):
        for axis in range(len(shape)):
            for layout, keepdims in product(LAYOUTS, (False, True)):
                y = laid_out(x.reshape(shape), layout)
                assert_same(reduced(name, y, axis, keepdims), by_numpy(name, y, axis, keepdims), (shape, axis, layout))
        lengths.clear()
        reduced(name, x.reshape(shape), -1)
        assert lengths == [max(shape[:-1])]


@pytest.mark.parametrize(("dtype", "is_looped"), [("M8[s]", True), ("m8[ns]", True), ("i8", False), ("f4", False)])
def test_middling_rows_of_times_have_loops(dtype: str, is_looped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy looks for NaT at each step; of numbers it is done as soon."""
    asked: list[Array] = []
    monkeypatch.setattr(Folding, "__call__", lambda _, x: asked.append(x))
    x = np.random.default_rng(1).integers(0, 1 << 20, 40_000).astype(dtype)
    assert_same(reduced("max", x), by_numpy("max", x))
    assert len(asked) == is_looped


@pytest.mark.parametrize("axis", [0, 1])
def test_places_beyond_32_bits_are_numpys(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros((500, 100), np.float16)
    monkeypatch.setattr(extreme_places, "_MOST", x.shape[axis])
    with background.off():
        assert extreme_places.PlaceFolding(Reducer.ARGMAX, x.dtype, axis)(x) is not None
        monkeypatch.setattr(extreme_places, "_MOST", x.shape[axis] - 1)
        assert extreme_places.PlaceFolding(Reducer.ARGMAX, x.dtype, axis)(x) is None


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f8"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_all_in_arrays_that_lie_in_any_way(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of equals in C order, whatever order the elements lie in; in rows, columns and parts of rows."""
    _have_places_of_all(monkeypatch)
    generator = np.random.default_rng(1)
    with background.off():
        for way, least, most in product((("rows", "columns"), ("columns", "rows")), (1 << 9, 1 << 20), (2, 250)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(fold_routes, "_CREW_SHARED", least)
                taken = _have_way(patch, *way)
                for shape in ((60_000,), (300, 200), (3, 20_000), (20_000, 3), (30, 100, 20)):
                    x = generator.integers(0, most, shape).astype(dtype)
                    for layout in LAYOUTS:
                        lain = laid_out(x, layout)
                        assert_same(reduced(name, lain), by_numpy(name, lain), (shape, layout, way, least, most))
                assert way[0] in taken


# -- floats added -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_float_sums_do_not_depend_on_threads_and_are_close(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for shape, layout in (
        ((300_001, 3), "C"),
        ((700, 1301), "C"),
        ((700, 1301), "strided"),
        ((99, 101, 103), "Fortran"),
    ):
        x = laid_out(np.random.default_rng(1).standard_normal(shape).astype(dtype), layout)
        scale = np.abs(x).astype("f8")
        for axis in (None, *range(x.ndim)):
            found = np.asarray(reduced("sum", x, axis))
            for threads in ("1", "2", "3"):
                monkeypatch.setenv("GPUSORT_THREADS", threads)
                assert np.asarray(reduced("sum", x, axis)).tobytes() == found.tobytes()
            off = np.abs(found - x.astype("f8").sum(axis))
            rounding = float(np.finfo(dtype).eps) * np.abs(x.astype("f8").sum(axis)) if dtype == "f2" else 0
            eps = float(np.finfo("f4" if dtype == "f2" else dtype).eps)
            assert (off <= 4 * eps * scale.sum(axis) + rounding).all(), (shape, layout, axis)


def test_a_long_column_is_not_added_up_in_one_chain() -> None:
    """As NumPy does, whose sums of float32 do not grow beyond 2^24 by ones."""
    x = np.broadcast_to(np.float32(1), ((1 << 25) + 5, 2))
    np.testing.assert_allclose(reduced("sum", x, 0), len(x), rtol=1e-5)


def test_special_values() -> None:
    x = np.full((5, 300_001), -0.0, np.float32)
    assert not np.signbit(reduced("sum", x, 1)).any()
    for values in ([np.inf], [np.inf, -np.inf], [np.nan], [np.finfo("f4").max] * 2):
        x[2, -len(values) :] = values
        np.testing.assert_array_equal(reduced("sum", x, 1), by_numpy("sum", x, 1))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_a_sum_of_negative_zeros_is_zero(dtype: str) -> None:
    """As NumPy's, which starts from 0.0: of rows and columns, in parts and in one piece."""
    x = np.full((300, 2000), -0.0, dtype)
    for view in (x, x[:, ::3], x.T, x[::-1], x[:, :1900]):
        for axis in (None, 0, 1):
            assert not np.signbit(reduced("sum", view, axis)).any()


def test_nobody_is_warned() -> None:
    huge = np.full((4, 300_000), np.finfo("f4").max, np.float32)
    signalling = np.full(7, 0x7FA00000, np.uint32).view(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in NAMES:
            halves = np.full(9, 60_000, np.float16), np.full((1 << 15, 9), 60_000, np.float16)
            for x in (huge, huge[:, :9], huge.T, signalling, *halves):
                reduced(name, x)
                reduced(name, x, 0)


# -- what is refused, and what is left to NumPy -----------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_nothing(name: str) -> None:
    for shape, axis in (((0,), None), ((0, 3), 0), ((0, 3), 1), ((2, 0), None)):
        x, message, expected = np.empty(shape, np.float32), "", None
        try:
            expected = by_numpy(name, x, axis)
        except ValueError as error:
            message = str(error)
        if message:
            with pytest.raises(gpusort.InvalidArgumentError, match=f"^x: {message}$"):
                reduced(name, x, axis)
        else:
            assert_same(reduced(name, x, axis), expected)


def test_what_there_is_not() -> None:
    single = np.dtype(np.float32)
    for axis in (2, -3, (0, 0), (0, 2)):
        assert host_reduction(Reducer.SUM, single, 2, axis, False) is None
    assert host_reduction(Reducer.ARGMIN, single, 2, (0,), False) is None
    for dtype in ("c8", "O", "U1", "S3"):
        assert host_reduction(Reducer.MIN, np.dtype(dtype), 1, None, False) is None


def test_no_dimensions_and_no_axes() -> None:
    for name in NAMES:
        assert_same(reduced(name, np.array(3.0)), by_numpy(name, np.array(3.0)))
        assert_same(reduced(name, np.array(3.0), 0), by_numpy(name, np.array(3.0), 0))
    x = whole_numbers("i4", (200, 300))
    np.testing.assert_array_equal(reduced("sum", x, ()), x)


def test_read_only_arrays_and_a_field_of_one_record() -> None:
    """The axis of one record has a stride that is no multiple of an element's size."""
    x = whole_numbers("i4", (200, 300))
    x.flags.writeable = False
    field = np.zeros(1, [("numbers", "i4", (200, 300)), ("mark", "u1")])["numbers"]
    field[...] = x
    for name in NAMES:
        assert_same(reduced(name, x.T, 0), by_numpy(name, x.T, 0))
        for axis in range(3):
            assert_same(reduced(name, field, axis), by_numpy(name, field, axis), axis)


def test_neither_short_arrays_nor_the_first_long_one_load_a_compiler() -> None:
    code = """
import sys
import numpy as np
from gpusort.operations.reduce import Reducer
from gpusort.targets.cpu.host.reduce import host_reduction
from gpusort.targets.cpu.host.cumsum import host_cumsum
for name in ("sum", "min", "argmax", "any"):
    for dtype in (np.dtype("f4"), np.dtype("u1")):
        for count in (10, 1000, 15_000):
            host_reduction(Reducer(name), dtype, 2, 0, False)(np.ones((count, 1), dtype))
            host_cumsum(dtype, 2, 0)(np.ones((count // 4, 1), dtype))
host_reduction(Reducer.MAX, np.dtype("i4"), 2, 0, False)(np.ones((30_000, 8), "i4"))
ours = [name for name in sys.modules if "targets.cpu.compiler." in name or name.endswith("_text")]
print("llvmlite" in sys.modules, ours)
"""
    assert printed(code, GPUSORT_THREADS="2") == "False []"


@pytest.mark.parametrize("shape", [(7,), (1,), (4, 1, 6), (1, 5), (5, 1), (3, 4, 5, 2), (1, 1, 1), (2, 3, 1, 4)])
def test_a_packed_array_has_the_loops_of_any_other(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.int32)
    spread = np.repeat(x, 2, axis=-1)[..., ::2]  # all strides are twice as long
    for first, last in combinations_with_replacement(range(x.ndim + 1), 2):
        packed, other = (LoopNest.of(each, tuple(range(first, last))) for each in (x, spread))
        for loops, others in ((packed.kept, other.kept), (packed.reduced, other.reduced)):
            assert [(loop.length, 2 * loop.stride) for loop in loops] == [(loop.length, loop.stride) for loop in others]
        results: Array = np.arange(packed.rows)
        assert np.array_equal(packed.arranged(results), other.arranged(results))
