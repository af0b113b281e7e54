"""Exportable top-k selections, one for each requested k."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs

from ..algos.radix_sorts import SwitchedKey
from ..algos.select import SelectByParts, top_k
from ..algos.select_rows import PartPolicy
from ..kernel.launch import Schedule
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.keys import RankKey, SortableKey
from .variants import Request, Rows, Variant

_FEW, _MANY = (SelectByParts(PartPolicy(group_size=128, items=16, sets=64)),
               SelectByParts(PartPolicy(group_size=256, items=16, sets=256)))  # fmt: skip
MOST = _MANY.most_k
_NAMES = {"data": ("keys",), "values": ("into",), "indices": ("indices",)}


def selections(request: Request) -> Iterator[Variant]:
    """Selections of one row, and of many. Raises InvalidArgumentError for k out of range."""
    for name, key in request.keys.items():
        for k in request.k:
            if not 1 <= k <= MOST:
                raise InvalidArgumentError(f"k: expected 1 to {MOST}, found {k}; a sort gives more")
            wished = _FEW if k <= _FEW.most_k else _MANY
            lengths = [row for row in request.rows if row is Rows.ANY or row >= k]
            for row in (None, *lengths):
                selection = wished.fitted(key, k if row is None or row is Rows.ANY else row, k, request.info)
                made = Variant.of_row(f"top_k {name} {k}", partial(_top_k, key, selection, k), row, _NAMES)
                yield made if isinstance(row, int) else attrs.evolve(made, shortest=k)


def _top_k(
    key: SortableKey[Any, Any], selection: SelectByParts, k: int, rows: int, length: int, order: SortOrder
) -> Schedule:
    either_order = SwitchedKey.of(RankKey(key), True, order)  # the order is a parameter, so that both share a kernel
    return top_k(either_order, rows, length, k, SortOrder.ASCENDING, selection)
