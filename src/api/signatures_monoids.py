"""Overloads of `reduce` and `scan` for type checkers: the NumPy scalar of a monoid's state.

Of a state that is no scalar class itself (a newtype, a struct) they know no more than that it is one of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, SupportsIndex, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from ..arrays.kinds import HostArray
from ..types.monoids import Monoid
from ..types.params import ReducePolicy, ScanPolicy
from ..types.scalars import F32, F64, I32, I64, U32, U64
from .signatures import Axes, Axis, Other, Where, Whole

E = TypeVar("E")
S = TypeVar("S")


class _Unknown:
    """The state of a monoid whose classes are known at run time only, as that over `number_for("f4")`: of all classes
    only Any is taken for this one."""


class Reduce(Protocol):
    """reduce: a scalar of the monoid's state, or an array of such."""

    @overload
    def __call__(
        self, x: Other, /, monoid: Monoid[E, S], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> Other | np.void | npt.NDArray[np.void]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, _Unknown], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.generic | HostArray: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, U32], *, axis: None = None, keepdims: Whole = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.uint32: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, U32], *, axis: Axes, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> npt.NDArray[np.uint32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, U32], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.uint32 | npt.NDArray[np.uint32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, U64], *, axis: None = None, keepdims: Whole = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.uint64: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, U64], *, axis: Axes, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> npt.NDArray[np.uint64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, U64], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.uint64 | npt.NDArray[np.uint64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, I32], *, axis: None = None, keepdims: Whole = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.int32: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, I32], *, axis: Axes, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> npt.NDArray[np.int32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, I32], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.int32 | npt.NDArray[np.int32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, I64], *, axis: None = None, keepdims: Whole = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.int64: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, I64], *, axis: Axes, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> npt.NDArray[np.int64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, I64], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.int64 | npt.NDArray[np.int64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, F32], *, axis: None = None, keepdims: Whole = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.float32: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, F32], *, axis: Axes, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> npt.NDArray[np.float32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, F32], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.float32 | npt.NDArray[np.float32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, F64], *, axis: None = None, keepdims: Whole = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.float64: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, F64], *, axis: Axes, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> npt.NDArray[np.float64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, F64], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.float64 | npt.NDArray[np.float64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, S], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> np.generic | HostArray: ...  # fmt: skip


class Scan(Protocol):
    """scan: an array of the monoid's states."""

    @overload
    def __call__(
        self, x: Other, /, monoid: Monoid[E, S], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> Other | npt.NDArray[np.void]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, _Unknown], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> HostArray: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, U32], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> npt.NDArray[np.uint32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, U64], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> npt.NDArray[np.uint64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, I32], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> npt.NDArray[np.int32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, I64], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> npt.NDArray[np.int64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, F32], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> npt.NDArray[np.float32]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, F64], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> npt.NDArray[np.float64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, S], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> HostArray: ...  # fmt: skip


def is_reduce(function: Callable[..., object]) -> Reduce:
    return cast(Reduce, function)


def is_scan(function: Callable[..., object]) -> Scan:
    return cast(Scan, function)
