"""The reductions: every dtype on every target, along every axis, against NumPy's values, dtypes and errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.kernel.launch import Schedule
from gpusort.machine import Limits, TargetInfo
from gpusort.targets.registry import target as target_of
from gpusort.targets.simulator.target import Simulator
from gpusort.types.dtypes import key_for
from gpusort.types.elements import dtype_of, encode
from gpusort.types.monoids import Maximum, MinMax
from gpusort.types.scalars import F32, U32, Scalar
from tests.covering import few_cases
from tests.reference import DTYPES, SWAPPED, Array, sample, whole_numbers

Reduction: TypeAlias = Callable[..., Any]  # called here in ways that the checkers would refuse

NAMES = ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all")
ORDERINGS = ("min", "max", "argmin", "argmax", "any", "all")
ALL_DTYPES = (*DTYPES, ">i4", ">f8", ">M8[us]")
AXES = (None, 0, 1, -1)
SHAPE = (3, 40, 2)  # small enough for one size of kernel: lengths have a test of their own


def both(name: str) -> tuple[Reduction, Reduction]:
    return getattr(gpusort, name), getattr(np, name)


def assert_same(found: object, expected: object) -> None:
    """NumPy's answer: class, dtype, shape and values; any NaN for a NaN, any zero for a zero."""
    assert type(found) is type(expected)
    ours, numpys = cast(Array, found), cast(Array, expected)  # or scalars, which have the same attributes
    assert ours.dtype == numpys.dtype
    assert ours.shape == numpys.shape
    np.testing.assert_array_equal(ours, numpys)


def shape_for(target: str) -> tuple[int, ...]:
    return (2, 5, 2) if target == "python" else SHAPE


def can(target: str, name: str, dtype: str) -> bool:
    """Whether NumPy has an answer, and the target the arithmetic for it."""
    if name in ("sum", "prod") and np.dtype(dtype).newbyteorder("=") == np.float64:
        return gpusort.Capability.FLOAT64 in target_of(target).info.capabilities
    return has_sum(name, dtype)


def has_sum(name: str, dtype: str) -> bool:
    """Whether NumPy has an answer."""
    kind = np.dtype(dtype).kind
    return not ((name in ("sum", "prod") and kind == "M") or (name == "prod" and kind == "m"))


def has_answer(case: Mapping[str, object]) -> bool:
    """The same of a test's parameters, asking no device: WGSL has no 64-bit floats."""
    name, dtype = str(case["name"]), str(case["dtype"])
    return has_sum(name, dtype) and (
        case["target"] != "wgsl" or name not in ("sum", "prod") or dtype not in ("f8", ">f8")
    )


# -- values -----------------------------------------------------------------------------------------------


@few_cases(whole=["simulator", "cpu"], can=has_answer, pairs=False)
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_whole_numbers_reduce_exactly(target: str, name: str, dtype: str) -> None:
    """Every function and dtype meet; each along one axis, so that any two meet along all."""
    if not can(target, name, dtype):
        pytest.skip(f"no {name} of {dtype} on {target}")
    ours, numpys = both(name)
    x = whole_numbers(dtype, shape_for(target))
    if name == "prod":
        x = x[:, :9]
    axis = AXES[(NAMES.index(name) + ALL_DTYPES.index(dtype)) % len(AXES)]
    if axis is None and name == "prod" and x.dtype.kind == "f":
        axis = 2  # a long product of floats is rounded
    assert_same(ours(x, axis=axis, target=target), numpys(x, axis=axis))


@few_cases(whole=["cpu"], pairs=False)
@pytest.mark.parametrize("dtype", [*DTYPES, *SWAPPED])
@pytest.mark.parametrize("name", ORDERINGS)
def test_any_bits_are_ordered_as_numpy_orders_them(target: str, name: str, dtype: str) -> None:
    """Half the samples hold a NaN or NaT, which is the extreme and the first of which is its place."""
    ours, numpys = both(name)
    for seed in range(3):
        x = sample(dtype, (2, 4) if target == "python" else (5, 40), seed)
        if seed == 0 and x.dtype.kind == "f":
            x[np.isnan(x)] = 1
        assert_same(ours(x, target=target), numpys(x))
        assert_same(ours(x, axis=1, target=target), numpys(x, axis=1))


