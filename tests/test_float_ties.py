"""Short arrays of floats on the host with zeros of both signs and NaNs: sorted by their bits, by NumPy and counts."""

from __future__ import annotations

import numpy as np
import pytest

from gpusort import sort, sort_inplace
from gpusort.algos.host_sort import HostSort, HostSortPolicy
from gpusort.algos.words import KeyWords
from gpusort.targets.cpu.host.signed_bits import SignedBits
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from tests.reference import Array, assert_same_bits

SPECIAL: dict[str, list[float]] = {
    "zeros": [0.0, -0.0], "minus zeros": [-0.0], "usual NaNs": [np.nan], "negative NaNs": [-np.nan],
    "NaNs of both signs": [np.nan, -np.nan], "all": [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf],
}  # fmt: skip


def holding(kind: str, dtype: str, shape: tuple[int, ...]) -> Array:
    rng = np.random.default_rng(len(kind) + sum(shape))
    x = rng.standard_normal(shape).astype(dtype)
    special = np.array(SPECIAL[kind], dtype)
    return np.where(rng.random(shape) < 0.3, special[rng.integers(0, special.size, shape)], x)


def in_bit_order(x: Array, descending: bool, axis: int | None) -> Array:
    """By the key itself, as NumPy sees its words."""
    by = KeyWords(key_for(x.dtype.newbyteorder("=")), SortOrder.DESCENDING if descending else SortOrder.ASCENDING)
    native = np.ascontiguousarray(x.reshape(-1) if axis is None else x, x.dtype.newbyteorder("="))
    words = by.to_words()(native.reshape(-1)).reshape(native.shape)
    ordered = np.sort(words, axis=-1 if axis is None else axis)
    return by.to_elements()(ordered.reshape(-1)).view(native.dtype).reshape(native.shape)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", ">f8"])
def test_short_arrays(dtype: str, kind: str, descending: bool) -> None:
    for shape in ((1,), (2,), (7,), (100,), (200,), (639,), (641,), (3000,), (5, 60), (60, 5), (4, 5, 6)):
        whole = holding(kind, dtype, (2 * shape[0], *shape[1:]))
        for x in (whole[: shape[0]], whole[::2], np.asfortranarray(whole[: shape[0]])):
            for axis in (*range(x.ndim), None):
                expected = in_bit_order(x, descending, axis)
                found = sort(x, axis=axis, descending=descending)
                assert_same_bits(found.astype(expected.dtype), expected)
                if axis is not None:
                    given, out = x.copy(), np.empty_like(x)
                    sort(x, axis=axis, descending=descending, out=out)
                    assert_same_bits(out.astype(expected.dtype), expected)
                    sort_inplace(given, axis=axis, descending=descending)
                    assert_same_bits(given.astype(expected.dtype), expected)


def test_any_nan_is_found() -> None:
    for dtype, infinity in (("f2", 0x7C00), ("f4", 0x7F800000), ("f8", 0x7FF0000000000000)):
        word = np.dtype(dtype.replace("f", "u"))
        sign = 1 << (8 * word.itemsize - 1)
        ties = SignedBits.of(np.dtype(dtype))
        for bits, is_nan in ((infinity, False), (infinity + 1, True), (sign - 1, True), (0, False)):
            for signed in (bits, bits | sign):
                for size in (3, 200):
                    x = np.array([1, signed, sign] * size, word)[:size].view(dtype)
                    assert ties.has_nan(x) is is_nan, (dtype, hex(signed), size)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", SPECIAL)
def test_stable_sorts_keep_what_ties_in_its_order(kind: str, descending: bool) -> None:
    for shape in ((7,), (100,), (3000,), (5, 60)):
        x = holding(kind, "f8", shape)
        turned = -x if descending else x
        expected = np.take_along_axis(x, np.argsort(turned, axis=-1, kind="stable"), -1)
        assert_same_bits(sort(x, stable=True, descending=descending), expected)


def test_payloads_are_kept() -> None:
    bits = np.array([0x7FF8000000000001, 0x7FF8000000000000, 0xFFF8000000000003, 0x8000000000000000, 0], np.uint64)
    x = np.resize(bits, 200).view(np.float64)
    for descending in (False, True):
        assert_same_bits(sort(x, descending=descending), in_bit_order(x, descending, 0))
        rows = x.reshape(10, 20)
        assert_same_bits(sort(rows, axis=0, descending=descending), in_bit_order(rows, descending, 0))


@pytest.mark.parametrize("descending", [False, True])
def test_sorted_bits_are_put_in_order(descending: bool) -> None:
    """All float16 there are, those of each kind alone, and each kind beside another."""
    words = np.arange(1 << 16).astype(np.uint16).view(np.int16)
    infinity, nan, negative = 0x7C00, words & 0x7FFF > 0x7C00, words < 0
    kinds = [
        words,
        *(words[nan == is_nan] for is_nan in (False, True)),
        *(words[negative == sign] for sign in (False, True)),
    ]
    kinds += [words[nan & negative], words[nan & ~negative], words[:1], np.array([-1 << 15, infinity], np.int16)]
    order, bits = (SortOrder.DESCENDING if descending else SortOrder.ASCENDING), SignedBits.of(np.dtype(np.float16))
    for some in kinds:
        expected = in_bit_order(some.view(np.float16), descending, 0)
        assert_same_bits(bits.put_in_order(np.sort(some), order).view(np.float16), expected)


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[ns]"])
def test_times_are_sorted_in_place_and_into_others(dtype: str) -> None:
    """About the lengths from which they are merged, and sorted as integers."""
    for length in (2, 32, 33, 64, 65, 128, 129, 512, 513, 1000, 1025):
        x = np.random.default_rng(3).integers(-9, 9, length).astype(dtype)
        x[::9] = np.array("NaT", dtype)
        expected, out = np.sort(x), np.empty_like(x)
        assert_same_bits(sort(x), expected)
        assert_same_bits(sort(x, out=out), expected)
        sort_inplace(x)
        assert_same_bits(x, expected)


@pytest.mark.parametrize("by_radix", [False, True])
@pytest.mark.parametrize("kind", SPECIAL)
def test_longer_ones_by_numpy_or_by_radix(kind: str, by_radix: bool) -> None:
    """About where a radix sort begins where NumPy sorts slowly, and where threads do."""
    algorithm = HostSort(HostSortPolicy(by_radix=by_radix))
    for length in (8192, 8193, 65_535, 65_536):
        for x in (holding(kind, "f4", (length,)), np.resize(np.array(SPECIAL[kind], "f4"), length)):
            for descending in (False, True):
                found = sort(x, algorithm=algorithm, descending=descending)
                assert_same_bits(found, in_bit_order(x, descending, 0))
            stable = np.take_along_axis(x, np.argsort(x, kind="stable"), -1)
            assert_same_bits(sort(x, algorithm=algorithm, stable=True), stable)
