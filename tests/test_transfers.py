"""Arrays of the host travel to a card and back in pieces: a stand-in for the card, and the card where there is one."""

from __future__ import annotations

import mmap
import sys
from functools import partial
from textwrap import indent
from typing import Any, cast

import numpy as np
import pytest

import gpusort
from gpusort.targets.cpu.loops import compiled
from gpusort.targets.cuda import pinned_copies
from gpusort.targets.cuda.pinned import is_mapped, touch, touch_by_threads
from gpusort.targets.cuda.target import CudaTarget
from gpusort.targets.cuda.transfers import LEAST_BYTES, PIECE_BYTES, Transfers
from tests import fake_cupy

SIZES = [0, 1, 1000, LEAST_BYTES - 1, LEAST_BYTES, LEAST_BYTES + 1, LEAST_BYTES + 3 * PIECE_BYTES + 5]
LONG = 6 * LEAST_BYTES // 4  # bytes, which several threads take pieces of
STREAM = cast(Any, fake_cupy.current_stream)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the card was asked to copy."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    driver = fake_cupy.Driver()
    monkeypatch.setattr(pinned_copies, "driver_functions", lambda: driver.functions)
    fake_cupy.log.clear()
    fake_cupy.pinned.clear()
    return fake_cupy.log


@pytest.mark.parametrize("size", SIZES)
def test_every_byte_goes_there_and_back(copies: list[str], size: int) -> None:
    source = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    there, back, transfers = np.zeros(size, np.uint8), np.zeros(size, np.uint8), Transfers()
    transfers.upload([(there.ctypes.data, source)], STREAM)
    np.testing.assert_array_equal(there, source)
    transfers.download([(there.ctypes.data, back)], STREAM)
    np.testing.assert_array_equal(back, source)
    for way in ("up", "down"):
        pieces = [int(line.split()[-1]) for line in copies if line.startswith(f"copy {way}")]
        assert sum(pieces) == size
        assert max(pieces) <= (PIECE_BYTES if size >= LEAST_BYTES else size)
        assert bool(fake_cupy.pinned) == (size >= LEAST_BYTES)


@pytest.mark.parametrize("to", [0, 1, 63])
@pytest.mark.parametrize("nbytes", [0, 1, 62, 63, 64, 65, 127, 128, 129, 1000])
def test_a_copy_past_the_caches_writes_what_it_should_and_nothing_else(to: int, nbytes: int) -> None:
    source, target = np.arange(2000, dtype=np.uint16).view(np.uint8)[5:], np.full(2048, 0xEE, np.uint8)
    first = -target.ctypes.data % 64 + 128 + to
    driver = fake_cupy.Driver()
    takes, body = "functions: i8[], to: i8, source: i8, nbytes: i8", indent(pinned_copies.COPY, "    ")
    copy = compiled("copy_past_caches", takes, body)
    copy.on(driver.functions, target.ctypes.data + first, source.ctypes.data, nbytes)()
    expected = np.full_like(target, 0xEE)
    expected[first : first + nbytes] = source[:nbytes]
    np.testing.assert_array_equal(target, expected)


def test_memory_that_will_be_written_is_touched(copies: list[str]) -> None:
    source = np.random.default_rng(1).integers(0, 256, LONG, np.uint8)
    there, known = np.zeros_like(source), np.full(1 << 20, 7, np.uint8)
    later = np.frombuffer(mmap.mmap(-1, 1 << 20), np.uint8)  # closed by nobody: a thread may hold it a little longer
    Transfers().upload([(there.ctypes.data, source)], STREAM, [later[1:], later[:0], known])
    assert is_mapped(later)
    np.testing.assert_array_equal(there, source)
    assert (known == 7).all()  # its pages were there


def test_a_transfer_may_be_of_any_shape(copies: list[str]) -> None:
    source = np.arange(LONG // 8, dtype=np.float64).reshape(3, -1)
    there = np.zeros_like(source)
    Transfers().upload([(there.ctypes.data, source)], STREAM)
    np.testing.assert_array_equal(there, source)


def test_pinned_memory_takes_no_detour(copies: list[str]) -> None:
    source, there = fake_cupy.PinnedMemory(LONG), np.zeros(LONG, np.uint8)
    Transfers().upload([(there.ctypes.data, source)], STREAM)
    assert copies == [f"copy up {LONG}"]


class _Refusing(fake_cupy.Driver):
    """A driver that fails from some call on."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    def _status(self) -> int:
        self.left -= 1
        return 0 if self.left > 0 else 719

    def record(self, event: int, stream: int) -> int:
        return self._status()

    def wait(self, event: int) -> int:
        return self._status()


@pytest.mark.parametrize("calls", [1, 2, 3, 9])
def test_what_the_driver_refuses_is_an_error(copies: list[str], monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    source, there = np.ones(LONG, np.uint8), np.zeros(LONG, np.uint8)

    def way(back: bool) -> None:
        if back:
            Transfers().download([(there.ctypes.data, source)], STREAM)
        else:
            Transfers().upload([(there.ctypes.data, source)], STREAM)

    for back in (False, True):
        driver = _Refusing(calls)
        monkeypatch.setattr(pinned_copies, "driver_functions", partial(np.copy, driver.functions))
        with pytest.raises(fake_cupy.CUDADriverError, match="719"):
            way(back)


def test_the_driver_is_asked_by_its_own_names(real_card: CudaTarget) -> None:
    assert pinned_copies.driver_functions().all()


@pytest.mark.parametrize("size", SIZES)
def test_on_a_card_arrays_of_the_host_are_sorted(real_card: CudaTarget, size: int) -> None:
    x = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    np.testing.assert_array_equal(gpusort.sort(x, target=real_card), np.sort(x))
    wide = np.random.default_rng(size).integers(0, 1 << 40, size // 8, np.int64)
    np.testing.assert_array_equal(gpusort.sort(wide[::-1], target=real_card), np.sort(wide))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell which pages are there")
def test_pages_are_there_once_they_are_touched() -> None:
    with mmap.mmap(-1, 100 * mmap.PAGESIZE) as block:
        memory = np.frombuffer(block, np.uint8)
        inside = memory[100:-100]  # neither begins nor ends with a page
        assert not is_mapped(memory)
        assert not is_mapped(inside)
        touch(memory)
        assert is_mapped(memory)
        assert is_mapped(inside)
        assert not is_mapped(memory[:0])
        del memory, inside
    memory = np.empty(1 << 24, np.uint8)
    touch_by_threads(memory)
    assert is_mapped(memory)
