"""Calls with host arrays beyond a device's memory, on a target with as little of it as one says."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.api import call as front
from gpusort.api.in_pieces import desk, parts
from gpusort.api.in_pieces import plan as pieces_plan
from gpusort.api.in_pieces import sort as long_sorts
from gpusort.api.kernel_plan import KernelPlan
from gpusort.api.plan import as_tuple
from gpusort.operations.base import Output
from gpusort.types.errors import CapabilityError, DeviceMemoryError
from gpusort.types.keys import SortableKey
from gpusort.types.scalars import U32
from gpusort.types.specs import Spec
from tests import key_cases
from tests.covering import InTurn, few_cases
from tests.host_with_room import HostWithRoom
from tests.reference import Array, assert_same_bits, sample
from tests.test_own_operation import LowMedian, low_median

pytestmark = pytest.mark.usefixtures("known_kernels")


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of some kilobytes are as long here as others of many gigabytes."""
    monkeypatch.setattr(pieces_plan, "ALWAYS_FIT", 0)
    monkeypatch.setattr(desk, "_LEAST_BYTES", 1 << 9)
    monkeypatch.setattr(desk, "_MOST", 5)


@pytest.fixture
def beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is too much for the device at once, which has room for pieces."""
    monkeypatch.setattr(KernelPlan, "device_bytes", 1 << 60)


ROOM = 1 << 20


def checked(target: HostWithRoom, x: Array, call: Callable[[Any], Any], expected: Any) -> Any:
    """The result, which came of pieces, and left the array as it was."""
    before = x.tobytes()
    found = call(x)
    assert x.tobytes() == before
    assert target.rooms
    assert not target.whole
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert_same_bits(one, other)
    return found


# -- what fits, and what cannot be done -------------------------------------------------------------------


def test_what_fits_goes_at_once() -> None:
    x, target = sample("f4", 1000), HostWithRoom(1 << 20)
    assert_same_bits(gpusort.sort(x, target=target), gpusort.sort(x))
    assert target.whole
    assert not target.rooms


def test_what_cannot_be_cut_says_how_much_it_takes() -> None:
    x, y, target = np.arange(3000.0), np.arange(500.0), HostWithRoom(1 << 9)
    said = r"merge of x, 24,000 bytes of float64 in shape \(3000,\), and y, 4,000 bytes .* takes 56,\d+ bytes of device"
    with pytest.raises(DeviceMemoryError, match=f"{said}.* 512 are free.*target='cpu'") as caught:
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
        gpusort.merge(np.arange(10.0), np.arange(5.0), target=HostWithRoom(64))


def test_it_is_asked_each_time_how_much_is_free() -> None:
    x, target = sample("i8", 700), HostWithRoom(1 << 12)
    checked(target, x, lambda x: gpusort.sort(x, target=target), np.sort(x))
    target.free, rooms = 1 << 20, len(target.rooms)
    assert_same_bits(gpusort.sort(x, target=target), np.sort(x))
    assert len(target.rooms) == rooms
    assert target.whole


@pytest.mark.usefixtures("beyond")
def test_pieces_are_as_long_as_the_memory_that_is_free_now_allows() -> None:
    x, target = np.random.default_rng(4).permutation(700), HostWithRoom(ROOM)
    works = list[int]()
    for free in (1 << 13, 1 << 12, 1 << 13, 1 << 13):
        target.free = free
        checked(target, x, lambda x: gpusort.sort(x, target=target), np.arange(700))
        works.append(target.rooms[-1].works)
    assert works[0] == works[2] == works[3] < works[1]


@pytest.mark.usefixtures("beyond")
def test_results_that_do_not_fit_are_refused_before_anything_is_sent() -> None:
    x, target = sample("f4", 1000), HostWithRoom(ROOM)
    read_only = np.zeros(1000, np.float32)
    read_only.flags.writeable = False
    windows = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1000,), (0,))
    for out, said in (
        (np.zeros(1000, np.float64), "shape"), (np.zeros((1000, 1), np.float32), "shape"),
        (read_only, "can be written"), (windows, "a place of its own"),
    ):  # fmt: skip
        for _ in range(2):
            with pytest.raises(gpusort.InvalidArgumentError, match=rf"^out: expected .*{said}"):
                gpusort.sort(x, out=cast(Any, out), target=target)
        assert not out.any()
    assert not target.rooms


# -- many rows --------------------------------------------------------------------------------------------

ROWS: list[tuple[tuple[int, ...], int]] = [((61, 50), 1), ((61, 50), -1), ((50, 61), 0), ((5, 40, 13), 1)]


@few_cases(pairs=False)
@pytest.mark.parametrize(("shape", "axis"), ROWS)
@pytest.mark.parametrize("dtype", ["u1", "f4", "M8[s]", ">i4"])
def test_rows_are_sorted_in_batches(dtype: str, shape: tuple[int, ...], axis: int, in_turn: InTurn) -> None:
    x = sample(dtype, shape)
    for descending, stable in in_turn((False, True), (False, True)):
        target = HostWithRoom(x.nbytes // 2)
        more: dict[str, Any] = {"axis": axis, "descending": descending, "stable": stable}
        checked(target, x, lambda x: gpusort.sort(x, target=target, **more), gpusort.sort(x, **more))  # noqa: B023
        assert target.rooms[0].uploaded == target.rooms[0].downloaded == x.nbytes  # once there and once back
        assert target.rooms[0].works > 2


def test_rows_that_the_device_would_turn_go_in_batches_where_it_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_plan, "LEAST_BYTES", 0)
    x, rooms = sample("f4", (50, 61)), list[int]()
    target = HostWithRoom(1 << 20)
    for free in (1 << 20, x.nbytes // 2, 1 << 20):
        target.free = free
        checked(target, x, lambda x: gpusort.sort(x, axis=0, target=target), gpusort.sort(x, axis=0))
        rooms.append(target.rooms[-1].works)
    assert rooms[0] == rooms[2] == 1 < rooms[1]


# -- long rows that are sorted ----------------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "f4", ">f8"])
def test_a_long_row_is_sorted(dtype: str, stable: bool) -> None:
    x = sample(dtype, 1100)
    for descending in (False, True):
        target = HostWithRoom(ROOM)
        more: dict[str, Any] = {"stable": stable, "descending": descending}
        checked(target, x, lambda x: gpusort.sort(x, target=target, **more), gpusort.sort(x, **more))  # noqa: B023
        assert target.rooms[0].works > 4


@few_cases(pairs=False)
@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("dtype", ["?", "f2", "f4", ">f8", "M8[s]"])
@pytest.mark.parametrize("counted", [(1 << 32) - 1, 699])
def test_places_in_a_long_row(dtype: str, counted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel in 32 bits where these count the row's elements."""
    monkeypatch.setattr(long_sorts, "LARGEST_U32", counted)
    x = sample(dtype, 700)
    for descending in (False, True):
        target = HostWithRoom(ROOM)
        expected = gpusort.argsort(x, descending=descending)
        checked(target, x, lambda x: gpusort.argsort(x, descending=descending, target=target), expected)  # noqa: B023
        assert target.rooms[0].works > 4
        each = x.dtype.itemsize + (4 if counted > x.size else 8)
        assert target.rooms[0].downloaded == x.size * (each + 8)


