"""Reductions of short elements by words of them, on every target, against NumPy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import gpusort
from gpusort import webgpu
from gpusort.algos.choice import choose_axis_reduction
from gpusort.algos.layout import Layout
from gpusort.algos.reduce_axis import reduce_axis
from gpusort.algos.reduce_pairs import READS_WORDS, Reduced
from gpusort.operations.reduce import Reduce, Reducer
from gpusort.targets.registry import target as target_of
from gpusort.types.dtypes import key_for, number_for
from gpusort.types.elements import dtype_of
from gpusort.types.finishes import AsItIs, finish_of, float_to_half
from gpusort.types.intrinsics import bitcast
from gpusort.types.monoids import Maximum, Sum
from gpusort.types.numbers import HalfNumber
from gpusort.types.params import ReducePolicy
from gpusort.types.scalars import F32, U8, U16, U32
from gpusort.types.specs import Memory, Spec
from tests.covering import few_cases
from tests.reference import Array

WORD = np.dtype("u4")
# The shape, and which axis: long and short rows and columns, some by words and some by pairs alone.
SHAPES = (
    ((4096,), 0), ((30, 64), 1), ((64, 30), 0), ((64, 32), 0), ((5, 64, 8), 1), ((16, 6), 1), ((3, 2, 4), 1),
)  # fmt: skip


def small(dtype: str, shape: tuple[int, ...]) -> Array:
    """Of few values, so that sums of halves are exact, and products are not zero alone."""
    made: Array = np.random.default_rng(3).integers(0, 2 if dtype == "?" else 3, shape).astype(dtype)
    return made


def layout_of(shape: tuple[int, ...], axis: int) -> Layout:
    outer, inner = (int(np.prod(part)) for part in (shape[:axis], shape[axis + 1 :]))
    length = shape[axis]
    return Layout(outer, length, inner, length * inner, inner, 1)


@few_cases()
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2"])
@pytest.mark.parametrize("reducer", [Reducer.SUM, Reducer.MAX, Reducer.ANY], ids=str)
def test_words_are_reduced_as_their_elements(target: str, dtype: str, reducer: Reducer) -> None:
    widened = 0
    for shape, axis in SHAPES[1:4] if target == "python" else SHAPES:
        x = small(dtype, shape)
        operation = Reduce(axis, reducer=reducer)
        given = Spec(shape, x.dtype)
        of = Reduced(operation.monoid(given), operation.finish(given), layout_of(shape, axis)).by_words()
        policy = choose_axis_reduction(of.monoid.state, of.layout, target_of(target).info)
        schedule = reduce_axis(of.monoid, of.layout, policy, of.finish)
        results = np.zeros(of.layout.results, dtype_of(of.finish.result))
        target_of(target).run(schedule, {"data": x.reshape(-1).view(dtype_of(of.monoid.element)), "results": results})
        expected = getattr(np, reducer.value)(x, axis=axis)
        np.testing.assert_array_equal(results.view(expected.dtype), expected.reshape(-1))
        widened += dtype_of(of.monoid.element) == WORD
    assert widened >= 2


def reduced(dtype: str, layout: Layout) -> Reduced:
    monoid = Sum(number_for(dtype))
    return Reduced(monoid, finish_of(monoid), layout)


@pytest.mark.parametrize(
    ("layout", "itemsize"),
    [
        (Layout.rows(1, 1000), 4),
        (Layout.rows(1, 1002), 2),
        (Layout.rows(3, 1001), 1),
        (Layout.rows(100, 8), 1),  # no more than two loads
        (Layout(3, 1000, 1, 1002, 1, 1), 2),  # a row begins at an odd pair
        (Layout(1, 50, 1001, 0, 1001, 1), 1),
        (Layout(1, 50, 8, 0, 9, 1), 1),  # a column's elements are at odd places
        (Layout(1, 50, 1000, 0, 2000, 2), 1),  # neighbours are not there
        (Layout(1, 2, 1000, 0, 1000, 1), 2),  # results of four sums of 64 bits would be apart
        (Layout(1, 0, 0, 0, 0, 0), 1),
    ],
)
def test_which_layouts_are_of_words(layout: Layout, itemsize: int) -> None:
    of = reduced("u1", layout).by_words()
    assert dtype_of(of.monoid.element).itemsize == itemsize
    assert of.layout.size * itemsize == layout.size


def test_wider_elements_are_left() -> None:
    for dtype in ("u4", "f4", "f8", "i8"):
        one = reduced(dtype, Layout.rows(4, 1000))
        assert one.by_words() is one


@pytest.mark.parametrize("on_words", [False, True])
def test_a_call_goes_by_words_where_memory_begins_with_one(on_words: bool) -> None:
    given = Spec((64, 4096), np.dtype("u1"), Memory.WEBGPU, origin=0 if on_words else 2)
    info = target_of("wgsl").info
    assert info.name in READS_WORDS
    for reducer, widens in ((Reducer.SUM, True), (Reducer.ARGMAX, False)):
        schedule = Reduce(1, reducer=reducer).as_it_lies(given, info)
        assert schedule is not None
        assert schedule.buffers[0].element is (U32 if on_words and widens else U8)


@pytest.mark.parametrize("function", [gpusort.sum, gpusort.max, gpusort.any])
def test_arrays_that_begin_within_a_word(function: Callable[..., Any]) -> None:
    host = small("u1", (4100,))
    buffer = webgpu.asarray(host, device=asyncio.run(webgpu.open_device())).buffer
    numpys: Callable[..., Any] = getattr(np, function.__name__)
    for first in range(6):
        x = webgpu.array(buffer, np.uint8, 4094, offset=first)
        assert int(function(x).to_numpy()) == int(numpys(host[first : first + 4094]))


@attrs.frozen
class HalfOfBits:
    """The float whose bits these are as a float16: what adds floats may lose a NaN's sign, and what is subnormal."""

    state: type[U32] = U32
    result: type[U16] = U16

    def finish(self, state: U32) -> U16:
        return float_to_half(bitcast(F32, state))


def test_floats_become_halves(target: str) -> None:
    exponents = np.repeat(np.arange(256, dtype=np.uint32), 64) << 23
    bits = exponents | np.random.default_rng(5).integers(0, 1 << 23, exponents.size, np.uint32)
    bits[::4] &= 0xFFFFF000  # ties, and whole halves
    bits = np.concatenate([bits, bits | 0x80000000])[:: 97 if target == "python" else 1].copy()
    schedule = reduce_axis(Maximum(key_for("u4")), Layout.rows(bits.size, 1), ReducePolicy(8, 1, 64), HalfOfBits())
    results = np.zeros(bits.size, np.uint16)
    target_of(target).run(schedule, {"data": bits, "results": results})
    floats = bits.view(np.float32)
    with np.errstate(over="ignore"):
        expected = floats.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(results, np.where(np.isnan(floats), expected & 0x8000 | 0x7E00, expected))


def test_halves_become_floats(target: str) -> None:
    halves = np.arange(0, 1 << 16, 97 if target == "python" else 1, dtype=np.uint16)
    monoid = Sum(HalfNumber())
    schedule = reduce_axis(monoid, Layout.rows(halves.size, 1), ReducePolicy(8, 1, 64), AsItIs(F32))
    results = np.zeros(halves.size, np.float32)
    target_of(target).run(schedule, {"data": halves, "results": results})
    expected = halves.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(results, expected)
