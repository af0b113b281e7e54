"""Terminal output: colours and a status line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import TextIO


class Tone(Enum):
    """The role of a piece of text, with its ANSI colour code."""

    TITLE = "1"
    GOOD = "32"
    BAD = "31"
    QUIET = "2"


class Terminal:
    """Writes to a stream (default: stdout). Colours only if that is a terminal and NO_COLOR is not set."""

    def __init__(self, stream: TextIO | None = None) -> None:
        found: TextIO | None = stream if stream is not None else sys.stdout  # None if it was closed at start-up
        self._stream = found if found is not None else open(os.devnull, "w")  # noqa: SIM115  # open until exit
        # whether this is a terminal on which a status line can be overwritten
        self.is_live = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._colours = self.is_live and not os.environ.get("NO_COLOR")

    def toned(self, text: str, tone: Tone) -> str:
        return f"\x1b[{tone.value}m{text}\x1b[0m" if self._colours else text

    def line(self, text: str = "") -> None:
        self._print(text, end="\n")

    def note(self, text: str) -> None:
        """Shows a status line, which the next output overwrites; on a terminal only."""
        if self.is_live:
            self._print(f"\r\x1b[K{text}")

    def forget_note(self) -> None:
        self.note("")

    def _print(self, text: str, end: str = "") -> None:
        try:
            print(text, end=end, file=self._stream, flush=True)
        except UnicodeEncodeError:  # letters that the stream has not, or a file's name that is no text
            coding = self._stream.encoding
            print(text.encode(coding, "backslashreplace").decode(coding), end=end, file=self._stream, flush=True)
