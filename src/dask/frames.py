"""sort_values for dask dataframes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np
from dask.base import optimize

from ..api.arguments import ORDERS
from ..api.engine import OwnEngine
from ..external.cuts import Array, Indices
from ..external.order import KeyColumn, KeyOrder
from ..types.checks import checked_flag
from ..types.dtypes import SUPPORTED, is_ordered
from ..types.errors import InvalidArgumentError, UnsupportedTypeError
from ..types.indices import SortOrder
from ..types.libraries import Library
from .cutting import Run, Work
from .exchange import BOXED, Exchange, exchanged
from .sorting import checked_target, require

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    from dask.dataframe import dispatch
else:
    dd, dispatch, pd = map(Library, ("dask.dataframe", "dask.dataframe.dispatch", "pandas"))


def sort_values(
    frame: dd.DataFrame, by: Hashable | Sequence[Hashable], *, ascending: bool | Sequence[bool] = True,
    target: str = "auto", exchange: str = "auto",
) -> dd.DataFrame:  # fmt: skip
    """Sorts the rows of a dask dataframe by one column, or lexicographically by several. Stable, and lazy.
    `ascending` is one for all columns, or a list with one for each.

    NaN and NaT come last in both directions. The result has as many partitions, of the same lengths, as the frame, and
    rows keep their index. Unlike dask's own, it does not compute the frame first to find its divisions. `target` and
    `exchange` are those of `gpusort.dask.sort`.
    """
    require("frame", frame, dd.DataFrame)
    meta = dispatch.make_meta(frame)
    keys = _keys(meta, by, ascending)
    work = SortRows(keys, checked_target(target))
    runs = frame.map_partitions(work.to_run, meta=BOXED, enforce_metadata=False)
    way = Exchange.of(exchange, runs, frame.npartitions)
    if frame.npartitions == 1:
        found = runs.map_blocks(itemgetter(0), meta=BOXED)
    else:
        (found,) = optimize(exchanged(runs, work, way, BOXED, runs.chunks))  # fuses tasks, as is not done for frames
    made: object = found.map_blocks(_identity, token="gpusort-sorted", meta=meta)
    return cast("dd.DataFrame", made)  # map_blocks returns one for such a meta


@attrs.frozen
class RowKey:
    """A column to sort by."""

    name: object  # its label
    dtype: np.dtype[Any]  # NumPy's, of its values
    descending: bool
    may_be_null: bool  # whether it tells nulls apart from values, as pandas' Int64 does; they come last

    @property
    def columns(self) -> list[KeyColumn]:
        """What orders it: where it may be null, first whether it is."""
        nulls = [KeyColumn(np.dtype(np.bool_), SortOrder.ASCENDING)] if self.may_be_null else []
        return [*nulls, KeyColumn(self.dtype, ORDERS[self.descending])]

    def values(self, column: pd.Series) -> list[Array]:
        """The arrays that `columns` order. Times with a zone are those of UTC; dates of Arrow are times."""
        self._require_fits(column)
        if not self.may_be_null:
            return [column.to_numpy(self.dtype)]
        if self.dtype.kind == "M":  # Arrow's, of which pandas makes objects where they are dates
            column = column.astype(f"timestamp[{np.datetime_data(self.dtype)[0]}][pyarrow]")
        zero = np.zeros((), self.dtype)[()]
        return [column.isna().to_numpy(), column.to_numpy(self.dtype, na_value=zero)]

    def _require_fits(self, column: pd.Series) -> None:
        """Raises UnsupportedTypeError where a partition has other elements than the frame says, which would be ordered
        by what they are converted to: floats in a column of ints, as `read_csv` makes of one with blanks."""
        if not len(column):
            return
        seen, may_lack = _seen(column), self.may_be_null or self.dtype.kind not in "biu"
        if seen is None or not np.can_cast(seen, self.dtype) or (not may_lack and column.isna().to_numpy().any()):
            raise UnsupportedTypeError(
                f"frame: expected {self.dtype} in the column {self.name!r} of every partition, as the frame says; "
                f"found {column.dtype}, e.g. `frame.astype({{{self.name!r}: {str(column.dtype)!r}}})`"
            )


@attrs.frozen
class SortRows(Work):
    """Sorts dataframes by columns."""

    keys: tuple[RowKey, ...]
    target: str

    @property
    def order(self) -> KeyOrder:
        return KeyOrder([column for key in self.keys for column in key.columns])

    def of_chunk(self, chunk: pd.DataFrame) -> pd.DataFrame:
        return chunk.iloc[self.order.argsort(self._columns(chunk), OwnEngine(self.target))]

    def to_run(self, chunk: pd.DataFrame) -> Run:
        return (self.of_chunk(chunk),)

    def words(self, run: Run, indices: slice | Indices) -> Array:
        return self.order.words([column[indices] for column in self._columns(run[0])])

    def piece(self, run: Run, start: int, stop: int, offset: int) -> Run:
        return (run[0].iloc[start:stop],)

    def to_chunk(self, pieces: Sequence[Run]) -> pd.DataFrame:
        some = [frame for (frame,) in pieces if len(frame)]
        return self.of_chunk(dispatch.concat(some)) if some else pieces[0][0]  # of columns of categories it unites them

    def _columns(self, frame: pd.DataFrame) -> list[Array]:
        return [values for key in self.keys for values in key.values(frame[key.name])]


def _keys(
    meta: pd.DataFrame, by: Hashable | Sequence[Hashable], ascending: bool | Sequence[bool]
) -> tuple[RowKey, ...]:
    columns = Counter[object](meta.columns)  # labels, which need not be text, and may be those of two columns
    known = {name: None for name, count in columns.items() if count == 1}
    names = [by] if isinstance(by, str) or _is_among(by, known) else _listed(by)
    if not names or not all(_is_among(name, known) for name in names):
        raise InvalidArgumentError(f"by: expected one or more of {', '.join(map(str, known))}, found {by!r}")
    ups = list(ascending) if isinstance(ascending, list | tuple) else [ascending] * len(names)
    if len(ups) != len(names):
        raise InvalidArgumentError(f"ascending: expected one for each of {len(names)} columns, found {len(ups)}")
    return tuple(_key(meta, name, not checked_flag("ascending", up)) for name, up in zip(names, ups, strict=True))


def _is_among(name: object, known: Mapping[object, None]) -> bool:
    """Whether it is one of these labels; what has no hash is none."""
    try:
        return name in known
    except TypeError:
        return False


def _listed(by: object) -> list[object]:
    """Several labels in their order, which a set does not have."""
    has_order = isinstance(by, Iterable) and not isinstance(by, set | frozenset)
    return list(cast("Iterable[object]", by)) if has_order else []


def _key(meta: pd.DataFrame, name: object, descending: bool) -> RowKey:
    dtype, seen = meta[name].dtype, _seen(meta[name])
    if seen is None or not is_ordered(seen):
        raise UnsupportedTypeError(
            f"by: cannot order the column {name!r} of dtype {dtype}; supported: {SUPPORTED}, and pandas' dtypes of "
            "such values with nulls or time zones"
        )
    return RowKey(name, seen, descending, may_be_null=hasattr(dtype, "numpy_dtype"))


def _seen(column: pd.Series) -> np.dtype[Any] | None:
    """NumPy's dtype of a column's values: of pandas' masked and Arrow dtypes, and of times with a zone, too."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        return np.dtype(f"M8[{dtype.unit}]")
    return cast("np.dtype[Any] | None", getattr(dtype, "numpy_dtype", None))


def _identity(x: Any) -> Any:
    return x
