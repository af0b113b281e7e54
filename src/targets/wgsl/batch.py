"""Batches several prepared schedules into one queue submission."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import attrs

from ..in_turn import InTurn
from ..recording import current_encoder
from .session import Session

if TYPE_CHECKING:
    from .prepared import WgslPrepared


@attrs.frozen(eq=False)
class Batch(InTurn):
    """Schedules recorded into one command buffer; one by one if a caller records or loops are checked for overrun."""

    runs: Sequence[WgslPrepared]

    def run_at(self, given: Sequence[object], scratch: object, stream: int, /) -> None:
        if current_encoder() is not None:
            super().run_at(given, scratch, stream)
            return
        ends = [0, *accumulate([run.num_given for run in self.runs])]
        parts = [(run, given[first:end]) for run, first, end in zip(self.runs, ends, ends[1:], strict=False)]
        self.runs[0].in_session(lambda session: _submit(session, parts))


def _submit(session: Session, parts: Sequence[tuple[WgslPrepared, Sequence[object]]]) -> None:
    if any(run.checks_overrun(session) for run, _ in parts):
        for run, memories in parts:
            run.run_on_device(session, memories)
        return
    with session.pool.lease() as lease:
        encoder = session.device.handle.create_command_encoder()
        for run, memories in parts:
            run.encode_into(session, encoder, memories, lease)
        session.device.handle.queue.submit([encoder.finish()])
