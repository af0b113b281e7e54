"""Sorts of memory-mapped arrays larger than memory, by the external sort."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from ..external.maps import Mapping, MapSort
from ..external.memory import bytes_of
from ..external.work import SortElements
from ..targets.base import Target
from ..types.dtypes import key_for
from ..types.environment import word
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from .engine import OwnEngine

Array: TypeAlias = npt.NDArray[np.generic]

_NOT_ASKED = 1 << 26  # bytes that are never too much, unless the environment says so


@attrs.frozen
class MappedCall:
    order: SortOrder
    stable: bool
    target: str | Target

    def sorted(self, x: object, out: object, axis: int | None) -> object | None:
        """The result; None if the array fits into memory or is not contiguous, so that the usual path is taken."""
        said = word("GPUSORT_MEMORY")
        if not said and cast(Array, x if x.__class__ is np.memmap else out).nbytes <= _NOT_ASKED:
            return None  # one of them is mapped
        memory = bytes_of(said or "auto", "GPUSORT_MEMORY")
        array, mapping = _of_one_piece(x, axis), Mapping.of(x)
        if array is None or array.nbytes <= memory:
            return None
        key_for(array.dtype, "x")
        if out is None:
            if mapping is None:
                return None
            made = self._sort(array, memory).new(array, mapping.path)
            self._into(array, made, memory)
            return made
        place = _of_one_piece(out, -1)
        if place is None or place.shape != array.shape or place.dtype != array.dtype or not place.flags.writeable:
            return None  # and be refused there
        if mapping is None and Mapping.of(out) is None:
            return None
        self._into(array, place, memory)
        return out

    def _into(self, x: Array, out: Array, memory: int) -> None:
        """Sorts batches of rows that fit into memory, or single rows by the external sort."""
        if x.ndim > 1 and x[0].nbytes <= memory:
            step, engine = max(1, memory // x[0].nbytes), OwnEngine(self.target)
            for start in range(0, len(x), step):
                own = slice(start, start + step)
                engine.sort(np.asarray(x[own]), np.asarray(out[own]), self.order, stable=self.stable)
            return
        for row, result in zip(x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1]), strict=True):
            given, made = Mapping.of(row), Mapping.of(result)
            work = self._sort(row, memory)
            if given is not None and made is not None and given.is_at(made):
                work.in_place(result, made)
            else:
                work.into(row, result)

    def _sort(self, x: Array, memory: int) -> MapSort:
        said = word("GPUSORT_SCRATCH")
        where = Path(said).resolve() if said else None
        if where is not None and not where.is_dir():
            raise InvalidArgumentError(f"GPUSORT_SCRATCH: expected an existing folder, found {where}")
        engine = OwnEngine.for_files(self.target, memory)
        return MapSort(SortElements(x.dtype, self.order, self.stable, engine), memory, where)


def _of_one_piece(x: object, axis: int | None) -> Array | None:
    """The array if it is C-contiguous and sorted along its last axis, or flattened; else None."""
    array = cast(Array, x)
    if not isinstance(x, np.ndarray) or not array.flags.c_contiguous or array.ndim == 0:
        return None
    if axis is None:
        return array.reshape(-1)
    return array if axis % array.ndim == array.ndim - 1 else None
