"""Pinned host memory that is kept between calls, on a stand-in for cupy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gpusort
from gpusort.api.in_pieces import desk
from gpusort.api.in_pieces import plan as pieces_plan
from gpusort.arrays import shelf
from gpusort.targets.cuda import pinned, room
from gpusort.targets.cuda.pinned import PinnedMemory
from gpusort.targets.cuda.target import CudaTarget
from gpusort.types.errors import InvalidArgumentError
from tests import fake_cupy
from tests.reference import assert_same_bits, sample
from tests.striking import events, soon, strike

CUDA = "targets/cuda/pinned.py"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[PinnedMemory]:
    """From 1000 bytes on."""
    fake_cupy.put_in_place(monkeypatch)
    fake_cupy.forget()
    fake_cupy.pinned.clear()
    monkeypatch.setattr(pinned, "_LEAST", 1000)
    made = PinnedMemory()
    yield made
    made.release()
    assert not fake_cupy.pinned, "all is let go"


def registered() -> list[str]:
    return [line for line in fake_cupy.log if "register" in line]


def test_a_block_serves_call_after_call(memory: PinnedMemory) -> None:
    for nbytes in (5000, 3000, 5000):
        with memory.taken(nbytes) as found:
            assert found.size == nbytes
            assert found.ctypes.data in fake_cupy.pinned[0]
            found[...] = 7
    with memory.taken(5001):
        pass
    assert registered() == ["register 5000", "unregister 5000", "register 5001"]


def test_calls_side_by_side_have_a_block_each(memory: PinnedMemory) -> None:
    with memory.taken(2000) as one, memory.taken(2000) as other:
        assert not np.shares_memory(one, other)
        assert len(fake_cupy.pinned) == 2
    assert len(fake_cupy.pinned) == 1, "one is kept"


def test_a_call_that_fails_keeps_none_and_waits_for_what_is_on_its_way(memory: PinnedMemory) -> None:
    with pytest.raises(RuntimeError, match="stopped"), memory.taken(2000):
        raise RuntimeError("the device stopped working")
    assert fake_cupy.log[-2:] == ["synchronize the device", "unregister 2000"]


@pytest.mark.parametrize("said", ["0", "1999"])
def test_no_more_is_pinned_than_a_variable_says(
    memory: PinnedMemory, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("GPUSORT_PINNED_BYTES", said)
    with memory.taken(2000) as found:
        assert found.size == 2000
    assert not registered()


def test_a_variable_that_says_no_number(memory: PinnedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSORT_PINNED_BYTES", "some")
    with pytest.raises(InvalidArgumentError, match="GPUSORT_PINNED_BYTES: expected a number of bytes"):
        memory.taken(2000).__enter__()


def test_a_driver_that_pins_none(memory: PinnedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_cupy.pool, "refuses_to_pin", True)
    with memory.taken(2000) as found:
        found[...] = 7
    assert not registered()


def test_memory_that_nobody_asks_for_is_let_go(memory: PinnedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "SECONDS", 0.01)
    with memory.taken(2000):
        pass
    assert soon(lambda: not fake_cupy.pinned)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of what strikes where memory is let go
def test_what_is_interrupted_leaves_no_freed_memory_pinned(memory: PinnedMemory) -> None:
    def take() -> None:
        memory.release()
        with memory.taken(2000):
            pass

    struck = 0
    for place in range(1, events(take, CUDA) + 1):
        memory.release()
        fake_cupy.pinned.clear()  # if it struck where memory is let go, which Python then only tells of
        if strike(take, place, CUDA):
            memory.release()
            struck += 1
            assert not fake_cupy.pinned, f"struck at {place}"
    assert struck > 150


def test_the_runs_of_sorts_in_pieces_are_pinned(memory: PinnedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_SPARE", 0)
    monkeypatch.setattr(desk, "_LEAST_BYTES", 256)
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    target = CudaTarget()
    monkeypatch.setattr(target, "_pinned", memory)
    monkeypatch.setattr(fake_cupy.pool, "limit", fake_cupy.pool.used_bytes() + 6144)
    x = sample("u4", 1000)
    for _ in range(2):
        assert_same_bits(gpusort.sort(x, target=target), np.sort(x))
    assert registered() == ["register 4096"]
