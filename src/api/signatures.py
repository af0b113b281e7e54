"""The words of public signatures: what calls take, and what they may be told by name."""

from __future__ import annotations

from collections.abc import Sequence
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
)

import numpy as np
from numpy.typing import NDArray

from ..targets.base import Target
from ..types.keys import SortableKey

if TYPE_CHECKING:
    from ..algos.sorts import SortAlgorithm
    from ..arrays.cuda import OnCard
    from ..arrays.webgpu import Array

T = TypeVar("T")
A = TypeVar("A")
D = TypeVar("D", bound=np.dtype[np.generic])
Shape = TypeVar("Shape", bound=tuple[int, ...])
F = TypeVar("F", bound=np.floating | np.timedelta64)
Other = TypeVar("Other", bound="OnCard | Tensor | Array | Chunked")
# For calls whose results are of the library of what is given: these, and columns, of which single values are not.
Like = TypeVar("Like", bound="OnCard | Tensor | Array | Chunked | Column")
# The same, and NumPy's of one dimension.
Row = TypeVar("Row", bound="np.ndarray[tuple[int], Any] | OnCard | Tensor | Array | Chunked | Column")
Row2 = TypeVar("Row2", bound="np.ndarray[tuple[int], Any] | OnCard | Tensor | Array | Chunked | Column")

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


class Tensor(Protocol):
    @property
    def is_cuda(self) -> bool: ...
    def detach(self) -> Self: ...


class Chunked(Protocol):
    """An array of dask."""

    @property
    def numblocks(self) -> tuple[int, ...]: ...


class Column(Protocol):
    """A Series or an Index of pandas, or a Series of polars."""

    def to_frame(self) -> object: ...


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
