"""Overloads for type checkers: the class of array, scalar and dtype that each call returns.

Functions that give back the same share their overloads here; a decorator puts them on. To Python a bool is an int, and
an int a float, so overloads for lists of them overlap, and are read in turn: that is what the ignores here are for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NotRequired,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..targets.base import Target
from ..types.keys import SortableKey
from ..types.specs import HostArray

if TYPE_CHECKING:
    from ..algos.sorts import SortAlgorithm
    from ..arrays.cuda import OnCard
    from ..arrays.webgpu import Array

T = TypeVar("T")
P = TypeVar("P")
G = TypeVar("G", bound=np.generic)
G_co = TypeVar("G_co", bound=np.generic, covariant=True)
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)
D = TypeVar("D", bound=np.dtype[np.generic])
V = TypeVar("V", bound=np.dtype[np.generic])
Shape = TypeVar("Shape", bound=tuple[int, ...])
F = TypeVar("F", bound=np.floating | np.timedelta64)
Other = TypeVar("Other", bound="OnCard | Tensor | Array | Chunked")

Nested: TypeAlias = "Sequence[T | Nested[T]]"
Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Axis: TypeAlias = Axes | None
AxisOrAll: TypeAlias = SupportsIndex | None
Signed: TypeAlias = NDArray[np.bool_ | np.signedinteger]  # what is added up in int64
Unsigned: TypeAlias = NDArray[np.unsignedinteger]
Where: TypeAlias = "str | Target"
Keyed: TypeAlias = "SortableKey[Any, Any] | None"
Chosen: TypeAlias = "SortAlgorithm | None"


class Ordered(TypedDict, total=False):
    """What sorts and merges may be told by name."""

    descending: bool
    target: Where
    key: Keyed


class Permuting(Ordered, total=False):
    stable: bool


class Sorting(Permuting, total=False):
    algorithm: Chosen


# -- other libraries' arrays: what tells them from NumPy's ------------------------------------------------


class Tensor(Protocol):
    """A torch tensor."""

    @property
    def is_cuda(self) -> bool: ...
    def detach(self) -> Self: ...


class Chunked(Protocol):
    """An array of dask."""

    @property
    def numblocks(self) -> tuple[int, ...]: ...


# -- reductions -------------------------------------------------------------------------------------------

# What a call may say by name, and so what comes back: one value; an array, for axes that are kept, or for those that
# are left; or, where a checker cannot know, either.


class ToOne(TypedDict, total=False):
    axis: None
    keepdims: Literal[False]
    target: Where


class Kept(TypedDict):
    axis: NotRequired[None]
    keepdims: Literal[True]
    target: NotRequired[Where]


class Along(TypedDict, Generic[A]):
    axis: A
    keepdims: NotRequired[bool]
    target: NotRequired[Where]


class Either(TypedDict, Generic[A], total=False):
    axis: A | None
    keepdims: bool
    target: Where


class Arithmetic(Protocol):
    """sum, prod: floats and times of their own class, integers in 64 bits."""

    @overload
    def __call__(self, x: NDArray[F], /, **how: Unpack[ToOne]) -> F: ...
    @overload
    def __call__(self, x: NDArray[F], /, **how: Unpack[Kept]) -> NDArray[F]: ...
    @overload
    def __call__(self, x: NDArray[F], /, **how: Unpack[Along[Axes]]) -> NDArray[F]: ...
    @overload
    def __call__(self, x: NDArray[F], /, **how: Unpack[Either[Axes]]) -> F | NDArray[F]: ...
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
    def __call__(self, x: Other, /, **how: Unpack[Either[Axes]]) -> Other: ...
    @overload
    def __call__(self, x: npt.ArrayLike, /, **how: Unpack[Either[Axes]]) -> np.generic | HostArray: ...


class Extremum(Protocol):
    """min, max: the class of the elements."""

    @overload
    def __call__(self, x: NDArray[G], /, *, key: Keyed = None, **how: Unpack[ToOne]) -> G: ...
    @overload
    def __call__(self, x: NDArray[G], /, *, key: Keyed = None, **how: Unpack[Kept]) -> NDArray[G]: ...
    @overload
    def __call__(self, x: NDArray[G], /, *, key: Keyed = None, **how: Unpack[Along[Axes]]) -> NDArray[G]: ...
    @overload
    def __call__(self, x: NDArray[G], /, *, key: Keyed = None, **how: Unpack[Either[Axes]]) -> G | NDArray[G]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
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
    def __call__(self, x: Other, /, *, key: Keyed = None, **how: Unpack[Either[Axes]]) -> Other: ...
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, *, key: Keyed = None, **how: Unpack[Either[Axes]]
    ) -> np.generic | HostArray: ...


# The ignore: fields of a TypedDict are invariant to pyright, and to mypy what a call takes is contravariant.
class Settled(Protocol[G_co, A_contra]):  # pyright: ignore[reportInvalidTypeVarUse]
    """argmin, argmax, any, all: one class whatever the elements; along axes of these."""

    @overload
    def __call__(self, x: Other, /, **how: Unpack[Either[A_contra]]) -> Other: ...
    @overload
    def __call__(self, x: HostArray | npt.ArrayLike, /, **how: Unpack[ToOne]) -> G_co: ...
    @overload
    def __call__(self, x: HostArray | npt.ArrayLike, /, **how: Unpack[Kept]) -> NDArray[G_co]: ...
    @overload
    def __call__(self, x: HostArray | npt.ArrayLike, /, **how: Unpack[Along[A_contra]]) -> NDArray[G_co]: ...
    @overload
    def __call__(self, x: HostArray | npt.ArrayLike, /, **how: Unpack[Either[A_contra]]) -> G_co | NDArray[G_co]: ...


class ShownAs(Generic[P]):
    """A decorator: what it is put on is handed back as it is, and is one of these to type checkers."""

    def __call__(self, function: Callable[..., object]) -> P:
        return cast(P, function)


is_arithmetic = ShownAs[Arithmetic]()
is_extremum = ShownAs[Extremum]()
is_place = ShownAs[Settled[np.int64, SupportsIndex]]()
is_truth = ShownAs[Settled[np.bool_, Axes]]()
