"""Overloads of reductions and scans for type checkers: the class of array, scalar and dtype that each call returns.

To Python a bool is an int, an int a float, and a text a sequence of texts, so overloads for lists of them overlap, and
are read in turn: that is what the ignores here are for. Columns come before other arrays: of an array of xarray, which
has every attribute to mypy, comes Any then.
"""

# Of variables that an overload has once: signatures.py says why.
# pyright: reportInvalidTypeVarUse=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..types.specs import HostArray
from .signatures import (
    Along,
    Axes,
    Column,
    Either,
    F,
    G,
    Given,
    Kept,
    Keyed,
    Like,
    Nested,
    Numpys,
    Other,
    Raw,
    Shape,
    ShownAs,
    Signed,
    ToOne,
    Unsigned,
    Where,
)

if TYPE_CHECKING:
    from ..types.monoids import Monoid
    from ..types.params import ReducePolicy, ScanPolicy
    from ..types.scalars import U32

E = TypeVar("E")
S = TypeVar("S")
G_co = TypeVar("G_co", bound=np.generic, covariant=True)
Hosts: TypeAlias = HostArray | ArrayLike
Places: TypeAlias = NDArray[np.int64]
Reducing: TypeAlias = "ReducePolicy | None"


class Arithmetic(Protocol):
    """sum, prod: floats and times of their own class, integers in 64 bits."""

    @overload
    def __call__(self, x: Numpys[Shape, F], /, **how: Unpack[ToOne]) -> F: ...
    @overload
    def __call__(self, x: Numpys[Shape, F], /, **how: Unpack[Kept]) -> NDArray[F]: ...
    @overload
    def __call__(self, x: Numpys[Shape, F], /, **how: Unpack[Along[Axes]]) -> NDArray[F]: ...
    @overload
    def __call__(self, x: Numpys[Shape, F], /, **how: Unpack[Either[Axes]]) -> F | NDArray[F]: ...
    @overload
    def __call__(self, x: Signed, /, **how: Unpack[ToOne]) -> np.int64: ...
    @overload
    def __call__(self, x: Signed, /, **how: Unpack[Kept]) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, x: Signed, /, **how: Unpack[Along[Axes]]) -> NDArray[np.int64]: ...
    @overload
    def __call__(self, x: Signed, /, **how: Unpack[Either[Axes]]) -> np.int64 | NDArray[np.int64]: ...
    @overload
    def __call__(self, x: Unsigned, /, **how: Unpack[ToOne]) -> np.uint64: ...
    @overload
    def __call__(self, x: Unsigned, /, **how: Unpack[Kept]) -> NDArray[np.uint64]: ...
    @overload
    def __call__(self, x: Unsigned, /, **how: Unpack[Along[Axes]]) -> NDArray[np.uint64]: ...
    @overload
    def __call__(self, x: Unsigned, /, **how: Unpack[Either[Axes]]) -> np.uint64 | NDArray[np.uint64]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, x: Raw, /, **how: Unpack[Either[Axes]]
    ) -> np.generic | HostArray: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[int], /, **how: Unpack[ToOne]
    ) -> np.int64: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[int], /, **how: Unpack[Either[Axes]]
    ) -> np.int64 | NDArray[np.int64]: ...
    @overload
    def __call__(self, x: Nested[float], /, **how: Unpack[ToOne]) -> np.float64: ...
    @overload
    def __call__(self, x: Nested[float], /, **how: Unpack[Either[Axes]]) -> np.float64 | NDArray[np.float64]: ...
    @overload
    def __call__(self, x: Column, /, **how: Unpack[Either[Axes]]) -> Any: ...
    @overload
    def __call__(self, x: Other, /, **how: Unpack[Either[Axes]]) -> Other: ...
    @overload  # one or the other
    def __call__(
        self, x: Numpys[Shape, G] | Other, /, **how: Unpack[Either[Axes]]
    ) -> np.generic | HostArray | Other: ...
    @overload
    def __call__(self, x: Given, /, **how: Unpack[Either[Axes]]) -> np.generic | HostArray: ...


