"""Memory-mapped arrays: the sort of those that are larger than memory, and the refusal of files that are not whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import attrs
import numpy as np

from ..arrays.host import SubclassKind
from ..external.left import Left, require_all_there
from ..external.maps import Mapping, MapSort, are_mapped_twice, shift_between
from ..external.plans import LEAST, bytes_of
from ..external.work import SortElements
from ..targets.base import Target
from ..types.dtypes import key_for
from ..types.environment import word
from ..types.errors import InvalidArgumentError
from ..types.indices import SortOrder
from ..types.specs import HostArray
from .engine import OwnEngine
from .files import HAS_POSIX, folder_at
from .plan import overlap_partly

_NOT_ASKED = 1 << 26  # bytes of a mapped array that are never too much, unless the environment says so


class MappedKind(SubclassKind):
    """np.memmap. An operation that reads one raises InvalidArgumentError where a sort in place was killed, and elements
    of the array are in what it has left alone."""

    def view(self, array: HostArray, name: str = "x") -> HostArray:
        if HAS_POSIX:
            require_all_there(name, _left_in(array))
        return super().view(array, name)

    def place(self, array: HostArray) -> HostArray:
        return super().view(array)  # whatever it holds is written over


MAPPED = MappedKind()


@attrs.frozen
class MappedCall:
    """A sort of a memory-mapped array, which may be larger than memory."""

    order: SortOrder
    stable: bool
    target: str | Target
    are_mapped_twice = staticmethod(are_mapped_twice)

    def sorted(self, x: object, out: object, axis: int | None) -> object | None:
        """The result; None if the array fits into memory or is not contiguous, or on Windows: the usual path is
        taken."""
        if not HAS_POSIX:
            return None  # the system pages
        said, is_left = word("GPUSORT_MEMORY"), self._is_left(x, out, axis)
        if not said and not is_left and cast(HostArray, x if x.__class__ is np.memmap else out).nbytes <= _NOT_ASKED:
            return None  # one of them is mapped
        memory = bytes_of(said or "auto", "GPUSORT_MEMORY")
        array, mapping = _of_one_piece(x, axis), Mapping.of(x)
        if array is not None and is_left:  # some elements are in its runs alone, however much memory there is now
            memory = min(memory, array.shape[-1] * array.itemsize - 1)
        if array is None or array.nbytes <= memory:
            return None
        key_for(array.dtype, "x")
        if out is None:
            if mapping is None:
                return None
            made = self._sort(array, memory).new(array, mapping.path)
            self._into(array, made, memory)
            return made
        place = _place_for(array, out)
        if place is None:
            return None  # and be refused there, or take a copy of the result
        made_at = Mapping.of(out)
        if mapping is None and made_at is None:
            return None
        shift = shift_between(mapping, made_at)
        if array.ndim > 1 and (shift or overlap_partly(array, place)):  # a row would be written over before it is read
            raise InvalidArgumentError("out: expected x itself, or an array apart from it; they overlap")
        self._into(place if shift == 0 else array, place, memory)  # in place also where the file is mapped twice
        return out

    def _is_left(self, x: object, out: object, axis: int | None) -> bool:
        """Whether a sort in place of the array, or of a row, was killed that was too much for the memory then. Raises
        InvalidArgumentError if one was whose elements this call would miss."""
        left, rows = _left_in(x), range(0)
        if not left:
            return False
        place, mapping = _place_for(_of_one_piece(x, axis), out), Mapping.of(x)
        if place is not None and mapping is not None and shift_between(mapping, Mapping.of(out)) == 0:  # else a copy
            if (step := place.shape[-1] * place.itemsize) > LEAST:  # else rows are never sorted by way of a folder
                rows = range(mapping.position, mapping.position + mapping.nbytes, step)
        for one in left:
            if one.may_lack and not (one.start in rows and one.is_there):
                raise one.refusal("x")
        return any(one.start in rows for one in left)

    def _into(self, x: HostArray, out: HostArray, memory: int) -> None:
        """Sorts batches of rows that fit into memory, or single rows by the external sort."""
        if (mapped := Mapping.of(out)) is not None:
            mapped.reserve()
        rows, results = (array.reshape(-1, array.shape[-1]) for array in (x, out))
        if rows[0].nbytes <= memory:
            step, engine = memory // rows[0].nbytes, OwnEngine(self.target)
            for start in range(0, len(rows), step):
                own = slice(start, start + step)
                engine.sort(np.asarray(rows[own]), np.asarray(results[own]), self.order, stable=self.stable)
            return
        for row, result in zip(rows, results, strict=True):
            work, made = self._sort(row, memory), Mapping.of(result)
            if made is not None and x is out:
                work.in_place(result, made)
            else:
                work.into(row, result)

    def _sort(self, x: HostArray, memory: int) -> MapSort:
        engine = OwnEngine.for_files(self.target, memory, "target")
        return MapSort(SortElements(x.dtype, self.order, self.stable, engine), memory, _where())


def _left_in(x: object) -> list[Left]:
    """Of sorts in place of parts of a mapped array, if its file is long enough for one."""
    mapping = Mapping.read_by(x)
    return [] if mapping is None or mapping.memory.size() <= LEAST else mapping.left(_where())


def _where() -> Path | None:
    said = word("GPUSORT_SCRATCH")
    return folder_at("GPUSORT_SCRATCH", os.path.expanduser(said) if said else None)


def _of_one_piece(x: object, axis: int | None) -> HostArray | None:
    """The array if it is C-contiguous and sorted along its last axis, or flattened; else None."""
    array = cast(HostArray, x)
    if not isinstance(x, np.ndarray) or not array.flags.c_contiguous or array.ndim == 0:
        return None
    if axis is None:
        return array.reshape(-1)
    return array if axis in (-1, array.ndim - 1) else None  # a wrong axis is refused where other arrays are sorted


def _place_for(array: HostArray | None, out: object) -> HostArray | None:
    """An out as what an array of one piece is sorted into, row by row; None if it is not like that array."""
    place = _of_one_piece(out, -1)
    if array is None or place is None or (place.shape, place.dtype) != (array.shape, array.dtype):
        return None
    return place if place.flags.writeable else None