@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("size", [95, 96, 97, 143, 144, 145, 191, 192, 193])
def test_sizes_around_the_edges_of_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "_LEAST_BYTES", 48 * 8)  # elements and bytes of a key and its place
    x = np.random.default_rng(size).integers(0, 20, size).astype(np.uint32)
    target = HostWithRoom(ROOM)
    checked(target, x, lambda x: gpusort.argsort(x, target=target), np.argsort(x, kind="stable"))
    assert target.rooms[0].works == 2 * -(-size // 48)


@few_cases(pairs=False)
@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("values", ["u1", "i8", "c16", ">u4"])
@pytest.mark.parametrize("dtype", ["f4", "u2"])
def test_values_go_along_with_long_keys(dtype: str, values: str) -> None:
    x, y = sample(dtype, 700), np.arange(700).astype(values)
    for descending in (False, True):
        target = HostWithRoom(ROOM)
        expected = gpusort.sort_by_key(x, y, descending=descending)
        checked(target, x, lambda x: gpusort.sort_by_key(x, y, descending=descending, target=target), expected)  # noqa: B023
        assert target.rooms[0].works > 4
        np.testing.assert_array_equal(y, np.arange(700).astype(values))


@few_cases(pairs=False)
@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", ">f8", "m8[s]", "?"])
@pytest.mark.parametrize("sizes", [(700, 701), (1, 1400), (1000, 0), (0, 3)])
def test_two_sorted_rows_are_merged(dtype: str, sizes: tuple[int, int]) -> None:
    for descending in (False, True):
        x, y = (gpusort.sort(sample(dtype, size), descending=descending) for size in sizes)
        target = HostWithRoom(ROOM)
        more: dict[str, Any] = {"descending": descending}
        expected = gpusort.merge(x, y, target="cpu", **more)
        checked(target, x, lambda x: gpusort.merge(x, y, target=target, **more), expected)  # noqa: B023
        assert target.rooms[0].works > 1 or x.size + y.size == 3
        assert target.rooms[0].uploaded == target.rooms[0].downloaded == x.nbytes + y.nbytes  # once there, once back


@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_are_merged_whose_ties_are_not_in_order(dtype: str) -> None:
    """As `np.sort` leaves zeros of both signs and NaNs: those of the first row come first, and none is lost."""
    rng = np.random.default_rng(5)
    x, y = (np.sort(rng.choice([-1.0, -0.0, 0.0, 2.0, np.nan, -np.nan], size).astype(dtype)) for size in (600, 700))
    target = HostWithRoom(ROOM)
    expected = gpusort.sort(np.concatenate([x, y]), stable=True)
    checked(target, x, lambda x: gpusort.merge(x, y, target=target), expected)
    assert target.rooms[0].works > 4


@few_cases(pairs=False)
@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("values", ["u1", ">i8"])
@pytest.mark.parametrize("dtype", ["f4", "u2"])
def test_values_go_along_with_rows_that_are_merged(dtype: str, values: str) -> None:
    for descending in (False, True):
        x, y = (gpusort.sort(sample(dtype, size), descending=descending) for size in (400, 300))
        its, others = np.arange(400).astype(values), np.arange(300)[::-1].astype(values)
        target = HostWithRoom(ROOM)
        more: dict[str, Any] = {"descending": descending}
        expected = gpusort.merge_by_key(x, its, y, others, target="cpu", **more)
        checked(target, x, lambda x: gpusort.merge_by_key(x, its, y, others, target=target, **more), expected)  # noqa: B023


@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("key", [key_cases.AbsoluteFirst(), key_cases.Absolute()], ids=["lossless", "lossy"])
def test_rows_are_merged_by_a_users_key(key: SortableKey[Any, Any]) -> None:
    x, y = (gpusort.sort(np.abs(sample("i4", size)) * [1, -1][size % 2], key=key) for size in (500, 601))
    target = HostWithRoom(ROOM)
    checked(target, x, lambda x: gpusort.merge(x, y, key=key, target=target), gpusort.merge(x, y, key=key))
    assert target.rooms[0].works > 4


@pytest.mark.usefixtures("beyond")
def test_rows_that_no_piece_holds_go_one_by_one() -> None:
    x = np.random.default_rng(0).integers(0, 99, (3, 400)).astype(np.int16)
    for axis, call, free in ((1, gpusort.sort, 3500), (-1, gpusort.argsort, 8000), (None, gpusort.argsort, ROOM)):
        target = HostWithRoom(free)
        more: dict[str, Any] = {"axis": axis}
        expected = call(x, **more)
        checked(target, x, lambda x: call(x, target=target, **more), expected)  # noqa: B023
        assert target.rooms[0].works > 6


@pytest.mark.usefixtures("beyond")
def test_all_equal_and_in_order() -> None:
    for x in (np.zeros(900, np.float32), np.full(900, -np.nan), np.arange(900), np.arange(900)[::-1].copy()):
        target = HostWithRoom(ROOM)
        checked(target, x, lambda x: gpusort.argsort(x, target=target), np.argsort(x, kind="stable"))  # noqa: B023


@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("fails_at", [1, 3, 8])
def test_a_device_that_fails_leaves_every_element(fails_at: int) -> None:
    x = sample("f4", 1000)
    before = np.sort(x.view(np.uint32))
    with pytest.raises(RuntimeError, match="stopped working"):
        gpusort.sort_inplace(x, target=HostWithRoom(ROOM, fails_at=fails_at))
    np.testing.assert_array_equal(np.sort(x.view(np.uint32)), before)
    rows = x.reshape(20, 50).copy()
    before = rows.copy()
    for axis in (0, 1):  # of which a batch's rows are packed by the host, or are sent as they lie
        with pytest.raises(RuntimeError, match="stopped working"):
            gpusort.sort_inplace(rows, axis=axis, target=HostWithRoom(2000, fails_at=fails_at))
        assert_same_bits(rows, before)


@pytest.mark.usefixtures("beyond")
def test_ctrl_c_while_elements_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    x, copy = sample("f4", 1000), np.copyto
    before = np.sort(x.view(np.uint32))

    def struck(target: Array, source: Array, **more: Any) -> None:
        if target.ctypes.data == x.ctypes.data:
            signal.raise_signal(signal.SIGINT)
        copy(target, source, **more)

    monkeypatch.setattr(np, "copyto", struck)
    with pytest.raises(KeyboardInterrupt):
        gpusort.sort_inplace(x, target=HostWithRoom(ROOM, fails_at=8))
    np.testing.assert_array_equal(np.sort(x.view(np.uint32)), before)


@pytest.mark.usefixtures("beyond")
def test_a_result_that_lies_where_something_is_read() -> None:
    x = np.random.default_rng(1).integers(0, 1000, 900).astype(np.uint32)
    out, given = x[100:], x[:-100].copy()
    gpusort.sort(x[:-100], out=out, target=HostWithRoom(ROOM))
    np.testing.assert_array_equal(out, np.sort(given))


@attrs.frozen
class ByTens:
    """Numbers by their tens alone."""

    element: type[U32] = U32
    word: type[U32] = U32
    greatest: U32 = attrs.field(factory=lambda: U32(0xFFFFFFFF))
    is_lossy: bool = True

    def to_word(self, element: U32) -> U32:
        return element // 10

    def from_word(self, word: U32) -> U32:
        return word

    def to_rank(self, element: U32) -> U32:
        return element // 10

    def mirrored(self, word: U32) -> U32:
        return ~word


@pytest.mark.usefixtures("beyond")
def test_keys_that_tell_less_than_elements() -> None:
    x = np.random.default_rng(2).integers(0, 50, 600).astype(np.uint32)
    target = HostWithRoom(ROOM)
    expected = x[np.argsort(x // 10, kind="stable")]
    checked(target, x, lambda x: gpusort.sort(x, key=ByTens(), target=target), expected)
    with pytest.raises(DeviceMemoryError, match="argsort of x"):
        gpusort.argsort(x, key=ByTens(), target=HostWithRoom(ROOM))


@attrs.frozen
class TiedByTens(ByTens):
    """Numbers, which tie if they have as many tens."""

    is_lossy: bool = False

    def to_word(self, element: U32) -> U32:
        return element


@pytest.mark.usefixtures("beyond")
def test_what_ties_by_a_key_keeps_its_order_if_that_is_asked_for() -> None:
    x = np.random.default_rng(2).integers(0, 50, 600).astype(np.uint32)
    target, key = HostWithRoom(ROOM), TiedByTens()
    in_order = x[np.argsort(x // 10, kind="stable")]
    checked(target, x, lambda x: gpusort.sort(x, key=key, stable=True, target=target), in_order)
    checked(target, x, lambda x: gpusort.sort(x, key=key, target=target), np.sort(x))
    checked(target, x, lambda x: gpusort.argsort(x, key=key, target=target), np.argsort(x // 10, kind="stable"))


@pytest.mark.usefixtures("beyond")
def test_values_go_along_by_a_users_key() -> None:
    x, values = sample("i4", 600), np.arange(600).astype(np.int16)
    target, key = HostWithRoom(ROOM), key_cases.AbsoluteFirst()
    expected = gpusort.sort_by_key(x, values, key=key, target="cpu")
    checked(target, x, lambda x: gpusort.sort_by_key(x, values, key=key, target=target), expected)


@pytest.mark.usefixtures("beyond")
def test_a_named_algorithm_sorts_the_pieces() -> None:
    x = sample("u4", 900)
    target = HostWithRoom(ROOM)
    checked(target, x, lambda x: gpusort.sort(x, algorithm=gpusort.Bitonic(), target=target), np.sort(x))


# -- an operation of one's own ----------------------------------------------------------------------------


@pytest.mark.usefixtures("beyond")
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_an_operation_of_ones_own_go_in_batches(axis: int) -> None:
    x, target = sample("f4", (40, 41)), HostWithRoom(1 << 12)
    checked(target, x, lambda x: low_median(x, axis=axis, target=target), low_median(x, axis=axis))


@attrs.frozen
class MedianOfFirst(LowMedian):
    """Of the first row alone, whatever the others have."""

    def outputs(self, *given: Spec) -> tuple[Output, ...]:
        return (Output((1,), given[0].dtype, (0,)),)


@pytest.mark.usefixtures("beyond")
def test_a_result_of_no_single_row_is_never_taken_for_one_of_each() -> None:
    with pytest.raises(DeviceMemoryError, match=r"^medianoffirst of x, .* cannot be done in pieces"):
        front.call(MedianOfFirst, (1,), HostWithRoom(1 << 12), sample("f4", (40, 41)))


@pytest.mark.usefixtures("beyond")
def test_a_long_row_that_an_operation_of_ones_own_copies_first_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the copy, which stays on the device, no launch has a part to send, however small parts are."""
    monkeypatch.setattr(parts, "_MOST_PARTS", 64)  # the launches of more take as long to plan as all other tests here
    with pytest.raises(DeviceMemoryError, match=r"^lowmedian of x, .* cannot be done in pieces"):
        low_median(sample("f4", 3001), target=HostWithRoom(1 << 15))
