"""Takes rows of a table, also where pyarrow has no kernel for a column's type: polars writes text as string views."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..types.errors import UnsupportedTypeError
from .arrow_values import indices_array
from .cuts import Indices

if TYPE_CHECKING:
    import pyarrow as pa


def take_rows(table: pa.Table, indices: Indices) -> pa.Table:
    """The table's rows at some indices, column by column, so that only one is there in chunks and as a whole. Views of
    text and bytes are copied to arrays of them and back."""
    import pyarrow as pa

    places = indices_array(indices)
    taken: list[pa.Array] = []
    for column in table.columns:
        kind = _without_views(column.type)
        if column.type == kind:
            taken.append(column.combine_chunks().take(places))
        else:
            taken.append(column.cast(kind).combine_chunks().take(places).cast(column.type))
    return pa.Table.from_arrays(taken, schema=table.schema)


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type that holds the same elements without views; itself if there are none in it."""
    import pyarrow as pa

    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    fields = [kind.field(number) for number in range(kind.num_fields)]
    plain = [field.with_type(_without_views(field.type)) for field in fields]
    if plain == fields:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(plain)
    if pa.types.is_map(kind):
        entry = plain[0].type
        return pa.map_(entry.field(0), entry.field(1), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(plain[0])
    if pa.types.is_large_list(kind):
        return pa.large_list(plain[0])
    return pa.list_(plain[0], kind.list_size) if pa.types.is_fixed_size_list(kind) else kind


@contextmanager
def naming_pyarrow(source: object) -> Generator[None, None, None]:
    """Translates what pyarrow has no code for to UnsupportedTypeError."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedTypeError(
            f"source: pyarrow {pa.__version__} cannot sort or write some column of {source}: {error}; cast such "
            "columns to another type, or leave them out"
        ) from error
