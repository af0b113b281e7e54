"""Several schedules on one device, in one submission."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import attrs

from ..base import InTurn, OnStream
from ..recording import current_encoder
from .memory import Taken
from .session import Session

if TYPE_CHECKING:
    import wgpu


class Part(OnStream, Protocol):
    """One of them, made ready."""

    def in_session(self, work: Callable[[Session], None]) -> None: ...
    def is_watched(self, session: Session) -> bool: ...
    def run_there(self, session: Session, memories: Sequence[object]) -> None: ...
    def encode_among(
        self, session: Session, encoder: wgpu.GPUCommandEncoder, memories: Sequence[object], taken: Taken
    ) -> None: ...


@attrs.frozen(eq=False)
class Together(InTurn):
    """Schedules on one device, in one submission."""

    runs: Sequence[Part]

    def run_at(self, given: Sequence[object], scratch: object, stream: int, /) -> None:
        if current_encoder() is not None:
            super().run_at(given, scratch, stream)
            return
        ends = [0, *accumulate([run.num_given for run in self.runs])]
        parts = [(run, given[first:end]) for run, first, end in zip(self.runs, ends, ends[1:], strict=False)]
        self.runs[0].in_session(lambda session: _submit(session, parts))


def _submit(session: Session, parts: Sequence[tuple[Part, Sequence[object]]]) -> None:
    if any(run.is_watched(session) for run, _ in parts):
        for run, memories in parts:
            run.run_there(session, memories)
        return
    with session.pool.taken() as taken:
        encoder = session.device.handle.create_command_encoder()
        for run, memories in parts:
            run.encode_among(session, encoder, memories, taken)
        session.device.handle.queue.submit([encoder.finish()])