@pytest.mark.parametrize("dtype", ["u1", "i4", "u8", "i8"])
def test_integers_wrap_as_numpys_do(target: str, dtype: str) -> None:
    x = sample(dtype, 9)
    assert_same(gpusort.sum(x, target=target), np.sum(x))
    assert_same(gpusort.prod(x, target=target), np.prod(x))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_float_sums_agree_within_rounding(target: str, dtype: str) -> None:
    if not can(target, "sum", dtype):
        pytest.skip(f"{target} has no 64-bit floats")
    length = 30 if target == "python" else 20_000
    x = np.random.default_rng(3).standard_normal(length).astype(dtype)
    found = gpusort.sum(x, target=target)
    exact = math.fsum(x.tolist())
    scale = math.fsum(abs(x).tolist())
    assert found.dtype == dtype
    assert abs(float(found) - exact) <= 16 * np.finfo(dtype).eps * scale
    assert found == gpusort.sum(x, target=target)  # reproducible


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("special", [[np.inf, 1], [np.inf, -np.inf], [np.nan, 1], [-0.0, -0.0]])
def test_special_floats_add_as_numpys_do(target: str, dtype: str, special: list[float]) -> None:
    if not can(target, "sum", dtype):
        pytest.skip(f"{target} has no 64-bit floats")
    x = np.array(special, dtype)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(gpusort.sum(x, target=target), np.sum(x))
        np.testing.assert_array_equal(gpusort.prod(x, target=target), np.prod(x))


def test_halves_are_rounded_to_the_nearest_and_ties_to_even(target: str) -> None:
    """Of normal numbers, of those below them, and where they end."""
    terms = [[2048, term] for term in range(8)] + [[65504, 15], [65504, 16], [-65504, -16]]
    factors = [[2**-12, factor * 2**-13] for factor in range(16)]
    with np.errstate(over="ignore"):
        for name, given in (("sum", terms), ("prod", factors)):
            call, numpys = both(name)
            x = np.array(given, np.float16)
            assert_same(call(x, axis=1, target=target), numpys(x, axis=1))


def test_a_sum_of_durations_is_nat_where_one_is() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], "m8[s]")
    assert_same(gpusort.sum(x), np.sum(x))
    x[1, 2] = "NaT"
    assert_same(gpusort.sum(x, axis=1), np.sum(x, axis=1))
    assert np.isnat(gpusort.sum(x))


@few_cases(can=lambda case: case["target"] != "python" or cast(int, case["length"]) <= 64, pairs=False)
@pytest.mark.parametrize("length", [1, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 70_001])
@pytest.mark.parametrize("name", ["sum", "min", "argmax"])
def test_every_length_reduces(target: str, name: str, length: int) -> None:
    if target == "python" and length > 64:
        pytest.skip(f"{length} elements take plain Python long")
    ours, numpys = both(name)
    x = np.random.default_rng(length).integers(0, 1 << 32, length, np.uint32)
    assert_same(ours(x, target=target), numpys(x))


def test_many_short_rows_reduce(target: str) -> None:
    rows = 20 if target == "python" else 5000
    x = sample("i4", (rows, 3))
    assert_same(gpusort.max(x, axis=1, target=target), np.max(x, axis=1))


# -- axes, layouts, kinds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_keepdims_is_numpys(name: str, axis: int | None) -> None:
    ours, numpys = both(name)
    x = whole_numbers("i4", (4, 5))
    assert_same(ours(x, axis=axis, keepdims=True), numpys(x, axis=axis, keepdims=True))


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("arg")])
@pytest.mark.parametrize("axis", [(0, 2), (2, 0), (-1,), (0, 1, 2), ()])
def test_several_axes_reduce_at_once(name: str, axis: tuple[int, ...]) -> None:
    ours, numpys = both(name)
    x = whole_numbers("i4", (2, 3, 4))
    assert_same(ours(x, axis=axis), numpys(x, axis=axis))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["i4", ">f4"])
def test_every_layout_reduces(name: str, dtype: str) -> None:
    ours, numpys = both(name)
    base = whole_numbers(dtype, (6, 8))
    for x in (base.T, np.asfortranarray(base), base[::2, 1::3], base[::-1, ::-1], np.broadcast_to(base[0], (3, 8))):
        assert_same(ours(x), numpys(x))
        assert_same(ours(x, axis=0), numpys(x, axis=0))


