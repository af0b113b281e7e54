"""Several prepared schedules as one run on a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ..types.errors import CapabilityError
from .base import OnStream, Prepared, RunsOnStreams


@attrs.frozen(eq=False)
class InTurn:
    """A sequence of runs as one, executed one by one."""

    runs: Sequence[OnStream]

    @property
    def num_given(self) -> int:
        return sum(run.num_given for run in self.runs)

    @property
    def scratch_bytes(self) -> int:
        return max(run.scratch_bytes for run in self.runs)

    @property
    def own_bytes(self) -> int:
        return sum(run.own_bytes for run in self.runs)

    def run_at(self, given: Sequence[Any], scratch: Any, stream: int, /) -> None:
        first = 0
        for run in self.runs:
            run.run_at(given[first : first + run.num_given], scratch, stream)
            first += run.num_given

    def followed_by(self, others: Sequence[OnStream], /) -> OnStream | None:
        return None


def in_one_run(prepared: Sequence[Prepared]) -> OnStream:
    """Combines what was prepared for the current device into one run, fused where possible. Raises CapabilityError."""
    runs = [one.on_stream() for one in prepared if isinstance(one, RunsOnStreams)]
    if len(runs) < len(prepared):
        raise CapabilityError("target: expected one that works where arrays lie")
    if len(runs) == 1:
        return runs[0]
    return runs[0].followed_by(runs[1:]) or InTurn(runs)
