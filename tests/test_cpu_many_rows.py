"""Many rows sorted side by side, by sorting networks or in blocks, in any layout, against one row after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.algos.merge_exchange import compared_parts
from gpusort.targets.base import HostArray
from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.crew import share_kernel
from gpusort.targets.cpu.host import argsort
from gpusort.targets.cpu.host import row_networks as many_rows
from gpusort.targets.cpu.host import sort as host_sort
from gpusort.targets.cpu.host.key_words import Places
from gpusort.targets.cpu.host.numpy_sort import places_in_order, sort_chunk
from gpusort.targets.cpu.loops import Kernel
from gpusort.targets.cpu.pool import share_each_row
from gpusort.targets.cpu.target import CpuTarget
from gpusort.types.indices import SortOrder
from tests.covering import few_cases
from tests.reference import laid_out
from tests.test_argsort import stable_order

DTYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "M8[s]")
SHORT = (((1201, 9), -1), ((9, 1201), 0), ((4, 31, 60), 1), ((31, 7, 101), 1), ((700, 2), 1))
LONG = (((270, 150), 0), ((300, 7, 20), 0), ((3, 290, 100), 1))
WIDE = {"f4": ((128, 70), 0), "u1": ((101, 9, 8), 0), "u4": ((250, 70), 0)}  # as long as may be, or nearly
# Each length of a row is a network, which takes a second to compile for each size of elements: one dtype of floats and
# one of whole numbers have all of them, and of the other sizes one has the longest that is sorted so, one the shortest.
SHAPES = {"f4": SHORT + LONG, "u1": SHORT + LONG, "f2": (*SHORT[:2], SHORT[4], *LONG), "i8": (*SHORT[:3], *LONG)}
SHARING = CpuTarget(HostSortPolicy(serial_below=1))  # what is long for others is short for the tests
LAYOUTS = ("C", "Fortran", "strided", "backwards")


@pytest.fixture(autouse=True)
def _compiled_at_once() -> Iterator[None]:
    with background.off():
        yield


def numbers(dtype: str, shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
    """Any bits, and much of what is special."""
    rng, wanted = np.random.default_rng(shape), np.dtype(dtype)
    x = rng.integers(0, 256, int(np.prod(shape)) * wanted.itemsize, np.uint8)
    found: npt.NDArray[np.generic] = (x & 1 if dtype == "?" else x).view(wanted).reshape(shape)
    kind = rng.integers(0, 12, shape)
    if wanted.kind == "f":
        for number, value in enumerate((0.0, -0.0, np.nan, -np.inf, np.inf, np.copysign(np.nan, -1.0))):
            found[kind == number] = wanted.type(value)
    if wanted.kind == "M":
        found[kind == 0] = "NaT"
    return found


def bits(x: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


def one_by_one(x: npt.NDArray[np.generic], axis: int, descending: bool) -> npt.NDArray[np.generic]:
    """Row after row, each too short for any but NumPy's sort and what puts it right."""
    rows = np.moveaxis(x, axis, -1)
    found = [gpusort.sort(row, descending=descending) for row in rows.reshape(-1, x.shape[axis])]
    return np.moveaxis(np.stack(found).reshape(rows.shape), -1, axis)


