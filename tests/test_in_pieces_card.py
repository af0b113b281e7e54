"""Host arrays beyond a card's memory: the room on the card, on stand-ins for cupy and the card."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.api.in_pieces import desk
from gpusort.api.in_pieces import plan as pieces_plan
from gpusort.api.kernel_plan import KernelPlan
from gpusort.api.plan import as_tuple
from gpusort.targets.base import Copies
from gpusort.targets.cuda import room
from gpusort.targets.cuda.target import CudaTarget
from gpusort.targets.cuda.transfers import Transfers
from gpusort.types.errors import DeviceMemoryError
from tests import fake_cupy
from tests.key_cases import ClosestTo
from tests.reference import Array, assert_same_bits, sample


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaTarget]:
    """A card of 6 KiB."""
    fake_cupy.put_in_place(monkeypatch)
    monkeypatch.setattr(room, "_SPARE", 0)
    monkeypatch.setattr(desk, "_LEAST_BYTES", 256)
    fake_cupy.forget()
    target = CudaTarget()
    monkeypatch.setattr(fake_cupy.pool, "limit", fake_cupy.pool.used_bytes() + 6144)
    yield target
    assert fake_cupy.current_device == [0]
    assert not fake_cupy.entered


def test_rows_travel_in_batches(card: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    x = sample("f4", (60, 33))
    assert_same_bits(gpusort.sort(x, axis=0, target=card), gpusort.sort(x, axis=0))
    allocated = [line for line in fake_cupy.log if line.startswith("alloc")]
    assert len(allocated) == 1  # all memory at once, before anything is done
    assert sum(line.startswith("copy up") for line in fake_cupy.log) > 2


def test_a_long_row(card: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    x = sample("u4", 1000)
    out = np.zeros_like(x)
    assert gpusort.sort(x, target=card, out=out, descending=True) is out
    assert_same_bits(out, gpusort.sort(x, descending=True))
    gpusort.sort_inplace(x, target=card)
    assert_same_bits(x, out[::-1].copy())


CALLS: dict[str, Callable[[Array, Any], Any]] = {
    "argsort": lambda x, target: gpusort.argsort(x, target=target),
    "pairs": lambda x, target: gpusort.sort_by_key(x, np.arange(x.size, dtype=np.uint16), target=target),
    "stable": lambda x, target: gpusort.sort(x, stable=True, target=target),
    "max": lambda x, target: gpusort.max(x, target=target),
    "argmax": lambda x, target: gpusort.argmax(x, target=target),
    "argmax by a key": lambda x, target: gpusort.argmax(x, key=ClosestTo(), target=target),
    "cumsum": lambda x, target: gpusort.cumsum(np.arange(x.size, dtype=np.int32), target=target),
    "top_k": lambda x, target: gpusort.top_k(x, 5, target=target),
    "rows": lambda x, target: gpusort.argsort(x[:280].reshape(20, 14), axis=0, target=target),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_way(card: CudaTarget, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    monkeypatch.setattr(KernelPlan, "device_bytes", 1 << 60)
    monkeypatch.setattr(fake_cupy.pool, "limit", fake_cupy.pool.used_bytes() + (1 << 18))
    monkeypatch.setattr(desk, "_LEAST_BYTES", 1 << 7)
    monkeypatch.setattr(desk, "_MOST", 4)
    x = sample("f4", 300)
    x[np.isnan(x)] = -1.0
    expected, before = CALLS[name](x, "cpu"), fake_cupy.pool.used_bytes()
    gc.disable()
    try:
        found = CALLS[name](x, card)
        assert fake_cupy.pool.used_bytes() == before  # the next call finds as much as this one
    finally:
        gc.enable()
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert_same_bits(one, other)
    assert len([line for line in fake_cupy.log if line.startswith("alloc")]) == 1
    assert sum(line.startswith("copy up") for line in fake_cupy.log) > 1


TURNED: dict[str, Callable[[Array, Any], Any]] = {
    "columns": lambda x, target: gpusort.sort(x.reshape(20, 14), axis=0, target=target),
    "descending": lambda x, target: gpusort.sort(x.reshape(4, 7, 10), axis=1, descending=True, target=target),
    "argsort": lambda x, target: gpusort.argsort(x.reshape(20, 14), axis=0, target=target),
    "top_k": lambda x, target: gpusort.top_k(x.reshape(4, 7, 10), 3, axis=1, target=target),
    "sum": lambda x, target: gpusort.sum(x.reshape(4, 7, 10), axis=(0, 1), target=target),
    "argmax": lambda x, target: gpusort.argmax(x.reshape(4, 7, 10), axis=0, target=target),
    "cumsum": lambda x, target: gpusort.cumsum(x.reshape(20, 14), axis=0, target=target),
    "out": lambda x, target: gpusort.sort(x.reshape(20, 14), axis=0, out=np.zeros((14, 20), x.dtype).T, target=target),
    "swapped": lambda x, target: gpusort.sort(x.reshape(20, 14).astype(">i4"), axis=0, target=target),
    "Fortran": lambda x, target: gpusort.sort(x.reshape(14, 20).T, axis=0, target=target),
}


@pytest.mark.parametrize("name", TURNED)
def test_rows_that_do_not_follow_each_other_are_turned_on_the_card(
    card: CudaTarget, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(pieces_plan, "LEAST_BYTES", 0)
    monkeypatch.setattr(fake_cupy.pool, "limit", fake_cupy.pool.used_bytes() + (1 << 18))
    x = sample("i4", 280)
    found = TURNED[name](x, card)
    for one, other in zip(as_tuple(found), as_tuple(TURNED[name](x, "cpu")), strict=True):
        assert_same_bits(one, other)
    assert sum(line.startswith("copy up") for line in fake_cupy.log) == 1
    before = fake_cupy.pool.used_bytes()
    monkeypatch.setattr(fake_cupy.pool, "limit", before + 3000)  # which is not enough for that
    for one, other in zip(as_tuple(TURNED[name](x, card)), as_tuple(found), strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("shape", [(880,), (20, 44)])
def test_what_takes_several_schedules_travels_once(
    card: CudaTarget, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    """Ties of floats that differ in their bits are put back after the sort."""
    monkeypatch.setattr(pieces_plan, "LEAST_BYTES_OF_SEVERAL", 0)
    monkeypatch.setattr(fake_cupy.pool, "limit", fake_cupy.pool.used_bytes() + (1 << 18))
    x = np.random.default_rng(5).choice(np.array([0.0, -0.0, 1.0, np.nan, -np.nan], "f4"), shape)
    expected = gpusort.sort(x, stable=True, target="cpu")
    before = len(fake_cupy.log)
    assert_same_bits(gpusort.sort(x, stable=True, target=card), expected)
    assert sum(line.startswith("copy up") for line in fake_cupy.log[before:]) == 1
    gpusort.sort_inplace(x, stable=True, target=card)
    assert_same_bits(x, expected)


def test_columns_in_place(card: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_plan, "LEAST_BYTES", 0)
    monkeypatch.setattr(fake_cupy.pool, "limit", fake_cupy.pool.used_bytes() + (1 << 18))
    x = sample("f4", 880).reshape(20, 44)
    expected = gpusort.sort(x, axis=0)
    gpusort.sort_inplace(x, axis=0, target=card)
    assert_same_bits(x, expected)


def test_memory_that_is_not_there_after_all(card: CudaTarget) -> None:
    x = sample("u4", 2000)
    before = x.copy()
    with pytest.raises(DeviceMemoryError, match=r"too little free memory: Out of memory allocating 8,000 bytes.*'cpu'"):
        gpusort.sort_inplace(x, target=card)
    assert_same_bits(x, before)


@pytest.mark.parametrize("dtype", ["u4", "f4"])
def test_a_sort_in_place_goes_there_and_back_once(card: CudaTarget, dtype: str) -> None:
    x = sample(dtype, 300)
    expected = gpusort.sort(x)
    fake_cupy.log.clear()
    gpusort.sort_inplace(x, target=card)
    assert_same_bits(x, expected)
    assert [line for line in fake_cupy.log if line.startswith("copy")] == ["copy up 1200", "copy down 1200"]


def test_an_interrupt_on_the_way_back_loses_no_element(card: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    x = sample("u4", 300)
    expected, download, struck = gpusort.sort(x), Transfers.download, list[int]()

    def strike(self: Transfers, copies: Copies, stream: Any) -> None:
        if not struck:
            ((pointer, target),) = copies
            struck.append(pointer)
            download(self, [(pointer, target[:150])], stream)
            raise KeyboardInterrupt
        download(self, copies, stream)

    monkeypatch.setattr(Transfers, "download", strike)
    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_inplace(x, target=card)
    assert_same_bits(x, expected)
