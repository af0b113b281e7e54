"""Columns of tables: Series, indexes and arrays of pandas, Series of polars, arrays of pyarrow.

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
from ..types.specs import DType, HostArray
from .host import NUMPY
from .kinds import Viewed


class ColumnKind(Viewed[Any, HostArray]):
    """Common to the columns of all libraries."""

    is_host, base, tells_by_view = True, NUMPY, False
    read_only = "a column of a table, which may share its elements with others"
    copies = True  # pandas' and polars' own: what they are made of is not to be written any more

    def _dtype(self, column: Any) -> Hashable:
        """The column's dtype, in the library's own terms."""
        return cast(Hashable, column.dtype)

    @abstractmethod
    def _fits(self, column: Any) -> bool:
        """Whether NumPy has a dtype for the elements."""

    def _missing(self, column: Any) -> bool:
        """Whether any element is null. NaN and NaT of NumPy's own dtypes are numbers here, which sort last."""
        count = column.null_count  # polars' is a method
        return bool(count() if callable(count) else count)

    @abstractmethod
    def _values(self, column: Any) -> HostArray:
        """The elements as NumPy sees them, where it can."""

    @abstractmethod
    def _made(self, values: HostArray, like: Any) -> object:
        """Makes a column of a one-dimensional array."""

    def _scalar(self, value: np.generic) -> object:
        return value

    def view(self, array: Any, name: str = "x") -> HostArray:
        if not self._fits(array):
            raise UnsupportedTypeError(
                f"{name}: expected a column of numbers, bools, or times without a time zone; found "
                f"{type(array).__name__} of {self._dtype(array)}"
            )
        if self._missing(array):
            raise InvalidArgumentError(
                f"{name}: found missing elements in {type(array).__name__} of {self._dtype(array)}; drop or fill them "
                "first"
            )
        return self._values(array)

    def is_read_only(self, array: Any) -> bool:
        return True

    def given_back(self, values: HostArray, like: Any) -> object:
        if values.ndim == 0:
            return self._scalar(cast("np.generic", values[()]))
        return self._made(values, like) if values.ndim == 1 else values


class PandasKind(ColumnKind):
    """A Series or Index, of NumPy's dtypes, pandas' nullable ones, or Arrow's."""

    def _values(self, column: Any) -> HostArray:
        dtype = column.dtype
        return cast(HostArray, column.to_numpy() if isinstance(dtype, np.dtype) else column.to_numpy(_plain(dtype)))

    def _fits(self, column: Any) -> bool:
        dtype = column.dtype
        if isinstance(dtype, np.dtype):
            return bool(dtype.kind != "O")  # texts, objects of Python, and tuples of several columns
        return column.ndim == 1 and _plain(dtype) is not None

    def _missing(self, column: Any) -> bool:
        return not isinstance(column.dtype, np.dtype) and bool(column.isna().any())

    def _made(self, values: HostArray, like: Any) -> object:
        pandas, dtype = sys.modules["pandas"], like.dtype
        library: Any = pandas.Index if isinstance(like, pandas.Index) else pandas.Series
        is_same = not isinstance(dtype, np.dtype) and _plain(dtype) == values.dtype
        return library(_nullable(values, dtype) if is_same else values, name=like.name, copy=False)


class PandasArrayKind(PandasKind):
    """pandas' extension arrays. NumPy itself would round integers to floats and make missing ones NaN."""

    def _missing(self, column: Any) -> bool:
        return not _holds_numpys(column) and super()._missing(column)

    def _made(self, values: HostArray, like: Any) -> object:
        made: Any = super()._made(values, sys.modules["pandas"].Series(like, copy=False))
        is_same = _holds_numpys(like) and like.dtype.numpy_dtype == values.dtype
        return made.array if is_same or made.dtype.kind in "mM" or not isinstance(made.dtype, np.dtype) else values


def _holds_numpys(array: Any) -> bool:
    """Whether an extension array is pandas' wrapper of an array of NumPy's, to which NaN is a number."""
    return isinstance(array, sys.modules["pandas"].arrays.NumpyExtensionArray)


def _nullable(values: HostArray, dtype: Any) -> object:
    """A nullable pandas array with no element missing: pandas' own constructor would take NaN for missing."""
    made = dtype.construct_array_type()
    if hasattr(dtype, "pyarrow_dtype"):
        return made(sys.modules["pyarrow"].array(values, type=dtype.pyarrow_dtype))
    return made(values, np.zeros(values.shape, np.bool_))


def _plain(dtype: Any) -> DType | None:
    """NumPy's dtype for a nullable one of pandas, where it has a number's, a bool's or that of times without a zone."""
    if getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None) is not None:
        return None
    found = getattr(dtype, "numpy_dtype", None)
    return cast(DType, found) if isinstance(found, np.dtype) and found.kind in "biufmM" else None


class PolarsKind(ColumnKind):
    """A Series."""

    _NUMBERS = frozenset(f"{kind}{bits}" for kind in ("Int", "UInt", "Float") for bits in (8, 16, 32, 64))
    _OTHERS = frozenset({"Boolean", "Date", "Datetime", "Duration"})

    def _values(self, column: Any) -> HostArray:
        return cast(HostArray, column.to_numpy())

    def _fits(self, column: Any) -> bool:
        dtype = column.dtype
        name = str(dtype.base_type())
        return name in self._NUMBERS or (name in self._OTHERS and getattr(dtype, "time_zone", None) is None)

    def _made(self, values: HostArray, like: Any) -> object:
        return sys.modules["polars"].Series(like.name, values)

    def _scalar(self, value: np.generic) -> object:
        """A scalar as polars' own reductions return it."""
        return value.item() if value.dtype.kind not in "mM" else sys.modules["polars"].Series(np.array([value])).item()


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

    def _made(self, values: HostArray, like: Any) -> object:
        pyarrow = sys.modules["pyarrow"]
        made = pyarrow.array(values)
        return pyarrow.chunked_array([made]) if hasattr(like, "num_chunks") else made

    def _scalar(self, value: np.generic) -> object:
        return sys.modules["pyarrow"].array(np.array([value]))[0]  # whose `scalar` takes no days


PANDAS, PANDAS_ARRAYS, POLARS, PYARROW = PandasKind(), PandasArrayKind(), PolarsKind(), PyArrowKind()
