"""Choices among ways to one result, by a clock that the test turns."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from gpusort.targets.base import HostArray
from gpusort.targets.cpu.host.autotuned import Choices, Way

Clock = Callable[[float], None]


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    now = [0.0]

    def passed(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return passed


def _way(calls: list[str], name: str, pass_time: Clock, seconds: Callable[[int], float]) -> Way:
    """Takes so long in its n-th call."""

    def call(x: HostArray) -> HostArray:
        pass_time(seconds(calls.count(name)))
        calls.append(name)
        return x

    return call


def test_the_fastest_is_kept(pass_time: Clock) -> None:
    calls: list[str] = []
    choices, x = Choices(), np.zeros(100)
    ways = choices.among(
        "class",
        slow=_way(calls, "slow", pass_time, lambda _: 3e-5),
        fast=_way(calls, "fast", pass_time, lambda _: 2e-5),
    )
    while not ways.choice.fastest:
        assert ways(x) is x
    assert ways.choice.fastest == "fast"
    assert 4 <= calls.count("slow") <= 40
    calls.clear()
    ways(x)
    assert calls == ["fast"]


def test_a_disturbed_turn_is_no_reason(pass_time: Clock) -> None:
    """Of the faster way, the first turn takes half as long again as the slower one."""
    calls: list[str] = []
    ways = Choices().among(
        "class",
        fast=_way(calls, "fast", pass_time, lambda n: 4e-3 if n < 2 else 1e-3),
        slow=_way(calls, "slow", pass_time, lambda _: 2.5e-3),
    )
    while not ways.choice.fastest:
        ways(np.zeros(5))
    assert ways.choice.fastest == "fast"


def test_what_takes_many_times_as_long_has_one_turn(pass_time: Clock) -> None:
    calls: list[str] = []
    ways = Choices().among(
        "class",
        slow=_way(calls, "slow", pass_time, lambda _: 0.1),
        fast=_way(calls, "fast", pass_time, lambda _: 0.001),
    )
    for _ in range(10):
        ways(np.zeros(5))
    assert calls == ["slow"] * 2 + ["fast"] * 8


def test_arrays_of_one_class_share_a_choice(pass_time: Clock) -> None:
    """By the time for each element, and only among the same ways; where there is one, nothing is timed."""
    calls: list[str] = []
    choices = Choices()
    slow = _way(calls, "slow", pass_time, lambda _: 0.1)
    fast = _way(calls, "fast", pass_time, lambda _: 0.001)
    ways = choices.among("class", slow=slow, fast=fast)
    for _ in range(4):
        ways(np.zeros(5))
    assert choices.among("class", slow=slow, fast=fast).choice.fastest == "fast"
    assert not choices.among("another", slow=slow, fast=fast).choice.fastest
    assert not choices.among("class", slow=slow, fast=fast, third=fast).choice.fastest
    assert choices.among("class", slow=slow).choice.fastest == "slow"
