"""Kernels of many expressions, made at random or by a table, and what each target makes of them.

All that goes into an expression comes from one buffer of 64-bit words (so nothing is known of it when the kernel is
compiled), from the launch's parameters, or from literals; every result is stored as the bits it has, in one buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, cast

import attrs
import numpy as np
import numpy.typing as npt

from gpusort.kernel.launch import Buffer, Grid, Launch, Role, Schedule
from gpusort.targets import registry
from gpusort.types import ops, scalars
from gpusort.types.layout import Type
from tests import loading

Words = npt.NDArray[np.uint64]
INTEGERS = (Type.U32, Type.U64, Type.I32, Type.I64)
FLOATS = (Type.F32, Type.F64)
EVERYWHERE = (Type.BOOL, *INTEGERS, Type.F32)  # what every target computes with; F64 is not WGSL's
ALL = (*EVERYWHERE, Type.F64)
UNARY = (
    ops.NEG, ops.INVERT, ops.COUNT_ONES, ops.LEADING_ZEROS, ops.TRAILING_ZEROS, ops.SQRT, ops.EXP, ops.LOG,
)  # fmt: skip

_HEAD = """
import attrs

from gpusort.kernel.kernel import kernel
from gpusort.types.intrinsics import (
    bitcast, count_ones, leading_zeros, maximum, minimum, select, sqrt, trailing_zeros,
)
from gpusort.types.invocation import Invocation
from gpusort.types.memory import Storage
from gpusort.types.scalars import F32, F64, I32, I64, U8, U16, U32, U64, Bool

@attrs.frozen
class Params:
    p_u32: U32
    p_u64: U64
    p_i32: I32
    p_i64: I64
    p_f32: F32
    p_f64: F64
    p_bool: Bool

def bits_f32(x):
    return bitcast(U32, x) if x == x else U32(0x7FC00000)

def bits_f64(x):
    return bitcast(U64, x) if x == x else U64(0x7FF8000000000000)

"""
_SIGNATURE = "def expressions(cx: Invocation, words: Storage[U64], params: Params, out: Storage[U64]) -> None:"
_LOADED = {
    Type.BOOL: "(words[{0}] & 1) != 0", Type.U32: "U32(words[{0}])", Type.U64: "words[{0}] + 0",
    Type.I32: "bitcast(I32, U32(words[{0}]))", Type.I64: "bitcast(I64, words[{0}])",
    Type.F32: "bitcast(F32, U32(words[{0}]))", Type.F64: "bitcast(F64, words[{0}])",
}  # fmt: skip
_BITS = {
    Type.BOOL: "U64({0})", Type.U32: "U64({0})", Type.U64: "{0}", Type.I32: "U64(bitcast(U32, {0}))",
    Type.I64: "bitcast(U64, {0})", Type.F32: "U64(bits_f32({0}))", Type.F64: "bits_f64({0})",
}  # fmt: skip
_numbers = count()


@attrs.frozen
class Written:
    """An expression as it stands in the kernel, and the type of its value."""

    text: str
    type: Type


def edges(of: Type) -> list[int | float | bool]:
    """The values at which arithmetic goes wrong."""
    if of is Type.BOOL:
        return [False, True]
    if of is Type.F32:
        return [
            0.0,
            -0.0,
            1.0,
            -1.5,
            0.1,
            2.0**-149,
            3.0e38,
            -3.4e38,
            16777217.0,
            float("inf"),
            float("-inf"),
            float("nan"),
        ]
    if of is Type.F64:
        return [0.0, -0.0, 1.0, -1.5, 0.1, 5e-324, 1.7e308, 2.0**53 + 2, float("inf"), float("-inf"), float("nan")]
    low, high = of.bounds
    near = (0, 1, 2, 3, 7, 31, 32, 63, 65535, (1 << 24) + 1, (1 << 62) + (1 << 38) + 1)
    signed = (low, low + 1, -1, -2) if low else ()
    return [*signed, *(value for value in near if value <= high), high - 1, high, high // 2 + 1]


def literal(value: float, of: Type) -> str:
    """A scalar of the kernel language, written out."""
    if of.is_float and value != value:
        return f'{of}(float("nan"))'
    if of.is_float and abs(value) == float("inf"):
        return f'{of}(float("{value}"))'
    return f"{of}({value!r})"


def words_of(values: Sequence[float], of: Type) -> Words:
    """Values as the words they are loaded from."""
    with np.errstate(all="ignore"):
        array = np.array(values, of.dtype)
    return array.view(f"u{of.size}").astype(np.uint64)


class Trees:
    """Expressions at random, of the types given."""

    def __init__(self, random: Random, types: Sequence[Type]) -> None:
        self.random = random
        self.types = types

    def of(self, type: Type, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.1:
            return self.leaf(type)
        made: str = self.random.choice(self._forms(type, depth - 1))()
        return made

    def leaf(self, type: Type) -> str:
        name = type.name.lower()
        return self.random.choice(
            [f"x_{name}", f"y_{name}", f"x_{name}", f"params.p_{name}", literal(self.random.choice(edges(type)), type)]
        )

    def _number(self, type: Type) -> str:
        """A Python number beside a scalar."""
        value = self.random.choice(edges(type))
        if type.is_float and (value != value or abs(value) == float("inf")):
            return "0.0"
        return f"({value!r})"

    def _forms(self, type: Type, depth: int) -> list[Callable[[], str]]:
        def sub(of: Type = type) -> str:
            return self.of(of, depth)

        def infix(*operators: str) -> str:
            return f"({sub()} {self.random.choice(operators)} {sub()})"

        def beside(*operators: str) -> str:
            """A literal on one of the sides. Both sides plain numbers would be Python's own arithmetic."""
            a, b = sub(), self._number(type)
            if self.random.random() < 0.5:
                a, b = b, a
            return f"({a} {self.random.choice(operators)} {b})"

        def converted() -> str:
            sources = [s for s in self.types if ops.can_cast(s, type)]
            return f"{type}({sub(self.random.choice(sources))})"

        def reinterpreted() -> str:
            sources = [s for s in self.types if ops.can_bitcast(s, type)]
            if not sources:
                return sub()
            source = self.random.choice(sources)
            if source.is_float:
                return f"bitcast({type}, bits_{source.name.lower()}({sub(source)}))" if type.name[0] == "I" else (
                    f"bits_{source.name.lower()}({sub(source)})")  # fmt: skip
            return f"bitcast({type}, {sub(source)})"

        forms: list[Callable[[], str]] = [
            lambda: f"({sub()} if {sub(Type.BOOL)} else {sub()})",
            lambda: f"select({sub(Type.BOOL)}, {sub()}, {sub()})",
        ]
        if type is Type.BOOL:
            other = self.random.choice([t for t in self.types if t is not Type.BOOL])
            comparison = self.random.choice(["==", "!=", "<", "<=", ">", ">="])
            compared = lambda: f"({sub(other)} {comparison} {sub(other)})"  # noqa: E731
            return [
                *forms, compared, compared, compared, compared, compared,
                lambda: f"({sub(other)} {comparison} {self._number(other)})",
                lambda: infix("&", "|", "^", "and", "or"), lambda: f"Bool(not {sub()})", lambda: f"(~{sub()})",
                lambda: f"({sub()} == {sub()})", lambda: f"(True ^ {sub()})",
            ]  # fmt: skip
        forms += [lambda: infix("+", "-", "*"), lambda: infix("+", "-", "*"), lambda: beside("+", "-", "*"), converted]
        forms += [reinterpreted]
        if type.is_float:
            forms += [lambda: infix("/"), lambda: beside("/"), lambda: f"sqrt({sub()})", lambda: f"(-{sub()})"]
            return forms
        forms += [
            lambda: infix("&", "|", "^"), lambda: beside("&", "|", "^"), lambda: f"(~{sub()})",
            lambda: f"({sub()} {self.random.choice(['<<', '>>'])} {sub(Type.U32)})",
            lambda: f"({sub()} {self.random.choice(['<<', '>>'])} {self.random.choice([0, 1, 5, 31, 32, 63, 100])})",
            lambda: f"{self.random.choice(['minimum', 'maximum'])}({sub()}, {sub()})",
        ]  # fmt: skip
        if type.is_unsigned:
            forms.append(lambda: f"({sub()} {self.random.choice(['//', '%'])} ({sub()} | 1))")
            forms.append(lambda: f"({self._number(type)} {self.random.choice(['//', '%'])} ({sub()} | 1))")
        else:
            forms += [lambda: f"(-{sub()})", lambda: f"(+{sub()})"]
        if type is Type.U32:
            name = self.random.choice(["count_ones", "leading_zeros", "trailing_zeros"])
            forms.append(lambda: f"{name}({sub(self.random.choice([Type.U32, Type.U64]))})")
            forms.append(lambda: f"U32({self.random.choice(['U8', 'U16'])}({sub()}))")
        return forms


