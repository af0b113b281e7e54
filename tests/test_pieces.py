"""Rows that no binding holds: every operation cuts them, and gives what NumPy gives of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np
import pytest

import gpusort
from gpusort import webgpu
from gpusort.algos.sorts import Bitonic
from gpusort.operations.pieces import Piece, Slots, pieces_of
from gpusort.targets.webgpu import target_on_device
from gpusort.types.errors import CapabilityError
from gpusort.types.scalars import U32
from gpusort.types.searches import ArgMin
from tests.covering import few_cases
from tests.key_cases import Absolute
from tests.reference import Array, assert_same_bits, sample, whole_numbers
from tests.small_bindings import Small, device_with_bindings_of
from tests.test_own_operation import low_median

pytestmark = pytest.mark.usefixtures("known_kernels")
BYTES = 1024  # of a binding
ORDERED = ("max", "min", "argmax", "argmin", "any", "all")
ADDED = ("sum", "prod", "cumsum")


def numpys(name: str, x: Array, **settings: object) -> Array:
    """What NumPy's function of the name gives, without its warnings of NaNs."""
    with np.errstate(invalid="ignore"):
        return np.asarray(getattr(np, name)(x, **settings))


def ours(name: str) -> Callable[..., Any]:
    return cast("Callable[..., Any]", getattr(gpusort, name))


def argsorted(x: Array, descending: bool = False) -> Array:
    """NumPy's stable order, and NaN last in both directions."""
    if not descending:
        return np.argsort(x, kind="stable")
    backwards = x.size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    are_nan = x[backwards] != x[backwards]
    return np.concatenate([backwards[~are_nan], backwards[are_nan]])


def around_edges(dtype: str, pieces: int) -> tuple[int, ...]:
    each = BYTES // np.dtype(dtype).itemsize
    return pieces * each - 1, pieces * each, pieces * each + 1


# -- how rows are cut -------------------------------------------------------------------------------------


def test_pieces_are_full_but_for_the_last() -> None:
    info = Small(BYTES).info
    pieces = pieces_of(2 * 341 + 3, 3, info)  # of elements of three bytes: 256, a power of two
    assert pieces == (Piece(0, 0, 256, 685), Piece(1, 256, 256, 685), Piece(2, 512, 173, 685))
    with pytest.raises(CapabilityError, match="x: one element takes 2048 bytes, target 'simulator' binds 1024"):
        pieces_of(2, 2048, info)


@pytest.mark.parametrize(("dtype", "apart"), [("u1", 256), ("u4", 64), ("u8", 32), ("u4,u8", 64), ("S3", 256)])
def test_values_of_pieces_lie_where_devices_bind(dtype: str, apart: int) -> None:
    found = Slots.of(3, np.dtype(dtype), attrs.evolve(Small(1 << 16)).info)
    assert found == Slots(3, apart)
    assert found.apart * np.dtype(dtype).itemsize % 256 == 0
    assert found.output(np.dtype(dtype)).shape == (2 * apart + 1,)
    assert Slots.of(300, np.dtype(dtype), Small(BYTES).info).apart == 1  # one binding would not hold them


