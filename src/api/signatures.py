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
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

import numpy as np
import numpy.typing as npt

from ..arrays.kinds import HostArray
from ..targets.base import Target
from ..types.keys import SortableKey

if TYPE_CHECKING:
    from ..algos.sorts import SortAlgorithm
    from ..arrays.cuda import OnCard
    from ..arrays.webgpu import Array

T = TypeVar("T")
P = TypeVar("P")
G = TypeVar("G", bound=np.generic)
G_co = TypeVar("G_co", bound=np.generic, covariant=True)
A_contra = TypeVar("A_contra", contravariant=True)
F = TypeVar("F", bound=np.floating | np.timedelta64)
Other = TypeVar("Other", bound="OnCard | Tensor | Array | Chunked")

Nested: TypeAlias = "Sequence[T | Nested[T]]"
Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Axis: TypeAlias = Axes | None
Whole: TypeAlias = Literal[False]  # keepdims, without which a reduction over all axes is a scalar
Kept: TypeAlias = Literal[True]
Signed: TypeAlias = npt.NDArray[np.bool_ | np.signedinteger]  # what is added up in int64
Unsigned: TypeAlias = npt.NDArray[np.unsignedinteger]
Where: TypeAlias = "str | Target"
Keyed: TypeAlias = "SortableKey[Any, Any] | None"
Chosen: TypeAlias = "SortAlgorithm | None"


# -- other libraries' arrays: what tells them from NumPy's ------------------------------------------------


class Tensor(Protocol):
    """A torch tensor."""

    @property
    def is_cuda(self) -> bool: ...
    @property
    def device(self) -> object: ...
    @property
    def dtype(self) -> object: ...
    def detach(self) -> Self: ...
    def clone(self) -> Self: ...
    def flatten(self) -> Self: ...
    def numpy(self) -> HostArray: ...
    def to(self, device: object, /) -> Self: ...


class Chunked(Protocol):
    """An array of dask."""

    @property
    def numblocks(self) -> tuple[int, ...]: ...
    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]: ...
    def ravel(self) -> Self: ...
    def persist(self) -> Self: ...


# -- reductions -------------------------------------------------------------------------------------------


class Arithmetic(Protocol):
    """sum, prod: floats and times of their own class, integers in 64 bits."""

    @overload
    def __call__(
        self, x: npt.NDArray[F], /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto"
    ) -> F: ...
    @overload
    def __call__(
        self, x: npt.NDArray[F], /, *, axis: None = None, keepdims: Kept, target: Where = "auto"
    ) -> npt.NDArray[F]: ...
    @overload
    def __call__(
        self, x: npt.NDArray[F], /, *, axis: Axes, keepdims: bool = False, target: Where = "auto"
    ) -> npt.NDArray[F]: ...
    @overload
    def __call__(
        self, x: npt.NDArray[F], /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto"
    ) -> F | npt.NDArray[F]: ...
    @overload
    def __call__(
        self, x: Signed, /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto"
    ) -> np.int64: ...
    @overload
    def __call__(
        self, x: Signed, /, *, axis: None = None, keepdims: Kept, target: Where = "auto"
    ) -> npt.NDArray[np.int64]: ...
    @overload
    def __call__(
        self, x: Signed, /, *, axis: Axes, keepdims: bool = False, target: Where = "auto"
    ) -> npt.NDArray[np.int64]: ...
    @overload
    def __call__(
        self, x: Signed, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto"
    ) -> np.int64 | npt.NDArray[np.int64]: ...
    @overload
    def __call__(
        self, x: Unsigned, /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto"
    ) -> np.uint64: ...
    @overload
    def __call__(
        self, x: Unsigned, /, *, axis: None = None, keepdims: Kept, target: Where = "auto"
    ) -> npt.NDArray[np.uint64]: ...
    @overload
    def __call__(
        self, x: Unsigned, /, *, axis: Axes, keepdims: bool = False, target: Where = "auto"
    ) -> npt.NDArray[np.uint64]: ...
    @overload
    def __call__(
        self, x: Unsigned, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto"
    ) -> np.uint64 | npt.NDArray[np.uint64]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, x: Nested[int], /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto"
    ) -> np.int64: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[int], /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto"
    ) -> np.int64 | npt.NDArray[np.int64]: ...
    @overload
    def __call__(
        self, x: Nested[float], /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto"
    ) -> np.float64: ...
    @overload
    def __call__(
        self, x: Nested[float], /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto"
    ) -> np.float64 | npt.NDArray[np.float64]: ...
    @overload
    def __call__(self, x: Other, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto") -> Other: ...
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto"
    ) -> np.generic | HostArray: ...


