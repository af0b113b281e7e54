"""Columns of tables: Series, indexes and arrays of pandas, Series of polars, arrays of pyarrow.

They are read where they lie if NumPy can see them so, and never written to. Results are of the same kind, with the
name of the column they came from; NumPy would call them positions and values, so a Series of pandas gets a new
RangeIndex, unless its elements are still in their places. An element that is missing has no place in an order that all
libraries agree on: it is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, cast

import numpy as np

from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.libraries import Library
from ..types.specs import DType, HostArray
from .host import NUMPY
from .kinds import Viewed

# Held for calls at the interpreter's end, when nothing is imported any more.
pandas, polars, pyarrow = Library("pandas"), Library("polars"), Library("pyarrow")


class ColumnKind(Viewed[Any, HostArray]):
    """Common to the columns of all libraries."""

    is_host, base = True, NUMPY
    read_only = "a column of a table, which may share its elements with others"
    copies = True  # pandas' and polars' own: what they are made of is not to be written any more

    @abstractmethod
    def _fits(self, column: Any) -> bool:
        """Whether NumPy has a dtype for the elements."""

    def _missing(self, column: Any) -> bool:
        """Whether any element is null. NaN and NaT of NumPy's own dtypes are numbers here, which sort last."""
        count = column.null_count  # polars' is a method
        return bool(count() if callable(count) else count)

    @abstractmethod
    def values(self, column: Any) -> HostArray:
        """The elements as NumPy sees them, where it can."""

    @abstractmethod
    def _made(self, values: HostArray, like: Any) -> object:
        """Makes a column of a one-dimensional array."""

    def _scalar(self, value: np.generic, like: Any) -> object:
        return value

    def view(self, array: Any, name: str = "x") -> HostArray:
        if not self._fits(array):
            raise UnsupportedTypeError(
                f"{name}: expected a column of numbers, bools, dates, durations, or timestamps without a time zone; "
                f"found {_described(array)}"
            )
        if self._missing(array):
            raise InvalidArgumentError(
                f"{name}: found missing elements in {_described(array)}; drop or fill them first"
            )
        return self.values(array)

    def is_read_only(self, array: Any) -> bool:
        return True

    def given_back(self, values: HostArray, like: Any) -> object:
        if values.ndim == 0:
            return self._scalar(cast("np.generic", values[()]), like)
        return self._made(values, like) if values.ndim == 1 else values


def _described(column: Any) -> str:
    """In words that take longer to find than a short column's call."""
    return f"{type(column).__name__} of {column.dtype if hasattr(column, 'dtype') else column.type}"


class PandasKind(ColumnKind):
    """A Series or Index, of NumPy's dtypes, pandas' nullable ones, or Arrow's."""

    def values(self, column: Any) -> HostArray:
        dtype = column.dtype
        if isinstance(dtype, np.dtype):
            return cast(HostArray, column.__array__())  # where it lies; to_numpy takes four times as long for times
        array, plain = _array_of(column), cast(DType, _plain(dtype))
        if hasattr(dtype, "pyarrow_dtype"):
            return PYARROW.values(array.__arrow_array__()).astype(plain, copy=False)  # of days pandas makes others
        return cast(HostArray, array.to_numpy(plain))

    def _fits(self, column: Any) -> bool:
        dtype = column.dtype
        if isinstance(dtype, np.dtype):
            return bool(dtype.kind != "O")  # texts, objects of Python, and tuples of several columns
        return column.ndim == 1 and _plain(dtype) is not None

    def _missing(self, column: Any) -> bool:
        if isinstance(column.dtype, np.dtype):
            return False
        array = _array_of(column)
        is_arrows = hasattr(column.dtype, "pyarrow_dtype")  # Arrow has counted
        return bool(array.__arrow_array__().null_count if is_arrows else array.isna().any())

    def _made(self, values: HostArray, like: Any) -> object:
        held, index = _held(values, like.dtype), pandas.Index
        if isinstance(like, index):
            return index(held, name=like.name, copy=False)
        return like._constructor(held, name=like.name, copy=False).__finalize__(like)  # its class, attrs and flags

    def in_places(self, result: Any, like: Any) -> object:
        if hasattr(like, "index") and hasattr(result, "index"):  # a Series, and not NumPy's states of several fields
            result.index = like.index
        return result