def kernel_text(expressions: Sequence[Written], types: Sequence[Type]) -> str:
    """A module with one kernel, `expressions`, that computes them all: result k of invocation i is stored at
    `i * len(expressions) + k`."""
    lines = [_HEAD, "@kernel", _SIGNATURE, "    i = cx.global_id"]
    for number, type in enumerate(types):
        for name, offset in (("x", 0), ("y", 1)):
            place = f"i * {2 * len(types)} + {2 * number + offset}"
            lines.append(f"    {name}_{type.name.lower()} = {_LOADED[type].format(place)}")
    for number, expression in enumerate(expressions):
        stored = _BITS[expression.type].format(expression.text)
        lines.append(f"    out[i * {len(expressions)} + {number}] = {stored}")
    return "\n".join(lines) + "\n"


def load(text: str, folder: Path) -> Any:
    """The text as a module; its source lies in a file, as the reader of kernels wants it."""
    path = folder / f"expressions_{next(_numbers)}.py"
    path.write_text(text)
    return loading.load(path)


def launch_of(module: Any, words: Words, per_row: int, results: int, params: Sequence[float]) -> Launch:
    """One invocation for each row of words."""
    rows = len(words) // per_row
    made = module.Params(
        *(
            getattr(scalars, str(type))(value)
            for type, value in zip((*INTEGERS, *FLOATS, Type.BOOL), params, strict=True)
        )
    )
    buffers = (
        Buffer("words", scalars.U64, len(words), Role.INPUT),
        Buffer("out", scalars.U64, rows * results, Role.OUTPUT),
    )
    launch: Launch = module.expressions.launch(Grid(rows, 1), buffers[0], made, buffers[1])
    return launch


def run(target: str, launch: Launch, words: Words) -> Words:
    """The bits of all results, a row for each invocation."""
    source, out = (cast("Buffer[scalars.U64]", launch.arguments[number]) for number in (0, 2))
    results = np.zeros(out.count, np.uint64)
    schedule = Schedule((source, out), (launch,))
    registry.target(target).run(schedule, {"words": words, "out": results})
    return results.reshape(launch.grid.groups, -1)
