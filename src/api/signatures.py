"""The words of public signatures: what calls take, and what they may be told by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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
    cast,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..targets.base import Target
from ..types.keys import SortableKey

if TYPE_CHECKING:
    from array import array

    from ..algos.sorts import SortAlgorithm
    from ..arrays.cuda import OnCard
    from ..arrays.webgpu import Array

T = TypeVar("T")
D = TypeVar("D", bound=np.dtype[np.generic])
Shape = TypeVar("Shape", bound=tuple[int, ...])
G = TypeVar("G", bound=np.generic)
A = TypeVar("A")  # of axes
P = TypeVar("P")  # of overloads
F = TypeVar("F", bound=np.floating | np.timedelta64)
Other = TypeVar("Other", bound="OnCard | Tensor | Array | Sharded | Chunked")
# For calls whose results are of the library of what is given: these, and columns, of which single values are not.
Like = TypeVar("Like", bound="OnCard | Tensor | Array | Sharded | Chunked | Column")
# The same, and NumPy's of one dimension.
Row = TypeVar("Row", bound="np.ndarray[tuple[int], Any] | OnCard | Tensor | Array | Sharded | Chunked | Column")
Row2 = TypeVar("Row2", bound="np.ndarray[tuple[int], Any] | OnCard | Tensor | Array | Sharded | Chunked | Column")

# Variables in place of what they are bound by, though an overload has each once: of an array whose class has Any in it,
# mypy gives Any where several overloads take it, unless all do by the same class. `NDArray[G]` is such an array for any
# G of a caller's own, as NumPy's `generic` is `generic[Any]`.
Given = TypeVar("Given", bound=ArrayLike)
Given2 = TypeVar("Given2", bound=ArrayLike)
Given3 = TypeVar("Given3", bound=ArrayLike)
Given4 = TypeVar("Given4", bound=ArrayLike)
Signed = TypeVar("Signed", bound=NDArray[np.bool_ | np.signedinteger])  # what is added up in int64
Unsigned = TypeVar("Unsigned", bound=NDArray[np.unsignedinteger])
Numpys: TypeAlias = np.ndarray[Shape, np.dtype[G]]

Nested: TypeAlias = "Sequence[T | Nested[T]]"
# Of a dtype that is known at run time; to checkers these are nested numbers, too.
Raw: TypeAlias = "bytearray | memoryview | array[Any] | bytes | Nested[bytes | str]"
Axes: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Axis: TypeAlias = Axes | None
AxisOrAll: TypeAlias = SupportsIndex | None
Written: TypeAlias = "np.ndarray[Any, Any] | OnCard | Tensor | Array | Exchanged"  # what calls may write to
Where: TypeAlias = "str | Target"
Keyed: TypeAlias = "SortableKey[Any, Any] | None"
Chosen: TypeAlias = "SortAlgorithm | None"


class Tensor(Protocol):
    @property
    def is_cuda(self) -> bool: ...
    def detach(self) -> Self: ...


class Exchanged(Protocol):
    """An array of whatever library, by DLPack."""

    def __dlpack__(self) -> Any: ...


class Sharded(Protocol):
    """An array of JAX."""

    @property
    def is_fully_addressable(self) -> bool: ...


class Chunked(Protocol):
    """An array of dask."""

    @property
    def numblocks(self) -> tuple[int, ...]: ...


class Labelled(Protocol):
    """An array of xarray, of which NumPy makes one of its own. To mypy it has every attribute, and would be whatever
    else is asked for here: overloads have it first."""

    def __array__(self) -> NDArray[Any]: ...
    def rank(self, dim: Hashable, /) -> Any: ...


class Column(Protocol):
    """A Series or an Index of pandas, or a Series of polars. One value of it is NumPy's or Python's, of any class."""

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


class ShownAs(Generic[P]):
    """A decorator: what it is put on is handed back as it is, and is one of these to type checkers."""

    def __call__(self, function: Callable[..., object]) -> P:
        return cast(P, function)
