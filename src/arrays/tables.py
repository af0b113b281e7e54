"""Columns of tables: Series and indexes of pandas, Series of polars, arrays of pyarrow.

They are read where they lie if NumPy can see them so, and never written to. Results are of the same kind, with the
name of the column they came from; NumPy would call them positions and values, so a Series of pandas gets a new
RangeIndex. An element that is missing has no place in an order that all libraries agree on: it is refused.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Hashable
from typing import Any, cast

import numpy as np

from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.specs import Memory, Spec
from .host import HOST
from .kinds import ArrayKind, DType, HostArray, Kind


class ColumnKind(ArrayKind[Any, HostArray]):
    """What columns of all libraries have in common. One that is being made is NumPy's until it is finished."""

    space = HOST
    is_host = True
    finishes = True

    @abstractmethod
    def _values(self, column: Any) -> HostArray:
        """As NumPy's: the same memory if it can be."""

    @abstractmethod
    def _dtype(self, column: Any) -> Hashable:
        """As the library names it."""

    @abstractmethod
    def _fits(self, column: Any) -> bool:
        """Whether it holds what NumPy has a dtype for."""

    @abstractmethod
    def _missing(self, column: Any) -> bool:
        """Whether any element is null. NaN and NaT of NumPy's own dtypes are numbers here, which sort last."""

    @abstractmethod
    def _made(self, values: HostArray, like: Any) -> object:
        """A column of one dimension."""

    def _scalar(self, value: np.generic) -> object:
        return value

    def signature(self, array: Any) -> Hashable:
        if isinstance(array, np.ndarray):
            values = cast(HostArray, array)
            return values.dtype, values.ndim, values.flags.num
        if not self._fits(array) or self._missing(array):
            return self._dtype(array), self._missing(array)  # which `spec` refuses
        return self._dtype(array), self._values(array).flags.num

    def spec(self, name: str, array: Any) -> Spec:
        if not isinstance(array, np.ndarray):
            self._require_fits(name, array)
        view = self.view(array)
        return Spec(view.shape, view.dtype, Memory.HOST, None if HOST.is_packed(view) else view.strides)

    def _require_fits(self, name: str, column: Any) -> None:
        what = f"{type(column).__name__} of {self._dtype(column)}"
        if not self._fits(column):
            raise UnsupportedTypeError(
                f"{name}: expected a column of numbers, bools, or times without a time zone; found {what}"
            )
        if self._missing(column):
            raise InvalidArgumentError(
                f"{name}: found a {what} in which elements are missing; drop them or fill them first"
            )

    def empty(self, shape: tuple[int, ...], dtype: DType, like: Any) -> Any:
        return HOST.empty(shape, dtype)

    def empty_like(self, like: Any) -> Any:
        view = self.view(like)
        return HOST.empty(view.shape, view.dtype)

    def finished(self, made: Any, like: Any) -> object:
        return self.given_back(made, like)

    def memory(self, array: Any) -> object:
        return self.view(array)

    def is_packed(self, array: Any) -> bool:
        return HOST.is_packed(self.view(array))

    def is_read_only(self, array: Any) -> bool:
        return not isinstance(array, np.ndarray)

    def view(self, array: Any) -> HostArray:
        return cast(HostArray, array) if isinstance(array, np.ndarray) else self._values(array)

    def given_back(self, values: HostArray, like: Any) -> object:
        if values.dtype.names is not None:
            return values
        if values.ndim == 0:
            return self._scalar(cast("np.generic", values[()]))
        return self._made(values, like) if values.ndim == 1 else values


class PandasKind(ColumnKind):
    """A Series or Index, of NumPy's dtypes, pandas' nullable ones, or Arrow's."""

    def _values(self, column: Any) -> HostArray:
        dtype = column.dtype
        return cast(HostArray, column.to_numpy() if isinstance(dtype, np.dtype) else column.to_numpy(_plain(dtype)))

    def _dtype(self, column: Any) -> Hashable:
        return cast(Hashable, column.dtype)

    def _fits(self, column: Any) -> bool:
        dtype = column.dtype
        return column.ndim == 1 and (isinstance(dtype, np.dtype) or _plain(dtype) is not None)

    def _missing(self, column: Any) -> bool:
        return not isinstance(column.dtype, np.dtype) and bool(column.hasnans)

    def _made(self, values: HostArray, like: Any) -> object:
        pandas, dtype = sys.modules["pandas"], like.dtype
        library: Any = pandas.Index if isinstance(like, pandas.Index) else pandas.Series
        is_same = not isinstance(dtype, np.dtype) and _plain(dtype) == values.dtype
        return library(values, name=like.name, copy=False, dtype=dtype if is_same else None)


def _plain(dtype: Any) -> DType | None:
    """NumPy's dtype for a nullable one of pandas, where it has a number's or bool's."""
    found = getattr(dtype, "numpy_dtype", None)
    return cast(DType, found) if isinstance(found, np.dtype) and found.kind in "biufmM" else None


class PolarsKind(ColumnKind):
    """A Series."""

    _NUMBERS = frozenset(f"{kind}{bits}" for kind in ("Int", "UInt", "Float") for bits in (8, 16, 32, 64))
    _OTHERS = frozenset({"Boolean", "Date", "Datetime", "Duration"})

    def _values(self, column: Any) -> HostArray:
        return cast(HostArray, column.to_numpy())

    def _dtype(self, column: Any) -> Hashable:
        return cast(Hashable, column.dtype)

    def _fits(self, column: Any) -> bool:
        dtype = column.dtype
        name = str(dtype.base_type())
        return name in self._NUMBERS or (name in self._OTHERS and getattr(dtype, "time_zone", None) is None)

    def _missing(self, column: Any) -> bool:
        return column.null_count() > 0  # type: ignore[no-any-return]  # polars is not known to the checkers

    def _made(self, values: HostArray, like: Any) -> object:
        return sys.modules["polars"].Series(like.name, values)

    def _scalar(self, value: np.generic) -> object:
        return value.item() if value.dtype.kind not in "mM" else value  # as polars' own reductions give it


class PyArrowKind(ColumnKind):
    """An Array or a ChunkedArray. One of several chunks is copied."""

    def _values(self, column: Any) -> HostArray:
        if hasattr(column, "num_chunks"):
            if column.num_chunks != 1:
                return cast(HostArray, column.to_numpy())
            column = column.chunk(0)
        return cast(HostArray, column.to_numpy(zero_copy_only=False))

    def _dtype(self, column: Any) -> Hashable:
        return cast(Hashable, column.type)

    def _fits(self, column: Any) -> bool:
        types, dtype = sys.modules["pyarrow"].types, column.type
        if types.is_timestamp(dtype):
            return dtype.tz is None
        return bool(
            types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype) or types.is_date32(dtype)
            or types.is_duration(dtype)
        )  # fmt: skip

    def _missing(self, column: Any) -> bool:
        return column.null_count > 0  # type: ignore[no-any-return]  # pyarrow is not known to the checkers

    def _made(self, values: HostArray, like: Any) -> object:
        pyarrow = sys.modules["pyarrow"]
        made = pyarrow.array(values)
        return pyarrow.chunked_array([made]) if hasattr(like, "num_chunks") else made

    def _scalar(self, value: np.generic) -> object:
        return sys.modules["pyarrow"].scalar(value)


KINDS: dict[str, Kind] = {"pandas": PandasKind(), "polars": PolarsKind(), "pyarrow": PyArrowKind()}
