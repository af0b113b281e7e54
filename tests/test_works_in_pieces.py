"""Reductions, scans and selections of host arrays beyond a device's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos import copy
from gpusort.api.in_pieces import desk
from gpusort.api.in_pieces import plan as pieces_plan
from gpusort.api.kernel_plan import KernelPlan
from gpusort.api.plan import as_tuple
from gpusort.kernel.launch import Schedule
from gpusort.types.errors import CapabilityError, DeviceMemoryError
from gpusort.types.indices import ScanKind
from gpusort.types.scalars import U32
from tests.covering import InTurn, few_cases
from tests.host_with_room import HostWithRoom
from tests.reference import assert_same_bits, sample, whole_numbers

pytestmark = pytest.mark.usefixtures("known_kernels")


@pytest.fixture(autouse=True)
def beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is too much for the device at once, and pieces are short."""
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    monkeypatch.setattr(KernelPlan, "device_bytes", 1 << 60)
    monkeypatch.setattr(desk, "_LEAST_BYTES", 1 << 10)


def same(target: HostWithRoom, call: Callable[[], Any], expected: Any, most: int) -> None:
    """The result, which came of pieces, of which one travels once."""
    found = call()
    assert not target.whole
    assert target.rooms[-1].uploaded == most
    assert target.rooms[-1].works > 1
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert_same_bits(one, other)


NAMES = ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all", "cumsum")


@few_cases(pairs=False)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["?", "f2", "f4", ">i8"])
def test_what_is_said_of_long_rows_and_of_many(name: str, dtype: str) -> None:
    call: Callable[..., Any] = getattr(gpusort, name)
    for shape, axis in (((3300,), -1), ((2, 1300), 1), ((1300, 2), 0), ((90, 40), None), ((40, 60), 0)):
        x = whole_numbers(dtype, shape)
        if name == "prod":
            x[...] = np.where(x == 0, 1, x)
        target = HostWithRoom(1 << 14)
        same(target, lambda: call(x, axis=axis, target=target), call(x, axis=axis, target="cpu"), x.nbytes)  # noqa: B023


@few_cases(pairs=False)
@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax", "any", "all"])
@pytest.mark.parametrize("dtype", ["i1", "f4", "M8[s]"])
def test_elements_of_any_bits(name: str, dtype: str) -> None:
    call, numpys = cast("Callable[..., Any]", getattr(gpusort, name)), getattr(np, name)
    for seed in range(2):
        x = sample(dtype, 2500, seed)
        if x.dtype.kind == "f" and seed:
            x = np.where(np.isnan(x), np.float32(-0.0), x)
        found = call(x, target=HostWithRoom(1 << 14))
        with np.errstate(invalid="ignore"):
            expected = numpys(x)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("size", [1023, 1024, 1025, 2047, 2048, 2049])
def test_sizes_around_the_edges_of_pieces(size: int) -> None:
    x = np.zeros(size, np.uint8)
    for place in (0, 1022, size - 1):
        x[:] = 0
        x[place] = 1
        assert gpusort.argmax(x, target=HostWithRoom(1 << 13)) == place
    x[:] = np.arange(size) % 7
    assert gpusort.sum(x, target=HostWithRoom(1 << 13)) == np.sum(x)
    np.testing.assert_array_equal(gpusort.cumsum(x, target=HostWithRoom(1 << 15)), np.cumsum(x))


@few_cases(pairs=False)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("dtype", "k"), [("f4", 1), ("u1", 40), ("f4", 900)])
def test_the_first_of_long_rows(dtype: str, k: int, largest: bool) -> None:
    for shape, axis in (((3000,), 0), ((2, 3000), 1)):
        x = sample(dtype, shape)
        target = HostWithRoom(1 << 18)
        call: Callable[..., Any] = gpusort.top_k
        expected = call(x, k, axis=axis, largest=largest)
        found = call(x, k, axis=axis, largest=largest, target=target)
        assert not target.whole
        assert target.rooms[0].works > 1
        for one, other in zip(found, expected, strict=True):
            assert_same_bits(one, other)