@few_cases(pairs=False)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_sorted_as_each_one_is(dtype: str, descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NumPy's vector code for such rows, networks leave them to it where they would use half their lanes."""
    has_vectors = descending
    monkeypatch.setattr(many_rows, "numpy_sorts_slowly", lambda size, length: not has_vectors)
    taken: list[object] = []
    own: Callable[..., object] = vars(many_rows)["network"]

    def watched(*given: object) -> object:
        taken.append(given)
        return own(*given)

    monkeypatch.setattr(many_rows, "network", watched)
    shapes = SHAPES.get(dtype, SHORT[:2])
    for shape, axis in (*shapes, WIDE[dtype]) if dtype in WIDE else shapes:
        x = numbers(dtype, shape)
        expected = bits(one_by_one(x, axis, descending))
        for layout in LAYOUTS:
            taken.clear()
            found = gpusort.sort(laid_out(x, layout), axis=axis, descending=descending, target=SHARING)
            np.testing.assert_array_equal(bits(found), expected)
            if (shape, axis) not in WIDE.values():
                assert bool(taken) is ((shape, axis) not in LONG)
            elif layout != "Fortran":  # where rows lie one after the other
                assert bool(taken) is (dtype == "u1" or not has_vectors)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_short_rows_are_argsorted_as_each_one_is(dtype: str, descending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[object] = []
    own: Callable[..., object] = vars(many_rows)["places_network"]

    def watched(*given: object) -> object:
        taken.append(given)
        return own(*given)

    monkeypatch.setattr(many_rows, "_SHORT_BY_DIGITS", 1 << 30)
    monkeypatch.setattr(many_rows, "places_network", watched)
    shapes = [case for case in SHAPES.get(dtype, SHORT[:2]) if case not in LONG]
    for shape, axis in (*shapes, WIDE[dtype]) if dtype in ("f4", "u1") else shapes:
        x = numbers(dtype, shape)
        rows = np.moveaxis(x, axis, -1)
        each = [gpusort.argsort(row, descending=descending) for row in rows.reshape(-1, x.shape[axis])]
        expected = np.moveaxis(np.stack(each).reshape(rows.shape), -1, axis)
        for layout in LAYOUTS:
            taken.clear()
            found = gpusort.argsort(laid_out(x, layout), axis=axis, descending=descending, target=SHARING)
            np.testing.assert_array_equal(found, expected)
            assert taken
    wide = numbers(dtype, (70, 129))
    taken.clear()
    gpusort.argsort(wide, target=SHARING)
    assert not taken


@few_cases(pairs=False)
@pytest.mark.parametrize("dtype", ["f4", "f8", ">i4", "u1"])
@pytest.mark.parametrize(("shape", "axis"), [((40, 70, 20), 1), ((30, 5, 70, 9), 2), ((500, 70), 0)])
def test_rows_between_other_axes(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    """Few of them lie side by side: they are brought together by all threads."""
    target = CpuTarget(HostSortPolicy(serial_below=1000, chunk=1500, part_bytes_from=1 << 20))
    x = numbers(dtype, shape)
    for descending in (False, True):
        expected = one_by_one(x, axis, descending).astype(dtype)
        places = np.apply_along_axis(stable_order, axis, x, descending)
        for layout in LAYOUTS:
            given = laid_out(x, layout)
            found = gpusort.sort(given, axis=axis, descending=descending, target=target)
            np.testing.assert_array_equal(bits(found), bits(expected))
            indices = gpusort.argsort(given, axis=axis, descending=descending, target=target)
            np.testing.assert_array_equal(indices, places)


@pytest.mark.parametrize(("shape", "axis"), [((203, 28, 2), 1), ((2, 28, 203), 1), ((30, 28, 20), 1)])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_few_rows_side_by_side_fill_vectors(
    dtype: str, shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the other axis are taken then, or they are packed."""
    tasks: list[int] = []

    def noted(kernel: Kernel, length: int, numbers: Sequence[int], nbytes: int, *, least: int) -> None:
        tasks.append(length)
        share_kernel(kernel, length, numbers, nbytes, least=least)

    monkeypatch.setattr(many_rows, "share_kernel", noted)
    x = numbers(dtype, shape)
    places = np.apply_along_axis(stable_order, axis, x, False)
    for layout in LAYOUTS:
        np.testing.assert_array_equal(gpusort.argsort(laid_out(x, layout), axis=axis, target=SHARING), places)
        if dtype == "u1":
            found = gpusort.sort(laid_out(x, layout), axis=axis, target=SHARING)
            np.testing.assert_array_equal(bits(found), bits(one_by_one(x, axis, False)))
    rows = x.size // shape[axis]
    assert tasks
    assert all(count <= 2 * -(-rows // many_rows.lanes(x.itemsize)) for count in tasks)


@pytest.mark.parametrize(("shape", "axis"), [*SHORT[:3], LONG[0]])
@pytest.mark.parametrize("dtype", ["f4", "u8"])
def test_in_place_and_into(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    x = numbers(dtype, shape)
    expected, given, out = bits(one_by_one(x, axis, False)), x.copy(), np.asfortranarray(np.empty_like(x))
    gpusort.sort(x, axis=axis, out=out, target=SHARING)
    gpusort.sort_inplace(given, axis=axis, target=SHARING)
    np.testing.assert_array_equal(bits(out), expected)
    np.testing.assert_array_equal(bits(given), expected)


def test_stable_zeros_keep_their_order() -> None:
    x = np.tile(np.array([1, 0.0, -0.0, 0.0, -1], np.float32), (400, 1))
    found = gpusort.sort(x, stable=True, target=SHARING)
    assert (np.signbit(found) == [True, False, True, False, False]).all()


@pytest.mark.parametrize("length", [2, 3, 4, 7, 8, 13, 16])
def test_exchanges_sort_all_zeros_and_ones(length: int) -> None:
    """Which is to sort everything."""
    rows = (np.arange(1 << length)[:, np.newaxis] >> np.arange(length) & 1).T
    for low, high in compared_parts(length):
        rows[low], rows[high] = np.minimum(rows[low], rows[high]), np.maximum(rows[low], rows[high])
    assert (np.diff(rows, axis=0) >= 0).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(3,), (150,), (700,), (10, 10), (10, 90), (60, 200)])
def test_short_floats_hold_zeros_and_nans(dtype: str, shape: tuple[int, ...]) -> None:
    """NumPy's sort alone, where it may; and where it may not, as by the words of the floats."""
    rng = np.random.default_rng(0)
    for special in ((), (0.0,), (0.0, -0.0), (np.nan,), (-0.0, np.nan), (-1.0, -0.0), (1.0, 0.0, -0.0)):
        x = rng.standard_normal(shape).astype(dtype)
        places = rng.integers(0, 3, shape)
        for number, value in enumerate(special):
            x[places == number] = value
        for axis, descending in itertools.product((None, *range(len(shape))), (False, True)):
            found = gpusort.sort(x, axis=axis, descending=descending)
            if not descending or not np.isnan(x).any():
                expected = np.sort(x, axis=axis)
                np.testing.assert_array_equal(
                    found, np.flip(expected, -1 if axis is None else axis) if descending else expected
                )
            minus = [np.count_nonzero((some == 0) & np.signbit(some)) for some in (x, found)]
            assert minus[0] == minus[1]
            rows = np.moveaxis(found, axis, -1) if axis is not None else found[np.newaxis]
            for row in rows.reshape(-1, rows.shape[-1]):
                signs = np.signbit(row[row == 0]).astype(int)
                assert (np.diff(signs if not descending else -signs) <= 0).all()  # -0.0 first, or last
                assert not np.isnan(row).any() or (np.diff(np.isnan(row).astype(int)) >= 0).all()


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4", "i8"])
def test_few_short_rows(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By NumPy, or by one thread's network, and places in those in order by NumPy's merge: with thresholds as they
    are."""
    taken: list[object] = []
    argsorted = many_rows.argsort_short_rows

    def watched(x: HostArray, places: Places, order: SortOrder, policy: HostSortPolicy) -> bool:
        is_done = argsorted(x, places, order, policy)
        taken.extend([x.shape] * is_done)
        return is_done

    monkeypatch.setattr(argsort, "argsort_short_rows", watched)
    for length, rows in ((3, 40), (3, 2800), (16, 520), (30, 34), (100, 90)):
        x = numbers(dtype, (rows, length))
        for ordered, descending, axis in itertools.product((False, True), (False, True), (0, 1)):
            given = np.sort(x, axis=1) if ordered else x
            given = given if axis else np.ascontiguousarray(given.T)
            taken.clear()
            found = gpusort.argsort(given, axis=axis, descending=descending)
            each = [stable_order(row, descending) for row in (given if axis else given.T)]
            np.testing.assert_array_equal(found if axis else found.T, each)
            sorted_ = gpusort.sort(given, axis=axis, descending=descending)
            np.testing.assert_array_equal(bits(sorted_), bits(one_by_one(given, axis, descending)))
            merged = ordered and length >= 6 and given.itemsize > 2
            merged |= dtype in ("u1", "i2") and length > 48  # too few, and NumPy finds their places by their digits
            merged |= given.itemsize == 8 and length > 64 and axis == 1  # too long where they follow each other
            if not (ordered and x.dtype.kind == "f"):  # NaNs may hide an order
                assert bool(taken) is (x.size >= 8192 and not merged)


@pytest.mark.parametrize(("shape", "axis"), [((8200, 3), 0), ((2, 8200, 2), 1), ((300, 270), 0), ((3, 290, 100), 1)])
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "i8", "M8[s]"])
def test_rows_that_are_spread_are_not_brought_together(
    dtype: str, shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy packs one after the other."""

    def packs(*given: object) -> None:
        raise AssertionError("all are packed")

    target = CpuTarget(HostSortPolicy(by_radix=False))
    for x, descending in itertools.product((numbers(dtype, shape), numbers(dtype, (*shape, 2))[..., 0]), (False, True)):
        with monkeypatch.context() as patched:
            patched.setattr(host_sort, "copy_shared", packs)
            found = gpusort.sort(x, axis=axis, descending=descending, target=target)
            stable = gpusort.sort(x, axis=axis, descending=descending, stable=True, target=target)
        np.testing.assert_array_equal(bits(found), bits(one_by_one(x, axis, descending)))
        rows = np.moveaxis(x, axis, -1)
        places = np.apply_along_axis(stable_order, -1, rows, descending)
        expected = np.take_along_axis(rows, places, axis=-1)
        np.testing.assert_array_equal(bits(np.moveaxis(stable, axis, -1)), bits(expected))
        argsorted = gpusort.argsort(x, axis=axis, descending=descending, target=target)
        np.testing.assert_array_equal(np.moveaxis(argsorted, axis, -1), places)


def test_rows_behind_an_axis_of_one_element_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are without that axis: some columns at a time."""
    parts: list[int] = []

    def sorted_too(x: HostArray, results: HostArray, order: SortOrder) -> None:
        parts.append(x.size)
        sort_chunk(x, results, order)

    def argsorted_too(x: HostArray, axis: int) -> Places:
        parts.append(x.size)
        return places_in_order(x, axis)

    monkeypatch.setenv("GPUSORT_THREADS", "4")
    monkeypatch.setattr(host_sort, "sort_chunk", sorted_too)
    monkeypatch.setattr(argsort, "places_in_order", argsorted_too)
    x, y = numbers("f4", (1, 300, 600)), numbers("u1", (1, 300, 600))
    target = CpuTarget(HostSortPolicy(by_radix=False))
    calls: list[Callable[[], object]] = [
        lambda: gpusort.sort(x, axis=1, target=target),
        lambda: gpusort.argsort(y, axis=1, target=target),
    ]
    for call in calls:
        parts.clear()
        call()
        assert sum(parts) == x.size
        assert len(parts) > 1


@pytest.mark.parametrize(("threads", "wide", "narrow"), [(1, 2, 2), (2, 4, 4), (4, 8, 8), (8, 4, 16), (16, 8, 32)])
def test_how_many_rows_are_each_shared_by_all_threads(threads: int, wide: int, narrow: int) -> None:
    """Fewer than these; one always is."""
    for itemsize, fewer_than in ((4, wide), (8, wide), (1, narrow), (2, narrow)):
        assert [share_each_row(rows, threads, itemsize) for rows in range(1, 40)] == [
            rows < fewer_than for rows in range(1, 40)
        ]


def test_rows_whose_elements_lie_at_odd_places() -> None:
    """Fields of packed records, read and written."""
    x = np.random.default_rng(8).integers(-99, 99, (20_000, 8)).astype("i4")
    field = np.zeros(x.shape, [("before", "u1"), ("own", "i4"), ("behind", "u2")])
    with background.off():
        gpusort.sort(x, out=field["own"], target="cpu")
        np.testing.assert_array_equal(field["own"], np.sort(x))
        assert not field["before"].any()
        assert not field["behind"].any()
        field["own"] = x
        np.testing.assert_array_equal(gpusort.sort(field["own"], target="cpu"), np.sort(x))
