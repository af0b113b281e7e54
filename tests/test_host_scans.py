"""The host's own cumulative sums, below the front: NumPy's values in every layout, along every axis."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpusort.targets.cpu.background import background
from gpusort.targets.cpu.host import cumsum as scans
from gpusort.targets.cpu.host import reducers
from gpusort.targets.cpu.host.cumsum import host_cumsum
from gpusort.targets.cpu.host.cumsum_loops import columns, one_by_one, pieces
from gpusort.targets.cpu.host.reducers import rounded
from tests.reference import laid_out, sample, whole_numbers
from tests.test_host_reductions import LAYOUTS

Array = npt.NDArray[Any]
SHAPES = (
    (30_000,),
    (2, 20_000),
    (3, 10_000),
    (5000, 8),
    (8, 5000),
    (33, 35, 37),
    (1, 30_000, 1),
    (3, 4, 5),
    (7,),
    (0, 3),
)


def never(*_: object, **named: object) -> bool:
    return False


def added(x: Array, axis: int | None = None) -> Array:
    call = host_cumsum(x.dtype, x.ndim, axis)
    assert call is not None
    return call(x)


def assert_same(x: Array, axis: int | None, context: object) -> None:
    found = added(x, axis)
    expected = np.cumsum(x, axis=axis, dtype=np.float32 if x.dtype == np.float16 else None)
    if x.dtype == np.float16:
        expected = expected.astype(np.float16)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), context
    np.testing.assert_array_equal(found, expected, err_msg=str(context))


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "f4", "m8[s]", ">i4"])
def test_sums_are_numpys(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "_SHARED", 1 << 14)
    monkeypatch.setattr(scans, "_IN_PIECES", 1 << 13)
    for shape in SHAPES:
        x = sample(dtype, shape) if np.dtype(dtype).kind in "biu" else whole_numbers(dtype, shape)
        for layout in LAYOUTS:
            y = laid_out(x, layout)
            for axis in (None, *range(y.ndim), -1):
                assert_same(y, axis, (shape, layout, axis))


@pytest.mark.parametrize("dtype", ["i8", "u8", "i4", "u1", "?"])
@pytest.mark.parametrize("shape", [(9000,), (16, 1000), (3, 20_000)])
def test_integers_are_added_by_compiled_loops(dtype: str, shape: tuple[int, ...]) -> None:
    """One addition a cycle, of which NumPy makes one in eight."""
    x = sample(dtype, shape)
    with background.off():
        found = scans.LongScan(x.dtype, len(shape) - 1)(x)
    assert found is not None
    np.testing.assert_array_equal(found, np.cumsum(x, axis=-1))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["i8", "u8", "i4", "u1", "?"])
@pytest.mark.parametrize("shape", [(40_001,), (3, 20_000), (2, 16_385)])
def test_rows_of_integers_are_added_up_whole_and_in_pieces(
    dtype: str, shape: tuple[int, ...], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces where there are threads for them; those of the other rows, and of arrays with gaps, are told apart."""
    monkeypatch.setattr(scans, "_SHARED", 1 << 14)
    monkeypatch.setenv("GPUSORT_THREADS", str(threads))
    x = sample(dtype, shape)
    for y in (x, *(laid_out(x, layout) for layout in LAYOUTS)):
        with background.off():
            found = scans.LongScan(y.dtype, y.ndim - 1)(y)
        assert found is not None
        np.testing.assert_array_equal(found, np.cumsum(y, axis=-1))


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i8", "u1"])
@pytest.mark.parametrize("length", [2, 3, 4, 5, 8, 9, 16, 47, 48, 49, 64, 100])
def test_short_rows_and_columns_keep_the_order_of_numpys_additions(dtype: str, length: int) -> None:
    """Around the lengths and sizes at which another loop adds them up; with fractions, so that the order tells."""
    generator = np.random.default_rng(length)
    for rows in (1, 2, 7, 8, 2048 // length, 2049 // length + 1, 4096 // length + 1, 30_000 // length):
        x = (generator.standard_normal((rows, length)) * 10).astype(dtype)
        for y in (x, generator.permutation(np.pad(x, ((0, 1), (2, 1))))[1:, 2:-1], np.asfortranarray(x), x.T.copy().T):
            for axis in (0, 1, -1):
                wide = np.float32 if dtype == "f2" else None
                expected = np.cumsum(y, axis=axis, dtype=wide)
                with background.off():
                    found = added(y, axis)
                assert found.dtype == (y.dtype if dtype == "f2" else expected.dtype)
                np.testing.assert_array_equal(found, expected.astype(found.dtype), err_msg=f"{rows}, {axis}")


def test_halves_that_overflow_are_infinite() -> None:
    """Up, down, and with NaN beside; the greatest half, and what is rounded to it, are not. The conversion is handed
    nothing to tell of."""
    ends = [65504.0, 65519.996, 65520.0, np.inf, np.nan]
    for end in (*ends, *[-end for end in ends]):
        sums = np.resize(np.array([1.0, end, -2.0], np.float32), 2000)
        with np.errstate(over="ignore"):
            expected = sums.astype(np.float16)
        with np.errstate(over="raise"):
            assert rounded(sums, np.dtype(np.float16)).tobytes() == expected.tobytes()
    for x in (np.full(200, 1000.0, np.float16), np.full((20, 200), -1000.0, np.float16)):
        with np.errstate(over="ignore"):
            assert_same(x, None, x.shape)


@pytest.mark.parametrize("has_halves", [True, False])
def test_all_halves_become_numbers_and_halves_again(has_halves: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the processor's instructions, where it has them, and without."""
    if not has_halves:
        monkeypatch.setattr(reducers, "_has_halves", never)
        for loop in (columns, one_by_one, pieces):
            loop.cache_clear()
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    singles = np.random.default_rng(1).integers(0, 1 << 32, 1 << 18, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        close = (every[:-1].astype("f4") + every[1:].astype("f4")) / 2  # halfway between neighbours
        numbers = np.concatenate([singles, close, np.nextafter(close, np.float32(np.inf))])
        high = numbers.astype(np.float16)
        low = (numbers - high).astype(np.float16)
    for x in (np.stack([every, np.full_like(every, -0.0)]), np.stack([high, low])):
        for y, axis in ((x, 0), (np.ascontiguousarray(x.T), 1)):
            found = added(y, axis)
            with np.errstate(all="ignore"):
                expected = np.cumsum(y, axis=axis, dtype=np.float32).astype(np.float16)
            numbers_only = ~np.isnan(expected)
            assert np.array_equal(np.isnan(found), ~numbers_only)
            assert found[numbers_only].tobytes() == expected[numbers_only].tobytes()
    for loop in (columns, one_by_one, pieces):
        loop.cache_clear()


def test_a_field_of_one_record() -> None:
    """Whose axis of one element has a stride that is no multiple of its size, and yet is aligned."""
    x = np.zeros(1, [("numbers", "f4", (9000, 3)), ("mark", "u1")])["numbers"]
    x[...] = whole_numbers("f4", (9000, 3))
    assert x.flags.aligned
    assert x.strides[0] % x.itemsize
    for axis in (None, 0, 1, 2):
        assert_same(x, axis, axis)


def test_times_with_nat() -> None:
    x = np.arange(60).astype("m8[s]").reshape(3, 20)
    x[1, 5] = "NaT"
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(added(x, axis), np.cumsum(x, axis=axis))


def test_sums_of_floats_in_pieces_neither_depend_on_threads_nor_go_down(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).random((3, 300_001), np.float32)
    found = added(x, 1)
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("GPUSORT_THREADS", threads)
        assert added(x, 1).tobytes() == found.tobytes()
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_allclose(found, np.cumsum(x, axis=1, dtype="f8"), rtol=1e-4)


@pytest.mark.parametrize(("dtype", "piece"), [("f4", 1 << 12), ("f8", 1 << 12), ("f4", 16), ("f2", 1 << 12)])
def test_numpy_adds_up_in_the_same_pieces_while_no_loop_is_loaded(
    dtype: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces that are so short any of those side by side may be a row's last one, of fewer elements."""
    monkeypatch.setattr(scans, "_PIECE", piece)
    least: int = vars(scans)["_IN_PIECES"]
    for shape, axis in (((least,), 0), ((3, least + 116), 1), ((3, 5 * least - 7), 1), ((2 * least + 5, 2), 0)):
        x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)
        x[tuple(size // 2 for size in shape)], x.reshape(-1)[:2] = np.inf, -0.0
        for y in (x, x[..., ::-1], np.asfortranarray(x)):
            by_loops = added(y, axis)
            with monkeypatch.context() as without:
                without.setattr(background, "has", never)
                by_numpy = added(y, axis)
            assert by_numpy.tobytes() == by_loops.tobytes()
            np.testing.assert_allclose(by_loops, np.cumsum(y, axis=axis, dtype="f8"), 2e-3, 1e-3)


def test_rows_that_are_many_keep_the_order_of_numpys_additions() -> None:
    x = np.random.default_rng(1).standard_normal((40, 5000)).astype(np.float32)
    for axis in (0, 1):
        assert added(x, axis).tobytes() == np.cumsum(x, axis=axis).tobytes()


def test_zeros_keep_their_sign() -> None:
    for shape in ((1 << 18,), (100, 300)):
        for axis in range(len(shape)):
            assert np.signbit(added(np.full(shape, -0.0, np.float32), axis)).all()


def test_nobody_is_warned_and_the_source_stays() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in (9, 1 << 18):
            x = np.full(count, np.finfo("f4").max, np.float32)
            assert np.isinf(added(x)[-1])
            assert (x == np.finfo("f4").max).all()
        assert np.isinf(added(np.full(9, 60_000, np.float16))[-1])
        for swapped in (">f4", ">f8"):
            assert np.isinf(added(np.full(9, np.finfo(swapped).max, swapped))[-1])


def test_what_there_is_not() -> None:
    assert host_cumsum(np.dtype("M8[s]"), 1, None) is None
    assert host_cumsum(np.dtype("c8"), 1, None) is None
    assert host_cumsum(np.dtype("f4"), 2, 2) is None
    assert added(np.array(5), 0).tolist() == [5]
