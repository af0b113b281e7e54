"""Targets that a test opens itself; where one cannot run, the test is skipped in the target's own words. Not on a
machine that is known to have it, as GPUSORT_TEST_NEEDS says, such as `cuda,wgsl`: there it fails."""

from __future__ import annotations

import os
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
        if any(f"target {name!r}" in str(error) for name in os.environ.get("GPUSORT_TEST_NEEDS", "").split(",")):
            raise
        pytest.skip(str(error))
