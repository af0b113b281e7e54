"""What scalars and arrays refuse where a user's functions run as Python: the line that asked for it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from traceback import extract_tb

from ..kernel.span import KernelError, Span
from ..types.memory import Registers, Storage, Workgroup
from ..types.scalars import SCALARS

_TYPES = Path(inspect.getfile(Storage)).parent  # the package of scalars and arrays
_CLASSES = [cls.__name__ for cls in (*SCALARS.values(), Storage, Workgroup, Registers)]
_NAMED = re.compile(rf"\b({'|'.join(_CLASSES)})\b")  # in the words of Python itself, where they lack an operator


def refused_line(error: Exception) -> Span | None:
    """The line in a kernel or helper for an error raised by scalars or arrays, or by Python for what they lack, which
    the kernel reader would reject on other targets; None for other errors."""
    if isinstance(error, KernelError) or not isinstance(error, TypeError | ValueError):
        return None
    frames = extract_tb(error.__traceback__)
    outer = [frame for frame in frames if not Path(frame.filename).is_relative_to(_TYPES)]
    if isinstance(error, ValueError):
        is_refused = Path(frames[-1].filename).name == "scalars.py"  # a literal too large
    else:
        is_refused = outer[-1] is not frames[-1] or _NAMED.search(str(error)) is not None
    return Span(outer[-1].filename, outer[-1].lineno or 1) if is_refused else None
