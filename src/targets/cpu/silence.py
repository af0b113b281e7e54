"""NumPy's functions without its warnings, for a tenth of what `np.errstate` costs: in a context where all is ignored."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

_silent = Context()
_silent.run(np.seterr, all="ignore")


def silently(function: Callable[P, R], /, *arguments: P.args, **keywords: P.kwargs) -> R:
    """What the function gives. A context can be entered once at a time, a copy of it costs little."""
    return _silent.copy().run(function, *arguments, **keywords)
