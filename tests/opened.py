"""Targets that a test opens itself; where one cannot run, the test is skipped in the target's own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from gpusort.types.errors import TargetUnavailableError

T = TypeVar("T")


def or_skip(opens: Callable[..., T], *given: object) -> T:
    """What `opens(*given)` opens."""
    try:
        return opens(*given)
    except TargetUnavailableError as error:
        pytest.skip(str(error))
