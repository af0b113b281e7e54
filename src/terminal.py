"""Text for people: colours and passing notes on a terminal, plain lines everywhere else."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import TextIO


class Tone(Enum):
    """What a piece of text is, with the code that colours it."""

    TITLE = "1"
    GOOD = "32"
    BAD = "31"
    QUIET = "2"


class Terminal:
    """Writes to a stream. Colours only where that is a terminal and NO_COLOR is not set."""

    def __init__(self, stream: TextIO | None = None) -> None:
        found: TextIO | None = stream if stream is not None else sys.stdout  # which there is none of where it is closed
        self._stream = found if found is not None else open(os.devnull, "w")  # noqa: SIM115  # as long as the process
        self._live = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._colours = self._live and not os.environ.get("NO_COLOR")

    @property
    def is_live(self) -> bool:
        """Whether somebody watches, who sees a line change."""
        return self._live

    def toned(self, text: str, tone: Tone) -> str:
        return f"\x1b[{tone.value}m{text}\x1b[0m" if self._colours else text

    def line(self, text: str = "") -> None:
        print(text, file=self._stream, flush=True)

    def note(self, text: str) -> None:
        """A line that the next one overwrites; nothing where nobody watches."""
        if self._live:
            print(f"\r\x1b[K{text}", end="", file=self._stream, flush=True)

    def forget_note(self) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
