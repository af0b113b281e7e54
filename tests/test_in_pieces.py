"""Host arrays beyond a device's memory: the plan with NumPy in place of the device, and the card where there is one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpusort
from gpusort.algos.words import KeyWords
from gpusort.api.in_pieces.desk import Desk, Piece, Task, piece_length
from gpusort.api.in_pieces.sort import SortedRuns
from gpusort.api.steps import Steps
from gpusort.external.pipeline import SLOTS
from gpusort.targets.cuda.target import CudaTarget
from gpusort.types.dtypes import key_for
from gpusort.types.indices import SortOrder
from tests.covering import examples
from tests.reference import Array as Sample
from tests.reference import assert_same_bits, sample

Sort: TypeAlias = Callable[[Sample, Sample], None]
TASK = Task(Steps(0), (), ())  # whatever it is: these desks sort what they are given


class OnHost(Desk):
    """On a device that is the host, with as much room as it says."""

    def __init__(self, dtype: np.dtype[Any], length: int, descending: bool, stable: bool) -> None:
        self.given = [np.empty(length, dtype) for _ in range(SLOTS)]
        self.sorted = [np.empty(length, dtype) for _ in range(SLOTS)]
        self.descending, self.stable = descending, stable
        self.pieces = 0
        self.fails_at = -1
        self.counts = [0] * SLOTS

    def upload(self, piece: Piece, slot: int) -> Piece:
        whole, (later,) = np.concatenate(piece.given[0]), piece.left
        self.given[slot][: whole.size] = whole
        self.counts[slot] = whole.size
        later.view(np.uint8)[...] = 0
        return piece

    def work(self, _: int, piece: Piece, slot: int) -> Piece:
        self.pieces += 1
        if self.pieces == self.fails_at:
            raise RuntimeError("the device stopped working")
        given = self.given[slot][: self.counts[slot]]
        self.sorted[slot][: given.size] = gpusort.sort(given, descending=self.descending, stable=self.stable)
        return piece

    def download(self, _: int, piece: Piece, slot: int) -> None:
        (elements,) = piece.left
        elements[...] = self.sorted[slot][: elements.size]

    def host_memory(self, nbytes: int) -> AbstractContextManager[Sample]:
        return nullcontext(np.empty(nbytes, np.uint8))


def sorter(x: Sample, length: int, descending: bool = False, stable: bool = False) -> tuple[Sort, OnHost]:
    device = OnHost(x.dtype, length, descending, stable)
    order = SortOrder.DESCENDING if descending else SortOrder.ASCENDING
    words = KeyWords(key_for(x.dtype), order).to_words(ranks=stable)
    runs = SortedRuns(words, (x.dtype,), lambda _: TASK, lambda _: TASK)
    return lambda x, out: runs.sort(device, length, [x], [out]), device


@pytest.mark.parametrize("dtype", ["u1", "f4", "i8", "f8", "M8[s]"])
@pytest.mark.parametrize("stable", [False, True])
def test_pieces_come_to_the_whole(dtype: str, stable: bool) -> None:
    for size, length in ((1, 1), (7, 3), (100, 100), (101, 100), (999, 100), (1000, 100)):
        x = sample(dtype, size, seed=size)
        for descending in (False, True):
            sort, device = sorter(x, length, descending, stable)
            out = np.empty_like(x)
            sort(x, out)
            assert_same_bits(out, gpusort.sort(x, descending=descending, stable=stable))
            assert device.pieces == 2 * -(-size // length)


@pytest.mark.parametrize("values", [1, 2, 300])
def test_in_place_and_with_ties(values: int) -> None:
    x = np.random.default_rng(values).integers(0, values, 5000).astype(np.uint16)
    expected = np.sort(x)
    sorter(x, 777)[0](x, x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("lies", ["random", "ascending", "descending", "nearly ascending"])
def test_many_long_runs(lies: str, descending: bool) -> None:
    """So long that cuts take rounds, and so many that the last round gathers more than a few elements."""
    rng = np.random.default_rng(24)
    x = rng.random(1_200_000, np.float32)
    if lies != "random":
        x.sort()
    x = x[::-1].copy() if lies == "descending" else x + x.dtype.type(1e-3) * (lies[0] == "n") * rng.random(x.size, "f4")
    expected = np.sort(x)[::-1] if descending else np.sort(x)
    sorter(x, 50_000, descending)[0](x, x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("piece", range(1, 9))
def test_what_fails_in_place_leaves_every_element(piece: int) -> None:
    x = sample("f8", 4000, seed=3)
    before = np.sort(x.view(np.uint64))
    sort, device = sorter(x, 1000)
    device.fails_at = piece
    with pytest.raises(RuntimeError, match="stopped working"):
        sort(x, x)
    np.testing.assert_array_equal(np.sort(x.view(np.uint64)), before)


class PairsOnHost(Desk):
    """The same for keys and what goes along with them, by NumPy. A single one that does is the first of their indices,
    or the index of a single key."""

    def __init__(self) -> None:
        self.given: dict[int, list[Sample]] = {}
        self.made: dict[int, list[Sample]] = {}

    def upload(self, piece: Piece, slot: int) -> Piece:
        self.given[slot] = [np.concatenate(parts) for parts in piece.given]
        return piece

    def work(self, _: int, piece: Piece, slot: int) -> Piece:
        keys, *others = self.given[slot]
        order = np.argsort(keys, kind="stable")
        columns = [others[0] + np.arange(keys.size)] if others[0].size == 1 else others
        self.made[slot] = [column[order] for column in (keys, *columns)]
        return piece

    def download(self, _: int, piece: Piece, slot: int) -> None:
        for column, wanted in zip(self.made[slot][-len(piece.left) :], piece.left, strict=True):
            wanted[...] = column

    def host_memory(self, nbytes: int) -> AbstractContextManager[Sample]:
        return nullcontext(np.empty(nbytes, np.uint8))


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 300), st.integers(1, 60), st.integers(1, 40), st.randoms(use_true_random=False))
def test_equal_keys_keep_their_order_wherever_runs_are_cut(size: int, length: int, values: int, some: Random) -> None:
    keys = np.array([some.randrange(values) for _ in range(size)], np.uint32)
    places = np.zeros(size, np.int64)
    device = PairsOnHost()
    numbered = SortedRuns(lambda part: part, (keys.dtype, places.dtype), lambda _: TASK, lambda _: TASK)
    numbered.sort(device, length, [keys], [places])
    np.testing.assert_array_equal(places, np.argsort(keys, kind="stable"))
    found, moved = np.zeros_like(keys), np.zeros(size, np.int16)
    values_of = np.arange(size, dtype=np.int16)[::-1].copy()
    pairs = SortedRuns(lambda part: part, (keys.dtype, moved.dtype), lambda _: TASK, lambda _: TASK)
    pairs.sort(device, length, [keys, values_of], [found, moved])
    np.testing.assert_array_equal(found, np.sort(keys))
    np.testing.assert_array_equal(moved, values_of[places])


def test_lengths() -> None:
    assert piece_length(12 << 27, 4) == 1 << 27  # enough pieces to have both ways busy
    assert piece_length(1000, 4) == 1000
    assert piece_length(1 << 25, 4) == 1 << 24  # no less than is worth a device
    assert piece_length(3, 1 << 40) == 1
    assert piece_length(1 << 40, 1) == (1 << 32) - 1  # which is what kernels count to


@pytest.mark.parametrize("dtype", ["u4", "f4", "i8", "M8[s]"])
def test_on_a_card_with_little_memory(real_card: CudaTarget, dtype: str) -> None:
    import cupy

    x = sample(dtype, (160 << 20) // np.dtype(dtype).itemsize, seed=1)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(pool.used_bytes() + (256 << 20))
    try:
        for descending in (False, True):
            for stable in (False, True):
                found = gpusort.sort(x, target=real_card, descending=descending, stable=stable)
                assert_same_bits(found, gpusort.sort(x, descending=descending, stable=stable))
        expected = gpusort.sort(x)
        gpusort.sort_inplace(x, target=real_card)
        assert_same_bits(x, expected)
    finally:
        pool.set_limit(0)