# -- reductions and scans ---------------------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "u4", "f2", "f4", "i8", "f8", "M8[ns]"])
@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_what_is_ordered(name: str, dtype: str, pieces: int) -> None:
    for length in around_edges(dtype, pieces):
        target, x = Small(BYTES), sample(dtype, length, seed=length)
        if name in ("any", "all") and np.dtype(dtype).kind == "M":
            x = x.view("i8")
        found = np.asarray(ours(name)(x, target=target))
        expected = numpys(name, x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        assert len(target.schedules) == (1 if x.nbytes <= BYTES else 1 + -(-x.nbytes // BYTES))


def test_the_first_of_equals_is_found_in_whichever_piece() -> None:
    for place in (0, 255, 256, 257, 700):
        x = np.ones(701, np.float32)
        x[place] = -0.0
        x[place:] *= np.where(np.arange(701 - place) % 2, 1, x[place] == 0)
        x[-1] = 0.0
        assert gpusort.argmin(x, target=Small(BYTES)) == np.argmin(x)
        x[place] = np.nan
        assert gpusort.argmin(x, target=Small(BYTES)) == gpusort.argmax(x, target=Small(BYTES)) == place


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "u4", "f2", "f4", "i8", "f8"])
@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_what_is_added(name: str, dtype: str, pieces: int) -> None:
    for length in around_edges(dtype, pieces):
        x = whole_numbers(dtype, length, seed=length)
        if np.dtype(dtype).kind == "f" and name == "prod":
            x = np.where(x > 0, 1, -1).astype(dtype)
        found = np.asarray(ours(name)(x, target=Small(BYTES)))
        assert_same_bits(found, numpys(name, x))


def test_axes() -> None:
    x = whole_numbers("i4", (3, 2, 300))
    for name in ("sum", "argmax", "any", "cumsum"):
        for given in (x, x.transpose(2, 1, 0), np.asfortranarray(x)):
            for axis in (0, 1, 2, None):
                found = np.asarray(ours(name)(given, axis=axis, target=Small(BYTES)))
                assert_same_bits(np.ascontiguousarray(found), np.ascontiguousarray(numpys(name, given, axis=axis)))
    assert_same_bits(gpusort.sum(x, axis=(0, 2), keepdims=True, target=Small(BYTES)), x.sum((0, 2), keepdims=True))


@pytest.mark.parametrize("axes", [(0,), (2,), (0, 1), (0, 2)])
def test_more_results_of_rows_than_a_binding_holds(axes: tuple[int, ...]) -> None:
    """Of short elements, or their states between two axes."""
    x = sample("u1", (2, 30, 2, 8))
    assert x.nbytes < BYTES
    assert_same_bits(gpusort.sum(x, axis=axes, target=Small(BYTES)), x.sum(axes))
    if len(axes) == 1:
        assert_same_bits(gpusort.argmax(x, axis=axes[0], target=Small(BYTES)), x.argmax(axes[0]))


def test_rows_that_a_binding_holds_are_not_cut() -> None:
    x, target = whole_numbers("i4", (40, 100)), Small(BYTES)
    assert_same_bits(np.asarray(gpusort.sum(x, axis=1, target=target)), x.sum(1))
    assert len(target.schedules) == 20  # two rows each


@attrs.frozen
class Affine:
    """Functions a x + b, one after another: their order matters."""

    a: U32
    b: U32


@attrs.frozen
class Composed:
    element: type[U32] = U32
    state: type[Affine] = Affine

    def identity(self) -> Affine:
        return Affine(U32(1), U32(0))

    def lift(self, element: U32, index: U32) -> Affine:
        """Where an element stands matters, too."""
        return Affine(element | 1, element ^ index)

    def combine(self, a: Affine, b: Affine) -> Affine:
        return Affine(a.a * b.a, a.b * b.a + b.b)


@pytest.mark.parametrize("exclusive", [False, True])
def test_scans_keep_the_order_of_elements_and_their_places(exclusive: bool) -> None:
    x = sample("u4", 3 * 128 + 5)
    expected, a, b = [(1, 0)], 1, 0
    for index, element in enumerate(x.tolist()):
        a, b = a * (element | 1) % 2**32, (b * (element | 1) + (element ^ index)) % 2**32
        expected.append((a, b))
    found = gpusort.scan(x, Composed(), exclusive=exclusive, target=Small(BYTES))
    assert found.tolist() == (expected[:-1] if exclusive else expected[1:])


def test_reductions_over_any_monoid_know_places() -> None:
    x = sample("f4", 1000)
    found: Any = gpusort.reduce(x, ArgMin(gpusort.key_for("f4")), target=Small(BYTES))
    assert found["index"] == np.argmin(x)


def test_negative_zeros_are_added_as_numpy_adds_them() -> None:
    x = np.full(700, -0.0, np.float32)
    assert_same_bits(gpusort.cumsum(x, target=Small(BYTES)), np.cumsum(x))
    assert_same_bits(np.asarray(gpusort.sum(x, target=Small(BYTES))), np.asarray(x.sum()))


# -- sorts that say where elements come from ----------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "u8", "f8"])
@pytest.mark.parametrize("extra", [-1, 0, 1, 90])
def test_argsort_and_stable_sorts(dtype: str, extra: int, descending: bool) -> None:
    x = sample(dtype, BYTES // 8 + extra, seed=extra + 2)
    order = argsorted(x, descending)
    np.testing.assert_array_equal(gpusort.argsort(x, descending=descending, target=Small(BYTES)), order)
    small = Small(BYTES // 4)
    assert_same_bits(gpusort.sort(x, stable=True, descending=descending, target=small), x[order])


def test_argsort_of_several_rows_and_columns() -> None:
    x = sample("f4", (2, 300))
    expected = np.stack([argsorted(row) for row in x])
    np.testing.assert_array_equal(gpusort.argsort(x, target=Small(BYTES)), expected)
    np.testing.assert_array_equal(gpusort.argsort(x.T, axis=0, target=Small(BYTES)), expected.T)
    np.testing.assert_array_equal(gpusort.argsort(np.zeros(300), target=Small(BYTES)), np.arange(300))


@pytest.mark.parametrize("values", ["u1", "u4", "c16", "S3"])
def test_values_go_along_with_their_keys(values: str) -> None:
    keys = sample("i4", 400)
    carried = sample("u1", 400 * np.dtype(values).itemsize).view(values)
    order = argsorted(keys, descending=True)
    found, moved = gpusort.sort_by_key(keys, carried, descending=True, target=Small(BYTES))
    assert_same_bits(found, keys[order])
    assert moved.tobytes() == carried[order].tobytes()


def test_keys_of_the_users_own_that_lose_something() -> None:
    key = cast(Any, Absolute())
    x = np.random.default_rng(0).integers(-50, 50, 600).astype("i4")
    order = np.argsort(abs(x), kind="stable")
    assert_same_bits(gpusort.sort(x, key=key, target=Small(BYTES)), x[order])
    assert gpusort.min(x, key=key, target=Small(BYTES)) == x[order[0]]
    assert gpusort.max(x, key=key, target=Small(BYTES)) == x[np.argmax(abs(x))]


@few_cases(pairs=False)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
@pytest.mark.parametrize("k", [1, 64, 300])
def test_top_k(dtype: str, k: int, largest: bool) -> None:
    """Few go by candidates of each piece, many by the order of all."""
    nbytes = (1 << 15 if dtype == "u1" else 1 << 12) if k < 300 else 2048
    x, target = sample(dtype, nbytes // np.dtype(dtype).itemsize + 60, seed=k), Small(nbytes)
    found, places = gpusort.top_k(x, k, largest=largest, target=target)
    order = argsorted(x, descending=largest)[:k]
    np.testing.assert_array_equal(places, order)
    assert_same_bits(found, x[order])
    kernels = {launch.kernel.name for schedule in target.schedules for launch in schedule.launches}
    assert ("place_chosen" in kernels) is (k < 300)


@pytest.mark.parametrize("dtype", ["u1", "f8"])
def test_top_k_where_the_scratch_memory_of_a_selection_fits_no_binding(dtype: str) -> None:
    x, target = sample(dtype, (2, 1000 if dtype == "u1" else 100)), Small(BYTES)
    for one, other in zip(gpusort.top_k(x, 5, target=target), gpusort.top_k(x, 5), strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("k", [5, 600])
def test_top_k_of_several_rows(k: int) -> None:
    x = sample("f4", (2, 1300))
    found, places = gpusort.top_k(x, k, axis=1, target=Small(8 * 512))
    for row, values, indices in zip(x, found, places, strict=True):
        np.testing.assert_array_equal(indices, argsorted(row, descending=True)[:k])
        assert_same_bits(values, row[indices])


# -- merges -----------------------------------------------------------------------------------------------


@few_cases(pairs=False)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "u8", "f8"])
@pytest.mark.parametrize("first", [1, 70, 130, 300])
@pytest.mark.parametrize("second", [1, 129, 1024])
def test_merges(dtype: str, first: int, second: int, descending: bool) -> None:
    joined = sample(dtype, first + second, seed=first)
    x, y = (gpusort.sort(part, descending=descending, target="cpu") for part in (joined[:first], joined[first:]))
    found = gpusort.merge(x, y, descending=descending, target=Small(BYTES // 2))
    assert_same_bits(found, gpusort.sort(joined, descending=descending, target="cpu"))


@pytest.mark.parametrize("values", ["u1", "f4", "u8"])
def test_merges_take_values_along(values: str) -> None:
    keys = np.sort(np.random.default_rng(0).integers(0, 9, 500).astype("i4").reshape(2, -1))
    carried = sample("u1", 500 * np.dtype(values).itemsize).view(values)
    order = argsorted(keys.reshape(-1))
    found, moved = gpusort.merge_by_key(keys[0], carried[:250], keys[1], carried[250:], target=Small(BYTES))
    assert_same_bits(found, keys.reshape(-1)[order])
    assert moved.tobytes() == carried[order].tobytes()


def test_merges_by_keys_that_lose_something_and_of_strided_arrays() -> None:
    key = cast(Any, Absolute())
    x, y = (np.array(sorted(sample("i4", n).clip(-99, 99).tolist(), key=abs), "i4") for n in (301, 200))
    joined = np.concatenate([x, y])
    found = gpusort.merge(np.repeat(x, 2)[::2], y, key=key, target=Small(BYTES))
    assert_same_bits(found, joined[np.argsort(abs(joined), kind="stable")])


# -- on a device ------------------------------------------------------------------------------------------

DEVICE_BYTES = 1 << 16


@pytest.fixture(scope="module", name="small_device")
def device_with_small_bindings() -> Any:
    return device_with_bindings_of(DEVICE_BYTES)


@pytest.mark.parametrize(("dtype", "count"), [("u1", 70_001), ("f4", 40_000)])
def test_arrays_on_a_device(small_device: Any, dtype: str, count: int) -> None:
    """In one buffer, of which pieces are bound; and on the host, from where pieces are brought."""
    x, numbers = sample(dtype, count), whole_numbers(dtype, count)
    in_bytes = dtype == "u1"  # each function once by one of the types, and what writes elements by both
    target = target_on_device(small_device)
    there, numbers_there = webgpu.asarray(x, small_device), webgpu.asarray(numbers, small_device)
    name = "any" if in_bytes else "argmin"
    assert ours(name)(there).to_numpy() == ours(name)(x, target=target) == numpys(name, x)
    assert ours("sum")(numbers_there).to_numpy() == gpusort.sum(numbers, target=target) == numbers.sum(dtype="f8")
    assert_same_bits(ours("cumsum")(numbers_there).to_numpy(), np.cumsum(numbers))
    assert_same_bits(gpusort.cumsum(numbers, target=target), np.cumsum(numbers))
    order = argsorted(x)
    np.testing.assert_array_equal(ours("argsort")(there).to_numpy(), order)
    assert_same_bits(ours("sort")(there, stable=True).to_numpy(), x[order])
    if not in_bytes:
        values, places = ours("top_k")(there, 10, largest=False)
        np.testing.assert_array_equal(places.to_numpy(), order[:10])
        assert_same_bits(values.to_numpy(), x[order[:10]])
    assert_same_bits(there.to_numpy(), x)
    rows = x[: count // 3 * 3].reshape(-1, 3) if in_bytes else x[:9].reshape(3, 3)
    for lying in (rows, np.asfortranarray(rows)):
        found = [gpusort.argmax(webgpu.asarray(lying, small_device), axis=1).to_numpy()]
        found.append(gpusort.argmax(lying, axis=1, target=target))
        np.testing.assert_array_equal(found, [np.argmax(rows, axis=1)] * 2)


@pytest.mark.parametrize("first", [1, 12_345])
def test_merges_on_a_device(small_device: Any, first: int) -> None:
    """The second array begins where no device binds."""
    x, y = np.sort(sample("u4", first)), np.sort(sample("u4", 20_000))
    joined, target = np.concatenate([x, y]), target_on_device(small_device)
    there = [webgpu.asarray(part, small_device) for part in (x, y)]
    assert_same_bits(cast(Any, gpusort.merge)(*there).to_numpy(), np.sort(joined))
    assert_same_bits(gpusort.merge(x, y, target=target), np.sort(joined))
    places = [webgpu.asarray(part, small_device) for part in np.split(np.arange(joined.size, dtype="u4"), [first])]
    keys, moved = cast(Any, gpusort.merge_by_key)(there[0], places[0], there[1], places[1])
    assert_same_bits(keys.to_numpy(), np.sort(joined))
    np.testing.assert_array_equal(moved.to_numpy(), argsorted(joined))


def test_reductions_and_scans_are_recorded(small_device: Any) -> None:
    """What pieces leave lies where devices bind, so nothing has to be copied for it."""
    x = whole_numbers("i4", 50_000)
    there = webgpu.asarray(x, small_device)
    for name in ("sum", "cumsum"):
        call = gpusort.plan(ours(name), there)
        encoder = small_device.create_command_encoder()
        found = call.encode(encoder, there)
        small_device.queue.submit([encoder.finish()])
        assert_same_bits(np.asarray(found.to_numpy()), numpys(name, x))


# -- what cannot be cut -----------------------------------------------------------------------------------


def test_what_is_refused_tells_the_size_the_limit_and_the_way_out() -> None:
    x, target = sample("u4", 300), Small(BYTES)
    with pytest.raises(CapabilityError, match=r"x: a row of 300 elements of 4 bytes is more than .* at most 256 el"):
        gpusort.sort(x, algorithm=Bitonic(), target=target)
    with pytest.raises(CapabilityError, match=r"^x: a row of 300 elements takes 1200 bytes of one buffer, .*: 1024$"):
        low_median(x, target=target)
