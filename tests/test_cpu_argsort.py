"""Argsort of a row that one thread has: by every way that what was measured of NumPy leads to, and exactly NumPy's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.targets.cpu.host import argsort, argsort_path, packed_argsort
from gpusort.targets.cpu.host.argsort import LEAST_MIXED, argsort_mixed, argsort_row
from gpusort.targets.cpu.host.key_words import Places
from gpusort.targets.cpu.host.numpy_sort import ascending, places_in_order
from gpusort.targets.cpu.pool import Pool, shared_pool
from gpusort.types.indices import SortOrder
from tests.covering import few_cases
from tests.reference import Array, sample
from tests.test_argsort import Watched, stable_order

POLICY = HostSortPolicy()
WORDS = ["i4", "u4", "f4", "i8", "u8", "f8", "M8[s]"]
WAYS = ("argsort_at_once", "places_packed")


@pytest.fixture(params=[(True, True), (True, False), (False, False)], ids=["argsorts", "sorts", "slow"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was called, where NumPy has vector code for sorts and argsorts, for sorts, or for neither."""
    sorts_soon, argsorts_fast = request.param
    monkeypatch.setattr(argsort, "numpy_sorts_words_soon", lambda: sorts_soon)
    monkeypatch.setattr(argsort, "numpy_argsorts_fast", lambda itemsize: argsorts_fast)
    called: list[str] = []

    def watch(name: str) -> None:
        usual = getattr(argsort, name)

        def noted(*given: object) -> object:
            called.append(name)
            return usual(*given)

        monkeypatch.setattr(argsort, name, noted)

    for name in WAYS:
        watch(name)
    return called


