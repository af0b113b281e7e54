"""Overloads of `reduce` and `scan` for type checkers: what comes of a monoid's states."""

# Of variables that an overload has once: signatures.py says why.
# pyright: reportInvalidTypeVarUse=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..types.specs import HostArray
from .signatures import Along, Axes, Either, G, Like, Other, ShownAs, ToOne, Where

if TYPE_CHECKING:
    from ..types.monoids import Monoid
    from ..types.params import ReducePolicy, ScanPolicy
    from ..types.scalars import U32

E = TypeVar("E")
S = TypeVar("S")
G_co = TypeVar("G_co", bound=np.generic, covariant=True)
Reducing: TypeAlias = "ReducePolicy | None"


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


class _OfFields(Protocol):
    """A state of several fields: a class of attrs."""

    @property
    def __match_args__(self) -> tuple[Any, ...]: ...


Fields = TypeVar("Fields", bound=_OfFields)


class _Unknown:
    """The state of a monoid whose classes are known at run time only, as that over `number_for("f4")`: of all classes
    only Any is taken for this one."""


class Reduce(Protocol):
    """reduce: a scalar of the monoid's state, or an array of such."""

    @overload
    def __call__(
        self, x: Other, /, monoid: Monoid[E, S], *, policy: Reducing = None, **how: Unpack[Either[Axes]]
    ) -> Other | np.void | NDArray[np.void]: ...
    @overload
    def __call__(
        self, x: ArrayLike, /, monoid: Monoid[E, _Unknown], *, policy: Reducing = None, **how: Unpack[Either[Axes]]
    ) -> np.generic | HostArray: ...
    @overload
    def __call__(
        self, x: ArrayLike, /, monoid: _OfScalars[E, S, G], *, policy: Reducing = None, **how: Unpack[ToOne]
    ) -> G: ...
    @overload
    def __call__(
        self, x: ArrayLike, /, monoid: _OfScalars[E, S, G], *, policy: Reducing = None, **how: Unpack[Along[Axes]]
    ) -> NDArray[G]: ...
    @overload
    def __call__(
        self, x: ArrayLike, /, monoid: _OfScalars[E, S, G], *, policy: Reducing = None, **how: Unpack[Either[Axes]]
    ) -> G | NDArray[G]: ...
    @overload  # one field is stored as a scalar, which checkers cannot tell
    def __call__(
        self, x: ArrayLike, /, monoid: Monoid[E, Fields], *, policy: Reducing = None, **how: Unpack[Either[Axes]]
    ) -> np.void | NDArray[np.void]: ...
    @overload  # in a generic function
    def __call__(
        self, x: ArrayLike, /, monoid: Monoid[E, S], *, policy: Reducing = None, **how: Unpack[Either[Axes]]
    ) -> np.generic | HostArray: ...


class Scanned(TypedDict, total=False):
    axis: SupportsIndex
    exclusive: bool
    target: Where
    policy: ScanPolicy | None


class Scan(Protocol):
    """scan: an array of the monoid's states."""

    @overload
    def __call__(self, x: Like, /, monoid: Monoid[E, S], **how: Unpack[Scanned]) -> Like | NDArray[np.void]: ...
    @overload
    def __call__(self, x: ArrayLike, /, monoid: Monoid[E, _Unknown], **how: Unpack[Scanned]) -> HostArray: ...
    @overload
    def __call__(self, x: ArrayLike, /, monoid: _OfScalars[E, S, G], **how: Unpack[Scanned]) -> NDArray[G]: ...
    @overload
    def __call__(self, x: ArrayLike, /, monoid: Monoid[E, Fields], **how: Unpack[Scanned]) -> NDArray[np.void]: ...
    @overload
    def __call__(self, x: ArrayLike, /, monoid: Monoid[E, S], **how: Unpack[Scanned]) -> HostArray: ...


is_reduce = ShownAs[Reduce]()
is_scan = ShownAs[Scan]()