def test_more_than_can_be_kept_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon: with ever smaller parts, of which there are ever more, nothing less would be kept."""
    gathers, original = list[int](), copy.take_rows

    def noted(itemsize: int, rows: int, length: int, taken: int, first: int | None = None, **fit: Any) -> Schedule:
        gathers.append(length)
        return original(itemsize, rows, length, taken, first, **fit)

    monkeypatch.setattr(copy, "take_rows", noted)
    x = np.arange(4000.0)
    with pytest.raises(DeviceMemoryError, match=r"top_k of x, 32,000 bytes of float64 .*, where 20,000 are free"):
        gpusort.top_k(x, 3900, target=HostWithRoom(20_000))
    assert 0 < len(gathers) < 1000
    np.testing.assert_array_equal(x, np.arange(4000.0))


def test_prepared_calls_travel_in_pieces_too() -> None:
    x = whole_numbers("i4", (4, 900))
    target = HostWithRoom(1 << 14)
    call = gpusort.plan(gpusort.cumsum, x, axis=1, target=target)
    for _ in range(2):
        np.testing.assert_array_equal(call(x), np.cumsum(x, axis=1))
    assert len(target.rooms) == 2
    assert call.cost.launches > 0


@attrs.frozen
class Latest:
    """The greatest place of an odd number."""

    element: type[U32] = U32
    state: type[U32] = U32

    def identity(self) -> U32:
        return U32(0)

    def lift(self, element: U32, index: U32) -> U32:
        return index + 1 if element % 2 == 1 else U32(0)

    def combine(self, a: U32, b: U32) -> U32:
        return a if a > b else b


@pytest.mark.parametrize("kind", ScanKind)
def test_monoids_of_ones_own_know_where_they_are(kind: ScanKind) -> None:
    x = np.random.default_rng(0).integers(0, 50, 2000).astype(np.uint32)
    places = np.maximum.accumulate(np.where(x % 2 == 1, np.arange(1, 2001), 0)).astype(np.uint32)
    target = HostWithRoom(1 << 14)
    exclusive = kind is ScanKind.EXCLUSIVE
    expected = np.concatenate([[np.uint32(0)], places[:-1]]) if exclusive else places
    same(target, lambda: gpusort.scan(x, Latest(), exclusive=exclusive, target=target), expected, x.nbytes)
    same(target, lambda: gpusort.reduce(x, Latest(), target=target), places[-1], x.nbytes)


# -- more than 32 bits count ------------------------------------------------------------------------------


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels count to a thousand."""
    modules = [f"operations.{name}" for name in ("pieces", "base", "scan", "reduce")]
    for module in (*modules, "api.in_pieces.desk"):
        monkeypatch.setattr(f"gpusort.{module}.LARGEST_U32", 1000)


@pytest.mark.usefixtures("few_places")
@pytest.mark.parametrize("name", ["sum", "min", "max", "any", "all", "cumsum"])
def test_rows_of_more_elements_than_kernels_count(name: str) -> None:
    x = whole_numbers("i4", 3000)
    call: Callable[..., Any] = getattr(gpusort, name)
    target = HostWithRoom(1 << 14)
    same(target, lambda: call(x, target=target), getattr(np, name)(x), x.nbytes)


@few_cases(pairs=False)
@pytest.mark.usefixtures("few_places")
@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize("size", [2750, 2999])
def test_what_is_looked_for_where_kernels_do_not_count(size: int, dtype: str, in_turn: InTurn) -> None:
    x = sample(dtype, size)
    x[-3:] = x[:3]
    target = HostWithRoom(1 << 16)
    for call in (gpusort.argmin, gpusort.argmax):
        expected = call(x, target="cpu")
        assert call(x, target=target) == expected
        y = np.where(np.isnan(x), 1, x).astype(dtype)
        assert call(y, target=target) == call(y, target="cpu")
    x.sort()  # so that either end of it decides
    for k, largest in in_turn((1, 50), (False, True)):
        found = gpusort.top_k(x, k, largest=largest, target=target)
        for one, other in zip(found, gpusort.top_k(x, k, largest=largest), strict=True):
            assert_same_bits(one, other)
    rows = np.stack([x, x[::-1]])
    np.testing.assert_array_equal(gpusort.argmax(rows, axis=1, target=target), gpusort.argmax(rows, axis=1))


@pytest.mark.usefixtures("few_places")
def test_places_in_rows_in_which_kernels_do_not_count() -> None:
    x = sample("f4", 2500)
    assert_same_bits(gpusort.argsort(x, target=HostWithRoom(1 << 16)), gpusort.argsort(x))


@pytest.mark.usefixtures("few_places")
def test_a_monoid_of_ones_own_that_would_count_further_is_refused() -> None:
    with pytest.raises(CapabilityError, match="kernels count places"):
        gpusort.reduce(np.zeros(2000, np.uint32), Latest(), target=HostWithRoom(1 << 16))
