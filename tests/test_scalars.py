"""The scalars under CPython do what the table of operations says of NumPy arrays, bit for bit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusort.types import ops
from gpusort.types.intrinsics import (
    add_nowrap,
    bitcast,
    count_ones,
    exp,
    leading_zeros,
    log,
    maximum,
    minimum,
    select,
    sqrt,
    trailing_zeros,
)
from gpusort.types.layout import Type
from gpusort.types.ops import Op
from gpusort.types.scalars import F32, F64, I32, I64, U8, U16, U32, U64, Bool, Scalar
from tests.covering import examples

Number = int | float | bool
# What an operator is applied to here, right or wrong, is known at run time only.
Binary = Callable[[Any, Any], Any]
Unary = Callable[[Any], Any]

# typeshed leaves the operands of some of these unknown
_python: Any = operator
CLASSES: dict[Type, type[Scalar]] = {cls.type: cls for cls in (Bool, U8, U16, U32, U64, I32, I64, F32, F64)}
BINARY: dict[Op, Binary] = {
    ops.ADD: _python.add, ops.SUB: _python.sub, ops.MUL: _python.mul, ops.DIV: _python.truediv,
    ops.FLOORDIV: _python.floordiv, ops.MOD: _python.mod, ops.AND: _python.and_, ops.OR: _python.or_,
    ops.XOR: _python.xor, ops.EQ: _python.eq, ops.NE: _python.ne, ops.LT: _python.lt, ops.LE: _python.le,
    ops.GT: _python.gt, ops.GE: _python.ge, ops.MIN: minimum, ops.MAX: maximum,
    ops.ADD_NOWRAP: add_nowrap,
}  # fmt: skip
SHIFTS: dict[Op, Binary] = {ops.SHL: _python.lshift, ops.SHR: _python.rshift}
UNARY: dict[Op, Unary] = {
    ops.NEG: _python.neg, ops.INVERT: _python.invert, ops.COUNT_ONES: count_ones, ops.SQRT: sqrt,
    ops.LEADING_ZEROS: leading_zeros, ops.TRAILING_ZEROS: trailing_zeros,
}  # fmt: skip
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1e-45,
    3.4e38,
    -3.4e38,
    1e300,
    16777217.0,
    float("inf"),
    float("-inf"),
    float("nan"),
]


def edges(of: Type) -> list[Number]:
    """The values at which arithmetic goes wrong."""
    if of is Type.BOOL:
        return [False, True]
    if of.is_float:
        return [make(of, value).item() for value in FLOATS]
    low, high = of.bounds
    middle = [low + (high - low) // 2, low + (high - low) // 2 + 1]
    # The last two lie just above the middle between two F32s, and a double cannot hold them.
    near = [0, 1, 2, 3, 31, 32, 33, 63, 64, 65535, (1 << 60) + (1 << 36) + 1, (1 << 62) + (1 << 38) + 1]
    return sorted({low, low + 1, high - 1, high, *middle, *(value for value in near if low <= value <= high)})


def any_of(of: Type) -> st.SearchStrategy[Number]:
    if of is Type.BOOL:
        return st.booleans()
    if of.is_float:
        return st.floats(width=32 if of is Type.F32 else 64) | st.sampled_from(edges(of))
    return st.integers(*of.bounds) | st.sampled_from(edges(of))


def make(of: Type, value: Number) -> Scalar:
    cls: Any = CLASSES[of]
    made: Scalar = cls(value)
    return made


def array(of: Type, value: Number) -> npt.NDArray[np.generic]:
    return np.asarray(value, of.dtype)


def require_same(found: Scalar, expected: npt.NDArray[np.generic], of: Type) -> None:
    """Of one type, and equal in every bit; which of the NaNs is not asked."""
    assert found.type is of
    assert expected.dtype == of.dtype
    bits = array(of, found.item())
    assert bits.tobytes() == expected.tobytes() or (of.is_float and bool(np.isnan(bits)) and bool(np.isnan(expected)))


def check_binary(op: Op, of: Type, a: Number, b: Number) -> None:
    result = op.rule([of, of])
    assert result is not None
    if op is ops.ADD_NOWRAP and a + b >= 1 << 32:
        with pytest.raises(OverflowError, match="does not fit 32 bits"):
            BINARY[op](make(of, a), make(of, b))
        return
    if op in (ops.FLOORDIV, ops.MOD) and b == 0:
        with pytest.raises(ZeroDivisionError):
            BINARY[op](make(of, a), make(of, b))
        with pytest.raises(ZeroDivisionError, match=f"{op} by zero"):
            ops.apply(op, array(of, a), array(of, b))
        return
    require_same(BINARY[op](make(of, a), make(of, b)), ops.apply(op, array(of, a), array(of, b)), result)


BINARY_CASES = [(op, of) for op in BINARY for of in CLASSES if op.rule([of, of]) is not None]
BINARY_IDS = [f"{op}-{of}" for op, of in BINARY_CASES]


@pytest.mark.parametrize(("op", "of"), BINARY_CASES, ids=BINARY_IDS)
def test_binary_at_the_edges(op: Op, of: Type) -> None:
    for a in edges(of):
        for b in edges(of):
            check_binary(op, of, a, b)


@pytest.mark.parametrize(("op", "of"), BINARY_CASES, ids=BINARY_IDS)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_binary_anywhere(op: Op, of: Type, data: st.DataObject) -> None:
    check_binary(op, of, data.draw(any_of(of)), data.draw(any_of(of)))


@pytest.mark.parametrize("op", SHIFTS, ids=str)
@pytest.mark.parametrize("of", [of for of in CLASSES if of.is_integer], ids=str)
def test_shifts_count_modulo_the_width(op: Op, of: Type) -> None:
    for value in edges(of):
        for amount in (0, 1, 31, 32, 33, 63, 64, 65, (1 << 32) - 1):
            expected = ops.apply(op, array(of, value), array(Type.U32, amount))
            require_same(SHIFTS[op](make(of, value), U32(amount)), expected, of)
            require_same(SHIFTS[op](make(of, value), amount), expected, of)


UNARY_CASES = [(op, of) for op in UNARY for of in CLASSES if op.rule([of]) is not None]


@pytest.mark.parametrize(("op", "of"), UNARY_CASES, ids=[f"{op}-{of}" for op, of in UNARY_CASES])
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_unary(op: Op, of: Type, data: st.DataObject) -> None:
    result = op.rule([of])
    assert result is not None
    for value in (*edges(of), data.draw(any_of(of))):
        require_same(UNARY[op](make(of, value)), ops.apply(op, array(of, value)), result)


PAIRS = [(source, target) for source in CLASSES for target in CLASSES if source is not target]
PAIR_IDS = [f"{source}-{target}" for source, target in PAIRS]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=PAIR_IDS)
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_casts(source: Type, target: Type, data: st.DataObject) -> None:
    convert: Unary = CLASSES[target]
    for value in (*edges(source), data.draw(any_of(source))):
        if ops.can_cast(source, target):
            require_same(convert(make(source, value)), ops.apply(ops.CAST, array(source, value), to=target), target)
        else:
            with pytest.raises(TypeError):
                convert(make(source, value))


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=PAIR_IDS)
def test_bitcasts(source: Type, target: Type) -> None:
    for value in edges(source):
        if ops.can_bitcast(source, target):
            back = bitcast(CLASSES[source], bitcast(CLASSES[target], make(source, value)))
            require_same(back, array(source, value), source)
        else:
            with pytest.raises(TypeError, match="has not the size"):
                bitcast(CLASSES[target], make(source, value))


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=PAIR_IDS)
def test_two_types_do_not_mix(left: Type, right: Type) -> None:
    for op, apply in BINARY.items():
        assert op.rule([left, right]) is None
        for value in edges(left)[:2]:
            with pytest.raises(TypeError):
                apply(make(left, value), make(right, True))


@pytest.mark.parametrize("of", [of for of in CLASSES if of.is_unsigned], ids=str)
def test_a_lone_zero_divisor_in_an_array_counts(of: Type) -> None:
    with pytest.raises(ZeroDivisionError):
        ops.apply(ops.MOD, np.array([1, 2], of.dtype), np.array([1, 0], of.dtype))


@pytest.mark.parametrize("of", [of for of in CLASSES if of is not Type.BOOL and not of.is_float], ids=str)
def test_a_literal_must_fit(of: Type) -> None:
    low, high = of.bounds
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"{value} does not fit {of}"):
            make(of, value)
    with pytest.raises(ValueError, match=f"an int of 15001 bits does not fit {of}"):
        make(of, 1 << 15000)
    no_integers: tuple[Any, ...] = (1.0, "1", None, Fraction(1, 3), np.array([1, 2]), np.datetime64("2020"))
    for found in no_integers:
        with pytest.raises(TypeError, match=f"a {of} is made of an integer, not of"):
            make(of, found)
    assert int(cast(Any, make(of, cast(Any, np.array(1))))) == 1


@pytest.mark.parametrize("of", [Type.F32, Type.F64], ids=str)
def test_a_float_is_made_of_a_number(of: Type) -> None:
    no_numbers: tuple[Any, ...] = ("1.5", None, 1j, [1.0], np.datetime64("2020"))
    for value in no_numbers:
        with pytest.raises(TypeError, match=f"a {of} is made of a number, not of"):
            make(of, value)
    assert make(of, cast(Any, np.float32(1.5))) == make(of, 1.5)


def test_intrinsics_say_which_operand_is_no_scalar_of_theirs() -> None:
    number = 4.0
    for name, function, expected in (
        ("sqrt", sqrt, "a float"), ("exp", exp, "a float"), ("log", log, "a float"),
        ("count_ones", count_ones, "an unsigned integer"), ("bitcast", partial(bitcast, U32), "a scalar"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=f"{name}: expected {expected}, found 4.0"):
            cast(Unary, function)(number)


@pytest.mark.parametrize("of", [of for of in CLASSES if of.is_number], ids=str)
def test_literals_stand_on_both_sides(of: Type) -> None:
    x: Any = make(of, 5)
    for found, expected in ((x + 2, 7), (2 + x, 7), (x - 2, 3), (7 - x, 2), (x * 2, 10), (2 * x, 10)):
        require_same(found, array(of, expected), of)
    for found, holds in (
        (x < 6, True),
        (x > 6, False),
        (x == 5, True),
        (x != 5, False),
        (x >= 6, False),
        (x >= 5, True),
    ):
        require_same(found, array(Type.BOOL, holds), Type.BOOL)


@pytest.mark.parametrize("of", [of for of in CLASSES if of.is_integer], ids=str)
def test_an_integer_of_numpys_counts_as_pythons(of: Type) -> None:
    """Its own width is not that of what is computed."""
    x: Any = make(of, cast(Any, np.uint8(200)))
    require_same(x + 100, array(of, 300), of)
    require_same(x << 2, array(of, 800), of)


@pytest.mark.parametrize("of", [of for of in CLASSES if of is not Type.BOOL], ids=str)
def test_a_number_is_neither_true_nor_false(of: Type) -> None:
    with pytest.raises(TypeError, match="compare it"):
        bool(make(of, 1))
    cls: Any = Bool
    with pytest.raises(TypeError, match="made of a Bool"):
        cls(make(of, 1))


def test_select_takes_either() -> None:
    require_same(select(Bool(True), U32(1), U32(2)), array(Type.U32, 1), Type.U32)
    require_same(select(Bool(False), U32(1), U32(2)), array(Type.U32, 2), Type.U32)


def test_a_literal_beside_a_scalar_becomes_one() -> None:
    """As the reader has it, whichever of both is the result; what it refuses is refused."""
    lesser, greater, either = (cast(Any, function) for function in (minimum, maximum, select))
    for found, expected in (
        (lesser(U32(5), 3), 3), (lesser(3, U32(5)), 3), (greater(U32(5), 7), 7), (greater(7, U32(5)), 7),
        (either(Bool(False), U32(5), 4), 4), (either(Bool(True), 4, U32(5)), 4),
    ):  # fmt: skip
        require_same(found, array(Type.U32, expected), Type.U32)
    bits, above, below = (cast(Any, function) for function in (count_ones, leading_zeros, trailing_zeros))
    for call, operands in (
        (lesser, (U32(5), U64(3))), (lesser, (U32(5), 3.0)), (lesser, (U32(5), True)), (greater, (F32(1.0), F32(2.0))),
        (lesser, (F32(1.0), 2.0)), (either, (Bool(True), U32(5), U64(4))), (bits, (I32(3),)), (above, (I64(3),)),
        (below, (3,)),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call(*operands)
    with pytest.raises(ValueError, match="-1 does not fit U32"):
        lesser(U32(5), -1)


def test_equal_scalars_are_one_key() -> None:
    assert {U32(1): "a"}[U32(1)] == "a"
    assert hash(U32(1)) != hash(U64(1))
    assert repr(I64(-3)) == "I64(-3)"


@pytest.mark.parametrize("of", [U32, U64, I32, I64, F32, F64])
def test_a_scalar_knows_numpys_of_its_type(of: type[U32 | U64 | I32 | I64 | F32 | F64]) -> None:
    assert of.numpys is of.type.dtype.type
