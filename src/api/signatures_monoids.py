"""Overloads of `reduce` and `scan` for type checkers: the NumPy scalar of a monoid's state.

Of a state that is no scalar class itself (a newtype, a struct) they know no more than that it is one of NumPy's.
"""

from __future__ import annotations

from typing import Protocol, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ..arrays.kinds import HostArray
from ..types.monoids import Monoid
from ..types.params import ReducePolicy, ScanPolicy
from ..types.scalars import U32
from .signatures import Axes, Axis, G, G_co, Other, ShownAs, Where, Whole

E = TypeVar("E")
S = TypeVar("S")


class _Scalar(Protocol[G_co]):
    """A scalar of kernels, such as U32, which knows NumPy's of its type."""

    @property
    def numpys(self) -> type[G_co]: ...


class _OfScalars(Protocol[E, S, G_co]):
    """A monoid whose states are such scalars."""

    @property
    def element(self) -> type[E]: ...
    @property
    def state(self) -> type[S]: ...
    def identity(self) -> _Scalar[G_co]: ...
    def lift(self, element: E, index: U32, /) -> S: ...
    def combine(self, a: S, b: S, /) -> S: ...


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
        self, x: npt.ArrayLike, /, monoid: _OfScalars[E, S, G], *, axis: None = None, keepdims: Whole = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> G: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: _OfScalars[E, S, G], *, axis: Axes, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> npt.NDArray[G]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: _OfScalars[E, S, G], *, axis: Axis = None, keepdims: bool = False,
        target: Where = "auto", policy: ReducePolicy | None = None,
    ) -> G | npt.NDArray[G]: ...  # fmt: skip
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
        self, x: npt.ArrayLike, /, monoid: _OfScalars[E, S, G], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> npt.NDArray[G]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, monoid: Monoid[E, S], *, axis: SupportsIndex = -1, exclusive: bool = False,
        target: Where = "auto", policy: ScanPolicy | None = None,
    ) -> HostArray: ...  # fmt: skip


is_reduce = ShownAs[Reduce]()
is_scan = ShownAs[Scan]()
