"""The simulator's dynamic checks: bounds, races, initialisation, barrier divergence, overflow, division by zero."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from ...kernel import ir
from ...kernel.span import Span
from ...types.errors import BarrierDivergenceError, DataRaceError, OutOfBoundsError, UninitializedReadError, outside
from ...types.invocation import Invoker
from ..counts import is_any
from ..interpreters import Lanes, Values, divergence, located
from .memory import Region
from .races import ONE_BARRIER, Access, Indices, Mask, keys_of


@attrs.frozen
class Shape:
    """A chunk of workgroups `first_group` to `first_group + groups - 1`, and the simulated device's group sizes."""

    first_group: int
    groups: int
    group_size: int
    num_groups: int  # in the launch
    subgroup_size: int

    @property
    def invocations(self) -> int:
        return self.groups * self.group_size


class Checks:
    """Checks for one chunk. A lane here is an invocation's index in the chunk."""

    def __init__(self, shape: Shape, row: Lanes, local: Lanes, sites: dict[int, Span]) -> None:
        """`row` and `local` are each lane's workgroup in the chunk, and its index there."""
        self._shape, self._row = shape, row
        self._sites = sites  # the spans of the launch's accesses, by id(): shadow memory has these
        self._branches: list[tuple[str, Span, Lanes]] = []  # where control flow may diverge, and who entered it
        self._barriers = 0  # that all invocations passed
        self._group_sizes = np.full(shape.groups, shape.group_size, np.int64)
        self._keys = keys_of((row + shape.first_group).astype(np.uint32), local.astype(np.uint32))

    def in_bounds(self, statement: ir.Access, region: Region, index: Indices, lanes: Lanes) -> None:
        beyond = index >= region.length
        if is_any(beyond):
            stride, unit = statement.memory.stride, int(index[np.argmax(beyond)])
            unit -= unit >> 31 << 32  # what a difference below zero is times the words of a struct, is below it too
            where = outside(unit // stride % (1 << 32), _describe(statement.memory))
            whom = self.name(lanes, beyond)
            message = f"{where} of {region.length // stride} elements, in {whom}"
            raise OutOfBoundsError(located(statement.span, message))

    def no_overflow(self, a: Values, total: Values, span: Span, lanes: Lanes) -> None:
        """Raises OverflowError if an add_nowrap wrapped: then the sum is less than an operand."""
        beyond = np.less(total, a)
        if is_any(beyond):
            raise OverflowError(located(span, f"an add_nowrap does not fit 32 bits in {self.name(lanes, beyond)}"))

    def race_free(self, statement: ir.Access, region: Region, elements: Indices, lanes: Lanes, kind: Access) -> None:
        """Records accesses; raises DataRaceError."""
        if region.detector is None:
            return
        keys = self._keys if len(lanes) == len(self._keys) else self._keys[lanes]
        elements = elements if len(elements) == len(lanes) else elements.repeat(len(lanes))
        self._sites[site := id(statement)] = statement.span
        found = region.detector.access(elements, keys, kind, site, self._barriers)
        if found is None:
            return
        element = _element(statement.memory, region, elements[found.position])
        by, other = self._invoker(int(lanes[found.position])), self._sites[found.other_site]
        between = "one workgroup, with no barrier between" if by.group == found.other.group else "two workgroups"
        message = (
            f"data race on element {element} of {_describe(statement.memory)}: {kind.value} here by invocation {by}, "
            f"{found.other_access.value} by invocation {found.other} at {other} ({between})"
        )
        raise DataRaceError(located(statement.span, message, other))

    def initialised(self, statement: ir.Access, region: Region, elements: Indices, lanes: Lanes) -> None:
        missing = region.unwritten(elements)
        if missing is not None:
            element = _element(statement.memory, region, elements[np.argmax(missing)])
            what = f"element {element} of {_describe(statement.memory)} is read before anything is written to it"
            raise UninitializedReadError(located(statement.span, f"{what}, in {self.name(lanes, missing)}"))

    def barrier(self, span: Span, lanes: Lanes) -> None:
        """Checks for divergence, and advances the invocations' epochs: earlier accesses happen before later ones."""
        if len(lanes) == self._shape.invocations:
            self._keys += ONE_BARRIER
            self._barriers += 1
            return
        self.converged("the barrier", span, lanes, self._row, self._group_sizes)
        self._keys[lanes] += ONE_BARRIER

    def converged(self, what: str, span: Span, lanes: Lanes, rows: Lanes, sizes: npt.NDArray[np.int64]) -> None:
        """Raises BarrierDivergenceError unless of each row (workgroup or subgroup) all invocations arrive, or none."""
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
        raise BarrierDivergenceError(divergence(span, what, arrive, lack, group, left))

    def enter(self, statement: str, span: Span, lanes: Lanes) -> None:
        """Pushes a branch or loop, for the reports of divergence."""
        self._branches.append((statement, span, lanes))

    def leave(self) -> None:
        """Pops it, where control flow reconverges."""
        self._branches.pop()

    def name(self, lanes: Lanes, some: Mask | None = None) -> str:
        """The first of (some of) these invocations, and how many more there are."""
        lanes = lanes if some is None else lanes[np.broadcast_to(some, lanes.shape)]
        more = f" and {len(lanes) - 1} more" if len(lanes) > 1 else ""
        return f"invocation {self._invoker(int(lanes[0]))}{more}"

    def _where_left(self, lane: int) -> tuple[str, Span] | None:
        """The innermost branch or loop that an absent lane entered too."""
        for statement, span, lanes in reversed(self._branches):
            if is_any(lanes == lane):
                return f"they went another way in the {statement} at", span
        return None

    def _invoker(self, lane: int) -> Invoker:
        group, local = divmod(lane, self._shape.group_size)
        return Invoker(self._shape.first_group + group, local)


def _element(memory: ir.Memory, region: Region, place: np.int64) -> int:
    """The index, in the kernel's own terms, of a scalar of a region."""
    return int(place) % region.length // memory.stride


def _describe(memory: ir.Memory) -> str:
    return "registers" if memory.space is ir.Space.REGISTERS else f"{memory.space.value} memory '{memory.name}'"
