"""What the simulator checks at each statement, and how it names those concerned."""

from __future__ import annotations

from typing import NoReturn, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from ...kernel import ir
from ...kernel.span import Span
from ...types.errors import BarrierDivergenceError, DataRaceError, OutOfBoundsError, UninitializedReadError
from ..counts import is_any
from . import report
from .memory import Region
from .races import ONE_BARRIER, Access, Indices, Invoker, keys_of

Lanes: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[np.generic]
Memorising: TypeAlias = ir.Load | ir.Store | ir.Atomic


@attrs.frozen
class Shape:
    """Which invocations run together, and how the machine that is played groups them."""

    first_group: int
    groups: int
    group_size: int
    num_groups: int
    subgroup_size: int

    @property
    def invocations(self) -> int:
        return self.groups * self.group_size


class Sites:
    """Numbers for statements, small enough to be kept for every element of a memory."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._numbers: dict[int, int] = {}

    def number(self, statement: Memorising) -> int:
        known = self._numbers.get(id(statement))
        if known is None:
            known = self._numbers[id(statement)] = len(self._spans)
            self._spans.append(statement.span)
        return known

    def span(self, number: int) -> Span:
        return self._spans[number]


@attrs.frozen
class _Fork:
    """A statement that may send invocations different ways, and those who came to it."""

    span: Span
    statement: str
    lanes: Lanes


class Checks:
    """Watches the invocations of one chunk. A lane here is an invocation's index in the chunk."""

    def __init__(self, shape: Shape, sites: Sites) -> None:
        self._shape = shape
        self._sites = sites
        self._forks: list[_Fork] = []
        lanes = np.arange(shape.invocations, dtype=np.int64)
        self._row = lanes // shape.group_size
        self._group_sizes = np.full(shape.groups, shape.group_size, np.int64)
        self._keys = keys_of(
            (self._row + shape.first_group).astype(np.uint32), (lanes % shape.group_size).astype(np.uint32)
        )

    def in_bounds(self, statement: Memorising, region: Region, index: Indices, lanes: Lanes) -> None:
        """Every index is one of the memory's."""
        if np.maximum.reduce(index) >= region.length:
            outside = index >= region.length
            self.fail(
                OutOfBoundsError,
                statement.span,
                f"index {index[np.argmax(outside)]} is outside {_describe(statement.memory)} "
                f"of {region.length} elements, in {self.name(lanes[outside])}",
            )

    def fits(self, a: Values, total: Values, *, span: Span, lanes: Lanes) -> None:
        """What is said not to wrap does not: a sum of two is no less than one of them."""
        beyond = np.less(total, a)
        if is_any(beyond):
            whom = lanes[np.broadcast_to(beyond, lanes.shape)]
            self.fail(OverflowError, span, f"an add_nowrap does not fit 32 bits in {self.name(whom)}")

    def divides(self, divisor: Values, *, span: Span, lanes: Lanes) -> None:
        """Nothing is divided by zero."""
        zero = np.broadcast_to(divisor == 0, lanes.shape)
        if is_any(zero):
            self.fail(ZeroDivisionError, span, f"division by zero in {self.name(lanes[zero])}")

    def unraced(self, statement: Memorising, region: Region, elements: Indices, lanes: Lanes, kind: Access) -> None:
        """No other invocation touches the elements without a barrier between."""
        keys = self._keys if len(lanes) == len(self._keys) else self._keys[lanes]
        found = region.race(elements, keys, kind, self._sites.number(statement))
        if found is None:
            return
        element = int(elements[found.position]) % region.length
        by = self._invoker(int(lanes[found.position]))
        other = self._sites.span(found.other_site)
        raise DataRaceError(report.race(statement.span, _describe(statement.memory), element, kind, by, found, other))

    def written(self, statement: Memorising, region: Region, elements: Indices, lanes: Lanes) -> None:
        """What is read has been written."""
        missing = region.unwritten(elements)
        if missing is not None:
            element = int(elements[np.argmax(missing)]) % region.length
            self.fail(
                UninitializedReadError,
                statement.span,
                f"element {element} of {_describe(statement.memory)} is read before anything is written "
                f"to it, in {self.name(lanes[missing])}",
            )

    def barrier(self, span: Span, lanes: Lanes) -> None:
        """All invocations of a workgroup are here, or none; what came before is ordered from now on."""
        self.together("the barrier", span, lanes, self._row, self._group_sizes)
        self._keys[lanes] += ONE_BARRIER

    def together(self, what: str, span: Span, lanes: Lanes, rows: Lanes, sizes: npt.NDArray[np.int64]) -> None:
        """All invocations of a row (a workgroup, a subgroup) are here, or none."""
        if len(lanes) == self._shape.invocations:
            return
        counts = np.bincount(rows[lanes], minlength=len(sizes))
        partial = (counts != 0) & (counts != sizes)
        if not is_any(partial):
            return
        members = np.flatnonzero(rows == np.argmax(partial))
        arrives = np.isin(members, lanes, assume_unique=True)
        left = self._where_left(int(members[~arrives][0]))
        group = self._invoker(int(members[0])).group
        arrive, lack = ([self._invoker(int(lane)).local for lane in members[some]] for some in (arrives, ~arrives))
        raise BarrierDivergenceError(report.divergence(span, what, arrive, lack, group, left))

    def enter(self, statement: str, span: Span, lanes: Lanes) -> None:
        """Remember where invocations may part, for the reports."""
        self._forks.append(_Fork(span, statement, lanes))

    def leave(self) -> None:
        """They are together again."""
        self._forks.pop()

    def fail(self, error: type[Exception], span: Span, message: str) -> NoReturn:
        """End the run with an error at a line."""
        raise error(report.located(span, message))

    def name(self, lanes: Lanes) -> str:
        """The invocations, as a report names them."""
        return report.invocations([self._invoker(int(lane)) for lane in lanes])

    def _where_left(self, lane: int) -> tuple[str, Span] | None:
        """The innermost statement that an absent invocation had in common with those that are here."""
        for fork in reversed(self._forks):
            if is_any(fork.lanes == lane):
                return f"they went another way in the {fork.statement} at", fork.span
        return None

    def _invoker(self, lane: int) -> Invoker:
        group, local = divmod(lane, self._shape.group_size)
        return Invoker(self._shape.first_group + group, local)


def _describe(memory: ir.Memory) -> str:
    space = "registers" if memory.space is ir.Space.REGISTERS else f"{memory.space.value} memory"
    return f"{space} '{memory.name}'"