class Extremum(Protocol):
    """min, max: the class of the elements."""

    @overload
    def __call__(self, x: Numpys[Shape, G], /, *, key: Keyed = None, **how: Unpack[ToOne]) -> G: ...
    @overload
    def __call__(self, x: Numpys[Shape, G], /, *, key: Keyed = None, **how: Unpack[Kept]) -> NDArray[G]: ...
    @overload
    def __call__(self, x: Numpys[Shape, G], /, *, key: Keyed = None, **how: Unpack[Along[Axes]]) -> NDArray[G]: ...
    @overload
    def __call__(self, x: Numpys[Shape, G], /, *, key: Keyed = None, **how: Unpack[Either[Axes]]) -> G | NDArray[G]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, x: Raw, /, *, key: Keyed = None, **how: Unpack[Either[Axes]]
    ) -> np.generic | HostArray: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[bool], /, *, key: Keyed = None, **how: Unpack[ToOne]
    ) -> np.bool_: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[bool], /, *, key: Keyed = None, **how: Unpack[Either[Axes]]
    ) -> np.bool_ | NDArray[np.bool_]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[int], /, *, key: Keyed = None, **how: Unpack[ToOne]
    ) -> np.int64: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[int], /, *, key: Keyed = None, **how: Unpack[Either[Axes]]
    ) -> np.int64 | NDArray[np.int64]: ...
    @overload
    def __call__(self, x: Nested[float], /, *, key: Keyed = None, **how: Unpack[ToOne]) -> np.float64: ...
    @overload
    def __call__(
        self, x: Nested[float], /, *, key: Keyed = None, **how: Unpack[Either[Axes]]
    ) -> np.float64 | NDArray[np.float64]: ...
    @overload
    def __call__(self, x: Column, /, *, key: Keyed = None, **how: Unpack[Either[Axes]]) -> Any: ...
    @overload
    def __call__(self, x: Other, /, *, key: Keyed = None, **how: Unpack[Either[Axes]]) -> Other: ...
    @overload
    def __call__(
        self, x: Numpys[Shape, G] | Other, /, *, key: Keyed = None, **how: Unpack[Either[Axes]]
    ) -> G | NDArray[G] | Other: ...
    @overload
    def __call__(self, x: Given, /, *, key: Keyed = None, **how: Unpack[Either[Axes]]) -> np.generic | HostArray: ...


class Place(Protocol):
    """argmin, argmax: indices, whatever the elements."""

    @overload
    def __call__(self, x: Column, /, *, key: Keyed = None, **how: Unpack[Either[SupportsIndex]]) -> Any: ...
    @overload
    def __call__(self, x: Other, /, *, key: Keyed = None, **how: Unpack[Either[SupportsIndex]]) -> Other: ...
    @overload
    def __call__(self, x: Hosts, /, *, key: Keyed = None, **how: Unpack[ToOne]) -> np.int64: ...
    @overload
    def __call__(self, x: Hosts, /, *, key: Keyed = None, **how: Unpack[Kept]) -> Places: ...
    @overload
    def __call__(self, x: Hosts, /, *, key: Keyed = None, **how: Unpack[Along[SupportsIndex]]) -> Places: ...
    @overload
    def __call__(
        self, x: Hosts, /, *, key: Keyed = None, **how: Unpack[Either[SupportsIndex]]
    ) -> np.int64 | Places: ...


class Truth(Protocol):
    """any, all: bools, whatever the elements."""

    @overload
    def __call__(self, x: Column, /, **how: Unpack[Either[Axes]]) -> Any: ...
    @overload
    def __call__(self, x: Other, /, **how: Unpack[Either[Axes]]) -> Other: ...
    @overload
    def __call__(self, x: Hosts, /, **how: Unpack[ToOne]) -> np.bool_: ...
    @overload
    def __call__(self, x: Hosts, /, **how: Unpack[Kept]) -> NDArray[np.bool_]: ...
    @overload
    def __call__(self, x: Hosts, /, **how: Unpack[Along[Axes]]) -> NDArray[np.bool_]: ...
    @overload
    def __call__(self, x: Hosts, /, **how: Unpack[Either[Axes]]) -> np.bool_ | NDArray[np.bool_]: ...


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


is_arithmetic = ShownAs[Arithmetic]()
is_extremum = ShownAs[Extremum]()
is_place = ShownAs[Place]()
is_truth = ShownAs[Truth]()
is_reduce = ShownAs[Reduce]()
is_scan = ShownAs[Scan]()
