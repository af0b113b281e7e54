"""What the simulator and the target "python" have in common: limits and capabilities, chosen freely; words of
reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..kernel.launch import Buffer, Role, Schedule
from ..kernel.span import Span
from ..machine import Capability, Limits, TargetInfo
from ..types.checks import index_of
from ..types.errors import InvalidArgumentError
from ..types.monoids import Monoid
from ..types.ops import SubgroupOp
from .base import Elements
from .binding import Work, host_arrays
from .monoid_laws import Laws
from .registry import Reduced, reduce_to_settings

Lanes: TypeAlias = npt.NDArray[np.int64]

MOST_INVOCATIONS = 1024  # of a workgroup


class Interpreter(ABC):
    """An interpreter with subgroups of a chosen size. Raises InvalidArgumentError."""

    def __init__(self, name: str, adapter: str, driver: str, subgroup_size: int) -> None:
        subgroup_size = index_of("subgroup_size", subgroup_size)
        if subgroup_size not in (1, 2, 4, 8, 16, 32, 64):
            raise InvalidArgumentError(f"subgroup_size: expected a power of two from 1 to 64, found {subgroup_size}")
        limits = Limits(
            group_size=MOST_INVOCATIONS,
            workgroup_bytes=64 << 10,
            groups=1 << 24,
            storage_bytes=1 << 32,
            storage_buffers=64,
            subgroup_size=subgroup_size,
            most_subgroup_size=subgroup_size,
        )
        capabilities = frozenset({Capability.FLOAT64, Capability.SUBGROUPS})
        self._subgroup_size = subgroup_size
        self.info = TargetInfo(name, f"{adapter}, subgroups of {subgroup_size}", driver, limits, capabilities)

    def __reduce__(self) -> Reduced:
        return reduce_to_settings(self, self._subgroup_size)

    @abstractmethod
    def run(self, schedule: Schedule, arrays: Mapping[str, object]) -> None: ...

    def check_monoid(
        self, monoid: Monoid[Any, Any], elements: Elements, indices: Sequence[int], commutes: bool, /
    ) -> None:
        """See `ChecksMonoids` (base.py)."""
        Laws(monoid).check(elements, indices, commutes)


def located(span: Span, message: str, *also: Span) -> str:
    """A message that begins with file and line, and ends with the source lines concerned."""
    lines = [f"{span}: {message}"]
    locations = dict.fromkeys((str(location), location.text) for location in (span, *also))
    for location, text in locations:
        if text:
            lines.append(f"    {text}" if len(locations) == 1 else f"    {location}: {text}")
    return "\n".join(lines)


_MOST_RANGES = 8  # that a message has room for


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as ranges: `0-3, 6`."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    shown = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs[:_MOST_RANGES]]
    return ", ".join(shown) + (", …" if len(runs) > _MOST_RANGES else "")


def divergence(
    span: Span, what: str, arrive: Sequence[int], lack: Sequence[int], group: int, left: tuple[str, Span] | None
) -> str:
    """The message for a barrier or subgroup operation in divergent control flow."""
    message = (
        f"{what} is reached by some invocations of group {group} only: "
        f"local {ranges(arrive)} arrive, local {ranges(lack)} do not"
    )
    if left is None:
        return located(span, message)
    how, location = left
    return located(span, f"{message}; {how} {location}", location)


def source_lane(op: SubgroupOp, lane: Lanes, asked: Lanes, size: int, count: Lanes) -> Lanes:
    """The lane that a shuffle reads in a subgroup of `size` lanes of which `count` exist; may be one that does not."""
    if op is SubgroupOp.SHUFFLE:
        return asked % size
    if op is SubgroupOp.SHUFFLE_XOR:
        return lane ^ asked
    wanted = lane - asked if op is SubgroupOp.SHUFFLE_UP else lane + asked
    return np.where((wanted >= 0) & (wanted < count), wanted, lane)


Values: TypeAlias = npt.NDArray[np.generic]
Bytes: TypeAlias = npt.NDArray[np.uint8]

POISON = 0xCD  # fills uninitialised memory, to be recognised in wrong results


def bytes_behind(work: Work, arrays: Mapping[str, object]) -> dict[str, Bytes]:
    """The bytes of every buffer, by name: the caller's arrays, checked, and new memory for scratch. Poisoned unless it
    is an input."""
    given = host_arrays(work, arrays)
    found: dict[str, Bytes] = {}
    for buffer in work.buffers:
        array = given.get(buffer.name)
        data = np.empty(buffer.nbytes, np.uint8) if array is None else array
        if not starts_written(buffer):
            poison(data)
        found[buffer.name] = data.view(np.uint8)
    return found


def starts_written(buffer: Buffer[object]) -> bool:
    """Whether a buffer is initialised when a schedule begins."""
    return buffer.role in (Role.INPUT, Role.INOUT)


def poison(array: Values) -> None:
    array.view(np.uint8).fill(1 if array.dtype.kind == "b" else POISON)