def rows_of(dtype: str, length: int) -> Iterator[tuple[str, Array]]:
    """In no order, with equals or without, and nearly in order."""
    rng, kind = np.random.default_rng(length), np.dtype(dtype).kind
    any_bits = sample(dtype, length, seed=length)  # zeros, NaNs and infinities of both signs among them
    bits = any_bits.view(f"i{any_bits.itemsize}")
    yield "any bits", any_bits
    yield "all differ", rng.permutation(np.arange(1, length + 1, dtype="i8") * 9_973).astype(dtype)
    for count in (2, 10, 100, length):
        yield f"of {count}", (rng.integers(0, count, length) * 1237).astype(dtype)
    ramp = np.sort(any_bits)
    yield from (("in order", ramp), ("reversed", ramp[::-1].copy()), ("every second", np.repeat(any_bits, 2)[::2]))
    one = rng.permutation(np.arange(length, dtype="i8")).astype(dtype)
    one[-1] = one[length // 3]
    yield "one pair", one
    if kind == "f":
        numbers = rng.standard_normal(length).astype(dtype)
        yield "numbers", numbers
        zeros = np.where(rng.random(length) < 0.1, np.copysign(np.zeros_like(numbers), numbers), numbers)
        yield "zeros of both signs", zeros
        for count in (1, length // 4):
            with_nans = numbers.copy()
            with_nans[rng.choice(length, count, replace=False)] = np.copysign(np.nan, numbers[:count])
            yield f"{count} NaNs", with_nans
        close = (1 + rng.integers(0, 99, length) * float(np.finfo(dtype).eps)).astype(dtype)
        yield "that differ in their lowest bits", close
        far = close.copy()
        far[[0, -1]] = 1e30, -1e30
        yield "the same, and others far away", far
    elif bits.itemsize == 8:
        yield "clusters", (rng.integers(0, 3, length) << 60 | rng.integers(0, 99, length)).astype(dtype)


@few_cases(pairs=False)
@pytest.mark.parametrize("length", [639, 640, 641, 1023, 1024, 2047, 2048, 3071, 3072, 4095, 4096, 4097, 6001])
@pytest.mark.parametrize("dtype", [*WORDS, ">f8", ">i4"])
def test_every_way_is_numpys_order(ways: list[str], dtype: str, length: int) -> None:
    for name, x in rows_of(dtype, length):
        for descending in (False, True):
            expected = stable_order(x, descending)
            found = gpusort.argsort(x, descending=descending, target="cpu")
            np.testing.assert_array_equal(found, expected, name)
            np.testing.assert_array_equal(gpusort.argsort(x.reshape(1, -1), axis=None, descending=descending), expected)
        row = x.astype(x.dtype.newbyteorder("="))
        for order in SortOrder:
            np.testing.assert_array_equal(
                argsort_row(ascending(row, order), POLICY), stable_order(row, order is SortOrder.DESCENDING), name
            )


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("descending", [False, True])
def test_values_of_keys_in_no_order(ways: list[str], dtype: str, descending: bool) -> None:
    """Floats that tie are put in the order of their bits first."""
    for length in (640, 3000):
        for name, keys in rows_of(dtype, length):
            found, moved = gpusort.sort_by_key(keys, np.arange(length), descending=descending, target="cpu")
            assert found.tobytes() == keys[moved].tobytes(), name
            expected = gpusort.sort(keys, descending=descending, target="cpu")
            assert found.tobytes() == expected.tobytes(), name
            same = found.view(f"u{keys.itemsize}")[1:] == found.view(f"u{keys.itemsize}")[:-1]
            assert (moved[1:][same] > moved[:-1][same]).all(), name


def test_each_way_is_taken(ways: list[str], request: pytest.FixtureRequest) -> None:
    """By a machine with vector code for all, for sorts only, and for nothing."""
    argsorts, sorts = "[argsorts]" in request.node.name, "[slow]" not in request.node.name
    rng = np.random.default_rng(1)
    for dtype, length, few, at_once in (
        ("f4", LEAST_MIXED, False, True), ("f4", 2047, False, True), ("f4", 2048, False, False),
        ("f8", LEAST_MIXED, False, True), ("f8", 4095, False, True), ("f8", 4096, False, False),
        ("i4", LEAST_MIXED, False, False), ("i8", 2000, False, True), ("i8", 2000, True, False),
        ("f8", 2000, True, True),
    ):  # fmt: skip
        x = rng.permutation(length) if not few else rng.integers(0, 20, length)
        ways.clear()
        found = argsort_mixed(x.astype(dtype), POLICY)
        expected = WAYS[0] if argsorts and at_once else WAYS[1]
        assert ways == ([expected] if sorts else [])
        assert (found is None) is not sorts


def test_a_nan_is_left_to_words(ways: list[str], request: pytest.FixtureRequest) -> None:
    """As NumPy's argsort leaves its vector code then."""
    x = np.random.default_rng(1).standard_normal(1000)
    x[501] = np.nan
    assert argsort_mixed(x, POLICY) is not None or "[slow]" in request.node.name
    assert ways == {"argsorts": [*WAYS], "sorts": [WAYS[1]], "slow": []}[request.node.name.split("[")[1][:-1]]


@pytest.mark.parametrize("dtype", WORDS)
def test_what_is_in_order_is_left_to_numpys_merge(ways: list[str], dtype: str) -> None:
    x = ascending(sample(dtype, 1500), SortOrder.ASCENDING)
    ramp, runs = np.sort(x), np.concatenate([np.sort(part) for part in np.array_split(x, 3)])
    for x in (ramp, ramp[::-1].copy(), runs, np.full_like(ramp, ramp[7])):
        assert argsort_mixed(x, POLICY) is None
    assert not ways


@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_numpys_vector_code_gets_memory_that_no_other_thread_changes(dtype: str) -> None:
    x = np.random.default_rng(1).permutation(1000).astype(dtype)
    Watched.sorted_in.clear()
    assert packed_argsort.argsort_at_once(x.view(Watched)) is not None
    assert len(Watched.sorted_in) == 1
    assert not np.shares_memory(Watched.sorted_in[0], x)


def test_ties_whose_lost_bits_fit_in_no_word_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in rows of millions; here words have fewer bits."""
    monkeypatch.setattr(packed_argsort, "_WORD_BITS", 24)
    left: list[int] = []

    def by_numpy(row: Array, axis: int) -> Places:
        left.append(row.size)
        return places_in_order(row, axis)

    monkeypatch.setattr(packed_argsort, "places_in_order", by_numpy)
    for x in (sample("i8", 5000), np.random.default_rng(1).standard_normal(5000)):
        places: Places = np.empty(x.size, np.intp)
        packed_argsort.argsort_packed(x, places, POLICY, shared_pool())
        for found in (packed_argsort.places_packed(x, POLICY), places):
            np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))
    assert left == [5000] * 4


def test_long_rows_that_are_in_order_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads sort one after the other together, but for those that NumPy merges sooner."""
    monkeypatch.setenv("GPUSORT_THREADS", "2")
    rng, sorted_ = np.random.default_rng(1), list[bool]()
    usual = argsort.argsort_one

    def noted(row: Array, places: Places, policy: HostSortPolicy, pool: Pool) -> None:
        sorted_.append(bool((row[1:] >= row[:-1]).all()))
        usual(row, places, policy, pool)

    monkeypatch.setattr(argsort, "argsort_one", noted)
    x = rng.integers(0, 1 << 20, (3, 1 << 17))
    x[1].sort()
    np.testing.assert_array_equal(gpusort.argsort(x, axis=1), np.argsort(x, axis=1, kind="stable"))
    assert sorted_ == [False, False]


def test_words_of_small_numbers_are_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 bits take NumPy half the time of 64."""
    sorted_bits: list[int] = []
    usual = packed_argsort._sorted

    def noted(words: Array, bits: range, policy: HostSortPolicy) -> Array:
        sorted_bits.append(8 * words.itemsize)
        return usual(words, bits, policy)

    monkeypatch.setattr(packed_argsort, "_sorted", noted)
    for dtype in ("i4", "u4", "i8", "u8", "M8[s]"):
        for spread, bits in ((1 << 21, 32), (1 << 22, 64)):
            x = np.random.default_rng(1).integers(0, spread, 1 << 11).astype(dtype)
            x[:2] = np.array([0, spread - 1]).astype(dtype)
            sorted_bits.clear()
            found = packed_argsort.places_packed(x, POLICY)
            np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))
            assert sorted_bits == [bits]


@pytest.mark.parametrize(
    ("shape", "axis"), [((256, 9), 1), ((20, 103), -1), ((103, 20), 0), ((8, 26, 10), 1), ((3, 700), 1)]
)
@pytest.mark.parametrize("dtype", ["u4", "f8", "i2"])
def test_some_short_rows_are_packed_if_they_are_mixed(
    dtype: str, shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a NumPy with vector code for short rows. Rows in order, or nearly, or of hardly any values, are merged by
    NumPy, and so are rows that are very short, or few elements. A top-k that sorts all goes by the same."""
    taken: list[tuple[int, ...]] = []

    def watched(rows: Array, policy: HostSortPolicy) -> Array:
        taken.append(rows.shape)
        return packed_argsort.places_packed(rows, policy)

    for module in argsort_path, argsort:
        monkeypatch.setattr(module, "places_packed", watched)
    are_packed = shape[axis] >= {"u4": 8, "f8": 32, "i2": 1 << 62}[dtype]
    mixed = np.random.default_rng(3).integers(0, 30_000, shape).astype(dtype)
    in_order = np.sort(mixed, axis)
    for is_soon in (True, False):
        monkeypatch.setattr(argsort, "numpy_sorts_words_soon", lambda is_soon=is_soon: is_soon)
        reversed_, with_ties = np.flip(in_order, axis), np.flip(np.sort(mixed // 3000, axis), axis)
        others = in_order, reversed_, with_ties, np.roll(reversed_, 1, axis), mixed % 3, np.zeros_like(mixed)
        few = mixed[..., :7], mixed[:1, ..., :200]
        for x, packs in ((mixed, is_soon and are_packed), *((x, False) for x in (*others, *few))):
            expected = np.argsort(x, axis, kind="stable")
            taken.clear()
            np.testing.assert_array_equal(gpusort.argsort(x, axis=axis), expected)
            assert bool(taken) is packs
            taken.clear()
            np.testing.assert_array_equal(gpusort.top_k(x, x.shape[axis], axis=axis, largest=False)[1], expected)
            assert bool(taken) is packs
