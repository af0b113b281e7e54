"""The simulator's memories: values, which elements have been written, and who touched them.

A `Region` is one memory of a kernel during one launch. Storage is one row of elements; workgroup memory
has a row for each workgroup that runs at the time, registers one for each invocation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from ...types.layout import Type
from ...types.ops import AtomicOp
from ..counts import is_any
from ..host_buffers import Values, poison
from .races import Access, Indices, Mask, Race, RaceDetector

Flags: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]


@attrs.define
class Region:
    """One memory as the invocations that run together see it."""

    name: str
    items: Values  # all rows, one after another
    length: int  # of one row
    written: Flags | None  # all bits set where written; None: all of it is
    detector: RaceDetector | None  # None: nothing can race here
    scale: int = 1  # how many of the detector's elements one element covers

    @classmethod
    def fresh(cls, name: str, type: Type, length: int, rows: int, shared: bool) -> Region:
        """Memory that belongs to the kernel: workgroup memory or registers."""
        items = np.empty(rows * length, type.dtype)
        poison(items)
        detector = RaceDetector(rows * length) if shared else None
        return cls(name, items, length, np.zeros(rows * length, np.uint8), detector)

    def race(self, elements: Indices, keys: npt.NDArray[np.uint64], kind: Access, site: int) -> Race | None:
        """Note an access; the race it makes, if any."""
        if self.detector is None:
            return None
        if self.scale == 1:
            return self.detector.access(elements, keys, kind, site)
        for part in range(self.scale):
            race = self.detector.access(elements * self.scale + part, keys, kind, site)
            if race is not None:
                return race
        return None

    def unwritten(self, elements: Indices) -> Mask | None:
        """Where elements are asked for that nothing has written; None where there are none."""
        if self.written is None:
            return None
        missing = self.written[elements] != _WRITTEN[self.written.itemsize]
        return missing if is_any(missing) else None

    def load(self, elements: Indices) -> Values:
        return self.items[elements]

    def store(self, elements: Indices, values: Values) -> None:
        self.items[elements] = values  # where invocations meet, the last one wins
        if self.written is not None:
            self.written[elements] = _WRITTEN[self.written.itemsize]

    def update(self, elements: Indices, op: AtomicOp, values: Values) -> Values:
        """Update one element after another, in the order given; what each held just before."""
        by_element = np.argsort(elements, kind="stable")
        places = elements[by_element]
        combine = _COMBINE[op]
        so_far = np.broadcast_to(values, elements.shape)[by_element]
        starts = np.concatenate([[True], places[1:] != places[:-1]])
        position = np.arange(len(places))
        rank = position - np.maximum.accumulate(np.where(starts, position, 0))
        # A scan in which each step doubles the reach; it stays within the updates of one element.
        reach = 1
        while reach <= rank.max():
            far = np.flatnonzero(rank >= reach)
            so_far[far] = combine(so_far[far - reach], so_far[far])
            reach *= 2
        old = self.items[places]
        after = combine(old, so_far)
        before = np.where(starts, old, np.roll(after, 1))
        self.store(places, after)  # the last of equal places wins: the one that has seen all
        result = np.empty_like(before)
        result[by_element] = before
        return result


_WRITTEN = {size: np.iinfo(f"u{size}").max for size in (1, 2, 4, 8)}  # of a flag, by its bytes

_Combine: TypeAlias = Callable[[Values, Values], Values]

_COMBINE: dict[AtomicOp, _Combine] = {
    AtomicOp.ADD: cast(_Combine, np.add),
    AtomicOp.MIN: cast(_Combine, np.minimum),
    AtomicOp.MAX: cast(_Combine, np.maximum),
    AtomicOp.AND: cast(_Combine, np.bitwise_and),
    AtomicOp.OR: cast(_Combine, np.bitwise_or),
    AtomicOp.XOR: cast(_Combine, np.bitwise_xor),
    AtomicOp.EXCHANGE: lambda before, value: value,
}
