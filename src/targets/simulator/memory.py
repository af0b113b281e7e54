"""The simulator's memories: values, initialisation flags, and race detectors. A `Region` is one memory of a kernel
during one launch. Storage has one row of elements, workgroup memory a row for each workgroup of the chunk, registers a
row for each invocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ...types import ops
from ...types.layout import Type
from ...types.ops import AtomicOp
from ..counts import is_any
from ..interpreters import Values, poison
from .races import Indices, Mask, RaceDetector, ends_of_runs

Flags: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]


@attrs.define
class Region:
    """One memory of the invocations of a chunk."""

    items: Values  # all rows, one after another
    length: int  # of one row
    written: Flags | None  # all bits set where initialised; None: everywhere
    detector: RaceDetector | None  # None where no race is possible
    firsts: Indices | None = None  # where each invocation's row begins, unless there is one row

    @classmethod
    def allocate(cls, type: Type, length: int, rows: int, invocations: int) -> Region:
        """Uninitialised workgroup memory, or registers where each invocation has a row."""
        items = np.empty(rows * length, type.dtype)
        poison(items)
        detector = RaceDetector(rows * length, of_one_group=True) if rows < invocations else None
        firsts = np.arange(invocations, dtype=np.int64) // (invocations // rows) * length
        return cls(items, length, np.zeros(rows * length, np.uint8), detector, firsts=firsts)

    def unwritten(self, elements: Indices) -> Mask | None:
        """A mask of the elements that are not initialised; None if all are."""
        if self.written is None:
            return None
        full = _WRITTEN[self.written.itemsize]
        if len(self.written) <= 8 * len(elements) and np.minimum.reduce(self.written) == full:
            self.written = None  # and it stays so
            return None
        missing = self.written[elements] != full
        return missing if is_any(missing) else None

    def store(self, elements: Indices, values: Values) -> None:
        self.items[elements] = values  # of several stores to one element the last wins
        if self.written is not None:
            self.written[elements] = _WRITTEN[self.written.itemsize]

    def update(self, elements: Indices, op: AtomicOp, values: Values) -> Values:
        """Atomic read-modify-writes in the order given; returns the old values. Updates of one element are combined by
        a segmented scan (Hillis and Steele), as NumPy has no ordered scatter."""
        by_element = np.argsort(elements, kind="stable")
        ordered = elements[by_element]
        combine = _COMBINE[op.value]
        _, starts = ends_of_runs(ordered[1:] != ordered[:-1])
        so_far = np.broadcast_to(values, elements.shape)[by_element]
        position = np.arange(len(ordered))
        rank = position - np.maximum.accumulate(np.where(starts, position, 0))
        # Each step doubles the reach, within the updates of one element.
        reach = 1
        while reach <= rank.max():
            far = np.flatnonzero(rank >= reach)
            so_far[far] = combine(so_far[far - reach], so_far[far])
            reach *= 2
        old = self.items[ordered]
        after = combine(old, so_far)
        before = np.where(starts, old, after[position - 1])
        self.store(ordered, after)  # the last of equal indices wins, which has all updates
        result = np.empty_like(before)
        result[by_element] = before
        return result


_WRITTEN = {size: np.iinfo(f"u{size}").max for size in (1, 2, 4, 8)}  # a set flag, by its size in bytes

# What an atomic operation combines by: the operation of its name.
_COMBINE: dict[str, Callable[[Values, Values], Values]] = {op.name: op.evaluate for op in ops.OPS}
_COMBINE[AtomicOp.EXCHANGE.value] = lambda before, value: value