class PandasArrayKind(PandasKind):
    """pandas' extension arrays. NumPy itself would round integers to floats and make missing ones NaN."""

    def _missing(self, column: Any) -> bool:
        return not _holds_numpys(column) and super()._missing(column)

    def _made(self, values: HostArray, like: Any) -> object:
        is_numpys = _holds_numpys(like)
        held = values if is_numpys else _held(values, like.dtype)
        is_same = is_numpys and like.dtype.numpy_dtype == values.dtype
        wraps = held is values and (is_same or values.dtype.kind in "mM")
        return pandas.Series(values, copy=False).array if wraps else held


def _array_of(column: Any) -> Any:
    """What a Series or an Index is made of, which answers several times as fast; an array itself."""
    return getattr(column, "array", column)


def _holds_numpys(array: Any) -> bool:
    """Whether an extension array is pandas' wrapper of an array of NumPy's, to which NaN is a number."""
    return isinstance(array, pandas.arrays.NumpyExtensionArray)


def _held(values: HostArray, dtype: Any) -> object:
    """What a column of a dtype is made of, with no element missing, where that is one of pandas' own for just such
    values: its constructor would take NaN for missing. Else the values."""
    if isinstance(dtype, np.dtype) or _plain(dtype) != values.dtype:
        return values
    made = dtype.construct_array_type()
    if hasattr(dtype, "pyarrow_dtype"):
        return made(pyarrow.array(values, type=dtype.pyarrow_dtype))
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

    def values(self, column: Any) -> HostArray:
        return cast(HostArray, column.to_numpy())

    def _fits(self, column: Any) -> bool:
        dtype = column.dtype
        name = str(dtype.base_type())
        return name in self._NUMBERS or (name in self._OTHERS and getattr(dtype, "time_zone", None) is None)

    def _made(self, values: HostArray, like: Any) -> object:
        make = polars.Series
        if values.dtype.kind not in "mM":
            return make(like.name, values)
        return make(like.name, values.view(np.int64)).cast(like.dtype)  # of times it makes copies, and looks for NaT

    def _scalar(self, value: np.generic, like: Any) -> object:
        """A scalar as polars' own reductions return it."""
        made: Any = value if value.dtype.kind not in "mM" else self._made(np.array([value]), like)
        return made.item()


class PyArrowKind(ColumnKind):
    """An Array or a ChunkedArray. One of several chunks is copied."""

    _LONG_CHUNK = 1 << 10  # elements, from which Arrow puts chunks together in less time than for NumPy

    def values(self, column: Any) -> HostArray:
        if hasattr(column, "num_chunks"):
            chunks = column.num_chunks
            if chunks != 1 and len(column) <= self._LONG_CHUNK * chunks:
                return cast(HostArray, column.to_numpy())
            column = column.chunk(0) if chunks == 1 else column.combine_chunks()
        return cast(HostArray, column.to_numpy(zero_copy_only=False))

    def _fits(self, column: Any) -> bool:
        types, dtype = pyarrow.types, column.type
        if types.is_timestamp(dtype):
            return dtype.tz is None
        return bool(
            types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype) or types.is_date(dtype)
            or types.is_duration(dtype)
        )  # fmt: skip

    def _made(self, values: HostArray, like: Any) -> object:
        made = pyarrow.array(values, like.type if values.dtype.kind in "mM" else None)  # of days there are two types
        return pyarrow.chunked_array([made]) if hasattr(like, "num_chunks") else made

    def _scalar(self, value: np.generic, like: Any) -> object:
        return cast(Any, self._made(np.array([value]), like))[0]


PANDAS, PANDAS_ARRAYS, POLARS, PYARROW = PandasKind(), PandasArrayKind(), PolarsKind(), PyArrowKind()
