"""Argsort on the processor of elements that are alike, or in a few narrow clusters: right, and by what is fastest."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pytest

import gpusort
from gpusort.algos.host_sort import HostSortPolicy
from gpusort.targets.cpu.host import argsort, numpy_sort
from gpusort.targets.cpu.host.packed_argsort import argsort_packed, places_packed
from gpusort.targets.cpu.pool import Pool, shared_pool
from gpusort.types.indices import SortOrder
from tests.reference import Array
from tests.test_argsort import stable_order

POLICY = attrs.evolve(HostSortPolicy(), part_bytes_from=4096)
Made = Callable[[np.random.Generator, int, int], Array]
KINDS: dict[str, Made] = {
    "any": lambda rng, n, bits: rng.integers(0, 1 << bits, n, np.uint64),
    "two": lambda rng, n, bits: np.where(rng.random(n) < 0.5, 1, 7 << (bits - 4)),
    "mostly zeros": lambda rng, n, bits: np.where(rng.random(n) < 0.9, 0, rng.integers(0, 1 << (bits - 4), n)),
    "half zeros": lambda rng, n, bits: np.where(rng.random(n) < 0.5, 0, rng.integers(0, 1 << (bits - 4), n)),
    "clusters": lambda rng, n, bits: (rng.integers(0, 4, n) << (bits - 3)) + rng.integers(0, 100, n),
    "many small clusters": lambda rng, n, bits: (rng.integers(0, n // 8, n) << (bits - 20)) + rng.integers(0, 9, n),
    "one far away": lambda rng, n, bits: np.where(np.arange(n) == 3, 1 << (bits - 2), rng.integers(0, 1000, n)),
    "all sizes": lambda rng, n, bits: np.exp(rng.random(n) * 0.69 * (bits - 1)).astype(np.uint64),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["u8", "i8", "f8", "u4", "f4", "M8[s]"])
def test_every_order_is_numpys(dtype: str, kind: str) -> None:
    """By one thread, by several, and of several rows."""
    rng = np.random.default_rng(len(kind))
    x = KINDS[kind](rng, 12_000, 8 * np.dtype(dtype).itemsize).astype(f"u{dtype[1]}").view(dtype)
    for order in SortOrder:
        for rows, pool in ((1, None), (1, shared_pool()), (3, None)):
            check(x.reshape(rows, -1), order, pool)


@pytest.mark.parametrize(
    ("dtype", "is_slow", "is_left"), [("u8", False, True), ("u4", False, False), ("u4", True, True)]
)
def test_what_numpy_sorts_faster_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, dtype: str, is_slow: bool, is_left: bool
) -> None:
    """Words of 64 bits that tie are made twice, and NumPy may sort words slowly."""
    left: list[int] = []
    plainly = numpy_sort.places_in_order

    def noted(source: Array, axis: int) -> Array:
        left.append(source.size)
        return plainly(source, axis)

    monkeypatch.setattr(argsort, "places_in_order", noted)
    monkeypatch.setattr(argsort, "numpy_sorts_slowly", lambda size: is_slow)
    for kind, expected in (("two", is_left), ("mostly zeros", is_left), ("any", False), ("clusters", False)):
        left.clear()
        x = KINDS[kind](np.random.default_rng(1), 12_000, 8 * np.dtype(dtype).itemsize).astype(dtype)
        places = argsort.argsort_rows(x[np.newaxis], HostSortPolicy())
        np.testing.assert_array_equal(places[0], np.argsort(x, kind="stable"))
        assert left == [12_000] * expected


def test_more_ties_than_a_word_has_room_for() -> None:
    """Of two million elements each ties with another in all the bits that are packed beside 22 of an index: the number
    of a tie takes 21, and what tells the two apart 22."""
    numbers = np.arange((1 << 21) + 2, dtype=np.uint64)
    x = np.random.default_rng(1).permutation((numbers >> 1 << 43) | (numbers & 1))
    found = x[gpusort.argsort(x, target="cpu")]
    assert (found[1:] > found[:-1]).all()


def check(x: Array, order: SortOrder, pool: Pool | None) -> None:
    numbers = numpy_sort.ascending(x, order)
    if pool is None:
        places = places_packed(numbers, POLICY)
    else:
        places = np.empty(x.shape, np.intp)
        argsort_packed(numbers[0], places[0], POLICY, pool)
    descending = order is SortOrder.DESCENDING
    np.testing.assert_array_equal(places, np.stack([stable_order(row, descending) for row in x]))
