"""Where in the Python source a piece of a kernel stands, and the one way to complain about it."""

from __future__ import annotations

import linecache

import attrs


@attrs.frozen
class Span:
    """A line of a file (lines count from 1, columns from 0)."""

    file: str
    line: int
    column: int = 0

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class KernelError(TypeError):
    """Raised when a kernel's source says something the kernel language has no meaning for.

    The message reads `file:line: expected …, e.g. …` and ends with the offending line.
    """

    def __init__(self, span: Span, message: str) -> None:
        self.span = span
        self.message = message
        super().__init__(f"{span}: {message}\n    {span.text}")

    def __reduce__(self) -> tuple[type[KernelError], tuple[Span, str]]:
        """By what it was made of: a worker's error comes to who waits for it."""
        return type(self), (self.span, self.message)
