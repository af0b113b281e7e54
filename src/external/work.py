"""What is done to pieces of a file of fixed-size elements: to the pieces themselves, to records by some of their
fields, or to keys whose places are wanted."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import attrs
import numpy as np

from ..algos.words import Transform
from ..types.dtypes import native
from ..types.indices import SortOrder
from .cuts import Array
from .order import Engine, KeyColumn, KeyOrder, words_of

_PLACE = np.dtype("<i8")


class Work(Protocol):
    """How the pieces of a file become runs, and slices of runs buckets."""

    @property
    def source(self) -> np.dtype[Any]:
        """Elements as they are read."""
        ...

    @property
    def spilled(self) -> np.dtype[Any]:
        """Elements as they lie in runs."""
        ...

    @property
    def result(self) -> np.dtype[Any]:
        """Elements as they are written in the end."""
        ...

    @property
    def engine(self) -> Engine: ...

    @property
    def extra(self) -> int:
        """Bytes that sorting takes for an element, besides what it reads and what it writes."""
        ...

    def describe(self) -> str:
        """What tells this work from others, for the journal."""
        ...

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        """Sorts a piece of the source, which starts at some element of it. The piece may be spoilt."""
        ...

    def to_bucket(self, piece: Array, out: Array) -> None:
        """Sorts slices of runs, one behind the other. They may be spoilt."""
        ...

    def to_result(self, piece: Array, out: Array) -> None:
        """Sorts a whole source at once."""
        ...

    def words(self, spilled: Array) -> Array:
        """What compares as elements of runs are ordered."""
        ...


@attrs.frozen(eq=False)
class SortElements:
    """Elements that are keys themselves."""

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

    def describe(self) -> str:
        return f"sort {self.source.str} {self.order.value} {self.stable}"

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        del start
        self.engine.sort(self._swapped(piece).view(self.spilled), out, self.order, stable=self.stable)

    def to_bucket(self, piece: Array, out: Array) -> None:
        machines = out.view(self.spilled)
        self.engine.sort(piece, machines, self.order, stable=self.stable)
        self._swapped(machines)

    def to_result(self, piece: Array, out: Array) -> None:
        attrs.evolve(self, engine=self.engine.alone).to_run(piece, 0, out.view(self.spilled))
        self._swapped(out)

    def words(self, spilled: Array) -> Array:
        return self.to_words(spilled)

    def _swapped(self, elements: Array) -> Array:
        """From the file's byte order to the machine's, or back, where they lie."""
        return elements if self.source.isnative else elements.byteswap(inplace=True)


@attrs.frozen(eq=False)
class SortRecords:
    """Records by some of their fields. They stay in the order they came in where those are equal."""

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

    def describe(self) -> str:
        return f"sort {np.lib.format.dtype_to_descr(self.source)} by {self.fields} {self.order.value}"

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        del start
        self.to_bucket(piece, out)

    def to_bucket(self, piece: Array, out: Array) -> None:
        places = self.keys.places([piece[field] for field in self.fields], self.engine)
        np.take(piece, places, out=out, mode="clip")  # with "raise" NumPy would make another copy

    def to_result(self, piece: Array, out: Array) -> None:
        self.to_bucket(piece, out)

    def words(self, spilled: Array) -> Array:
        return self.keys.words([spilled[field] for field in self.fields])


@attrs.frozen(eq=False)
class FindPlaces:
    """The places that sorted elements, or records, come from. Runs hold keys with their places in the source."""

    source: np.dtype[Any]
    fields: tuple[str, ...]  # none: the elements are the keys
    order: SortOrder
    engine: Engine
    result: np.dtype[Any] = _PLACE

    @cached_property
    def keys(self) -> KeyOrder:
        dtypes = [self.source[field] for field in self.fields] or [self.source]
        return KeyOrder.of([KeyColumn(native(dtype), self.order) for dtype in dtypes])

    @property
    def spilled(self) -> np.dtype[Any]:
        return np.dtype([("place", _PLACE), *((f"key{i}", key.dtype) for i, key in enumerate(self.keys.columns))])

    @property
    def extra(self) -> int:
        return self.keys.extra

    def describe(self) -> str:
        return f"argsort {np.lib.format.dtype_to_descr(self.source)} by {self.fields} {self.order.value}"

    def to_run(self, piece: Array, start: int, out: Array) -> None:
        keys = self._of_source(piece)
        places = self.keys.places(keys, self.engine)
        np.add(places, start, out=out["place"])
        for i, key in enumerate(keys):
            out[f"key{i}"] = key[places]

    def to_bucket(self, piece: Array, out: Array) -> None:
        np.take(piece["place"], self.keys.places(self._of_run(piece), self.engine), out=out, mode="clip")

    def to_result(self, piece: Array, out: Array) -> None:
        out[:] = self.keys.places(self._of_source(piece), self.engine)

    def words(self, spilled: Array) -> Array:
        return self.keys.words(self._of_run(spilled))

    def _of_source(self, piece: Array) -> list[Array]:
        return [piece[field] for field in self.fields] or [piece]

    def _of_run(self, spilled: Array) -> list[Array]:
        return [spilled[f"key{i}"] for i in range(len(self.keys.columns))]