class Extremum(Protocol):
    """min, max: the class of the elements."""

    @overload
    def __call__(
        self, x: npt.NDArray[G], /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto",
        key: Keyed = None,
    ) -> G: ...  # fmt: skip
    @overload
    def __call__(
        self, x: npt.NDArray[G], /, *, axis: None = None, keepdims: Kept, target: Where = "auto", key: Keyed = None
    ) -> npt.NDArray[G]: ...
    @overload
    def __call__(
        self, x: npt.NDArray[G], /, *, axis: Axes, keepdims: bool = False, target: Where = "auto", key: Keyed = None
    ) -> npt.NDArray[G]: ...
    @overload
    def __call__(
        self, x: npt.NDArray[G], /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto",
        key: Keyed = None,
    ) -> G | npt.NDArray[G]: ...  # fmt: skip
    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, x: Nested[bool], /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto",
        key: Keyed = None,
    ) -> np.bool_: ...  # fmt: skip
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[bool], /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto",
        key: Keyed = None,
    ) -> np.bool_ | npt.NDArray[np.bool_]: ...  # fmt: skip
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[int], /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto",
        key: Keyed = None,
    ) -> np.int64: ...  # fmt: skip
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x: Nested[int], /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto", key: Keyed = None
    ) -> np.int64 | npt.NDArray[np.int64]: ...
    @overload
    def __call__(
        self, x: Nested[float], /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto",
        key: Keyed = None,
    ) -> np.float64: ...  # fmt: skip
    @overload
    def __call__(
        self, x: Nested[float], /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto",
        key: Keyed = None,
    ) -> np.float64 | npt.NDArray[np.float64]: ...  # fmt: skip
    @overload
    def __call__(
        self, x: Other, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto", key: Keyed = None
    ) -> Other: ...
    @overload
    def __call__(
        self, x: npt.ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, target: Where = "auto",
        key: Keyed = None,
    ) -> np.generic | HostArray: ...  # fmt: skip


class Settled(Protocol[G_co, A_contra]):
    """argmin, argmax, any, all: one class whatever the elements; along axes of these."""

    @overload
    def __call__(
        self, x: Other, /, *, axis: A_contra | None = None, keepdims: bool = False, target: Where = "auto"
    ) -> Other: ...
    @overload
    def __call__(
        self, x: HostArray | npt.ArrayLike, /, *, axis: None = None, keepdims: Whole = False, target: Where = "auto"
    ) -> G_co: ...
    @overload
    def __call__(
        self, x: HostArray | npt.ArrayLike, /, *, axis: None = None, keepdims: Kept, target: Where = "auto"
    ) -> npt.NDArray[G_co]: ...
    @overload
    def __call__(
        self, x: HostArray | npt.ArrayLike, /, *, axis: A_contra, keepdims: bool = False, target: Where = "auto"
    ) -> npt.NDArray[G_co]: ...
    @overload
    def __call__(
        self, x: HostArray | npt.ArrayLike, /, *, axis: A_contra | None = None, keepdims: bool = False,
        target: Where = "auto",
    ) -> G_co | npt.NDArray[G_co]: ...  # fmt: skip


class ShownAs(Generic[P]):
    """A decorator: what it is put on is handed back as it is, and is one of these to type checkers."""

    def __call__(self, function: Callable[..., object]) -> P:
        return cast(P, function)


is_arithmetic = ShownAs[Arithmetic]()
is_extremum = ShownAs[Extremum]()
is_place = ShownAs[Settled[np.int64, SupportsIndex]]()
is_truth = ShownAs[Settled[np.bool_, Axes]]()
