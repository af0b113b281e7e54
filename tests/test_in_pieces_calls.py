"""Calls with host arrays beyond a device's memory, on a target with as little of it as one says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusort
from gpusort.api import pieces_plan
from gpusort.external import in_pieces
from gpusort.types.errors import CapabilityError, DeviceMemoryError
from tests.host_with_room import HostWithRoom
from tests.reference import Array, assert_same_bits, sample


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of some kilobytes are as long here as others of many gigabytes."""
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    monkeypatch.setattr(in_pieces, "_LEAST_BYTES", 1 << 9)


def checked(target: HostWithRoom, x: Array, call: Callable[[Any], Any], expected: Any) -> Any:
    """The result, which came of pieces, and left the array as it was."""
    before = x.tobytes()
    found = call(x)
    assert x.tobytes() == before
    assert target.rooms
    assert not target.whole
    for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
        assert_same_bits(one, other)
    return found


# -- what fits, and what cannot be done -------------------------------------------------------------------


def test_what_fits_goes_at_once() -> None:
    x, target = sample("f4", 1000), HostWithRoom(1 << 20)
    assert_same_bits(gpusort.sort(x, target=target), gpusort.sort(x))
    assert target.whole
    assert not target.rooms


def test_what_cannot_be_cut_says_how_much_it_takes() -> None:
    x, y, target = np.arange(3000.0), np.arange(500.0), HostWithRoom(1 << 12)
    said = r"merge of x, 24,000 bytes of float64 in shape \(3000,\), and y, 4,000 bytes .* takes 56,\d+ bytes of device"
    with pytest.raises(DeviceMemoryError, match=f"{said}.* 4,096 are free.*target='cpu'") as caught:
        gpusort.merge(x, y, target=target)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, gpusort.GpusortError)
    assert not target.whole
    np.testing.assert_array_equal(x, np.arange(3000.0))


def test_too_little_memory_for_any_piece() -> None:
    x, target = sample("f4", 1000), HostWithRoom(256)
    before = x.tobytes()
    with pytest.raises(DeviceMemoryError, match=r"sort of x, 4,000 bytes .*, where 256 are free"):
        gpusort.sort_inplace(x, target=target)
    assert x.tobytes() == before


def test_what_is_refused_at_any_size_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise CapabilityError("y: more than kernels count places in")

    monkeypatch.setattr("gpusort.operations.merge.Merge.works", refuse)
    with pytest.raises(CapabilityError, match="kernels count"):
        gpusort.merge(np.arange(10.0), np.arange(5.0), target=HostWithRoom(1 << 20))


def test_it_is_asked_each_time_how_much_is_free() -> None:
    x, target = sample("i8", 700), HostWithRoom(1 << 12)
    checked(target, x, lambda x: gpusort.sort(x, target=target), np.sort(x))
    target.free, rooms = 1 << 20, len(target.rooms)
    assert_same_bits(gpusort.sort(x, target=target), np.sort(x))
    assert len(target.rooms) == rooms
    assert target.whole


# -- many rows --------------------------------------------------------------------------------------------

ROWS: list[tuple[tuple[int, ...], int]] = [((61, 50), 1), ((61, 50), -1), ((50, 61), 0), ((5, 40, 13), 1)]


@pytest.mark.parametrize(("shape", "axis"), ROWS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "M8[s]", ">i4"])
def test_rows_are_sorted_in_batches(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    x = sample(dtype, shape)
    for descending in (False, True):
        for stable in (False, True):
            target = HostWithRoom(x.nbytes // 2)
            more: dict[str, Any] = {"axis": axis, "descending": descending, "stable": stable}
            checked(target, x, lambda x: gpusort.sort(x, target=target, **more), gpusort.sort(x, **more))  # noqa: B023
            assert target.rooms[0].uploaded == target.rooms[0].downloaded == x.nbytes  # once there and once back
            assert target.rooms[0].works > 2
