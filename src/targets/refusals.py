"""What scalars and arrays refuse where a user's functions run as Python: the line that asked for it."""

from __future__ import annotations

import inspect
from pathlib import Path
from traceback import extract_tb

from ..kernel.span import KernelError, Span
from ..types.memory import Storage

_TYPES = Path(inspect.getfile(Storage)).parent  # the package of scalars and arrays


def refused_line(error: Exception) -> Span | None:
    """The line in a kernel or helper for an error raised by scalars or arrays, which the kernel reader would reject on
    other targets; None for other errors."""
    frames = extract_tb(error.__traceback__)
    outer = [frame for frame in frames if not Path(frame.filename).is_relative_to(_TYPES)]
    by_scalar = isinstance(error, ValueError) and Path(frames[-1].filename).name == "scalars.py"  # a literal too large
    refused = (isinstance(error, TypeError) or by_scalar) and not isinstance(error, KernelError)
    return Span(outer[-1].filename, outer[-1].lineno or 1) if refused and outer[-1] is not frames[-1] else None
