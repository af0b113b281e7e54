"""Makes the functions of gpusort itself accept dask arrays, by dispatch to gpusort.dask."""

from __future__ import annotations

from typing import Any, cast

import dask.array as da

from ..api.prepared import Planning
from ..arrays.kinds import ArrayKind
from ..operations.argsort import Argsort, SortPairs
from ..operations.base import Operation
from ..operations.merge import Merge
from ..operations.select import TopK
from ..operations.sort import Sort
from ..types.errors import UnsupportedTypeError
from ..types.indices import SortOrder
from ..types.specs import Spec
from .selecting import top_k
from .sorting import argsort, sort, sort_by_key

_DOWN = SortOrder.DESCENDING


class DaskKind(ArrayKind[da.Array]):
    """dask.array.Array."""

    is_deferred = True

    def spec(self, name: str, array: da.Array) -> Spec:
        raise _unsupported("sorted in place")

    def deferred(self, operation: object, target: object, arrays: tuple[da.Array, ...]) -> object:
        if isinstance(target, Planning):
            raise _unsupported("planned for")
        where: Any = target  # checked by the function that is called
        match operation:
            case Sort(axis=axis, order=order, stable=stable, key=None, algorithm=None):
                return sort(*arrays, axis=axis, descending=order is _DOWN, stable=stable, target=where)
            case Argsort(axis=axis, order=order, key=None):
                return argsort(*arrays, axis=axis, descending=order is _DOWN, target=where)
            case SortPairs(order=order, key=None):
                return sort_by_key(*arrays, descending=order is _DOWN, target=where)
            case TopK(k=k, axis=axis, order=order, in_order=in_order, key=None):
                return top_k(arrays[0], k, axis=axis, largest=order is _DOWN, sorted=in_order, target=where)
            case Sort() | Argsort() | SortPairs() | TopK():
                raise _unsupported("sorted by a key or an algorithm of the caller's", operation.names[0])
            case Merge():
                raise _unsupported("merged", operation.names[0])
            case _:
                made = cast(Operation, operation)
                takes_none = f"{made.names[0]}: {made.called} takes no dask arrays; .compute() gives one that it takes"
                raise UnsupportedTypeError(takes_none)


DASK = DaskKind()


def _unsupported(what: str, name: str = "x") -> UnsupportedTypeError:
    return UnsupportedTypeError(f"{name}: dask arrays cannot be {what}; .compute() gives one that can")
