"""Source locations, and KernelError, which reports one."""

from __future__ import annotations

import linecache
import os
from pathlib import Path
from typing import NoReturn

import attrs

_OWN = str(Path(__file__).parents[1]) + os.sep


@attrs.frozen
class Span:
    """A position in a file; lines count from 1, columns from 0."""

    file: str
    line: int
    column: int = 0

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    @property
    def is_own(self) -> bool:
        """Whether it is in gpusort's own source."""
        return self.file.startswith(_OWN)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class KernelError(TypeError):
    """Raised for kernel source that is not in the kernel language, or arguments that do not fit a kernel. The message
    reads `file:line: expected …, e.g. …` and ends with the offending line."""

    def __init__(self, span: Span, message: str) -> None:
        self.span = span
        self.message = message
        super().__init__(f"{span}: {message}\n    {span.text}")

    def __reduce__(self) -> tuple[type[KernelError], tuple[Span, str]]:
        """Pickled by its arguments, so that a worker process can raise it in the parent."""
        return type(self), (self.span, self.message)


class ResultError(KernelError):
    """Of a method of a key, a monoid or a finish that gives another class than the object declares."""


def expected(span: Span, what: str) -> NoReturn:
    """Raises KernelError: "expected `what`", which should end with what was found and an example."""
    raise KernelError(span, f"expected {what}")
