"""Overloads of NumPy's reductions for type checkers: the class of array, scalar and dtype that each call returns.

To Python a bool is an int, an int a float, and a text a sequence of texts, so overloads for lists of them overlap, and
are read in turn: that is what the ignores here are for. Columns come before other arrays: of an array of xarray, which
has every attribute to mypy, comes Any then.
"""

# Of variables that an overload has once: signatures.py says why.
# pyright: reportInvalidTypeVarUse=false
from __future__ import annotations

from typing import Any, Protocol, SupportsIndex, TypeAlias, Unpack, overload

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
    Nested,
    Numpys,
    Other,
    Raw,
    Shape,
    ShownAs,
    Signed,
    ToOne,
    Unsigned,
)

Hosts: TypeAlias = HostArray | ArrayLike
Places: TypeAlias = NDArray[np.int64]


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


is_arithmetic = ShownAs[Arithmetic]()
is_extremum = ShownAs[Extremum]()
is_place = ShownAs[Place]()
is_truth = ShownAs[Truth]()
