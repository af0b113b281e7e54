"""What reductions and cumulative sums make of elements: NumPy's ufuncs, without its warnings, and compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from functools import cache
from typing import TypeAlias, cast

import attrs
import numpy as np

from ....operations.monoids import result_dtype
from ....operations.reduce import Reducer
from ....types.dtypes import name_of
from ...base import HostArray
from .key_words import numbers_as

HostCall: TypeAlias = Callable[[HostArray], object]

LONG = 1 << 15  # elements: below, NumPy is done before anything else has begun

UFUNCS: dict[Reducer, np.ufunc] = {
    Reducer.SUM: np.add, Reducer.PROD: np.multiply, Reducer.MIN: np.minimum, Reducer.MAX: np.maximum,
    Reducer.ANY: np.logical_or, Reducer.ALL: np.logical_and,
}  # fmt: skip
EXTREMES = (Reducer.MIN, Reducer.MAX)
TRUTHS = (Reducer.ANY, Reducer.ALL)

_INFINITE = 65520.0  # from here on float16 rounds to infinity
_FEW_TOLD = 1 << 10  # elements: of fewer, looking mostly takes longer than telling

_silent = Context()
_silent.run(np.seterr, all="ignore")


# `silence().run(function, ...)` takes a tenth as long as `np.errstate`. A context can be entered once at a time, and a
# copy of it costs little.
silence = _silent.copy


def rounded(found: HostArray, dtype: np.dtype[np.generic]) -> HostArray:
    """Numbers of 32 bits in 16: silent. Too large ones are made infinite first, for NumPy's conversion tells of each of
    them, which takes as long as fifty others."""
    if found.size > _FEW_TOLD:
        if np.fmin.reduce(found, None) <= -_INFINITE or np.fmax.reduce(found, None) >= _INFINITE:
            np.copyto(found, np.inf, where=np.greater_equal(found, _INFINITE))
            np.copyto(found, -np.inf, where=np.less_equal(found, -_INFINITE))
    return found.astype(dtype)


def takes(fold: Reducer, dtype: np.dtype[np.generic]) -> bool:
    """Whether there is such a function of elements of a dtype."""
    kinds = {Reducer.SUM: "biufm", Reducer.PROD: "biuf"}.get(fold, "biufmM")
    return dtype.kind in kinds and not (dtype.kind == "f" and dtype.itemsize > 8)


def in_shape(results: HostArray, x: HostArray, axes: tuple[int, ...], keepdims: bool) -> object:
    """Results in the order of the axes that stay, as NumPy gives them: a scalar where there is but one."""
    if keepdims:
        return results.reshape([1 if axis in axes else size for axis, size in enumerate(x.shape)])
    return cast(object, results[()])


@attrs.frozen(eq=False)
class Summing:
    """Of elements of a dtype: float16 is added up in 32 bits and rounded once, bools as bytes."""

    seen_as: np.dtype[np.generic]
    state: np.dtype[np.generic]
    result: np.dtype[np.generic]
    nothing: str  # the text of what changes no number that it is added to, or multiplied with

    @classmethod
    @cache
    def of(cls, fold: Reducer, dtype: np.dtype[np.generic]) -> Summing:
        seen_as, result = numbers_as(dtype), result_dtype(fold.value, dtype)
        state = result
        if dtype == np.float16:
            seen_as, state = np.dtype(np.uint16), np.dtype(np.float32)
        number = "1" if fold is Reducer.PROD else "-0.0" if state.kind == "f" else "0"
        return cls(seen_as, state, result, f"{name_of(state)}({number})")

    @property
    def is_half(self) -> bool:
        return self.result == np.float16

    def lifted(self, element: str) -> str:
        """The text of an element, whose name this is, as a number."""
        if not self.is_half:
            return f"{name_of(self.state)}({element})"
        return f"from_half({element})" if _has_halves() else _from_half(element)

    def lowered(self, number: str) -> str:
        """The text of what is left of a number, whose name this is."""
        if not self.is_half:
            return number
        return f"to_half({number})" if _has_halves() else _to_half(number)


def _has_halves() -> bool:
    from ..compiler.machine import machine  # loads LLVM, which the loops are for

    return machine().has_halves


def _from_half(bits: str) -> str:
    """Subnormals are multiples of 2**-24; of infinity and NaN the exponent is the greatest in 32 bits, too."""
    magnitude = f"i4({bits} & 0x7FFF)"
    exponent = f"select({magnitude} >= 0x7C00, {224 << 23}, {112 << 23})"
    normal = f"bits_f4(i4(({magnitude} << 13) + {exponent}))"
    unsigned = f"select({magnitude} < 0x400, f4({magnitude}) * {2.0**-24}, {normal})"
    return f"bits_f4(u4(bits_u4({unsigned}) | (u4({bits} & 0x8000) << 16)))"


def _to_half(number: str) -> str:
    """To nearest, ties to even; subnormals are rounded by the addition of a number whose last bit is worth 2**-24."""
    bits = f"bits_u4({number})"
    magnitude = f"u4({bits} & 0x7FFFFFFF)"
    normal = f"u4(u4({magnitude} - {112 << 23} + 0xFFF + (({magnitude} >> 13) & 1)) >> 13)"
    subnormal = f"u4(bits_u4(f4(bits_f4({magnitude}) + 0.5)) - {126 << 23})"
    large = f"select({magnitude} > 0x7F800000, u4(0x7E00), u4(0x7C00))"
    unsigned = f"select({magnitude} < 0x38800000, {subnormal}, {normal})"
    return f"u2(select({magnitude} >= 0x47800000, {large}, {unsigned}) | (({bits} >> 16) & 0x8000))"