@pytest.mark.parametrize("name", NAMES)
def test_scalars_and_lists_reduce(name: str) -> None:
    ours, numpys = both(name)
    for x in (np.array(3), np.float32(2), 5, [[1, 2], [3, 0]], (1.5, 2.5)):
        assert_same(ours(x), numpys(x))
    assert_same(ours(np.array(3), axis=0), numpys(np.array(3), axis=0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["cpu", "simulator"])
def test_a_scalar_has_no_dimensions_to_keep(name: str, target: str) -> None:
    ours, numpys = both(name)
    x = np.array(3)
    assert_same(ours(x, keepdims=True, target=target), numpys(x, keepdims=True))
    of_two = x[np.newaxis, np.newaxis]  # whose dimensions are kept
    assert_same(ours(of_two, keepdims=True, target=target), numpys(of_two, keepdims=True))


# -- nothing to reduce ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["f4", "i2", "?"])
@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 3), 0), ((0, 3), 1), ((3, 0), 0), ((2, 0, 3), None)])
def test_empty_arrays_do_as_numpys_do(name: str, dtype: str, shape: tuple[int, ...], axis: int | None) -> None:
    ours, numpys = both(name)
    x = np.empty(shape, dtype)
    message, expected = "", None
    try:
        expected = numpys(x, axis=axis)
    except ValueError as error:
        message = str(error)
    if message:
        with pytest.raises(gpusort.InvalidArgumentError, match=f"^x: {message}$"):
            ours(x, axis=axis)
    else:
        assert_same(ours(x, axis=axis), expected)


# -- monoids ----------------------------------------------------------------------------------------------


@attrs.frozen
class Moments:
    """How many, their sum, and the sum of their squares."""

    count: U32
    total: F32
    squares: F32


@attrs.frozen
class Spread:
    """A monoid as a user would write it."""

    element: type[F32] = F32
    state: type[Moments] = Moments

    def identity(self) -> Moments:
        return Moments(U32(0), F32(0.0), F32(0.0))

    def lift(self, element: F32, index: U32) -> Moments:
        return Moments(U32(1), element, element * element)

    def combine(self, a: Moments, b: Moments) -> Moments:
        return Moments(a.count + b.count, a.total + b.total, a.squares + b.squares)


@pytest.mark.parametrize("length", [0, 1, 10, 3000])
def test_a_users_monoid_reduces_to_its_struct(target: str, length: int) -> None:
    if target == "python":
        length = min(length, 10)
    x = whole_numbers("f4", length)
    found = gpusort.reduce(x, Spread(), target=target)
    assert isinstance(found, np.void)
    assert found.dtype == dtype_of(Moments)
    assert found.item() == (length, float(x.sum()), float((x * x).sum()))


def test_a_users_monoid_reduces_along_an_axis() -> None:
    x = whole_numbers("f4", (3, 20))
    found = cast(Array, gpusort.reduce(x, Spread(), axis=0, keepdims=True))
    assert found.shape == (1, 20)
    np.testing.assert_array_equal(found["squares"][0], (x * x).sum(axis=0))


def test_both_extremes_in_one_reading(target: str) -> None:
    x = sample("i4", 20)
    key = key_for("i4")
    found = gpusort.reduce(x, MinMax(key), target=target)
    assert isinstance(found, np.void)
    ends = [value_of(key.from_word(key.word(int(found[field])))) for field in ("low", "high")]
    assert np.array(ends, "u4").view("i4").tolist() == [x.min(), x.max()]


def test_a_policy_changes_the_way_and_not_the_result() -> None:
    x = whole_numbers("i4", 5000)
    for policy in (gpusort.ReducePolicy(4, 3, 7), gpusort.ReducePolicy(64, 1, 1), gpusort.ReducePolicy(subgroups=True)):
        found = gpusort.reduce(x, Maximum(key_for("i4")), target="simulator", policy=policy)
        assert found == gpusort.reduce(x, Maximum(key_for("i4")))


def value_of(scalar: Scalar) -> float:
    encoded: float = encode(scalar)
    return encoded


# -- limits and mistakes ----------------------------------------------------------------------------------


