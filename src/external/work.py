"""What an external sort does with fixed-size elements: sorts keys, sorts records by fields, or finds an argsort."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import attrs
import numpy as np

from ..algos.host_partition import Partition
from ..algos.words import Transform
from ..types.dtypes import native
from ..types.indices import SortOrder
from .cuts import Array
from .order import Engine, KeyColumn, KeyOrder, words_of
from .parting import Ascending, Parting, foresee_sorts, partition_of

_INDEX = np.dtype("<i8")


class Work(Protocol):
    """How pieces become sorted runs, and slices of runs become sorted buckets."""

    @property
    def source(self) -> np.dtype[Any]:
        """The dtype of input elements."""
        ...

    @property
    def spilled(self) -> np.dtype[Any]:
        """The dtype of elements in runs."""
        ...

    @property
    def result(self) -> np.dtype[Any]:
        """The dtype of the result's elements."""
        ...

    @property
    def engine(self) -> Engine: ...

    @property
    def extra(self) -> int:
        """Temporary bytes for an element while a piece is sorted, besides input and output."""
        ...

    @property
    def parting(self) -> Parting | None:
        """How pieces are partitioned instead of sorted; None if they are not."""
        ...

    def describe(self) -> str:
        """Identifies the work, for the journal."""
        ...

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        """Sorts a piece of the input, from element `start` on, to a run. The piece may be overwritten."""
        ...

    def to_bucket(self, piece: Array, out: Array) -> None:
        """Sorts concatenated slices of runs to a bucket of the result. They may be overwritten."""
        ...

    def to_result(self, piece: Array, out: Array) -> None:
        """Sorts the whole input at once."""
        ...

    def words(self, spilled: Array) -> Array:
        """Integers or bytes that compare in the order of the runs' elements."""
        ...


@attrs.frozen(eq=False)
class SortElements:
    """Sorts elements that are keys themselves."""

    source: np.dtype[Any]
    order: SortOrder
    stable: bool
    engine: Engine

    @cached_property
    def to_words(self) -> Transform:
        return words_of(self.source, self.order, ranks=self.stable)

    @property
    def spilled(self) -> np.dtype[Any]:
        return native(self.source)

    @property
    def result(self) -> np.dtype[Any]:
        return self.source

    @property
    def extra(self) -> int:
        return self.source.itemsize

    @property
    def parting(self) -> Parting | None:
        if self.stable and self.source.kind == "f":
            return None  # a partition leaves floats that tie in any order
        change = Ascending(self.spilled, self.order)
        return PartElements(self, change, partition_of(self.engine, change.numbers))

    def describe(self) -> str:
        return f"sort {self.source.str} {self.order.value} {self.stable}"

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        del start
        self.engine.sort(self.in_native_order(piece), out, self.order, stable=self.stable)

    def to_bucket(self, piece: Array, out: Array) -> None:
        machines = out.view(self.spilled)
        self.engine.sort(piece, machines, self.order, stable=self.stable)
        self._swapped(machines)

    def to_result(self, piece: Array, out: Array) -> None:
        attrs.evolve(self, engine=self.engine.alone).to_run(piece, 0, out.view(self.spilled))
        self._swapped(out)

    def words(self, spilled: Array) -> Array:
        return self.to_words(spilled)

    def in_native_order(self, piece: Array) -> Array:
        """Of the machine's byte order, in place."""
        return self._swapped(piece).view(self.spilled)

    def _swapped(self, elements: Array) -> Array:
        """Converts in place between the file's and the machine's byte order."""
        return elements if self.source.isnative else elements.byteswap(inplace=True)


@attrs.frozen(eq=False)
class PartElements:
    """Partitions elements that are keys themselves."""

    work: SortElements
    change: Ascending
    partition: Partition | None

    def note(self, piece: Array, start: int) -> None:
        pass

    def numbers(self, piece: Array, start: int) -> Array:
        del start
        return self.change.apply(self.work.in_native_order(piece))

    def foresee_buckets(self, length: int) -> None:
        foresee_sorts(self.work.engine, self.change.dtype, self.change.order, length)

    def to_bucket(self, piece: Array, out: Array) -> None:
        self.change.undo(piece)
        self.work.to_bucket(piece, out)


@attrs.frozen(eq=False)
class SortRecords:
    """Sorts records by some of their fields, stably."""

    source: np.dtype[Any]
    fields: tuple[str, ...]
    order: SortOrder
    engine: Engine

    @cached_property
    def keys(self) -> KeyOrder:
        return KeyOrder.of([KeyColumn(self.source[field], self.order) for field in self.fields])

    @property
    def spilled(self) -> np.dtype[Any]:
        return self.source

    @property
    def result(self) -> np.dtype[Any]:
        return self.source

    @property
    def extra(self) -> int:
        return self.keys.extra

    @property
    def parting(self) -> Parting | None:
        return None

    def describe(self) -> str:
        return f"sort {np.lib.format.dtype_to_descr(self.source)} by {self.fields} {self.order.value}"

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        del start
        self.to_bucket(piece, out)

    def to_bucket(self, piece: Array, out: Array) -> None:
        indices = self.keys.argsort([piece[field] for field in self.fields], self.engine)
        np.take(piece, indices, out=out, mode="clip")  # mode "raise" would buffer the output

    def to_result(self, piece: Array, out: Array) -> None:
        self.to_bucket(piece, out)

    def words(self, spilled: Array) -> Array:
        return self.keys.words([spilled[field] for field in self.fields])


@attrs.frozen(eq=False)
class FindIndices:
    """Finds the stable argsort of elements or records. Runs hold keys with their indices in the input."""

    source: np.dtype[Any]
    fields: tuple[str, ...]  # none: the elements are the keys
    order: SortOrder
    engine: Engine
    result: np.dtype[Any] = _INDEX

    @cached_property
    def keys(self) -> KeyOrder:
        dtypes = [self.source[field] for field in self.fields] or [self.source]
        return KeyOrder.of([KeyColumn(native(dtype), self.order) for dtype in dtypes])

    @property
    def spilled(self) -> np.dtype[Any]:
        return np.dtype([("index", _INDEX), *((f"key{i}", key.dtype) for i, key in enumerate(self.keys.columns))])

    @property
    def extra(self) -> int:
        return self.keys.extra

    @property
    def parting(self) -> Parting | None:
        return None

    def describe(self) -> str:
        return f"argsort {np.lib.format.dtype_to_descr(self.source)} by {self.fields} {self.order.value}"

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        keys = self._of_source(piece)
        indices = self.keys.argsort(keys, self.engine)
        np.add(indices, start, out=out["index"])
        for i, key in enumerate(keys):
            out[f"key{i}"] = key[indices]

    def to_bucket(self, piece: Array, out: Array) -> None:
        np.take(piece["index"], self.keys.argsort(self._of_run(piece), self.engine), out=out, mode="clip")

    def to_result(self, piece: Array, out: Array) -> None:
        out[:] = self.keys.argsort(self._of_source(piece), self.engine)

    def words(self, spilled: Array) -> Array:
        return self.keys.words(self._of_run(spilled))

    def _of_source(self, piece: Array) -> list[Array]:
        return [piece[field] for field in self.fields] or [piece]

    def _of_run(self, spilled: Array) -> list[Array]:
        return [spilled[f"key{i}"] for i in range(len(self.keys.columns))]