@attrs.define
class Small:
    """The simulator with small limits, and without 64-bit floats."""

    limits: Limits
    inner: Simulator = attrs.field(factory=Simulator)
    buffers: list[int] = attrs.field(factory=list[int])

    @property
    def info(self) -> TargetInfo:
        return attrs.evolve(self.inner.info, name="small", limits=self.limits, capabilities=frozenset())

    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None:
        self.buffers.append(schedule.buffers[0].count)
        self.inner.run(schedule, arrays)


def test_rows_are_shared_out_over_runs() -> None:
    own = Small(attrs.evolve(Simulator().info.limits, storage_bytes=400))
    x = sample("i4", (7, 30))
    assert_same(gpusort.argmax(x, axis=1, target=own), np.argmax(x, axis=1))
    assert own.buffers == [90, 90, 30]


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_float64_arithmetic_is_refused_where_there_is_none(name: str) -> None:
    own = Small(Simulator().info.limits)
    ours, numpys = both(name)
    x = whole_numbers("f8", 5)
    with pytest.raises(gpusort.CapabilityError, match=r"^x: (Sum|Product) of float64 needs 64-bit float.*'small'"):
        ours(x, target=own)
    assert own.buffers == []
    assert_same(gpusort.max(x, target=own), np.max(x))
    assert_same(ours(x.astype("f4"), target=own), numpys(x.astype("f4")))


MISTAKES: dict[str, tuple[str, object, dict[str, object], type[Exception], str]] = {
    "complex": ("sum", np.ones(3, "c8"), {}, gpusort.UnsupportedTypeError, "x: cannot add .* complex64; supported"),
    "complex order": ("min", np.ones(3, "c8"), {}, gpusort.UnsupportedTypeError, "x: cannot order .* complex64"),
    "dates": ("sum", np.zeros(3, "M8[s]"), {}, gpusort.UnsupportedTypeError, "x: cannot add or multiply .* datetime64"),
    "durations": ("prod", np.zeros(3, "m8[s]"), {}, gpusort.UnsupportedTypeError, "x: prod takes no .* timedelta64"),
    "no durations": ("prod", np.zeros(0, "m8[s]"), {}, gpusort.UnsupportedTypeError, "x: prod takes no .* timedelta64"),
    "strings": ("any", np.array(["a"]), {}, gpusort.UnsupportedTypeError, "x: cannot tell .* dtype <U1 are true"),
    "objects": ("all", np.array([None]), {}, gpusort.UnsupportedTypeError, "x: cannot tell .* dtype object are true"),
    "ragged": ("sum", [[1], [1, 2]], {}, gpusort.InvalidArgumentError, "x: expected a NumPy or cupy array"),
    "axis": ("sum", np.ones(3), {"axis": 1}, np.exceptions.AxisError, "axis: axis 1 is out of bounds"),
    "axes": ("sum", np.ones((3, 2)), {"axis": (0, 5)}, np.exceptions.AxisError, "axis: axis 5 is out of bounds"),
    "twice": ("sum", np.ones((3, 2)), {"axis": (0, 0)}, gpusort.InvalidArgumentError, "axis: expected each axis once"),
    "axis kind": ("sum", np.ones(3), {"axis": 1.0}, gpusort.UnsupportedTypeError, "axis: expected an int, a tuple of"),
    "axes kind": ("sum", np.ones(3), {"axis": (1.0,)}, gpusort.UnsupportedTypeError, "axis: expected an int, a tuple"),
    "argmin axes": ("argmin", np.ones(3), {"axis": (0,)}, gpusort.UnsupportedTypeError, "axis: expected an int"),
    "nothing": ("max", np.ones(0), {}, gpusort.InvalidArgumentError, "x: zero-size array to reduction operation max"),
    "places of nothing": ("argmin", np.ones((2, 0)), {"axis": 1}, gpusort.InvalidArgumentError, "x: attempt to get"),
    "target": ("max", np.ones(3), {"target": "tpu"}, gpusort.InvalidArgumentError, "target: expected 'auto'"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    name, x, options, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=f"^{message}"):
        both(name)[0](x, **options)


@pytest.mark.parametrize("dtype", ["f8", "u4", "i4"])
def test_a_monoid_refuses_elements_that_are_not_its_own(dtype: str) -> None:
    with pytest.raises(gpusort.UnsupportedTypeError, match=r"^x: expected dtype float32, as Spread takes, found"):
        gpusort.reduce(np.ones(3, dtype), Spread())
